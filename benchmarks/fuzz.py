"""Fuzzing of readers, texts and model folders: `python benchmarks/fuzz.py --minutes 10 --seed 1`.

- readers: valid files in all formats, and files of types and inventories, with random damage;
- texts: random and repetitive texts in many scripts, with random labels, thresholds and overlap modes;
- models: the embedded English model with random damage to one of its files.

A case fails if anything but a valid result or an `OnomaError` comes out, if the process dies, or if a case takes longer
than its limit. A case depends on nothing but its kind, the seed and its number, so a failure can be repeated:
`python benchmarks/fuzz.py --seed 1 --kind texts --case 123` runs that case alone and shows the traceback.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import random
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onoma
from onoma import Document, OnomaError
from onoma.data import Inventory, load_splits
from onoma.data.formats import FORMATS, read, write
from onoma.labels.parsing import read_types
from onoma.models.hub import EMBEDDED
from onoma.text import segment, sentence_starts
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

SECONDS_PER_CASE = {"readers": 20, "texts": 60, "models": 60}
"""Many times what a case needs, because other programs may be running."""
EXTENSIONS = {"brat": "", "spacy": ".spacy", "conll": ".conll", "pubtator": ".pubtator", "gliner": ".json"}
MODEL = EMBEDDED / "en"
PIECES = (
    *(
        "Tom ",
        "Paris",
        "New York",
        " said",
        ". ",
        ", ",
        "\n",
        "\n\n",
        "\t",
        "\r\n",
        " ",
        "'s",
        "(",
        ")",
        "[",
        "]",
        "…",
        "5mg",
    ),
    *("http://", "://", "www.", "a@b.c", "...", "!?", "U.S.", "Dr. ", "1,000", "--", "_", "#", "<", "&amp;", '"', "\\"),
    *(
        "北京",
        "王芳",
        "。",
        "”",
        "東京の",
        "กรุงเทพ",
        "ديوان",
        "؟",
        "हिन्दी",
        "한국",
        "e\u0301",
        "\u0301",
        "\u200d",
        "\u200b",
    ),
    *(
        "👨‍👩‍👧",
        "🇩🇪",
        "\ufe0f",
        "\ufeff",
        "\0",
        "\x1b[31m",
        "\x85",
        "\u2028",
        "\ud800",
        "\udfff",
        "\U0010ffff",
        "ſ",
        "ß",
        "İ",
    ),
    *("[CLS]", "[SEP]", "[UNK]", "##ing", "a" * 200, "A", "é", "x" * 30 + "y"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 3, 2**31, 2**70, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "0.5", "binder", "en"),
    *([], {}, [[]], ["a"], {"a": 1}, "\ud800", "x" * 10_000, [0.5], {"": ""}, "../en", "routed"),
)
DAMAGE = (
    *(
        b"\0",
        b"\xff",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"-",
        b"\\",
        b"\\u0000",
        b"\\ud800",
    ),
    *(
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!int ",
        b"---\n",
        b"9" * 30,
        b"-1",
        b"1e999",
        b"NaN",
        b"null",
        b"\xef\xbb\xbf",
        b"[" * 3000,
    ),
    *(b"T1\t", b"O\n", b"B-", b"# text = ", b"|t|", b"|a|", b"\x1f\x8b", b"\xfd7zXZ"),
)


def main() -> None:
    """Run the cases of all kinds, print failures, and record the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3.0, help="in all; each kind gets a third")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=list(KINDS), help="only this kind")
    parser.add_argument("--case", type=int, help="run this case of a kind alone, in this process")
    parser.add_argument("--from-case", type=int, help=argparse.SUPPRESS)  # run cases from here on, for the parent
    parser.add_argument("--output", type=Path, default=RESULTS / "fuzz.json")
    arguments = parser.parse_args()
    if arguments.case is not None and arguments.kind is None:
        parser.error("--case needs --kind")
    if arguments.case is not None:
        run_alone(arguments.kind, arguments.seed, arguments.case)
        return
    if arguments.from_case is not None:
        work(arguments.kind, arguments.seed, arguments.from_case)
        return
    commit_for(arguments.output)
    kinds = [arguments.kind] if arguments.kind else list(KINDS)
    records = []
    for kind in kinds:
        cases, failures = fuzz(kind, arguments.seed, 60 * arguments.minutes / len(kinds))
        print(f"{kind}: {cases} cases, {failures} failures", flush=True)
        shown = command(without=["--output"])
        for measure, value in (("cases", cases), ("failures", failures)):
            records.append(Record(f"fuzz/{kind}/none/none/{measure}", value, shown, "random", seeds=(arguments.seed,)))
    write_records(arguments.output, records)
    if any(record.value for record in records if record.metric.endswith("failures")):
        sys.exit(1)


# --- running cases


