"""SUNER's experiments, by the tables of its paper.

    python benchmarks/suner.py joint --data CORPORA [--encoders FOLDER]       table 1
    python benchmarks/suner.py paper --data CORPORA [--encoders FOLDER]       table 1 with the settings of the paper
    python benchmarks/suner.py markers --data CORPORA [--encoders FOLDER]     table 5
    python benchmarks/suner.py identity --data CORPORA [--encoders FOLDER]    what tells markers apart, on dev alone
    python benchmarks/suner.py left-out --data CORPORA [--encoders FOLDER]    table 3, each corpus left out by itself
    python benchmarks/suner.py zero-shot --data CORPORA [--encoders FOLDER]   table 3 with 28 corpora, three left out
    python benchmarks/suner.py few-shot --data CORPORA [--encoders FOLDER]    the same with 20 sentences
    python benchmarks/suner.py curve --data CORPORA [--encoders FOLDER]       figure 3; plot_suner_curve.py draws it

`joint` also trains BINDER and a biaffine classifier on each corpus. Parts of a plan are chosen by `--settings` (systems
or settings, as in the names of records), `--seeds` and `--only` (encoders); runs that others need are added. `--list`
shows the runs and what they cost without running them. Finished runs in `--runs` are only read, so that a plan can be
measured in parts. Results are written to benchmarks/results/suner.json, with a paired bootstrap over the test sentences
between systems.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments import METRICS_FILE, SCORES_FILE, FewShot, Run, add_arguments, mean_record, run_all
from papers import published_figure
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records
from significance import difference_records

if TYPE_CHECKING:
    from onoma.training.recipe import DataRecipe

JOINT = ("conll2003", "genia", "mit_movie_eng", "mit_restaurant", "litbank", "bc5cdr", "wnut17", "snips_slots")
OF_PAPER = JOINT[:4]  # the corpora of the paper that are free
EPOCHS = {"snips_slots": 4, "mit_movie_eng": 5}  # of a model for one corpus; others: 8
TARGETS = ("conll2003", "mit_restaurant", "mit_movie_eng")
SIZES = (20, 50, 100, 200, 500)
RATES = {"mpnet-base": 8e-5, "gte-small": 2e-4}  # learning rates of the encoders, in joint training
ALONE_RATES = {"mpnet-base": 6e-5, "gte-small": 2e-4}  # on one corpus
FORMS: dict[str, tuple[str, ...]] = {
    "suner": (),
    "suner-one-stage": ('options.form="one-stage"', "options.dataset_prefix=false", "training.batch_size=48"),
    "suner-fused": ('options.form="fused"',),
}
ALONE = ("binder", "biaffine")  # systems that are trained on each corpus
ONLY_MARKERS = 'options.spans="markers"'
MARKERS: dict[str, tuple[str, ...]] = {
    "markers-alone": (ONLY_MARKERS,),
    "no-mask": (ONLY_MARKERS, "options.attention_mask=false"),
    "no-position-tie": (ONLY_MARKERS, "options.tied_positions=false"),
    "no-markers": ("options.markers=false",),
}
IDENTITY = {
    f"identity-{identity}-{spans}": (f'options.marker_identity="{identity}"', f'options.spans="{spans}"')
    for spans in ("markers", "both")
    for identity in ("shared", "numbered", "paired")
}
AGAINST: dict[tuple[str, str], tuple[str, str]] = {
    **{(system, "joint"): ("suner", "joint") for system in FORMS if system != "suner"},
    **{(system, "alone"): ("suner", "joint") for system in ALONE},
    **{("suner", setting): ("suner", "markers-alone") for setting in MARKERS if setting != "markers-alone"},
    ("suner", "paper"): ("suner", "joint-four"),
    ("suner", "paper-infonce"): ("suner", "paper"),
}
"""Systems and settings, and those that a paired bootstrap compares them with."""
FEW = "some sentences of train after zero-shot training, tested on test"
DATA = {
    "joint": "eight corpora, one model; chosen on dev, tested on test",
    "joint-four": "four corpora, one model; chosen on dev, tested on test",
    "alone": "one model per corpus; chosen on dev, tested on test",
    "paper": "four corpora, one model; weights chosen on dev, tested on test",
    "paper-infonce": "four corpora, one model, the detector of paper; weights chosen on dev, tested on test",
    "zero-shot": "trained on other corpora, chosen on yet others, tested on test",
    "left-out": "trained and chosen on the other seven corpora, tested on test",
    **dict.fromkeys(MARKERS, "eight corpora, the same detector, span vectors from markers alone; tested on test"),
    "no-markers": "eight corpora, the same detector, span vectors from text; tested on test",
    **dict.fromkeys(IDENTITY, "eight corpora, the same detector, scored on dev"),
}
CHOSEN_ON_DEV = {"joint", "joint-four", "alone", "paper", "paper-infonce", *MARKERS, *IDENTITY}
"""Settings whose dev scores are recorded."""


class Figure(NamedTuple):
    """What the scores of a run are called in records."""

    system: str
    setting: str
    encoder: str
    seed: int
    corpus: str = ""  # the only one that the run is tested on; empty: all

    @property
    def names(self) -> set[str]:
        """What `--settings` can call it: 50-shot and left-out-50-shot are also zero-shot and left-out."""
        start = re.sub(r"-?\d+-shot$", "", self.setting) or ("zero-shot" if self.system == "suner" else self.setting)
        return {self.system, self.setting, start}

    @property
    def run_name(self) -> str:
        """The name of the folder of the run."""
        parts = (self.system, self.setting, self.corpus, self.encoder, str(self.seed))
        return "-".join(filter(None, parts))


Planned = Iterator[tuple[Figure, Run]]


# --- plans


def joint(encoder: str, seeds: Sequence[int]) -> Planned:
    """Table 1: the three forms on eight corpora, and models for each corpus."""
    for seed in seeds:
        for system in FORMS:
            yield joint_run(system, encoder, seed)
        for system in ALONE:
            for corpus in JOINT:
                yield alone(system, corpus, encoder, seed)


def joint_run(system: str, encoder: str, seed: int) -> tuple[Figure, Run]:
    """A form of SUNER on the eight corpora."""
    return _run(Figure(system, "joint", encoder, seed), "suner/joint.yaml", (_rate(encoder), *FORMS[system]))


def alone(system: str, corpus: str, encoder: str, seed: int) -> tuple[Figure, Run]:
    """A BINDER or a biaffine classifier on one corpus, with the settings that were chosen for BINDER."""
    changes = (f"training.epochs={EPOCHS.get(corpus, 8)}", "training.eval_steps=150", "training.threshold_from=dev")
    return _on_one_corpus(Figure(system, "alone", encoder, seed, corpus), f"{{path: en/{corpus}}}", changes)


def paper(encoder: str, seeds: Sequence[int]) -> Planned:
    """Table 1 with the settings of the paper, the same with the usual InfoNCE, and ours on the same corpora."""
    corpora = ", ".join(f"{{path: en/{one}, dev_limit: 600}}" for one in OF_PAPER)
    for seed in seeds:
        exact = _run(Figure("suner", "paper", encoder, seed), "suner/paper.yaml", ())
        yield exact
        standard = Figure("suner", "paper-infonce", encoder, seed)
        yield _run(standard, "suner/paper.yaml", ("options.positive_in_denominator=true",), after=exact[1])
        ours = Figure("suner", "joint-four", encoder, seed)
        yield _run(ours, "suner/joint.yaml", (_rate(encoder), f"data.corpora=[{corpora}]", "training.eval_steps=600"))


def markers(encoder: str, seeds: Sequence[int]) -> Planned:
    """Table 5: all variants use the detector of the joint model with the same seed."""
    yield from _with_joint_detector(MARKERS, encoder, seeds)


def identity(encoder: str, seeds: Sequence[int]) -> Planned:
    """The choice of `marker_identity`: nothing is tested on test."""
    untested = tuple(f"data.corpora.{number}.test=null" for number in range(len(JOINT)))
    variants = {setting: (*changes, *untested) for setting, changes in IDENTITY.items()}
    yield from _with_joint_detector(variants, encoder, seeds)


def _with_joint_detector(variants: dict[str, tuple[str, ...]], encoder: str, seeds: Sequence[int]) -> Planned:
    for seed in seeds:
        start = joint_run("suner", encoder, seed)
        yield start
        for setting, changes in variants.items():
            figure = Figure("suner", setting, encoder, seed)
            yield _run(figure, "suner/joint.yaml", (_rate(encoder), *changes), after=start[1])


def left_out(encoder: str, seeds: Sequence[int]) -> Planned:
    """Table 3: trained without one corpus, then fine-tuned on 20 sentences of it; and a classifier of these alone."""
    for seed in seeds:
        for corpus in TARGETS:
            start = left_out_run(corpus, encoder, seed)
            yield start
            yield few_shot(start, corpus, 20, seed)
            yield biaffine_few_shot(corpus, encoder, 20, seed)


def left_out_run(corpus: str, encoder: str, seed: int) -> tuple[Figure, Run]:
    """The joint recipe without one of its corpora, which is the only one that is tested."""
    changes = [_rate(encoder), "options.dataset_prefix=false"]  # the paper leaves out the name in zero-shot use
    for number, one in enumerate(JOINT):
        unused = ("train", "dev") if one == corpus else ("test",)
        changes += [f"data.corpora.{number}.{part}=null" for part in unused]
    return _run(Figure("suner", "left-out", encoder, seed, corpus), "suner/joint.yaml", tuple(changes))


def zero_shot(encoder: str, seeds: Sequence[int]) -> Planned:
    """Trained on 28 other corpora."""
    for seed in seeds:
        yield zero_shot_run(encoder, seed)


def zero_shot_run(encoder: str, seed: int) -> tuple[Figure, Run]:
    """The model that was trained on 28 other corpora."""
    figure = Figure("suner", "zero-shot", encoder, seed)
    return _run(figure, "suner/zero_shot.yaml", (_rate(encoder, 0.75),))


def few_shots(encoder: str, samples: Sequence[int]) -> Planned:
    """The zero-shot model fine-tuned on 20 sentences."""
    start = zero_shot_run(encoder, 0)
    yield start
    for corpus in TARGETS:
        for sample in samples:
            yield few_shot(start, corpus, 20, sample)


def curve(encoder: str, samples: Sequence[int]) -> Planned:
    """Figure 3: the zero-shot models fine-tuned on more and more sentences, and a classifier of these alone."""
    start = zero_shot_run(encoder, 0)
    yield start
    for corpus in TARGETS[1:]:
        for sample in samples:
            other = left_out_run(corpus, encoder, sample)
            yield other
            for size in SIZES:
                yield few_shot(start, corpus, size, sample)
                yield few_shot(other, corpus, size, sample)
                yield biaffine_few_shot(corpus, encoder, size, sample)


def few_shot(start: tuple[Figure, Run], corpus: str, size: int, sample: int) -> tuple[Figure, Run]:
    """Fine-tuning of a model on some sentences of a corpus that it was trained without."""
    (system, setting, encoder, _, _), run = start
    name = f"left-out-{size}-shot" if setting == "left-out" else f"{size}-shot"
    changes = (_rate(encoder, 0.5), "training.head_learning_rate=2e-4")
    figure = Figure(system, name, encoder, sample, corpus)
    inherited = tuple(one for one in run.changes if one.startswith(("data.", "options.")))
    few = FewShot(corpus, size, sample)
    return figure, Run(
        figure.run_name, encoder, run.recipe, (*inherited, *changes), run.name, few_shot=few, keep_model=False
    )


def biaffine_few_shot(corpus: str, encoder: str, size: int, sample: int) -> tuple[Figure, Run]:
    """A biaffine classifier that is trained on some sentences of a corpus alone, for 60 epochs."""
    path = f"{{path: en/{corpus}, limit: {size}, sample_seed: {sample}, dev: train, dev_limit: {size}}}"
    steps = 60 * -(-size // 8)
    changes = ("training.batch_size=8", f"training.max_steps={steps}", f"training.eval_steps={steps}")
    figure = Figure("biaffine", f"{size}-shot", encoder, sample, corpus)
    return _on_one_corpus(figure, path, (*changes, "training.threshold_from=paper"))


def _on_one_corpus(figure: Figure, corpus: str, changes: tuple[str, ...]) -> tuple[Figure, Run]:
    settings = (
        f"data.corpora=[{corpus}]",
        "data.windows=sentence",
        "data.drop_empty_windows=false",
        _rate(figure.encoder, rates=ALONE_RATES),
        "training.head_learning_rate=3e-4",
        "training.batch_size=64",
        "training.gradient_accumulation_steps=1",
    )
    baseline = figure.system == "biaffine"
    system = ("system=biaffine", "options={}") if baseline else ()
    planned = _run(figure, "binder/genia.yaml", (*system, *settings, *changes))
    return figure, replace(planned[1], plugin="biaffine" if baseline else None)


def _run(figure: Figure, recipe: str, changes: tuple[str, ...], after: Run | None = None) -> tuple[Figure, Run]:
    """A run; if its figure is compared with others, the mentions of each test sentence are counted."""
    counted = (figure.system, figure.setting) in {*AGAINST, *AGAINST.values()}
    return figure, Run(
        figure.run_name,
        figure.encoder,
        recipe,
        (f"seed={figure.seed}", *changes),
        after.name if after is not None else None,
        scorer="significance:count_mentions" if counted else None,
        keep_model=False,  # `choose` changes that
    )


def _rate(encoder: str, factor: float = 1.0, rates: dict[str, float] = RATES) -> str:
    return f"training.learning_rate={factor * rates[encoder]}"


PLANS = {
    "joint": joint,
    "paper": paper,
    "markers": markers,
    "identity": identity,
    "left-out": left_out,
    "zero-shot": zero_shot,
    "few-shot": few_shots,
    "curve": curve,
}


def choose(
    planned: Iterable[tuple[Figure, Run]], settings: Sequence[str] | None, *, keep_models: bool = False
) -> dict[Figure, Run]:
    """The runs that are wanted and those that they need; needed ones come first and keep their models."""
    every = {run.name: (figure, run) for figure, run in planned}
    wanted = [name for name, (figure, _) in every.items() if not settings or figure.names & set(settings)]
    needed = {every[name][1].after for name in wanted} - {None}
    chosen = [*(name for name in every if name in needed), *(name for name in wanted if name not in needed)]
    return {every[name][0]: replace(every[name][1], keep_model=keep_models or name in needed) for name in chosen}


def forget_lost_models(runs: Iterable[Run], folder: Path) -> None:
    """Have a finished run trained again if its model is gone and another run, which is not finished, needs it."""
    by_name = {run.name: run for run in runs}
    for run in by_name.values():
        done = [folder / run.name / name for name in (METRICS_FILE, SCORES_FILE)]
        if run.after is None or any(path.is_file() for path in done):
            continue
        start = folder / run.after
        if not (start / "model").is_dir():
            for name in (METRICS_FILE, SCORES_FILE):
                (start / name).unlink(missing_ok=True)


# --- costs


def training_windows(run: Run, data: Path) -> int:
    """How many windows a run trains on, each as often as it is read."""
    from onoma.training.protocols import few_shot as few_shot_recipe
    from onoma.training.recipe import load_recipe

    if run.plugin:
        import_module(run.plugin)
    recipe = load_recipe(ROOT / "recipes" / run.recipe, [*run.changes, "encoder=any"])
    if run.few_shot is not None:
        corpus, sentences, sample = run.few_shot.corpus, run.few_shot.sentences, run.few_shot.sample
        recipe = few_shot_recipe(recipe, corpus, "any", sentences=sentences, sample=sample)
    total = 0
    for name in recipe.stage_names():
        if name == "detection" and run.after is not None and run.few_shot is None:
            continue  # the detector is that of another run
        settings = recipe.stage_training(name)
        steps = settings.max_steps
        if steps < 0:
            steps = round(settings.epochs * _sentences(recipe.data.model_dump_json(), data) / settings.batch_size)
        total += steps * settings.batch_size
    return total


@cache
def _sentences(recipe: str, data: Path) -> int:
    """The train sentences of a recipe's corpora."""
    from onoma.training.corpora import load_part
    from onoma.training.recipe import DataRecipe

    corpora: DataRecipe = DataRecipe.model_validate_json(recipe)
    return sum(len(one) for one in load_part(corpora, data, "train"))


