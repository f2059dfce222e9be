"""The choices that SUNER's paper makes and compares, and ours on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from onoma.errors import OnomaError

Form = Literal["two-stage", "one-stage", "fused"]
Stage = Literal["detection", "classification", "one-stage", "fused"]
STAGES: dict[Form, tuple[Stage, ...]] = {
    "two-stage": ("detection", "classification"),
    "one-stage": ("one-stage",),
    "fused": ("fused",),
}
"""The stages in which each form is trained."""


@dataclass(frozen=True, slots=True)
class SunerOptions:
    """Settings of a SUNER model."""

    form: Form = "two-stage"  # fused is ours: one encoder, one pass over the text
    hidden: int = 300  # d_h of the detector's biaffine layer
    match_hidden: int = 128  # d_h of the biaffine layer over markers
    size: int = 128  # d_r: of the vectors that are compared
    max_width: int = 30  # words of the longest span proposed
    boundary_weight: float = 0.7  # λ of equation 7
    detection_threshold: float = 0.5  # θ1
    candidates: Literal["flat", "nested", "any"] = "nested"  # how candidates may overlap
    most_candidates: int = 64  # in one window; the best ones
    temperature: float = 0.07  # τ at the start; it is learned
    spans: Literal["markers", "both"] = "both"  # r of markers alone (paper), or of markers and text (ours)
    markers: bool = True  # table 5: without them, spans are made of the text's own states
    attention_mask: bool = True  # table 5: text does not see markers
    tied_positions: bool = True  # table 5: a marker has the position of its token
    reject: Literal["learned", "cosine"] = "learned"  # a learned "nothing" to beat (ours), or cosine above θ2
    match_threshold: float = 0.4  # θ2
    positive_in_denominator: bool = True  # the usual InfoNCE; False: equation 13 as printed
    negatives: float = 1.0  # spans that are no mention, for each that is, sampled for the classifier; paper: 0
    mined: bool = False  # the detector's own mistakes among them
    dataset_prefix: bool = False  # the corpus's name stands before the text; none where nothing is known of it
    pooling: Literal["first", "mean"] = "first"  # how the states of a type's description become one vector
    types: Literal["description", "name"] = "description"
    detection_weight: float = 0.0  # of the detector's logit in the score; fitted on development data

    def __post_init__(self) -> None:
        if self.form == "fused" and not (self.markers and self.attention_mask and self.tied_positions):
            raise OnomaError(
                "the fused form needs markers, attention_mask and tied_positions; the two-stage one does not"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SunerOptions:
        """The options among the values that a model's configuration holds."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})
