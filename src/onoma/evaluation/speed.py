"""How fast a model is on this machine, and how much of that is the encoder: what `onoma bench speed` measures.

All that is compared (numbers of labels, the encoder alone) is run in turns, one after the other, so that other work on
the machine slows all of it down alike. Ratios are medians over the ratios of each turn. The time of the processor, in
all threads, is measured beside the time on the clock: other work changes it less.
"""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from statistics import median, stdev
from typing import Any, NamedTuple

import numpy as np

from onoma.data import Inventory
from onoma.errors import OnomaError
from onoma.extractor import Extractor
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.models.folder import ONNX_FILE
from onoma.models.hub import EMBEDDED
from onoma.onnx.runtime import MAX_BATCH_TOKENS, STATES
from onoma.onnx.session import OnnxSession, WorkerThreads
from onoma.processors import peak_memory
from onoma.reading import LoadedModel
from onoma.text.words import segment

LABEL_COUNTS = (1, 10, 100, 1_000, 5_000)
TEXT_LENGTHS = (10, 100, 1_000, 10_000, 100_000)
BATCH_SIZES = (1, 8, 64, 256)
USUAL_LABELS = 10
"""Labels that are asked for where their number is not what is varied."""
COLD_STARTS = 3

P99_CALLS = 100
"""Calls that the percentile 99 of latency needs; of fewer there are the median and the maximum."""

_CALLS = 200  # of short texts and small batches
_WORDS_PER_LENGTH = 10_000  # of the texts of one length, if there are several
_TEXTS_PER_BATCH_SIZE = 6_400  # in the calls with one batch size
_RUN = """
import sys
from onoma.cli import main
from onoma.processors import peak_memory
try:
    main()
finally:
    print(peak_memory(), file=sys.stderr)
"""
_EXTRACT = """
import json, sys
from onoma.extractor import load
from onoma.processors import peak_memory
settings, texts, labels = json.load(sys.stdin)
load(**settings).extract(texts, labels)
print(peak_memory(), file=sys.stderr)
"""
_KINDS = (
    *("person", "city", "company", "river", "drug", "disease", "gene", "film", "song", "book", "ship", "award", "law"),
    *("plant", "animal", "dish", "tool", "vehicle", "machine", "school", "team", "sport", "event", "building", "road"),
)
_QUALITIES = (
    *("", "old", "new", "rare", "common", "public", "private", "local", "foreign", "famous", "small", "large", "fast"),
    *("military", "medical", "legal", "royal", "rural", "urban", "coastal", "northern", "southern", "modern", "early"),
    *(
        "late",
        "national",
        "regional",
        "digital",
        "electric",
        "wooden",
        "religious",
        "scientific",
        "musical",
        "tropical",
    ),
    *("industrial", "political", "financial", "historic", "fictional", "award-winning"),
)
_ORIGINS = ("", "European", "Asian", "African", "American", "Australian")
_NAMES = (
    *("Ines", "Duarte", "Tom", "Okafor", "Mei", "Lindqvist", "Oslo", "Lisbon", "Nairobi", "Acme", "Vega", "Danube"),
    *("Hamlet", "Toyota", "Pfizer", "Kyoto", "Berlin", "Ganges", "Mozart", "Ferrari", "Andes", "Reuters", "Cairo"),
)
_WORDS = (
    *("the", "a", "of", "in", "to", "and", "for", "with", "from", "on", "by", "at", "new", "first", "large", "small"),
    *("report", "bridge", "meeting", "factory", "river", "song", "doctor", "patient", "price", "market", "team"),
    *("signed", "opened", "moved", "played", "treated", "announced", "closed", "wrote", "visited", "found", "said"),
    *("yesterday", "quickly", "again", "after", "before", "during", "2019", "14", "percent", "million", "university"),
)


def sample_labels(count: int) -> list[str]:
    """Names of types that differ: common kinds, then those of Onoma's inventory, then kinds with adjectives.

    >>> sample_labels(2)
    ['person', 'city']
    """
    names = _all_labels()
    if not 1 <= count <= len(names):
        raise OnomaError(f"speed is measured with 1 to {len(names):,} labels, got {count}")
    return list(names[:count])


@lru_cache(maxsize=1)
def _all_labels() -> tuple[str, ...]:
    inventory = list(Inventory.load().types)
    random.Random(0).shuffle(inventory)  # neighbours are of one corpus
    made = (" ".join(filter(None, words)) for words in product(_ORIGINS, _QUALITIES, _KINDS))
    return tuple(dict.fromkeys([*_KINDS, *inventory, *made]))


