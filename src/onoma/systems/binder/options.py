"""The choices that BINDER's paper compares, and ours on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class BinderOptions:
    """Settings of a BINDER model; the defaults are the paper's full model."""

    size: int = 128  # of every vector that is compared
    width_size: int = 128  # of the width embeddings D
    max_width: int = 30  # words of the longest span proposed; widths count words
    train_width: int | None = None  # words of the longest span in training; None: no limit, as in the paper
    temperature: float = 0.07  # at the start; each of the three is learned
    shared_encoder: bool = False  # one set of weights for text and types (ours)
    shared_linear: bool = False  # table 4: one projection for spans and positions
    positions: bool = True  # table 4: start and end objectives
    inference: Literal["span", "joint"] = "span"  # table 4
    thresholds: Literal["dynamic", "global", "tuned"] = "dynamic"  # table 6
    types: Literal["description", "name", "atomic", "prototype"] = "description"  # table 5
    pooling: Literal["first", "mean"] = "first"  # how the type encoder's states become one vector
    weights: tuple[float, float, float] = (0.2, 0.2, 0.6)  # α, γ, λ of equation 10
    beta: float = 0.5  # of equations 8 and 9
    objective: Literal["contrast", "sigmoid"] = "contrast"  # sigmoid (ours): each span and type is a yes or no
    focus: float = 2.0  # of the sigmoid objective: how much less what is already clear counts
    ranking: float = 0.0  # weight of: of two types of a mention, the narrower one fits better (ours)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> BinderOptions:
        """The options among the values that a model's configuration holds."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})
