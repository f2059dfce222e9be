"""PUnifiedNER's experiments on six English and five Chinese corpora: tables 1 and 3 of the paper, and its pilot study.

    python benchmarks/punifiedner.py --data CORPORA --languages en [--encoders FOLDER]
    python benchmarks/punifiedner.py --data CORPORA --languages zh --only flan-t5-small-zh --encoders FOLDER

Settings (all but the last start from one adaptation of the T5 to the texts of the language):

    joint               one model for all corpora, dataset-dependent prompts
    single              one model for each corpus
    random              joint, with random prompts
    random-exact        joint, with random prompts and exact matches
    mixed               joint, with dataset-dependent and random prompts (not in the paper)
    no-adaptation       joint, without adaptation
    single-no-adaptation  one model for a single corpus of each language
    rate-RATE           joint, without adaptation, with a few steps at a learning rate; to choose it on dev

Each model is chosen on dev and tested on test. The joint model is tested in other ways as well: `-free` after the
setting means greedy search without constraints, `-beam` a constrained beam search with five beams; those with dataset
or random prompts also `-on-demand`: the types of each corpus are asked for in two halves. `f1` is strict (micro),
`string_f1` is the paper's score (strings without positions, macro over types); `average` is the mean over the corpora
of a language. `invented`, `damaged` and so on are what was counted in 100 answers. Results are written to
benchmarks/results/punifiedner.json.

With `--ceilings`, nothing is trained: the setting `ceiling` is the strict F1 of right answers on dev (or train,
if there is no dev), which shows what is lost because an answer names strings and not places.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments import Run, add_arguments, encoder_name, mean_record, run_all
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

if TYPE_CHECKING:
    from onoma import Corpus, Entity, Extractor
    from onoma.systems.punifiedner.prompts import PromptTokenizer

CORPORA = {
    "en": ("conll2003", "mit_movie_eng", "mit_restaurant", "genia", "wnut17", "bc5cdr"),
    "zh": ("resume", "cluener", "ecommerce", "msra", "weibo"),
}
SPLITS = {"cluener": {"dev": "cut", "test": "dev"}}  # nobody has published the labels of its test sentences
RECIPES = {"en": "punifiedner/english.yaml", "zh": "punifiedner/chinese.yaml"}
ADAPTATIONS = {"en": "punifiedner/english.yaml", "zh": "punifiedner/chinese_adapt.yaml"}
ENCODERS = {"en": ("flan-t5-small",), "zh": ("flan-t5-small-zh", "t5-bert-zh", "t5-bge-small-zh")}
DEV_LIMIT = 400
BATCH_SIZE = 256  # windows; generation takes about as long for few as for many
ADAPT_STEPS = {"en": 3000, "zh": 6000}
SINGLE = ("training.max_steps=2500", "training.eval_steps=500")
RATES = ("2e-4", "5e-4", "1e-3")
RATE_STEPS = ("training.max_steps=1500", "training.eval_steps=1500")
PILOT = {"en": ("conll2003",), "zh": ("cluener",)}
"""Corpora of the models without adaptation that are trained for a single corpus."""
OPTIONS: dict[str, tuple[str, ...]] = {
    "joint": (),
    "single": SINGLE,
    "random": ("options.prompts=random",),
    "random-exact": ("options.prompts=random+exact",),
    "mixed": ("options.prompts=dataset+random",),
    "no-adaptation": (),
    "single-no-adaptation": SINGLE,
    **{f"rate-{rate}": (f"training.learning_rate={rate}", *RATE_STEPS) for rate in RATES},
}
TESTED_IN_ALL_WAYS = ("joint",)
TESTED_ON_DEMAND = ("joint", "random", "random-exact", "mixed")
DECODINGS: dict[str, dict[str, Any]] = {"": {}, "-free": {"constrained": False}, "-beam": {"beams": 5}}
ON_DEMAND = "-on-demand"
WAYS = ("", ON_DEMAND, "-free", "-beam")  # of testing; the slowest last
COUNTED = ("truncated", "damaged", "repeated", "invented", "unaligned")


class Figure(NamedTuple):
    """A model: runs that differ in the seed only make one figure. The corpus of a joint model is its language."""

    setting: str
    corpus: str
    encoder: str
    seed: int

    @property
    def language(self) -> str:
        """The language of the corpora."""
        return next(name for name, corpora in CORPORA.items() if self.corpus in (name, *corpora))

    @property
    def name(self) -> str:
        """The name of the run."""
        return "-".join(map(str, ("punifiedner", *self)))


def figures(arguments: argparse.Namespace) -> Iterator[Figure]:
    """All models in the order in which they are trained."""
    for seed, language in product(arguments.seeds, arguments.languages):
        encoders = [one for one in ENCODERS[language] if one in arguments.only]
        for setting, encoder in product(("adapt", *OPTIONS), encoders):
            if setting != "adapt" and arguments.settings is not None and setting not in arguments.settings:
                continue
            names = _trained_on(setting, language)
            for corpus in names:
                if corpus == language or arguments.corpora is None or corpus in arguments.corpora:
                    yield Figure(setting, corpus, encoder, seed)


def _trained_on(setting: str, language: str) -> tuple[str, ...]:
    """The corpora that have a model of their own, or the language if one model serves all corpora."""
    if setting == "single-no-adaptation":
        return PILOT[language]
    return CORPORA[language] if setting == "single" else (language,)


def run_of(figure: Figure, workers: int = 1) -> Run:
    """The run of a model, which is tested by some processes."""
    seed, language = f"seed={figure.seed}", figure.language
    if figure.setting == "adapt":
        steps = ADAPT_STEPS[language]
        changes = (
            "options={stages: adapt, max_answer_tokens: 1}",  # it cannot answer yet
            "stages={}",
            f"training.max_steps={steps}",
            f"training.eval_steps={steps // 10}",
        )
        if language == "en":  # the Chinese recipe has more corpora
            changes = (*changes, _corpora(language, CORPORA[language]))
        return Run(figure.name, figure.encoder, ADAPTATIONS[language], (seed, *changes))
    corpora = CORPORA[language] if figure.corpus == language else (figure.corpus,)
    changes = (seed, _corpora(language, corpora), "options.stages=joint", *OPTIONS[figure.setting])
    if figure.setting.startswith("rate-"):
        return Run(figure.name, figure.encoder, RECIPES[language], changes)
    scoring = {
        "language": language,
        "corpora": corpora,
        "decodings": list(DECODINGS) if figure.setting in TESTED_IN_ALL_WAYS else [""],
        "on_demand": figure.setting in TESTED_ON_DEMAND,
        "workers": workers,
    }
    return Run(
        figure.name,
        figure.encoder,
        RECIPES[language],
        changes,
        after=None if "no-adaptation" in figure.setting else figure._replace(setting="adapt", corpus=language).name,
        after_key="start",
        scorer="punifiedner:score",
        scoring=json.dumps(scoring),
    )


def _corpora(language: str, names: Iterable[str]) -> str:
    """The corpora of a recipe; test splits are scored afterwards, in several ways."""
    listed = [
        {"path": f"{language}/{name}", "dev_limit": DEV_LIMIT, **SPLITS.get(name, {}), "test": None} for name in names
    ]
    return f"data.corpora={json.dumps(listed)}"


def score(
    model: Path,
    data: Path,
    *,
    language: str,
    corpora: Iterable[str],
    decodings: Iterable[str],
    on_demand: bool,
    workers: int = 1,
) -> dict[str, dict[str, dict[str, float]]]:
    """The scores of a trained model by way of testing and corpus: strict and string F1 in percent, and counts.

    Each part is also written to a file beside the model, and only read if it is there.
    """
    chosen = {*decodings, *([ON_DEMAND] if on_demand else [])}
    parts = list(product([way for way in WAYS if way in chosen], corpora))
    task = partial(_score_part, model, data, language)
    if workers > 1:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            scored = list(pool.map(task, parts))
    else:
        scored = list(map(task, parts))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (way, name), scores in zip(parts, scored, strict=True):
        found.setdefault(way, {})[name] = scores
    return found


def _score_part(model: Path, data: Path, language: str, part: tuple[str, str]) -> dict[str, float]:
    """The scores of a trained model that is tested in one way on one corpus."""
    from onoma.evaluation.runs import open_corpus, run
    from onoma.files import atomic_write

    way, name = part
    path = model.parent / "scored" / f"{name}{way}.json"
    if path.is_file():
        scores: dict[str, float] = json.loads(path.read_text("utf-8"))
        return scores
    corpus = open_corpus(data / language / name, SPLITS.get(name, {}).get("test", "test"), language=language)
    if way == ON_DEMAND:
        scores = score_on_demand(_opened(model, ""), corpus)
    else:
        tested = run(_opened(model, way), corpus, batch_size=BATCH_SIZE)
        counted = {one: 100 * tested.counts[one] / max(1, tested.counts["answers"]) for one in COUNTED}
        scores = _scores(tested.report) | counted
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as file:
        json.dump(scores, file)
    return scores


@cache
def _opened(model: Path, decoding: str) -> Extractor:
    return with_options(model, DECODINGS[decoding])


def _scores(report: Any) -> dict[str, float]:
    return {"f1": 100 * report.strict.micro.f1, "string_f1": 100 * report.surface.strings.macro.f1}


def with_options(model: Path, options: dict[str, Any]) -> Extractor:
    """A trained model with some options changed."""
    from onoma.extractor import Extractor
    from onoma.labels.translation import LabelTranslator
    from onoma.models.folder import open_single
    from onoma.reading import LazyModel, LoadedModel
    from onoma.systems.base import RuntimeSettings
    from onoma.systems.registry import get_system

    folder = open_single(model, "score")
    folder = replace(folder, config=replace(folder.config, options=folder.config.options | options))
    runtime = get_system(folder.config.system).runtime(folder, RuntimeSettings("torch"))
    loaded = LoadedModel(folder, runtime, LabelTranslator(folder.path, folder.config.language))
    return Extractor(folder.path, [LazyModel(folder, lambda: loaded)])


def score_on_demand(extractor: Extractor, corpus: Corpus) -> dict[str, float]:
    """The scores of a model that is asked for every second type of a corpus, and then for the others."""
    from onoma.evaluation import evaluate
    from onoma.evaluation.candidates import usual_overlap

    types, texts = sorted(corpus.types, key=lambda one: one.name), [one.text for one in corpus]
    halves = [half for half in (types[::2], types[1::2]) if half]
    overlap = usual_overlap(corpus)
    answers = [extractor.extract(texts, half, overlap=overlap, batch_size=BATCH_SIZE) for half in halves]
    together: list[list[Entity]] = [[one for found in each for one in found] for each in zip(*answers, strict=True)]
    return _scores(evaluate(corpus, together))


def main() -> None:
    """Run the experiments and write their records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, encoders=["flan-t5-small", "flan-t5-small-zh"])
    parser.add_argument("--languages", nargs="*", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--settings", nargs="*", choices=list(OPTIONS), help="only these settings")
    parser.add_argument("--corpora", nargs="*", help="only these corpora, of single models")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--workers", type=int, default=1, help="processes that test one model")
    parser.add_argument("--ceilings", action="store_true", help="score answers that are right instead of models")
    parser.add_argument("--output", type=Path, default=RESULTS / "punifiedner.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    if arguments.ceilings:
        write_records(arguments.output, ceilings(arguments))
        return
    runs = {figure: run_of(figure, arguments.workers) for figure in figures(arguments)}
    finished = run_all(list(runs.values()), arguments)
    found = {figure: finished[run] for figure, run in runs.items() if run in finished}
    device = next((metrics["device"] for metrics in found.values()), "")
    text = command(without=["--output", "--runs", "--cache", "--workers"])
    write_records(arguments.output, records(found, text), accelerator=device)


def ceilings(arguments: argparse.Namespace) -> Iterator[Record]:
    """The ceiling of each corpus, with the tokenizer of each encoder."""
    from onoma.data.corpora import find_splits
    from onoma.evaluation.runs import open_corpus
    from onoma.inputs.tokenizer import WordTokenizer
    from onoma.systems.blocks.encoders import save_tokenizer
    from onoma.systems.punifiedner.prompts import PromptTokenizer

    text = command(without=["--output", "--runs", "--cache"])
    for language, encoder in product(arguments.languages, arguments.only):
        if encoder not in ENCODERS[language]:
            continue
        with TemporaryDirectory() as folder:
            save_tokenizer(encoder_name(encoder, arguments), folder)
            prompts = PromptTokenizer(WordTokenizer.load(folder))
        for name in CORPORA[language]:
            path = Path(arguments.data) / language / name
            split = "dev" if "dev" in find_splits(path) else "train"
            value = 100 * ceiling(open_corpus(path, split, language=language), prompts)
            print(f"{name} ({split}): {value:.2f}", flush=True)
            metric = f"punifiedner/ceiling/{name}/{encoder}/f1"
            yield Record(metric, round(value, 2), text, f"{name}: gold answers on {split}", encoder=encoder)


def ceiling(corpus: Corpus, prompts: PromptTokenizer) -> float:
    """The strict F1 of the entities that answers with exactly the gold mentions give."""
    from onoma import Entity
    from onoma.evaluation import evaluate
    from onoma.systems.punifiedner.answers import WindowText, outermost
    from onoma.text.alignment import mention_words
    from onoma.text.words import segment

    predicted = []
    for document in corpus:
        text, words = document.text, segment(document.text)
        (source,) = prompts.read([text], [words])
        window, found = WindowText(text, words, source), []
        edges = np.array([(one.start, one.end) for one in document.entities], np.int32).reshape(-1, 2)
        for one, (first, last) in zip(document.entities, mention_words(words, *edges.T).tolist(), strict=True):
            ids = source.words(first, last)
            found.append((one.label, window.find(prompts.strings([ids])[0], ids, prompts.unk)[0]))
        others = {run for _, runs in found for run in runs}
        spans = {(words[a, 0], words[b, 1], label) for label, runs in found for a, b in outermost(runs, others)}
        predicted.append([Entity(int(a), int(b), text[a:b], label) for a, b, label in spans])
    return evaluate(corpus, predicted).strict.micro.f1


def records(found: dict[Figure, dict[str, Any]], command: str) -> Iterator[Record]:
    """Means over seeds: the loss of adaptation, the scores on each corpus, and their averages over a language."""
    values: dict[tuple[str, str, str, str], dict[int, float]] = {}

    def add(setting: str, corpus: str, measure: str, figure: Figure, value: float) -> None:
        values.setdefault((setting, corpus, figure.encoder, measure), {})[figure.seed] = value

    averaged: dict[tuple[str, str, Figure], dict[str, float]] = {}
    for figure, metrics in found.items():
        if figure.setting == "adapt":
            add("adapt", figure.language, "dev_loss", figure, metrics["best_dev_loss"])
        elif figure.corpus == figure.language:
            add(figure.setting, f"average-{figure.language}", "dev_f1", figure, metrics["best_dev_f1"])
        for way, by_corpus in metrics.get("scored", {}).items():
            for corpus, scores in by_corpus.items():
                for measure, value in scores.items():
                    add(figure.setting + way, corpus, measure, figure, value)
                    group = figure._replace(corpus=figure.language)
                    averaged.setdefault((way, measure, group), {})[corpus] = value
    for (way, measure, figure), by_corpus in averaged.items():
        if set(by_corpus) == set(CORPORA[figure.language]):
            add(figure.setting + way, f"average-{figure.language}", measure, figure, fmean(by_corpus.values()))
    for (setting, corpus, encoder, measure), by_seed in values.items():
        metric = f"punifiedner/{setting}/{corpus}/{encoder}/{measure}"
        yield mean_record(
            metric,
            by_seed,
            command=command,
            data=_data(setting, corpus),
            encoder=encoder,
            paper=published_figure(metric),
        )


def _data(setting: str, corpus: str) -> str:
    if setting == "adapt":
        return f"train texts of the corpora ({corpus}), loss on dev texts"
    if setting.startswith("rate-"):
        return f"trained on all corpora of the language, tested on {DEV_LIMIT} sentences of each dev"
    trained = "each corpus by itself" if setting.startswith("single") else "all corpora of the language"
    split = SPLITS.get(corpus, {}).get("test", "test")
    return f"{corpus}: trained on {trained}, chosen on {DEV_LIMIT} sentences of each dev, tested on {split}"


if __name__ == "__main__":
    main_with_errors(main)
