"""What tests of training share: an untrained encoder, a small corpus, and a recipe that learns it in a few seconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from onoma import Document
from onoma.data import write
from onoma.training.recipe import Recipe, load_recipe
from tiny import OPTIONS, TYPES, documents, train_tokenizer

MARKERS = ["[unused1]", "[unused2]"]
SHORT = {"max_steps": 4, "eval_steps": 2, "checkpoints": False}
"""Settings of `training` for a run of a few steps."""
TIMES = ("seconds", "train_seconds", "train_words_per_second")
SUNER_OPTIONS = {"detector_size": 32, "matcher_size": 16, "vector_size": 16, "max_width": 8}


def save_encoder(folder: Path, texts: Sequence[Document] = ()) -> Path:
    """A tiny BERT with random weights that can read some texts, as a folder that `encoder:` of a recipe may name."""
    tokenizer = train_tokenizer([one.text for one in texts or documents()])
    tokenizer.add_special_tokens(MARKERS)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), **size)).save_pretrained(folder)
    return folder


def write_corpus(root: Path) -> Path:
    """The corpus `small`: three splits of the tiny sentences."""
    texts = documents()
    parts = {"train": [one for i, one in enumerate(texts) if i % 5 > 1], "dev": texts[::5], "test": texts[1::5]}
    for name, part in parts.items():
        write(part, root / "small" / f"{name}.jsonl")
    lines = (json.dumps({"name": one.name, "description": one.description}) + "\n" for one in TYPES)
    (root / "small" / "types.jsonl").write_text("".join(lines), "utf-8")
    return root


def small_recipe(encoder: Path) -> dict[str, Any]:
    """The values of a recipe for the small corpus; an epoch has 6 steps."""
    return {
        "system": "binder",
        "encoder": str(encoder),
        "max_tokens": 130,
        "data": {"corpora": [{"path": "small"}], "names": "labels", "windows": "sentence"},
        "options": dict(OPTIONS),
        "training": {
            "max_steps": 60,
            "batch_size": 16,
            "learning_rate": 5e-3,
            "eval_steps": 20,
            "dataloader_workers": 0,
            "description_dropout": 0.3,
        },
    }


def changed_recipe(values: dict[str, Any], **changes: Any) -> Recipe:
    """A recipe with some values changed: dictionaries are merged, other values replaced."""
    copied = deepcopy(values)
    for part, change in changes.items():
        copied[part] = {**copied.get(part, {}), **change} if isinstance(change, dict) else change
    return load_recipe(copied)


def suner_recipe(values: dict[str, Any], **changes: Any) -> Recipe:
    """The same for a two-stage SUNER."""
    return changed_recipe({**values, "system": "suner", "options": SUNER_OPTIONS}, **changes)


def metrics_of(run: Path) -> dict[str, Any]:
    """The metrics of a run without the times that it took."""
    metrics: dict[str, Any] = json.loads((run / "metrics.json").read_text("utf-8"))
    for part in (metrics, *metrics.get("stages", {}).values()):
        for name in TIMES:
            part.pop(name, None)
    return metrics


def curve_of(run: Path, name: str = "curve") -> list[dict[str, Any]]:
    """The rows of a training curve."""
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text("utf-8").splitlines()]
