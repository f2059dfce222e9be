"""Experiments of many training runs, in processes side by side on one machine.

A run is a recipe with changes; it may need the model of another run. Finished runs are only read, so that an
experiment can be measured in parts. The process of a single run is `python benchmarks/experiments.py JSON`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from records import ROOT, Record

if TYPE_CHECKING:
    from onoma.training.recipe import Recipe

HUB = {
    "mpnet-base": "sentence-transformers/all-mpnet-base-v2",
    "gte-small": "thenlper/gte-small",
    "minilm-l6": "sentence-transformers/all-MiniLM-L6-v2",
    "bert-zh": "google-bert/bert-base-chinese",
    "bge-small-zh": "BAAI/bge-small-zh-v1.5",
    "flan-t5-small": "google/flan-t5-small",
    "t5-bert-zh": "encoders/t5-bert-zh",
    "t5-bge-small-zh": "encoders/t5-bge-small-zh",
    "flan-t5-small-zh": "encoders/flan-t5-small-zh",
}
"""Encoders by the names that records use; the last three are made by recipes/punifiedner/chinese_t5.py."""
METRICS_FILE, VARIANTS_FILE, REPORTS_FILE, SCORES_FILE = "metrics.json", "variants.json", "reports.json", "scores.json"
ENCODERS = ("mpnet-base", "gte-small")


@dataclass(frozen=True)
class FewShot:
    """Fine-tuning of another run's model on some sentences of a corpus."""

    corpus: str
    sentences: int
    sample: int


@dataclass(frozen=True)
class Variant:
    """The trained model evaluated again with some options of its system changed."""

    name: str
    options: str  # JSON


@dataclass(frozen=True)
class Run:
    """One training run."""

    name: str  # of its folder
    encoder: str
    recipe: str  # below recipes/
    changes: tuple[str, ...] = ()
    after: str | None = None  # the run whose model it needs: to start from (few-shot), or as the value of `after_key`
    after_key: str = "parts.detector"
    few_shot: FewShot | None = None
    variants: tuple[Variant, ...] = ()
    with_reports: bool = False  # whether the model is evaluated on test with all measures
    scorer: str | None = None  # "module:function" of the experiment, which scores the trained model in its own way
    scoring: str = "{}"  # JSON with the arguments of that function
    plugin: str | None = None  # a module that adds the system of the recipe to the registry
    keep_model: bool = True  # whether the model is kept; with many large runs, disks are full soon


def add_arguments(parser: argparse.ArgumentParser, encoders: Sequence[str] = ENCODERS) -> None:
    """The options that all experiments have; `encoders` are run by default."""
    parser.add_argument("--data", required=True, help="folder of the corpora")
    parser.add_argument("--encoders", help="folder with encoders such as mpnet-base, instead of the hub")
    parser.add_argument("--only", nargs="*", default=list(encoders), choices=list(HUB), help="encoders to run")
    parser.add_argument("--parallel", type=int, default=4, help="runs at the same time")
    parser.add_argument("--seconds", type=float, default=1e9, help="no run is started or continued after that time")
    parser.add_argument("--set", nargs="*", default=[], help="changes of all recipes, such as training.max_steps=10")
    parser.add_argument("--runs", default=ROOT / "runs", type=Path, help="folder of the runs")
    parser.add_argument("--cache", type=Path, help="folder for tokenised corpora")


def run_all(runs: Sequence[Run], arguments: argparse.Namespace) -> dict[Run, dict[str, Any]]:
    """Run processes side by side, each after the one that it needs; the metrics of those that are finished."""
    deadline = time.monotonic() + arguments.seconds
    waiting, ended = list(runs), set()
    running: dict[Run, subprocess.Popen[bytes]] = {}
    arguments.runs.mkdir(parents=True, exist_ok=True)
    while waiting or running:
        late = time.monotonic() >= deadline
        for run, process in list(running.items()):
            if process.poll() is None and not late:
                continue
            process.kill()
            process.wait()
            del running[run]
            ended.add(run.name)
            if not _metrics_file(run, arguments).is_file():
                print(f"{run.name}: failed or stopped, see {arguments.runs / run.name}.log", flush=True)
        for run in list(waiting):
            ready = run.after is None or run.after in ended
            if _metrics_file(run, arguments).is_file():
                ended.add(run.name)
            elif len(running) < arguments.parallel and ready and not late:
                running[run] = _start(run, arguments)
            elif not late:
                continue
            waiting.remove(run)
        time.sleep(0.5)
    return read_finished(runs, arguments)


def read_finished(runs: Sequence[Run], arguments: argparse.Namespace) -> dict[Run, dict[str, Any]]:
    """The metrics of the runs that are finished."""
    paths = {run: _metrics_file(run, arguments) for run in runs}
    finished = {run: json.loads(path.read_text("utf-8")) for run, path in paths.items() if path.is_file()}
    for run, metrics in finished.items():
        scores = ", ".join(f"{corpus} {one['f1']:.2f}" for corpus, one in metrics["test"].items())
        print(f"{run.name}: {scores} ({metrics['seconds']} s)", flush=True)
    return finished