def show_costs(figures: dict[Figure, Run], data: Path) -> None:
    """Print the windows that each run trains on, and the sum."""
    total = 0
    for run in figures.values():
        windows = training_windows(run, data)
        total += windows
        print(f"{windows:>10,}  {run.name}{f'  (after {run.after})' if run.after else ''}")
    print(f"{total:>10,}  training windows in {len(figures)} runs")


# --- records


def records(found: dict[Figure, dict[str, Any]], command: str) -> Iterator[Record]:
    """F1 of each corpus on test and, of settings that were chosen on dev, on dev: means over seeds or samples."""
    values: dict[tuple[str, ...], dict[int, float]] = {}
    for figure, metrics in found.items():
        for measure, part in (("f1", "test"), ("dev_f1", "dev")):
            if measure == "dev_f1" and figure.setting not in CHOSEN_ON_DEV:
                continue
            for corpus, scores in metrics[part].items():
                key = (figure.system, figure.setting, corpus, figure.encoder, measure)
                values.setdefault(key, {})[figure.seed] = scores["f1"]
    values |= _averages(values)
    for key, f1 in values.items():
        system, setting, _, encoder, _ = key
        paper = published_figure("/".join(key))
        data = DATA.get(setting, "some sentences of train alone, tested on test" if system == "biaffine" else FEW)
        yield mean_record("/".join(key), f1, command=command, data=data, encoder=encoder, paper=paper)
    yield from _differences(found, command)


