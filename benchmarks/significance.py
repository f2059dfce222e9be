"""Paired bootstrap between the runs of two systems: counts of mentions per document, and records of differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.evaluation.bootstrap import Difference, paired_bootstrap_of_corpora
from records import Record

Counts = Mapping[str, Mapping[int, NDArray[np.int64]]]
"""By corpus and seed: gold, predicted and correct mentions of each document, (documents, 3)."""

SAMPLES = 2000


def count_mentions(model: Path, data: Path) -> dict[str, list[list[int]]]:
    """The counts of a run on the test data, by corpus; a scorer of `experiments.Run`."""
    from onoma.training import compare
    from onoma.training.recipe import load_recipe

    recipe = load_recipe(model.parent / "recipe.yaml")
    return {one.name: rows.tolist() for one, rows in compare.count_mentions(model, recipe, data, "test")}


def difference_records(
    own: Counts, other: Counts, *, name: str, against: str, corpora: Sequence[str], **about: Any
) -> Iterator[Record]:
    """The F1 of one system minus that of another and its p-value, for each corpus and for the mean over `corpora`.

    Only seeds that both have are compared. Metrics are `name` with the corpus filled in, and measures
    `f1-vs-AGAINST` and `p-vs-AGAINST`.
    """
    pairs = {}
    for corpus in own:
        seeds = sorted(own[corpus].keys() & other.get(corpus, {}).keys())
        if seeds:
            stacked = (np.stack([one[corpus][seed] for seed in seeds], axis=1) for one in (own, other))
            pairs[corpus] = tuple(stacked), tuple(seeds)
    tested = {corpus: ([pair], seeds) for corpus, (pair, seeds) in pairs.items()}
    if set(pairs) == set(corpora):
        fewest = min((seeds for _, seeds in pairs.values()), key=len)
        tested["average"] = ([pair for pair, _ in pairs.values()], fewest)
    for corpus, (counts, seeds) in tested.items():
        difference = paired_bootstrap_of_corpora(counts, samples=SAMPLES)  # type: ignore[arg-type]
        for measure, value in _values(difference).items():
            metric = f"{name.format(corpus)}/{measure}-vs-{against}"
            yield Record(metric, value, seeds=seeds, **about)


def _values(difference: Difference) -> dict[str, float]:
    return {"f1": round(100 * difference.f1.value, 2), "p": round(difference.p_value, 4)}
