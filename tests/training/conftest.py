"""What tests of training share: an encoder that nobody has trained, a small corpus, a recipe that fits them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from onoma.data import write
from onoma.subwords import Subwords
from tiny import TYPES, documents, train_tokenizer

torch.set_num_threads(1)
MARKERS = ["[unused1]", "[unused2]"]


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with random weights, as a folder that `encoder:` of a recipe may name."""
    folder = tmp_path_factory.mktemp("encoders") / "tiny-bert"
    tokenizer = train_tokenizer([one.text for one in documents()])
    tokenizer.add_special_tokens(MARKERS)
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), **size)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def subwords(encoder_folder: Path) -> Subwords:
    """The tokenizer of the encoder."""
    return Subwords.load(encoder_folder)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus `small`, in three splits of the tiny sentences."""
    root, texts = tmp_path_factory.mktemp("data"), documents()
    parts = {"train": [one for i, one in enumerate(texts) if i % 5 > 1], "dev": texts[::5], "test": texts[1::5]}
    for name, part in parts.items():
        write(part, root / "small" / f"{name}.jsonl")
    lines = (json.dumps({"name": one.name, "description": one.description}) + "\n" for one in TYPES)
    (root / "small" / "types.jsonl").write_text("".join(lines), "utf-8")
    return root


@pytest.fixture(scope="session")
def values(encoder_folder: Path) -> dict[str, Any]:
    """A recipe with which the small corpus is learned in a few seconds. 6 steps are an epoch."""
    return {
        "system": "binder",
        "encoder": str(encoder_folder),
        "max_tokens": 130,
        "data": {"corpora": [{"path": "small"}], "names": "labels", "windows": "sentence"},
        "options": {"size": 32, "width_size": 16, "max_width": 8, "shared_encoder": True},
        "training": {
            "max_steps": 60,
            "batch_size": 16,
            "rate": 5e-3,
            "evaluate_every": 20,
            "workers": 0,
            "type_dropout": 0.3,
        },
    }