def sample_sentences(count: int, seed: int = 0) -> list[str]:
    """Sentences of 6 to 40 English words with names in them; they need not make sense to be read.

    >>> len(set(sample_sentences(100))), sample_sentences(3) == sample_sentences(3)
    (100, True)
    """
    draw = random.Random(seed)
    sentences = []
    for _ in range(count):
        words = [draw.choice(_NAMES if draw.random() < 0.2 else _WORDS) for _ in range(draw.randint(5, 39))]
        sentences.append(f"{' '.join(words).capitalize()}.")
    return sentences


def text_of_length(sentences: Sequence[str], words: int, seed: int = 0) -> str:
    """A text of so many words, made of sentences in random order."""
    draw, parts, length = random.Random(seed), [], 0
    while length < words:
        sentence = draw.choice(sentences)
        offsets = segment(sentence)
        kept = min(len(offsets), words - length)
        if kept:
            parts.append(sentence[: int(offsets[kept - 1, 1])])
        length += max(kept, 1)  # texts without words come to an end, too
    return " ".join(parts)


class Turn(NamedTuple):
    """What one run of some work took: seconds on the clock, and seconds of the processor in all threads."""

    wall: float
    cpu: float


def take_turns(
    work: Mapping[Any, Callable[[], object]], turns: int, on_turn: Callable[[Any], None] = lambda _: None
) -> dict[Any, list[Turn]]:
    """Run all of the work once to warm up and then `turns` times, one after the other in each turn."""
    taken: dict[Any, list[Turn]] = {name: [] for name in work}
    for turn in range(turns + 1):
        for name, run in work.items():
            on_turn(name)
            taken[name].append(_timed(run))
            if not turn:
                taken[name].clear()
    return taken


def _timed(run: Callable[[], object]) -> Turn:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return Turn(time.perf_counter() - wall, time.process_time() - cpu)


@dataclass(frozen=True, slots=True)
class SpeedSettings:
    """What is measured."""

    label_counts: Sequence[int] = LABEL_COUNTS
    text_lengths: Sequence[int] = TEXT_LENGTHS
    batch_sizes: Sequence[int] = BATCH_SIZES
    turns: int = 5
    on_progress: Callable[[str], None] = field(default=lambda _: None)


def measure_speed(ner: Extractor, texts: Sequence[str], settings: SpeedSettings | None = None) -> dict[str, Any]:
    """All figures of a model as JSON: rates (median, low, high), percentiles of latency, memory, and the cold start.

    `bare_encoder` is the rate of the encoder alone on the same tokens, the limit of what extraction can reach; None if
    it cannot be measured (`bare_encoder_missing` says why).
    """
    settings = settings or SpeedSettings()
    if not any(len(segment(text)) for text in texts):
        raise OnomaError("speed is measured on texts with words, but there are none")
    questions = questions_for(ner, texts, settings.label_counts)  # an error before anything is measured
    ner.extract(texts[0], next(iter(questions.values())))  # loads the model
    lengths = _by_length(ner, texts, settings)  # first, because the other parts would count as memory, too
    return {
        **_by_labels(ner, texts, questions, settings),
        "text_lengths": lengths,
        "batch_sizes": _by_batch_size(ner, texts, settings),
        "cold_start": _cold_start(ner, settings),
        **describe_machine(ner, ner.model_for(texts[0])),
    }


def describe_machine(ner: Extractor, model: LoadedModel) -> dict[str, Any]:
    """What runs the model."""
    import onnxruntime

    return {
        "model": "embedded" if ner.folder == EMBEDDED else str(ner.folder),
        "encoder": model.folder.config.encoder,
        "backend": model.runtime.backend,
        "threads": model.runtime.workers,
        "onnxruntime": onnxruntime.__version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "processors": os.cpu_count(),
    }


