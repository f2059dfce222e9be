"""Untrained SUNER models on tiny encoders of several families."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from onoma.inputs.batches import Batch
from onoma.systems.suner.model import Suner
from onoma.systems.suner.options import SunerOptions
from tiny_batches import batch_of, random_tokens
from tiny_encoders import PADS, VOCABULARY, tiny_encoder

SIZES = {"detector_size": 12, "matcher_size": 10, "vector_size": 8, "max_width": 5}


def tiny_suner(family: str = "bert", encoder: dict[str, Any] | None = None, **options: Any) -> Suner:
    """A model in evaluation mode whose detector accepts about every other span."""
    chosen = SunerOptions(**(SIZES | options))
    detection_encoder = tiny_encoder(family, **encoder or {}) if chosen.form == "two-stage" else None
    if detection_encoder is not None:
        for weight in detection_encoder.parameters():  # they differ from those of the encoder that reads markers
            weight.data += 0.05 * torch.randn_like(weight)
    model = Suner(tiny_encoder(family, **encoder or {}), detection_encoder, chosen)
    torch.manual_seed(0)
    if chosen.form != "one-stage":
        nn.init.normal_(model.markers)
        nn.init.normal_(model.detector.bilinear, std=2.0)
        nn.init.zeros_(model.detector.start_linear.bias)
    nn.init.normal_(model.span_vectors.bilinear, std=0.5)
    return model.eval()


def random_batch(counts: Sequence[Sequence[int]], family: str = "bert") -> Batch:
    """Windows of random tokens, given by the number of tokens of each word."""
    return batch_of(random_tokens(counts, 5, VOCABULARY), SimpleNamespace(pad=PADS[family], cls=3, sep=4))
