"""The options of SCL-RAI: the parts that its paper switches on and off, and our additions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onoma.errors import OnomaError
from onoma.systems.options import check_ranges

DATASTORE_FILE = "datastore.json"
"""The artifact that holds the centre of each label."""


@dataclass(frozen=True, slots=True)
class SclRaiOptions:
    """Options of an SCL-RAI model; the defaults are the paper's full model with negative sampling."""

    vector_size: int = 256  # of the span vectors r
    dropout: float = 0.4
    max_width: int = 30  # words of the longest span that is proposed
    max_train_width: int | None = None  # words of the longest span in training; None: no limit, as in the paper
    negative_sampling: Literal["none", "uniform", "weighted"] = "uniform"  # which unlabelled spans are negatives
    negative_rate: float = 0.35  # sampled negatives per word
    contrast_weight: float = 0.1  # λ of equation 10; 0: cross-entropy only
    temperature: float = 0.1  # τ of equation 9
    contrast_non_entities: bool = True  # whether non-entity spans are a class of their own in equation 8
    positive_in_denominator: bool = False  # True: the usual supervised contrastive loss; False: equation 9 as printed
    gather_negatives: bool = False  # whether instances of all processes of a distributed training are contrasted
    retrieval_weight: float = 0.5  # α of equation 16; 0: no retrieval
    retrieval_temperature: float = 1.0  # of the softmax in equation 14; the paper has none

    def __post_init__(self) -> None:
        check_ranges(
            self,
            at_least_1=("vector_size", "max_width", "max_train_width"),
            positive=("temperature", "retrieval_temperature"),
            not_negative=("negative_rate",),
            from_0_to_1=("dropout", "contrast_weight", "retrieval_weight"),
        )
        if self.contrast_weight == 1 or self.dropout == 1:
            raise OnomaError("options 'contrast_weight' and 'dropout' must be less than 1, or nothing is learned")