def _averages(values: dict[tuple[str, ...], dict[int, float]]) -> dict[tuple[str, ...], dict[int, float]]:
    """The mean over corpora of what was measured on all of them, for each seed."""
    groups: dict[tuple[str, ...], dict[str, dict[int, float]]] = {}
    for (system, setting, corpus, encoder, measure), f1 in values.items():
        if setting in CHOSEN_ON_DEV:
            groups.setdefault((system, setting, "average", encoder, measure), {})[corpus] = f1
    averages = {}
    for key, by_corpus in groups.items():
        seeds = set.intersection(*(set(one) for one in by_corpus.values()))
        if set(by_corpus) == set(_corpora(key[1])) and seeds:
            averages[key] = {seed: fmean(one[seed] for one in by_corpus.values()) for seed in sorted(seeds)}
    return averages


def _corpora(setting: str) -> tuple[str, ...]:
    """The corpora of a setting."""
    return OF_PAPER if setting in ("paper", "paper-infonce", "joint-four") else JOINT


def _differences(found: dict[Figure, dict[str, Any]], command: str) -> Iterator[Record]:
    """Paired bootstrap on test."""
    counts: dict[tuple[str, str, str], dict[str, dict[int, Any]]] = {}
    for figure, metrics in found.items():
        for corpus, rows in metrics.get("scored", {}).items():
            group = counts.setdefault((figure.system, figure.setting, figure.encoder), {})
            group.setdefault(corpus, {})[figure.seed] = np.array(rows, np.int64).reshape(-1, 3)
    for (system, setting, encoder), own in counts.items():
        other = AGAINST.get((system, setting))
        if other is None or (*other, encoder) not in counts:
            continue
        yield from difference_records(
            own,
            counts[(*other, encoder)],
            name=f"{system}/{setting}/{{}}/{encoder}",
            against=other[0] if other[1] == "joint" else other[1],
            corpora=_corpora(setting),
            command=command,
            data=f"{DATA[setting]}; paired bootstrap over test sentences",
            encoder=encoder,
        )


def main() -> None:
    """Run an experiment and write its records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=list(PLANS))
    add_arguments(parser)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2], help="seeds, or samples of sentences")
    parser.add_argument("--settings", nargs="*", help="systems and settings to run; by default all of the plan")
    parser.add_argument("--keep-models", action="store_true", help="keep all models, not only those that runs need")
    parser.add_argument("--list", action="store_true", help="only print the runs and the windows that they train on")
    parser.add_argument("--output", type=Path, default=RESULTS / "suner.json")
    arguments = parser.parse_args()
    planned = [one for encoder in arguments.only for one in PLANS[arguments.plan](encoder, arguments.seeds)]
    figures = choose(planned, arguments.settings, keep_models=arguments.keep_models)
    if arguments.list:
        show_costs(figures, Path(arguments.data))
        return
    commit_for(arguments.output)
    forget_lost_models(figures.values(), arguments.runs)
    finished = run_all(list(figures.values()), arguments)
    found = {figure: finished[run] for figure, run in figures.items() if run in finished}
    device = next((metrics["device"] for metrics in found.values()), "")
    text = command(without=["--output", "--runs", "--cache"])
    write_records(arguments.output, records(found, text), accelerator=device)


if __name__ == "__main__":
    main_with_errors(main)
