"""The options of BINDER: the choices that its paper compares, and our additions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onoma.errors import OnomaError
from onoma.systems.options import NegativeSampling, check_ranges

RENAMED = {
    "size": "vector_size",
    "train_width": "max_train_width",
    "positions": "position_losses",
    "weights": "loss_weights",
    "focus": "gamma",
    "ranking": "narrow_type_weight",
}
"""Former names of options."""
PROTOTYPES_FILE = "prototypes.json"
"""The artifact that holds prototypical instances of types."""


@dataclass(frozen=True, slots=True)
class BinderOptions:
    """Options of a BINDER model; the defaults are the paper's full model."""

    vector_size: int = 128  # of text and type vectors
    width_size: int = 128  # of the width embeddings D
    max_width: int = 30  # words of the longest span that is proposed; widths count words
    max_train_width: int | None = None  # words of the longest span in training; None: no limit, as in the paper
    temperature: float = 0.07  # initial value; each of the three is learned
    shared_encoder: bool = False  # one encoder for text and types (ours)
    word_shapes: bool = False  # read how words are written, for encoders that see lower-case letters only (ours)
    shape_dropout: float = 0.1  # share of training windows whose word shapes are not shown
    shared_linear: bool = False  # table 4: one projection for spans and positions
    position_losses: bool = True  # table 4: start and end objectives
    inference: Literal["span", "joint"] = "span"  # table 4
    thresholds: Literal["dynamic", "global", "tuned"] = "dynamic"  # table 6
    types: Literal["description", "name", "atomic", "prototype"] = "description"  # table 5
    pooling: Literal["first", "mean"] = "first"  # how the states of the type encoder become one vector
    loss_weights: tuple[float, float, float] = (0.2, 0.2, 0.6)  # α, γ, λ of equation 10
    beta: float = 0.5  # of equations 8 and 9
    objective: Literal["contrast", "sigmoid"] = "contrast"  # sigmoid (ours): a binary decision per span and type
    gamma: float = 2.0  # of the focal loss, for the sigmoid objective
    narrow_type_weight: float = 0.0  # of the loss by which the narrower of two types of a mention fits better (ours)
    breadth_head: bool = False  # a breadth per type, which chooses between the labels of one span (ours)
    threshold_loss: Literal["annotated", "present"] = "annotated"  # for which types of a window thresholds are learned
    negative_sampling: NegativeSampling = "none"  # which unlabelled spans are negatives (ours)
    negative_rate: float = 0.35  # sampled negatives per word

    def __post_init__(self) -> None:
        check_ranges(
            self,
            at_least_1=("vector_size", "width_size", "max_width", "max_train_width"),
            positive=("temperature",),
            not_negative=("gamma", "narrow_type_weight", "negative_rate"),
            from_0_to_1=("beta", "shape_dropout"),
        )
        if min(self.loss_weights) < 0 or not sum(self.loss_weights):
            weights = list(self.loss_weights)
            raise OnomaError(f"option 'loss_weights' must be three weights of at least 0, not all 0, got {weights}")
        if self.breadth_head and self.narrow_type_weight:
            raise OnomaError(
                "options 'breadth_head' and 'narrow_type_weight' exclude each other: both prefer narrow types, the "
                "first by the choice between labels, the second by scores. Fix: leave out one of them, or set "
                "'narrow_type_weight' to 0"
            )
