"""Building lattices with a lexicon of half a million words: `python benchmarks/lattice_speed.py --data FOLDER`.

The lexicon consists of the word lists jieba.txt.xz and thuocl in FOLDER/zh/lexicons, the text of all sentences of
FOLDER/zh/msra. Each sentence is a window, and windows are in batches of 64. Every figure is the median of several
repeats, in a process of its own on one core:

- lattice: from a batch to padded arrays of word nodes, folding of the text included;
- find: all occurrences of words in the whole text, as arrays;
- load: from the bytes of the artifact to a lexicon that is ready;
- peak memory: of the process, without what it had used before the lexicon was loaded.

With `--automata`, the same words are also searched for with the Aho-Corasick automata of ahocorasick_rs and daachorse,
as far as they are installed: in the folded text, in parts of 64 K characters, and as arrays.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onoma.data import find_splits, read
from onoma.errors import OnomaError
from onoma.inputs.batches import Batch
from onoma.systems.nerco.lattice import pad_nodes, word_nodes
from onoma.text import segment
from onoma.text.chinese import fold_chinese
from onoma.text.lexicon import Lexicon
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from weak_label import run

CORPUS = "msra"
LISTS = ("jieba.txt.xz", "thuocl")
LEXICON, TEXTS = "lexicon.txt.xz", "texts.json"
WINDOWS = 64
PART = 1 << 16
AUTOMATA = ("ahocorasick_rs", "daachorse")

Figures = dict[str, list[float]]


def main() -> None:
    """Measure, print and record; or measure one program, in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of corpora, such as $CORPORA")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--automata", action="store_true", help="also measure ahocorasick_rs and daachorse")
    parser.add_argument("--output", type=Path, default=RESULTS / "lattice_speed.json")
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        name, folder = arguments.measure
        print(json.dumps(PROGRAMS[name](Path(folder), arguments.repeats)))
    elif arguments.data is None:
        parser.error("give the folder of the corpora: --data FOLDER")
    else:
        record(arguments)


