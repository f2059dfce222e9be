"""The options of PUnifiedNER: the set-ups that its paper compares, generation, and our additions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onoma.systems.options import check_ranges

PromptSetup = Literal["dataset", "random", "random+exact", "dataset+random"]
"""Which annotated types a training example asks for. dataset: all; random: a random number of them; random+exact: with
equal chances random, or those that have a mention; dataset+random: with equal chances dataset or random."""


@dataclass(frozen=True, slots=True)
class PUnifiedNerOptions:
    """Options of a PUnifiedNER model; by default with the paper's best prompts, and constrained."""

    stages: Literal["adapt+joint", "joint", "adapt"] = "adapt+joint"
    prompts: PromptSetup = "dataset"
    max_types: int = 32  # of one prompt; more types are asked for in several passes
    max_prompt_tokens: int = 256  # of one prompt, in use
    max_answer_tokens: int = 256  # of an answer, beyond the tokens that an answer without mentions needs
    beams: int = 1  # 1: greedy search
    constrained: bool = True  # only types that were asked for and spans of the text can be generated

    def __post_init__(self) -> None:
        check_ranges(self, at_least_1=("max_types", "max_prompt_tokens", "max_answer_tokens", "beams"))
