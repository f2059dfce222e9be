"""Pretrained encoders from a hub name or a folder, and where they are kept in a model folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from onoma.errors import OnomaError
from onoma.subwords import mend
from onoma.systems.blocks.families import layer_names
from onoma.systems.blocks.graphs import Recorded
from onoma.systems.blocks.transformer import Transformer

ENCODER_FOLDER = "encoder"


def load_encoder(name: str | os.PathLike[str]) -> nn.Module:
    """The pretrained encoder of a hub name or folder, without its pooling layer."""
    with _loading_errors(name):
        return _without_pooler(AutoModel.from_pretrained(name, dtype=torch.float32))


def empty_encoder(folder: str | os.PathLike[str]) -> nn.Module:
    """An encoder of the kind that a model folder describes, its weights still to be filled in."""
    config = AutoConfig.from_pretrained(Path(folder) / ENCODER_FOLDER)
    return _without_pooler(AutoModel.from_config(config))  # type: ignore[no-untyped-call]


def save_tokenizer(encoder_name: str, folder: str | os.PathLike[str]) -> None:
    """Write the encoder's tokenizer.json into a model folder, able to read capital letters and curly quotes."""
    with _loading_errors(encoder_name):
        tokenizer = AutoTokenizer.from_pretrained(encoder_name)
    tokenizer.save_pretrained(folder)
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise OnomaError(f"the tokenizer of {encoder_name!r} has no fast version, which Onoma needs")
    fast = Tokenizer.from_file(str(path))
    if mend(fast):
        fast.save(str(path))


@contextmanager
def _loading_errors(name: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise OnomaError(f"cannot load the encoder {name!s}: {error}. Give a hub name or a model folder.") from error


def _without_pooler(encoder: Any) -> nn.Module:
    if hasattr(encoder, "pooler"):
        encoder.pooler = None
    module: nn.Module = encoder
    return module


def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the states that are no padding: (batch, tokens, d) -> (batch, d)."""
    weight = mask.unsqueeze(-1).to(states.dtype)
    return (states * weight).sum(1) / weight.sum(1).clamp(min=1)


def encoding(encoder: Any) -> Recorded:
    """The pass from token ids and mask to states (texts, tokens, hidden), ready to be recorded for training."""
    if layer_names(encoder.config) is None:
        return Recorded(encoder, lambda ids, mask: encoder(input_ids=ids, attention_mask=mask).last_hidden_state)
    transformer = Transformer(encoder)
    return Recorded(encoder, lambda ids, mask: transformer.plain(ids, mask)[0])
