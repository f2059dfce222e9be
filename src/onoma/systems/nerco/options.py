"""The options of NerCo: the parts that its paper switches on and off, and our additions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onoma.errors import OnomaError
from onoma.systems.blocks.tagging import Scheme
from onoma.systems.options import check_ranges

LEXICON_FILE = "lexicon.txt.xz"
"""The artifact that holds the words of the lattice."""
VECTOR_NAMES_FILE = "word_vectors.txt.xz"
"""The artifact that holds the words and characters that have vectors, in the order of the table."""


@dataclass(frozen=True, slots=True)
class NerCoOptions:
    """Options of a NerCo model; the defaults are the paper's full model on FLAT."""

    scheme: Scheme = "bio"
    lattice: bool = True  # False: the encoder's states are tagged, which without contrast is BERT-CRF
    layers: int = 1  # of the lattice
    heads: int = 8
    head_size: int = 20
    inner_size: int = 480  # of the feed-forward layer
    embedding_dropout: float = 0.5
    inner_dropout: float = 0.15
    output_dropout: float = 0.3
    max_nodes: int = 256  # lexicon words of a window; the longest ones stay
    tune_word_vectors: bool = False
    encoder_scores: bool = False  # whether tags get scores from the encoder's states, too, beside the lattice's
    contrast: Literal["first", "joint", "none"] = "first"  # a stage of its own, or added to the loss of tagging
    contrast_non_entities: bool = False  # whether non-entity words attract each other, too
    gather_negatives: bool = False  # whether instances of all processes of a distributed training are contrasted
    temperature: float = 0.07  # τ of equation 1
    freeze_encoder: bool = True  # in the contrastive stage; the lattice is trained
    warm_start: Literal["none", "head", "gradual"] = "none"  # gradual: first the head, then the lattice with it
    vector_rows: int = 0  # of the table of word vectors; set by training
    vector_size: int = 100  # of word vectors; set by training if there are pretrained ones

    def __post_init__(self) -> None:
        check_ranges(
            self,
            at_least_1=("layers", "heads", "head_size", "inner_size", "max_nodes", "vector_size"),
            positive=("temperature",),
            not_negative=("vector_rows",),
            from_0_to_1=("embedding_dropout", "inner_dropout", "output_dropout"),
        )
        if not self.lattice and self.contrast == "first" and self.freeze_encoder:
            raise OnomaError(
                "without a lattice, the contrastive stage has nothing to train but the encoder. "
                "Fix: set options.freeze_encoder to false, or options.contrast to none"
            )

    def stage_names(self) -> tuple[str, ...]:
        """The stages of training, in their order."""
        warm_start = {"none": (), "head": ("head",), "gradual": ("head", "lattice")}[self.warm_start]
        return (*(("contrast",) if self.contrast == "first" else ()), *warm_start, "tag")