def mean_record(
    metric: str, values: dict[int, float], *, command: str, data: str, encoder: str, paper: float | None = None
) -> Record:
    """The mean of a figure over seeds; `values` are by seed."""
    found = list(values.values())
    spread = round(stdev(found), 2) if len(found) > 1 else None
    return Record(metric, round(fmean(found), 2), command, data, paper, encoder, tuple(values), spread)


def encoder_name(name: str, arguments: argparse.Namespace) -> str:
    """The folder or hub name of an encoder."""
    return f"{arguments.encoders}/{name}" if arguments.encoders else HUB[name]


def _metrics_file(run: Run, arguments: argparse.Namespace) -> Path:
    name = VARIANTS_FILE if run.variants else REPORTS_FILE if run.with_reports else METRICS_FILE
    name = SCORES_FILE if run.scorer else name
    path: Path = arguments.runs / run.name / name
    return path


def _start(run: Run, arguments: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start the process of a run."""
    changes = [
        f"encoder={encoder_name(run.encoder, arguments)}",
        "training.checkpoints=false",
        *run.changes,
        *arguments.set,
    ]
    model = str(arguments.runs / run.after / "model") if run.after else None
    if model is not None and run.few_shot is None:
        changes.append(f"{run.after_key}={json.dumps(model)}")
    few = run.few_shot
    job = {
        "recipe": str(ROOT / "recipes" / run.recipe),
        "changes": changes,
        "data": arguments.data,
        "cache": str(arguments.cache) if arguments.cache else None,
        "output": str(arguments.runs / run.name),
        "few_shot": None if few is None else [few.corpus, few.sentences, few.sample],
        "start": model,
        "variants": {one.name: json.loads(one.options) for one in run.variants},
        "scorer": run.scorer,
        "scoring": json.loads(run.scoring),
        "with_reports": run.with_reports,
        "plugin": run.plugin,
        "keep_model": run.keep_model,
    }
    with open(arguments.runs / f"{run.name}.log", "wb") as log:
        return subprocess.Popen([sys.executable, __file__, json.dumps(job)], stdout=log, stderr=log)


def train_one(job: dict[str, Any]) -> None:
    """The process of one run."""
    from onoma.training.protocols import few_shot
    from onoma.training.recipe import load_recipe
    from onoma.training.run import train

    if job["plugin"]:
        import_module(job["plugin"])
    recipe = load_recipe(job["recipe"], job["changes"])
    if job["few_shot"] is not None:
        corpus, sentences, sample = job["few_shot"]
        recipe = few_shot(recipe, corpus, job["start"], sentences=sentences, sample=sample)
    model = train(recipe, output=job["output"], data=job["data"], cache=job["cache"])
    output, data = Path(job["output"]), Path(job["data"])
    metrics = json.loads((output / METRICS_FILE).read_text("utf-8"))
    if job["variants"]:
        metrics["variants"] = evaluate_variants(recipe, model, data, job["variants"])
        (output / VARIANTS_FILE).write_text(json.dumps(metrics), "utf-8")
    if job["with_reports"]:
        metrics["reports"] = test_reports(recipe, model, data)
        (output / REPORTS_FILE).write_text(json.dumps(metrics), "utf-8")
    if job["scorer"]:
        module, _, function = job["scorer"].partition(":")
        metrics["scored"] = getattr(import_module(module), function)(model, data, **job["scoring"])
        (output / SCORES_FILE).write_text(json.dumps(metrics), "utf-8")
    if not job["keep_model"]:
        shutil.rmtree(model)


def test_reports(recipe: Recipe, model: Path, data: Path) -> dict[str, Any]:
    """All measures of a trained model on the test data, by corpus."""
    import onoma
    from onoma.evaluation.runs import run
    from onoma.training.corpora import load_part

    extractor = onoma.load(model)
    return {one.name: run(extractor, one).report.to_dict() for one in load_part(recipe.data, data, "test")}


def evaluate_variants(recipe: Recipe, model: Path, data: Path, variants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The dev and test scores of a trained model with other options."""
    from onoma.evaluation.candidates import EvaluationSet
    from onoma.models.folder import open_single
    from onoma.systems.base import RuntimeSettings
    from onoma.systems.registry import get_system
    from onoma.training.corpora import join_for_windows, load_part

    found: dict[str, Any] = {}
    folder = open_single(model, "evaluate")
    for name, options in variants.items():
        config = replace(folder.config, options=folder.config.options | options)
        runtime = get_system(config.system).runtime(replace(folder, config=config), RuntimeSettings("torch"))
        for part in ("dev", "test"):
            for corpus in load_part(recipe.data, data, part):
                tested = EvaluationSet(join_for_windows(corpus, recipe.data), runtime)
                found.setdefault(name, {}).setdefault(part, {})[corpus.name] = tested.evaluate(runtime)
    return found


if __name__ == "__main__":
    train_one(json.loads(sys.argv[1]))