def record(arguments: argparse.Namespace) -> None:
    """Measure each program and record its figures."""
    commit_for(arguments.output)
    names = ["nerco", *(name for name in AUTOMATA if arguments.automata and is_installed(name))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = prepare(arguments.data / "zh", folder)
        figures = {name: measure(name, folder, arguments.repeats) for name in names}
    records = [
        Record(
            f"{system}/speed/{CORPUS}/none/{figure}",
            round(statistics.median(values), 3),
            command(without=["--output"]),
            data,
            spread=round(statistics.pstdev(values), 3) if len(values) > 1 else None,
        )
        for system, columns in figures.items()
        for figure, values in columns.items()
    ]
    for one in records:
        print(f"{one.metric:65} {one.value:16,.2f}")
    write_records(arguments.output, records)


def is_installed(module: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(module) is not None


def prepare(corpora: Path, folder: Path) -> str:
    """Write the lexicon and the text that are measured with; returns what they are."""
    lexicon = Lexicon.read([corpora / "lexicons" / name for name in LISTS])
    texts = [document.text for path in find_splits(corpora / CORPUS).values() for document in read(path)]
    if not any(texts):
        raise OnomaError(f"{corpora / CORPUS} has no text. Fix: give a folder of corpora that has zh/{CORPUS}")
    (folder / LEXICON).write_bytes(lexicon.to_bytes())
    (folder / TEXTS).write_text(json.dumps(texts), "utf-8")
    return f"{len(lexicon)} words of {' and '.join(LISTS)}; {len(texts)} sentences, {sum(map(len, texts))} characters"


def measure(name: str, folder: Path, repeats: int) -> Figures:
    """The figures of a program in a process of its own."""
    words = [sys.executable, str(Path(__file__).resolve()), "--measure", name, str(folder), "--repeats", str(repeats)]
    figures: Figures = json.loads(run(words).printed)
    return figures


def measure_nerco(folder: Path, repeats: int) -> Figures:
    """Lexicon and lattice of Onoma."""
    texts = read_texts(folder)
    batches = [batch_of(texts[start : start + WINDOWS]) for start in range(0, len(texts), WINDOWS)]
    characters, content = sum(map(len, texts)), (folder / LEXICON).read_bytes()
    before = peak_megabytes()
    lexicon, loading = timed(lambda: Lexicon.from_bytes(content), repeats)
    memory = peak_megabytes() - before
    found, finding = timed(lambda: lexicon.find(texts), repeats)
    _, building = timed(lambda: [lattice(lexicon, batch) for batch in batches], repeats)
    text = "\n".join(texts)
    _, folding = timed(lambda: fold_chinese(text), repeats)
    return {
        "lattice_characters_per_second": [characters / seconds for seconds in building],
        "find_characters_per_second": [characters / seconds for seconds in finding],
        "load_s": loading,
        "peak_memory_mb": [memory],
        "artifact_mb": [len(content) / 1e6],
        "words": [len(lexicon)],
        "matches_per_character": [len(found.word) / characters],
        "fold_mb_per_s": [len(text.encode()) / 1e6 / seconds for seconds in folding],
    }


def lattice(lexicon: Lexicon, batch: Batch) -> Any:
    """What a system reads."""
    return pad_nodes(word_nodes(lexicon, batch), len(batch.texts))


def batch_of(texts: Sequence[str]) -> Batch:
    """Texts as windows, without tokens: a lattice needs none."""
    offsets = [segment(text) for text in texts]
    none = np.zeros((len(texts), 0), np.int64)
    return Batch(none, none, none, none, np.array([len(one) for one in offsets], np.int64), texts, offsets)


def measure_automaton(folder: Path, repeats: int, build: Callable[[list[str]], Callable[[str], Any]]) -> Figures:
    """The search alone."""
    texts, words = read_texts(folder), list(Lexicon.from_bytes((folder / LEXICON).read_bytes()).words)
    text = fold_chinese("\n".join(texts), case=True)
    parts = [text[start : start + PART] for start in range(0, len(text), PART)]
    characters, before = sum(map(len, texts)), peak_megabytes()
    search, building = timed(lambda: build(words), repeats)
    memory = peak_megabytes() - before
    _, finding = timed(lambda: [np.array(search(part)) for part in parts], repeats)
    return {
        "find_characters_per_second": [characters / seconds for seconds in finding],
        "load_s": building,
        "peak_memory_mb": [memory],
    }


def ahocorasick(words: list[str]) -> Callable[[str], Any]:
    """An automaton of ahocorasick_rs, in its fastest form for so many words."""
    from ahocorasick_rs import AhoCorasick, Implementation

    automaton = AhoCorasick(words, implementation=Implementation.ContiguousNFA, store_patterns=False)
    return partial(automaton.find_matches_as_indexes, overlapping=True)


def daachorse(words: list[str]) -> Callable[[str], Any]:
    """An automaton of daachorse."""
    from daachorse import CharwiseDoubleArrayAhoCorasick

    search: Callable[[str], Any] = CharwiseDoubleArrayAhoCorasick(words).find_overlapping
    return search


PROGRAMS: dict[str, Callable[[Path, int], Figures]] = {
    "nerco": measure_nerco,
    "ahocorasick_rs": partial(measure_automaton, build=ahocorasick),
    "daachorse": partial(measure_automaton, build=daachorse),
}


def read_texts(folder: Path) -> list[str]:
    """The text that is measured with."""
    texts: list[str] = json.loads((folder / TEXTS).read_text("utf-8"))
    return texts


def timed(function: Callable[[], Any], repeats: int) -> tuple[Any, list[float]]:
    """The last result of a function, and the seconds of each call but the first."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return result, seconds[1:]


def peak_megabytes() -> float:
    """The largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main_with_errors(main)
