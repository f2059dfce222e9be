"""A tiny T5 with random weights and a tokenizer like that of T5, for PUnifiedNER."""

from __future__ import annotations

import re
import string
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from onoma.training.recipe import Recipe
from tiny import TYPES, documents
from tiny_training import changed_recipe

SPECIAL = ("<pad>", "</s>", "<unk>")
SENTINELS = tuple(f"<extra_id_{number}>" for number in range(5))
SIZES: dict[str, Any] = {"d_model": 48, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_heads": 4}


def t5_tokenizer(texts: list[str]) -> Tokenizer:
    """Words with the mark of a word start are one token, all other words are letters; some signs are unknown."""
    words = sorted({f"▁{word}" for text in texts for word in re.findall(r"\w+", text)})
    letters = sorted({*string.ascii_letters, *string.digits, *".,()-'", "▁"})
    pieces = [*((one, 0.0) for one in SPECIAL), *((one, -10.0) for one in letters), *((one, -1.0) for one in words)]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=2, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([*SPECIAL, *SENTINELS])
    tokenizer.post_processor = TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def save_t5(folder: Path, *, own_output: bool = False) -> Path:
    """A folder that `encoder:` of a recipe may name; its output layer is that of the embeddings, or its own."""
    tokenizer = t5_tokenizer([one.text for one in documents()] + [one.name for one in TYPES])
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    settings = {"vocab_size": tokenizer.get_vocab_size(), "decoder_start_token_id": 0, "dropout_rate": 0.0}
    model = T5ForConditionalGeneration(T5Config(**SIZES, **settings, tie_word_embeddings=not own_output))
    if own_output:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight) * 0.1)
    model.save_pretrained(folder)
    return folder


def punifiedner_recipe(values: dict[str, Any], encoder: Path, **changes: Any) -> Recipe:
    """A recipe for the small corpus."""
    return changed_recipe({**values, "system": "punifiedner", "encoder": str(encoder), "options": {}}, **changes)