def _by_labels(
    ner: Extractor, texts: Sequence[str], questions: Mapping[int, list[str]], settings: SpeedSettings
) -> dict[str, Any]:
    """Rates, latencies and memory by the number of labels, beside the bare encoder."""
    words = sum(len(segment(text)) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        encode, missing = _bare_encoder_or_reason(ner, texts, Path(folder))
        work: dict[Any, Callable[[], object]] = {} if encode is None else {"encoder": encode}
        work |= {count: partial(ner.extract, texts, labels) for count, labels in questions.items()}
        taken = take_turns(work, settings.turns, lambda name: settings.on_progress(_described(name)))
    rows = []
    for count, labels in questions.items():
        settings.on_progress(f"latency and memory with {count:,} labels")
        row = {"labels": count, **_rates(taken[count], len(texts), words)}
        row["latency_ms"] = _latency(ner, random.Random(0).choices(texts, k=_CALLS), labels)
        row["peak_memory_mb"] = _memory_of_extraction(ner, texts, labels)
        row["times_of_fewest"] = ratio(taken[count], taken[min(questions)])
        if encode is not None:
            row["share_of_encoder"] = ratio(taken["encoder"], taken[count])
        rows.append(row)
    return {
        "sentences": len(texts),
        "words": words,
        "turns": settings.turns,
        "labels": rows,
        "bare_encoder": None if encode is None else _rates(taken["encoder"], len(texts), words),
        "bare_encoder_missing": missing,
    }


def questions_for(ner: Extractor, texts: Sequence[str], counts: Iterable[int]) -> dict[int, list[str]]:
    """The labels to ask for by their number; a model that knows a closed set is asked for all of these."""
    known = ner.model_for(texts[0]).runtime.labels
    return {len(known): sorted(known)} if known else {count: sample_labels(count) for count in sorted(set(counts))}


def _described(name: object) -> str:
    return f"{name:,} labels" if isinstance(name, int) else f"the {name} alone"


def _rates(turns: Sequence[Turn], sentences: int, words: int) -> dict[str, Any]:
    """Units per second, and milliseconds of the processor per text."""
    return {
        "sentences_per_second": summarise([sentences / one.wall for one in turns]),
        "words_per_second": summarise([words / one.wall for one in turns]),
        "cpu_ms_per_sentence": summarise([1e3 * one.cpu / sentences for one in turns]),
    }


def summarise(values: Sequence[float]) -> dict[str, Any]:
    """Median, lowest, highest and standard deviation of the turns; of a single turn, there is no deviation."""
    deviation = stdev(values) if len(values) > 1 else None
    return {"median": median(values), "low": min(values), "high": max(values), "deviation": deviation}


def ratio(turns: Sequence[Turn], others: Sequence[Turn]) -> dict[str, Any]:
    """How many times as long one takes as the other: over the turns, and by the time of the processor alone."""
    pairs = list(zip(turns, others, strict=True))
    cpu = summarise([one.cpu / max(other.cpu, 1e-9) for one, other in pairs])
    return {**summarise([one.wall / other.wall for one, other in pairs]), "cpu": cpu}


def _latency(ner: Extractor, calls: Iterable[str | Sequence[str]], labels: Sequence[str]) -> dict[str, Any]:
    """Milliseconds of calls with one text or one batch each."""
    return _percentiles([_timed(partial(ner.extract, texts, labels)).wall for texts in calls])


def _percentiles(seconds: Sequence[float]) -> dict[str, Any]:
    """The number of calls, median and maximum in milliseconds; of enough calls the percentile 99 as well."""
    found = {"calls": len(seconds), "p50": 1e3 * median(seconds), "max": 1e3 * max(seconds)}
    return found | ({"p99": 1e3 * float(np.percentile(seconds, 99))} if len(seconds) >= P99_CALLS else {})


def _memory_of_extraction(ner: Extractor, texts: Sequence[str], labels: Sequence[str]) -> float | None:
    """The peak memory of a new process that extracts from all texts."""
    runtime = ner.model_for(texts[0]).runtime
    settings = {"name_or_folder": None if ner.folder == EMBEDDED else str(ner.folder), "backend": runtime.backend}
    return _peak_memory_of(_EXTRACT, given=json.dumps([settings | {"threads": runtime.workers}, texts, labels]))


def _by_length(ner: Extractor, texts: Sequence[str], settings: SpeedSettings) -> list[dict[str, Any]]:
    """One text at a time, from short ones to long ones; memory is the peak of the process up to then."""
    (labels,) = questions_for(ner, texts, [USUAL_LABELS]).values()
    rows = []
    for words in sorted(set(settings.text_lengths)):
        settings.on_progress(f"texts of {words:,} words")
        count = max(1, min(_CALLS, _WORDS_PER_LENGTH // words))
        chosen = [text_of_length(texts, words, seed) for seed in range(count)]
        turns = [_timed(partial(ner.extract, text, labels)) for text in chosen]
        rows.append(
            {
                "words": words,
                "words_per_second": words * count / sum(one.wall for one in turns),
                "cpu_us_per_word": 1e6 * sum(one.cpu for one in turns) / (words * count),
                "latency_ms": _percentiles([one.wall for one in turns]),
                "peak_memory_mb": peak_memory(),
            }
        )
    return rows


def _by_batch_size(ner: Extractor, texts: Sequence[str], settings: SpeedSettings) -> list[dict[str, Any]]:
    (labels,) = questions_for(ner, texts, [USUAL_LABELS]).values()
    words = sum(len(segment(text)) for text in texts)
    work: dict[Any, Callable[[], object]] = {
        size: partial(ner.extract, texts, labels, batch_size=size) for size in sorted(set(settings.batch_sizes))
    }
    taken = take_turns(work, settings.turns, lambda size: settings.on_progress(f"batches of {size}"))
    rows = []
    for size, turns in taken.items():
        settings.on_progress(f"latency of batches of {size}")
        draw, calls = random.Random(0), max(1, min(_CALLS, _TEXTS_PER_BATCH_SIZE // size))
        batches = (draw.choices(texts, k=size) for _ in range(calls))
        latency = _percentiles([_timed(partial(ner.extract, one, labels, batch_size=size)).wall for one in batches])
        rows.append({"batch_size": size, **_rates(turns, len(texts), words), "latency_ms": latency})
    return rows


def _cold_start(ner: Extractor, settings: SpeedSettings) -> dict[str, Any]:
    """`onoma extract` in a new process, from start to end."""
    known = ner.runtime.labels
    labels = min(known) if known else "person, city"
    arguments = ["extract", "Tom flew to Paris.", "--labels", labels, "--backend", ner.runtime.backend]
    arguments += [] if ner.folder == EMBEDDED else ["--model", str(ner.folder)]
    seconds, memory = [], []
    for _ in range(COLD_STARTS):
        settings.on_progress("cold start")
        started = time.perf_counter()
        memory.append(_peak_memory_of(_RUN, *arguments))
        seconds.append(time.perf_counter() - started)
    return {"seconds": summarise(seconds), "peak_memory_mb": None if None in memory else max(filter(None, memory))}


def _peak_memory_of(program: str, *arguments: str, given: str = "") -> float | None:
    """Run a program in a new process; its peak memory, which is the last line that it prints to stderr."""
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", input=given)
    *messages, peak = ended.stderr.splitlines() or [""]
    if ended.returncode:
        raise OnomaError(f"the model cannot be run in a new process: {' '.join([*messages, peak])[-500:]}")
    return None if peak == "None" else float(peak)


def _bare_encoder_or_reason(
    ner: Extractor, texts: Sequence[str], folder: Path
) -> tuple[Callable[[], object] | None, str | None]:
    try:
        return bare_encoder(ner, texts, folder), None
    except ImportError as error:
        return None, f'it needs {error.name}. Fix: pip install "onoma[train]"'
    except OnomaError as error:
        return None, str(error)


def bare_encoder(ner: Extractor, texts: Sequence[str], folder: Path) -> Callable[[], object]:
    """The encoders alone, without heads, on all texts: each text in the batches of the model that reads it.

    Graphs are written into a folder, which must exist as long as the function is used.
    """
    from onoma.onnx.bare_encoder import write_bare_encoder

    own: dict[Path, tuple[LoadedModel, list[str]]] = {}
    for text in texts:
        model = ner.model_for(text)
        own.setdefault(model.folder.path, (model, []))[1].append(text)
    work = []
    for number, (path, (model, read)) in enumerate(own.items()):
        if model.runtime.backend != "onnx":
            raise OnomaError("the encoder alone is measured with the onnx backend. Fix: export the model")
        write_bare_encoder(path / ONNX_FILE, folder / f"{number}.onnx")
        session, workers = OnnxSession(folder / f"{number}.onnx"), WorkerThreads(model.runtime.workers)
        work.append((session, workers, encoder_batches(model, read)))

    def encode() -> None:
        for session, workers, batches in work:
            deque(workers.map(partial(_read_states, session), batches), maxlen=0)

    return encode


def _read_states(session: OnnxSession, batch: Batch) -> object:
    return session.run([STATES], ids=batch.ids, mask=batch.mask)


def encoder_batches(model: LoadedModel, texts: Sequence[str]) -> list[Batch]:
    """All texts as small batches of similar length, as extraction makes them."""
    config, runtime = model.runtime.config, model.runtime
    windowed = WindowedTexts.cut(PackedTexts.pack(texts), runtime.tokenizer, config.max_tokens, config.overlap)
    lengths = windowed.lengths()
    rows = bucket_by_length(lengths, len(lengths), MAX_BATCH_TOKENS, workers=runtime.workers)
    return [windowed.batch(part, runtime.tokenizer) for part in rows]
