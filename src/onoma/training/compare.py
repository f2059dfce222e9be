"""Several recipes on the same data: every recipe is trained with every seed, and the differences are tested.

OUTPUT/
    RECIPE/seed-N/      a run, as of `onoma train`, without its checkpoints, and counts.json, for the bootstrap
    comparison.json     all results
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onoma import __version__
from onoma.data.corpora import find_splits
from onoma.entities import Corpus
from onoma.errors import DataError, OnomaError
from onoma.evaluation.bootstrap import Difference, mention_counts, paired_bootstrap_of_runs
from onoma.evaluation.columns import Integers
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.runs import predict
from onoma.extractor import load
from onoma.files import atomic_write
from onoma.training import train
from onoma.training.corpora import join_for_windows, load_part
from onoma.training.outcomes import MEASURES, plain, spread
from onoma.training.recipe import CorpusRecipe, Recipe, load_recipe
from onoma.training.run import CHECKPOINTS, METRICS, STAGES

if TYPE_CHECKING:
    from rich.table import Table

AnyPath = str | os.PathLike[str]
Part = Literal["dev", "test"]
COUNTS, RESULTS = "counts.json", "comparison.json"


@dataclass(frozen=True, slots=True)
class Measured:
    """The strict scores on a split over all seeds, in percent."""

    precision: float
    recall: float
    f1: float
    spread: float | None  # standard deviation of F1 over seeds
    values: tuple[float, ...]  # the F1 of each seed

    @classmethod
    def over(cls, scores: Sequence[Mapping[str, float]]) -> Measured:
        """The means of runs."""
        precision, recall, f1 = (tuple(one[name] for one in scores) for name in MEASURES)
        return cls(fmean(precision), fmean(recall), fmean(f1), spread(f1), f1)


@dataclass(frozen=True, slots=True)
class Row:
    """A recipe on a corpus."""

    recipe: str
    system: str
    encoder: str
    corpus: str
    dev: Measured | None
    test: Measured | None
    difference: Difference | None  # from the baseline, in F1 from 0 to 1; None for the baseline itself
    train_seconds: float  # mean over seeds


@dataclass(frozen=True, slots=True)
class CompareResults:
    """The rows of a comparison."""

    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    baseline: str  # the recipe that others are compared with
    compared_on: Part

    def write(self, folder: AnyPath, command: str) -> Path:
        """Write comparison.json into a folder, with the command, and return its path."""
        path = Path(folder) / RESULTS
        with atomic_write(path) as file:
            json.dump({**asdict(self), "command": command, "version": __version__}, file, ensure_ascii=False, indent=2)
        return path


def load_recipes(
    paths: Sequence[AnyPath], data: AnyPath, changes: Sequence[str] = (), variants: Sequence[str] = ()
) -> dict[str, Recipe]:
    """Recipes by name. Each is read with all `changes`, and once more with each of the `variants`, which are changes.

    If `data` is a corpus, it takes the place of the corpora of all recipes; else it is the folder of their corpora.
    """
    if any(change.partition("=")[0] == "seed" for change in (*changes, *variants)):
        raise OnomaError("seeds are not a part of the recipes that are compared. Fix: give them as --seeds")
    recipes: dict[str, Recipe] = {}
    for name, path in zip(_names(paths), paths, strict=True):
        for variant in (None, *variants):
            recipe = load_recipe(path, [*changes, *([] if variant is None else [variant])])
            recipes[name if variant is None else f"{name} {variant}"] = _on_corpus(recipe, Path(data))
    return recipes


def _names(paths: Sequence[AnyPath]) -> list[str]:
    """The names of recipes: those of their files, with their folders if files have the same name."""
    stems = [Path(path).stem for path in paths]
    if len(set(stems)) < len(stems):
        stems = [f"{Path(path).resolve().parent.name}-{Path(path).stem}" for path in paths]
    if len(set(stems)) < len(stems):
        raise OnomaError("a recipe is given twice. Fix: give recipes with different names")
    return stems


def _on_corpus(recipe: Recipe, data: Path) -> Recipe:
    try:
        is_corpus = "train" in find_splits(data)
    except DataError:
        is_corpus = False
    if not is_corpus:
        return recipe
    corpora = [CorpusRecipe(path=str(data.resolve()))]
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"corpora": corpora})})


def compare(
    recipes: Mapping[str, Recipe],
    *,
    seeds: Sequence[int],
    output: AnyPath,
    data: AnyPath,
    against: Literal["first", "best"] = "first",
    samples: int = 1000,
    on_run: Callable[[str], None] = lambda text: None,
) -> CompareResults:
    """Train every recipe with every seed, and compare their strict scores; finished runs are not repeated.

    The difference of mean F1 from the baseline, which is the first recipe or the one that is best on dev, is tested by
    a paired bootstrap over the documents of the test data (of the dev data if there is no test data). `on_run` is
    called before each run.
    """
    if len(recipes) < 2:
        raise OnomaError("there is nothing to compare. Fix: give at least two recipes, or a variant of one")
    if len(set(seeds)) < len(seeds) or not seeds:
        raise OnomaError(f"seeds must be different numbers, got {list(seeds)}")
    part = _compared_part(recipes, Path(data))
    runs: dict[str, list[_Run]] = {name: [] for name in recipes}
    plan = [(seed, name) for seed in seeds for name in recipes]  # a first answer after the first seed
    for number, (seed, name) in enumerate(plan, start=1):
        on_run(f"{name}, seed {seed} (run {number} of {len(plan)})")
        recipe = recipes[name].model_copy(update={"seed": seed})
        folder = Path(output) / re.sub(r"[^\w.=-]+", "_", name) / f"seed-{seed}"
        runs[name].append(_run(recipe, folder, Path(data), part))
    best = max(runs, key=lambda name: fmean(run.mean_f1("dev") for run in runs[name]))
    baseline = best if against == "best" else next(iter(recipes))
    rows = [
        _row(name, recipes[name], corpus, runs[name], None if name == baseline else runs[baseline], samples)
        for corpus in runs[baseline][0].counts
        for name in recipes
    ]
    return CompareResults(tuple(rows), tuple(seeds), baseline, part)


def _compared_part(recipes: Mapping[str, Recipe], data: Path) -> Part:
    """The part that recipes are compared on; an error if it is not the same for all of them."""
    tested = {name: _evaluated(recipe, data, "test") for name, recipe in recipes.items()}
    part: Part = "test" if any(tested.values()) else "dev"
    evaluated = tested if part == "test" else {name: _evaluated(one, data, "dev") for name, one in recipes.items()}
    first = next(iter(recipes))
    for name in recipes:
        if evaluated[name] != evaluated[first]:
            raise OnomaError(
                f"the recipes {first!r} and {name!r} have different {part} data, so they cannot be compared. "
                "Fix: name the same corpora in both, or give a corpus as --data"
            )
    return part


def _evaluated(recipe: Recipe, data: Path, part: Part) -> list[tuple[str, list[str]]]:
    """The names and texts of the corpora of a part."""
    return [(one.name, [document.text for document in one]) for one in load_part(recipe.data, data, part)]


@dataclass(frozen=True, slots=True)
class _Run:
    """A finished run: its metrics, and for each corpus the counts of each document (documents, 3)."""

    metrics: dict[str, Any]
    counts: dict[str, Integers]

    def mean_f1(self, part: Part) -> float:
        return fmean(one["f1"] for one in self.metrics[part].values())


def _run(recipe: Recipe, folder: Path, data: Path, part: Part) -> _Run:
    """Train, unless it was done before, and count the mentions of each document of a part."""
    model = train(recipe, output=folder, data=data)
    if os.environ.get("RANK", "0") == "0":
        if not (folder / COUNTS).is_file():
            counted = {one.name: rows.tolist() for one, rows in count_mentions(model, recipe, data, part)}
            with atomic_write(folder / COUNTS) as file:
                json.dump(counted, file)
        for name in (CHECKPOINTS, STAGES):
            shutil.rmtree(folder / name, ignore_errors=True)
    metrics, counts = (json.loads((folder / name).read_text("utf-8")) for name in (METRICS, COUNTS))
    return _Run(metrics, {name: np.array(rows, np.int64).reshape(-1, 3) for name, rows in counts.items()})


def count_mentions(model: AnyPath, recipe: Recipe, data: AnyPath, part: Part) -> Iterator[tuple[Corpus, Integers]]:
    """The numbers of gold, predicted and correct mentions of each document of a part, by corpus: (documents, 3)."""
    extractor = load(model)
    for corpus in load_part(recipe.data, Path(data), part):
        joined = join_for_windows(corpus, recipe.data)  # as in the evaluation of training
        yield corpus, mention_counts(Comparison.between(joined, list(predict(extractor, joined))), corpus)


def _row(
    name: str, recipe: Recipe, corpus: str, runs: Sequence[_Run], baseline: Sequence[_Run] | None, samples: int
) -> Row:
    dev, test = (
        Measured.over([run.metrics[part][corpus] for run in runs]) if corpus in runs[0].metrics[part] else None
        for part in ("dev", "test")
    )
    difference = None
    if baseline is not None:
        own, other = (np.stack([run.counts[corpus] for run in group], axis=1) for group in (runs, baseline))
        difference = paired_bootstrap_of_runs(own, other, samples=samples)
    seconds = fmean(run.metrics["train_seconds"] for run in runs)
    return Row(name, recipe.system, Path(recipe.encoder).name, corpus, dev, test, difference, seconds)


def render_comparison(results: CompareResults) -> Table:
    """One row per recipe and corpus, for a rich console."""
    from rich.table import Table

    count = len(results.seeds)
    title = f"mean strict scores over {count} {'seed' if count == 1 else 'seeds'}; p: paired bootstrap on "
    table = Table(title=f"{title}{results.compared_on} against {results.baseline}", title_justify="left")
    several = len({row.corpus for row in results.rows}) > 1
    for column in (["corpus"] if several else []) + ["recipe"]:
        table.add_column(column, overflow="fold")
    for column in ("dev F1", "test F1", "±", "ΔF1", "p", "minutes"):
        table.add_column(column, justify="right", no_wrap=True)
    for number, row in enumerate(results.rows):
        if number and row.corpus != results.rows[number - 1].corpus:
            table.add_section()
        names = [plain(row.corpus)] if several else []
        table.add_row(*names, plain(row.recipe), *_cells(row, results.compared_on))
    return table


def _cells(row: Row, part: Part) -> Iterable[str]:
    deviation = getattr(row, part).spread
    for measured in (row.dev, row.test):
        yield "-" if measured is None else f"{measured.f1:.2f}"
    yield "-" if deviation is None else f"{deviation:.2f}"
    yield "" if row.difference is None else f"{100 * row.difference.f1.value:+.2f}"
    yield "" if row.difference is None else f"{row.difference.p_value:.3f}"
    yield f"{row.train_seconds / 60:.1f}"