def fuzz(kind: str, seed: int, seconds: float) -> tuple[int, int]:
    """Run cases in worker processes until the time is over: how many were tried, and how many failed."""
    started, case, failures = time.monotonic(), 0, 0
    while time.monotonic() - started < seconds:
        last, problem = watch(kind, seed, case, started + seconds)
        if problem:
            failures += 1
            print(f"failed: --seed {seed} --kind {kind} --case {last}: {problem}", flush=True)
        case = last + 1
    return case, failures


def watch(kind: str, seed: int, first: int, deadline: float) -> tuple[int, str]:
    """Let a worker run cases from `first` on: the last one that was tried, and what went wrong with it, if anything."""
    words = [sys.executable, __file__, "--kind", kind, "--seed", str(seed), "--from-case", str(first)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as worker:
        assert worker.stdout is not None
        lines = selectors.DefaultSelector()
        lines.register(worker.stdout, selectors.EVENT_READ)
        case, problem = first - 1, ""
        while time.monotonic() < deadline and not problem:
            if not lines.select(SECONDS_PER_CASE[kind]):
                case, problem = case + 1, f"took more than {SECONDS_PER_CASE[kind]} seconds"
                break
            line = worker.stdout.readline()
            if not line:
                case, problem = case + 1, f"the process died with code {worker.wait()}"
                break
            case, problem = json.loads(line)
        worker.kill()
        return case, problem


def work(kind: str, seed: int, case: int) -> None:
    """Run cases for ever, and print the number of each with its problem."""
    for number in case_numbers(case):
        print(json.dumps([number, try_case(kind, seed, number)]), flush=True)


def case_numbers(first: int) -> Iterator[int]:
    while True:
        yield first
        first += 1


def try_case(kind: str, seed: int, case: int) -> str:
    """What goes wrong in a case; empty if nothing does."""
    try:
        run_alone(kind, seed, case)
    except BaseException as error:  # a panic of a Rust library is not an Exception
        return f"{type(error).__name__}: {error!s:.300}"
    return ""


def run_alone(kind: str, seed: int, case: int) -> None:
    """Run one case; errors that are meant for users are fine."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            KINDS[kind](random.Random(f"{seed} {kind} {case}"), Path(folder))
        except OnomaError as error:
            if not str(error).strip():
                raise AssertionError("the error has no message") from error


# --- cases


def fuzz_reader(chance: random.Random, folder: Path) -> None:
    """Read a damaged file."""
    kind = chance.choice([*FORMATS, "types", "inventory", "corpus"])
    if kind in ("types", "inventory"):
        path = folder / "a.yaml"
        path.write_bytes(damaged(chance.choice(YAML_FILES).encode(), chance))
        read_types(path) if kind == "types" else Inventory.load(path)
        return
    format = chance.choice(list(FORMATS)) if kind == "corpus" else kind
    path = folder / "corpus" / f"train{EXTENSIONS.get(format, '.jsonl')}"
    path.parent.mkdir()
    write([random_document(chance, format) for _ in range(chance.randint(0, 4))], path, format)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    if kind == "corpus":
        files.append(path.parent / "meta.json")
        files[-1].write_text(META)
    if files:
        path = damage_file(chance.choice(files), chance) if not path.is_dir() else path
        for one in files if path.is_dir() else ():
            one.write_bytes(damaged(one.read_bytes(), chance))
    if kind == "corpus":
        load_splits(folder / "corpus", natural_names=chance.random() < 0.5)
    elif path.exists():
        for document in read(path, chance.choice([None, format])):
            check_document(document)


def damage_file(path: Path, chance: random.Random) -> Path:
    """Damage a file; sometimes it is compressed, before or after that."""
    content, suffix = path.read_bytes(), chance.choice(["", "", ".xz", ".gz"])
    if chance.random() < 0.6:
        content = damaged(content, chance)
    if suffix:
        content = lzma.compress(content) if suffix == ".xz" else gzip.compress(content, mtime=0)
        if chance.random() < 0.3:
            content = damaged(content, chance)
    path.unlink()
    path = path.with_name(path.name + suffix)
    path.write_bytes(content)
    return path


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with some bytes changed, removed, inserted, repeated or moved."""
    for _ in range(chance.choice([1, 1, 2, 5])):
        start, end = sorted(chance.randint(0, len(content)) for _ in range(2))
        near = min(len(content), start + chance.choice([1, 1, 3, 20]))
        before, there, after = content[:start], content[start:near], content[near:]
        match chance.randrange(7):
            case 0:
                content = before + after
            case 1:
                content = before + chance.choice(DAMAGE) + there + after
            case 2:
                content = before + chance.choice(DAMAGE) + after
            case 3:
                content = before + chance.randbytes(len(there)) + after
            case 4:
                content = before
            case 5:
                content = before + there * chance.choice([2, 50, 2000]) + after
            case 6:
                content = before + content[end:] + content[start:end]
    return content


def random_document(chance: random.Random, format: str) -> Document:
    """A document that the format can represent."""
    words = [f"w{number}" for number in range(chance.randint(1, 12))]
    text, spans, place = " ".join(words), [], 0
    for word in words:
        if chance.random() < 0.4:
            spans.append((place, place + len(word), chance.choice(["person", "city", "人名"])))
        place += len(word) + 1
    return Document.from_spans(text, spans, id="7" if format == "pubtator" else None)


def check_document(document: Document) -> None:
    for entity in document.entities:
        assert document.text[entity.start : entity.end] == entity.text


def fuzz_text(chance: random.Random, folder: Path) -> None:
    """Cut a long text into words and sentences, or extract from shorter ones with random labels."""
    if chance.random() < 0.4:
        text = random_text(chance)
        text *= 200_000 // max(1, len(text))
        words = segment(text)
        assert (words[:, 0] < words[:, 1]).all()
        assert (words[1:, 0] >= words[:-1, 1]).all()
        sentence_starts(text, words)
        return
    number = chance.choice([1, 1, 1, 3, 20])
    texts = [random_text(chance)[: 4_000 // number] for _ in range(number)]
    labels = [random_label(chance) for _ in range(chance.choice([1, 2, 5, 40]))]
    options = {
        "threshold": chance.choice([None, None, 0.0, 0.01, 0.9, 1.0, -1, float("nan"), {labels[0]: 0.3}]),
        "overlap": chance.choice(["flat", "nested", "any"]),
        "several_labels": chance.random() < 0.3,
        "batch_size": chance.choice([1, 64]),
    }
    if options["threshold"] in (0.0, 0.01):  # every span is an answer then
        texts = [text[:500] for text in texts[:3]]
    for text, entities in zip(texts, loaded().extract(texts, labels, **options), strict=True):
        for entity in entities:
            assert text[entity.start : entity.end] == entity.text, (entity, "has other offsets")
            assert entity.label in labels, (entity, "has a label that was not asked for")
            assert 0.0 <= entity.score <= 1.0, (entity, "has no score")


def random_text(chance: random.Random) -> str:
    if chance.random() < 0.3:  # a pattern again and again
        unit = "".join(chance.choices(PIECES, k=chance.randint(1, 4)))
        return chance.choice(["", "http://", "J"]) + unit * (chance.choice([10, 1000, 20_000]) // len(unit) + 1)
    return "".join(chance.choices(PIECES, k=chance.choice([0, 1, 10, 100, 1000])))


def random_label(chance: random.Random) -> str:
    usual = ["person", "city", "人名", "organization or company", "drug", "misc"]
    return chance.choice(usual) if chance.random() < 0.7 else "".join(chance.choices(PIECES, k=chance.randint(1, 3)))


_EXTRACTORS: list[onoma.Extractor] = []


def loaded() -> onoma.Extractor:
    """The embedded model, loaded once in a process."""
    if not _EXTRACTORS:
        _EXTRACTORS.append(onoma.load(threads=1))
    return _EXTRACTORS[0]


def fuzz_model(chance: random.Random, folder: Path) -> None:
    """Load a model with one damaged file, and use it if that works."""
    name = chance.choice(["config.json"] * 4 + ["tokenizer.json"] * 3 + ["labels.json", "model.onnx", "model.onnx"])
    for path in MODEL.iterdir():
        if path.name != name:
            (folder / path.name).symlink_to(path)
    content = (MODEL / name).read_bytes()
    is_json = name.endswith(".json") and chance.random() < 0.6
    (folder / name).write_bytes(changed_json(content, chance) if is_json else damaged(content, chance))
    ner = onoma.load(folder, threads=1)
    for entity in ner.extract("Tom Hanks flew to Paris. 北京", ["person", "city", "人名"]):
        assert 0.0 <= entity.score <= 1.0


def changed_json(content: bytes, chance: random.Random) -> bytes:
    """A JSON file with a value replaced, removed or added somewhere."""
    value = json.loads(content)
    place, parents = value, []
    while isinstance(place, (dict, list)) and place:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        parents.append((place, key))
        if chance.random() < 0.4:
            break
        place = place[key]
    holder, key = parents[-1]
    match chance.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(["unknown", "options", "scale", "type"])] = chance.choice(ODD_VALUES)
        case _:
            holder[key] = chance.choice(ODD_VALUES)
    return json.dumps(value).encode()


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    "readers": fuzz_reader,
    "texts": fuzz_text,
    "models": fuzz_model,
}
YAML_FILES = (
    "drug: a medicine\ncity:\n",
    "- name: drug\n  description: a medicine\n  examples: [aspirin, heparin]\n  threshold: 0.4\n- city\n",
    "types:\n  person: {description: a human being, zh: 人名, zh_description: 用名字称呼的个人}\n"
    "corpora:\n  news: {PER: person, MISC: null}\n  other: identity\n",
)
META = '{"name": "a", "language": "en", "types": ["person"], "type_names": {"person": {"en": "human", "zh": "人"}}}'

if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main_with_errors(main)
