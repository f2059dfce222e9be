"""SUNERs that nobody has trained, on tiny encoders of several families."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn

from onoma.batches import Batch, collate
from onoma.subwords import Pieces
from onoma.systems.suner.model import Suner
from onoma.systems.suner.options import SunerOptions
from tiny_encoders import PADS, VOCABULARY, tiny_encoder

SIZES = {"hidden": 12, "match_hidden": 10, "size": 8, "max_width": 5}


def tiny_suner(family: str = "bert", encoder: dict[str, Any] | None = None, **options: Any) -> Suner:
    """A model without dropout whose detector takes about every other span for a mention."""
    chosen = SunerOptions(**(SIZES | options))
    detection_encoder = tiny_encoder(family, **encoder or {}) if chosen.form == "two-stage" else None
    if detection_encoder is not None:
        for weight in detection_encoder.parameters():  # other than those of the encoder that reads markers
            weight.data += 0.05 * torch.randn_like(weight)
    model = Suner(tiny_encoder(family, **encoder or {}), detection_encoder, chosen)
    torch.manual_seed(0)
    if chosen.form != "one-stage":
        nn.init.normal_(model.markers)
        nn.init.normal_(model.detector.bilinear, std=2.0)
        nn.init.zeros_(model.detector.start_linear.bias)
    nn.init.normal_(model.span_vectors.bilinear, std=0.5)
    return model.eval()


def random_batch(counts: tuple[list[int], ...], family: str = "bert") -> Batch:
    """Windows of random tokens, given by how many tokens each word has."""
    generator = np.random.default_rng(0)
    pieces = [
        Pieces(generator.integers(5, VOCABULARY, sum(one)).astype(np.int32), np.array(one, np.int32)) for one in counts
    ]
    return collate(pieces, SimpleNamespace(pad=PADS[family], first=3, last=4))  # type: ignore[arg-type]
