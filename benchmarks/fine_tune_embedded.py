"""Fine-tuning the embedded model with few sentences: F1 before, after, and after the export to int8.

    python benchmarks/fine_tune_embedded.py --data CORPORA [--device cpu|cuda] [--parallel N] [--draws N]
    python benchmarks/fine_tune_embedded.py --data CORPORA --time --corpora conll2003 --draws 1
    python benchmarks/fine_tune_embedded.py --data CORPORA --dev

Sentences are drawn from train such that every type occurs if possible, `onoma train --start embedded` is run on them
with its defaults, and the models are scored on all of test: strict F1 by character offsets, types by their natural
names, the model's own threshold. `--time` measures the minutes of fine-tuning, with its check and the export, instead
of F1. `--dev` uses the corpora on which the defaults were chosen. Finished runs are only read, so that an experiment
can be measured in parts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments import mean_record
from records import RESULTS, ROOT, Record, command, commit_for, main_with_errors, write_records

CORPORA = (
    *("conll2003", "wnut17", "mit_movie_eng", "mit_restaurant"),
    *("crossner_ai", "crossner_literature", "crossner_music", "crossner_politics", "crossner_science"),
)
"""The embedded model was trained on none of them."""
DEVELOPMENT = ("uner_en_ewt_devtest", "gum", "ebmnlp_devtest", "hipe_ajmc_en")
SPLITS = {"uner_en_ewt_devtest": ("dev", "test"), "ebmnlp_devtest": ("dev", "test"), "gum": ("train", "dev")}
"""What is drawn from and tested on, if it is not train and test."""
ENCODER = "gte-small"
RESULT = "result.json"
SCORES, MINUTES = ("f1_start", "f1", "f1_int8"), "minutes"


@dataclass(frozen=True)
class Job:
    """One fine-tuned model."""

    corpus: str
    sentences: int
    draw: int
    data: str
    runs: str
    limit: int | None
    changes: tuple[str, ...]
    threads: int
    is_timed: bool  # the minutes are measured instead of the scores

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        kind = "-time" if self.is_timed else ""
        return Path(self.runs) / f"{self.corpus}-{self.sentences}-{self.draw}{kind}"


def main() -> None:
    """Run all jobs, print a table and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/conll2003 and the others")
    parser.add_argument("--corpora", nargs="*", help="names of corpora; by default the nine of the benchmark")
    parser.add_argument("--dev", action="store_true", help="the corpora on which the defaults were chosen")
    parser.add_argument("--time", action="store_true", help="measure minutes instead of F1")
    parser.add_argument("--sizes", nargs="*", type=int, default=[20, 100], help="numbers of sentences")
    parser.add_argument("--draws", type=int, default=3, help="repetitions with other sentences")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="what trains")
    parser.add_argument("--parallel", type=int, default=1, help="runs at the same time")
    parser.add_argument("--threads", type=int, help="of each run; by default, all cores are divided among the runs")
    parser.add_argument("--seconds", type=float, default=1e9, help="no run is started or continued after that time")
    parser.add_argument("--limit", type=int, help="number of test sentences; by default all")
    parser.add_argument("--set", nargs="*", default=[], help="changes of the recipe, such as training.max_steps=10")
    parser.add_argument("--runs", default=ROOT / "runs" / "fine-tune-embedded", type=Path, help="folder of the runs")
    parser.add_argument("--output", type=Path, default=RESULTS / "fine_tune_embedded.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    jobs = list(plan(arguments))
    run_jobs(jobs, arguments)
    found = {job: json.loads((job.folder / RESULT).read_text("utf-8")) for job in jobs if is_finished(job)}
    for line in table(found):
        print(line)
    if arguments.limit is None and not arguments.dev:
        device = next((one["device"] for one in found.values()), "")
        shown = command(without=["--output", "--runs", "--seconds", "--parallel", "--threads"])
        write_records(arguments.output, records(found, shown), accelerator=device if arguments.device == "cuda" else "")


def plan(arguments: argparse.Namespace) -> Iterator[Job]:
    """All jobs; the first draws of all corpora come first."""
    threads = arguments.threads or max(1, (os.cpu_count() or 1) // arguments.parallel)
    names = arguments.corpora or (DEVELOPMENT if arguments.dev else CORPORA)
    for draw in range(arguments.draws):
        for corpus in names:
            for size in arguments.sizes:
                yield Job(
                    corpus,
                    size,
                    draw,
                    str(arguments.data),
                    str(arguments.runs),
                    arguments.limit,
                    tuple(arguments.set),
                    threads,
                    arguments.time,
                )


def is_finished(job: Job) -> bool:
    """Whether the result of a job is there."""
    return (job.folder / RESULT).is_file()


def run_jobs(jobs: list[Job], arguments: argparse.Namespace) -> None:
    """Run the processes of jobs side by side."""
    deadline = time.monotonic() + arguments.seconds
    arguments.runs.mkdir(parents=True, exist_ok=True)
    waiting = [job for job in jobs if not is_finished(job)]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    while waiting or running:
        late = time.monotonic() >= deadline
        while waiting and len(running) < arguments.parallel and not late:
            job = waiting.pop(0)
            running[job] = start(job, arguments.device)
        for job, process in list(running.items()):
            if process.poll() is None and not late:
                continue
            process.kill()
            process.wait()
            del running[job]
            print(f"{job.folder.name}: {'done' if is_finished(job) else f'failed, see {job.folder}.log'}", flush=True)
        if late:
            waiting.clear()
        time.sleep(0.2)


def start(job: Job, device: str) -> subprocess.Popen[bytes]:
    """Start the process of a job."""
    settings = os.environ | {"OMP_NUM_THREADS": str(job.threads), "TOKENIZERS_PARALLELISM": "false"}
    if device == "cpu":
        settings["CUDA_VISIBLE_DEVICES"] = ""
    with open(f"{job.folder}.log", "wb") as log:
        program = [sys.executable, __file__, "--job", json.dumps(asdict(job))]
        return subprocess.Popen(program, stdout=log, stderr=log, env=settings)


def run_job(job: Job) -> None:
    """The process of one job: draw, fine-tune, test. Models are removed afterwards, because there are many."""
    import torch

    from onoma.data import load_corpus, write
    from onoma.data.subsets import sample_documents
    from onoma.training.few_data import fine_tune

    torch.set_num_threads(job.threads)
    source, (train, test) = Path(job.data) / "en" / job.corpus, SPLITS.get(job.corpus, ("train", "test"))
    drawn = sample_documents(load_corpus(source, train, natural_names=True), job.sentences, seed=job.draw)
    tested = load_corpus(source, test, natural_names=True)
    tested = replace(tested, documents=tested.documents[: job.limit])
    shutil.rmtree(job.folder, ignore_errors=True)  # of an interrupted run
    path = job.folder / "data" / job.corpus / "train.jsonl"
    write(drawn.documents, path)
    started = time.perf_counter()
    tuned = fine_tune(path.parent, output=job.folder / "run", start="embedded/en", changes=job.changes)
    minutes = (time.perf_counter() - started) / 60
    result: dict[str, Any] = {
        "start_share": tuned.metrics.get("start_share", recipe_share(job.folder / "run")),
        "check": [tuned.before["f1"], tuned.after["f1"]],
        "mentions": sum(len(one.entities) for one in drawn),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    if job.is_timed:
        result[MINUTES] = minutes
    else:
        embedded = None
        for name, model in zip(SCORES, (embedded, tuned.model, tuned.onnx), strict=True):
            result[name] = f1(model, tested, job.threads)
    for folder in (tuned.model, tuned.onnx):
        shutil.rmtree(folder)
    (job.folder / RESULT).write_text(json.dumps(result), "utf-8")


def recipe_share(run: Path) -> Any:
    """The share of the start that the check chose."""
    import yaml

    return yaml.safe_load((run / "recipe.yaml").read_text("utf-8"))["training"]["start_share"]


def f1(model: Path | None, corpus: Any, threads: int) -> float:
    """Strict F1 in percent."""
    import onoma
    from onoma.evaluation.runs import run

    return 100 * run(onoma.load(model, threads=threads), corpus).report.strict.micro.f1


def groups(found: dict[Job, dict[str, Any]]) -> dict[tuple[int, str], dict[int, dict[str, Any]]]:
    """Results by size, corpus and draw; the average over corpora counts draws that all corpora have."""
    grouped: dict[tuple[int, str], dict[int, dict[str, Any]]] = {}
    for job, result in found.items():
        grouped.setdefault((job.sentences, job.corpus), {})[job.draw] = result
    for size in sorted({size for size, _ in grouped}):
        rows = [draws for (other, _), draws in grouped.items() if other == size]
        common = set.intersection(*(set(draws) for draws in rows))
        if len(rows) > 1 and common:
            grouped[size, f"average-of-{len(rows)}"] = {
                draw: {name: fmean(draws[draw][name] for draws in rows) for name in measures(rows[0][draw])}
                for draw in sorted(common)
            }
    return grouped


def measures(result: dict[str, Any]) -> list[str]:
    """What a result has been measured for."""
    return [name for name in (*SCORES, MINUTES) if name in result]


def table(found: dict[Job, dict[str, Any]]) -> Iterator[str]:
    """One line per size and corpus."""
    names = measures(next(iter(found.values()), {}))
    yield f"{'corpus':24}{'sentences':>10}{'draws':>6}" + "".join(f"{name:>10}" for name in names)
    for (size, corpus), draws in groups(found).items():
        means = (fmean(one[name] for one in draws.values()) for name in names)
        yield f"{corpus:24}{size:10}{len(draws):6}" + "".join(f"{mean:10.2f}" for mean in means)


def records(found: dict[Job, dict[str, Any]], shown: str) -> Iterator[Record]:
    """The means over draws."""
    for (size, corpus), draws in groups(found).items():
        for measure in measures(next(iter(draws.values()))):
            yield mean_record(
                f"embedded/tuned-{size}/{corpus}/{ENCODER}/{measure}",
                {draw: one[measure] for draw, one in draws.items()},
                command=shown,
                data=f"{size} sentences of train, tested on all of test, types by natural name",
                encoder=ENCODER,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        values = json.loads(sys.argv[2])
        run_job(Job(**{**values, "changes": tuple(values["changes"])}))
    else:
        main_with_errors(main)
