"""The options of SUNER: the choices of its paper, and our additions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onoma.errors import OnomaError
from onoma.systems.options import NegativeSampling, check_ranges

Form = Literal["two-stage", "one-stage", "fused"]
StageName = Literal["detection", "classification", "one-stage", "fused"]
STAGES: dict[Form, tuple[StageName, ...]] = {
    "two-stage": ("detection", "classification"),
    "one-stage": ("one-stage",),
    "fused": ("fused",),
}
"""The training stages of each form."""
MAX_MARKED = 32
"""Candidates of a window in training; of more, a random choice."""
RENAMED = {
    "hidden": "detector_size",
    "match_hidden": "matcher_size",
    "size": "vector_size",
    "most_candidates": "max_candidates",
    "reject": "rejection",
    "negatives": "negatives_per_mention",
    "mined": "hard_negatives",
}
"""Former names of options."""


@dataclass(frozen=True, slots=True)
class SunerOptions:
    """Options of a SUNER model."""

    form: Form = "two-stage"  # fused is ours: one encoder, one pass over the text
    detector_size: int = 300  # d_h of the detector's biaffine layer
    matcher_size: int = 128  # d_h of the biaffine layer over markers
    vector_size: int = 128  # d_r: of span and type vectors
    max_width: int = 30  # words of the longest span that is proposed
    boundary_weight: float = 0.7  # λ of equation 7
    detection_threshold: float = 0.5  # θ1
    candidates: Literal["flat", "nested", "any"] = "nested"  # how candidates may overlap
    max_candidates: int = 64  # per window, the best ones
    temperature: float = 0.07  # τ, or its initial value if it is learned
    learned_temperature: bool = True  # False (paper): τ is a setting
    spans: Literal["markers", "both"] = "both"  # r from markers only (paper), or from markers and text (ours)
    markers: bool = True  # table 5; without them, spans are made of the text's own states
    marker_identity: Literal["shared", "numbered", "paired"] = "shared"  # what tells the markers of pairs apart
    attention_mask: bool = True  # table 5: text does not attend to markers
    tied_positions: bool = True  # table 5: a marker has the position of its token
    rejection: Literal["learned", "cosine"] = "learned"  # a learned "nothing" vector (ours), or cosine above θ2
    match_threshold: float = 0.4  # θ2
    positive_in_denominator: bool = True  # the usual InfoNCE; False: equation 13 as printed
    negatives_per_mention: float = 1.0  # sampled spans that are no mention, for the classifier; paper: 0
    hard_negatives: bool = False  # the detector's mistakes among them
    dataset_prefix: bool = False  # the name of the corpus before the text
    pooling: Literal["first", "mean"] = "first"  # how the states of a type description become one vector
    types: Literal["description", "name"] = "description"
    detection_weight: float = 0.0  # of the detector's logit in the score; chosen on development data
    negative_sampling: NegativeSampling = "none"  # which unlabelled spans the detector rejects
    negative_rate: float = 0.35  # sampled negatives per word

    def __post_init__(self) -> None:
        check_ranges(
            self,
            at_least_1=("detector_size", "matcher_size", "vector_size", "max_width", "max_candidates"),
            positive=("temperature",),
            not_negative=("negatives_per_mention", "detection_weight", "negative_rate"),
            from_0_to_1=("boundary_weight", "detection_threshold"),
        )
        if self.marker_identity != "shared" and (self.form == "one-stage" or not self.markers):
            raise OnomaError(
                f"`marker_identity: {self.marker_identity}` needs markers. Fix: use it in the two-stage or fused form "
                "with `markers: true`"
            )
        if self.form == "fused" and not (self.markers and self.attention_mask and self.tied_positions):
            raise OnomaError(
                "the fused form needs markers, attention_mask and tied_positions. Fix: use the two-stage form without"
            )

    @property
    def marker_numbers(self) -> int:
        """How many numbers markers can have: [e_1], [e_2], ...; without numbered markers there is one."""
        return max(self.max_candidates, MAX_MARKED) if self.marker_identity == "numbered" else 1
