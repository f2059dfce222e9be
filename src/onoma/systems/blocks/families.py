"""Families of pretrained encoders, and the names of the parts of their layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LayerNames:
    """The names of the parts of one layer, below `encoder.layer.N`."""

    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    output: str = "attention.output.dense"
    norm: str = "attention.output.LayerNorm"
    inner: str = "intermediate.dense"
    outer: str = "output.dense"
    outer_norm: str = "output.LayerNorm"
    counts_padding: bool = False  # positions start behind the id of the padding token


_ROBERTA = LayerNames(counts_padding=True)
FAMILIES = {
    "bert": LayerNames(),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": LayerNames(
        "attention.attn.q",
        "attention.attn.k",
        "attention.attn.v",
        "attention.attn.o",
        "attention.LayerNorm",
        counts_padding=True,
    ),
}


def layer_names(config: Any) -> LayerNames | None:
    """The names of an encoder's parts, if it belongs to a known family."""
    return FAMILIES.get(config.model_type) if getattr(config, "hidden_act", "") == "gelu" else None
