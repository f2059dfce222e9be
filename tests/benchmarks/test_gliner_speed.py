"""The speed beside GLiNER: what is asked, how it is timed, what is recorded; a stand-in takes GLiNER's place."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import gliner_speed
from onoma import Corpus, Document, EntityType
from onoma.data import write
from onoma.errors import OnomaError

SPEEDS = {
    ("onoma", 5): [220.0, 200.0, 180.0],
    ("onoma", 10): [200.0, 180.0, 160.0],
    ("onoma", 100): [190.0, 170.0, 150.0],
    ("onoma", 1000): [110.0, 160.0, 90.0],
    ("gliner", 10): [10.0, 20.0, 10.0],
    ("gliner", 100): [2.0, 1.0, 3.0],
    ("gliner-sorted", 10): [10.0, 25.0, 10.0],
    ("gliner-sorted", 100): [5.0, 4.0, 3.0],
}


def corpus(name: str, *types: str, size: int = 9) -> Corpus:
    documents = tuple(Document(f"Sentence {number} of {name}.") for number in range(size))
    return Corpus(name, documents, tuple(EntityType(one) for one in types))


def test_sentences_come_from_all_parts_of_all_sets() -> None:
    corpora = [corpus("a", size=1000), corpus("b", size=3)]
    texts = gliner_speed.sentences(corpora, 20)
    places = [int(text.split()[1]) for text in texts]
    assert len(texts) == len(set(texts)) == 23
    assert places[20:] == [0, 1, 2]
    assert min(places[:20]) < 250
    assert max(places[:20]) > 750
    assert texts == gliner_speed.sentences(corpora, 20)


def test_types_of_most_sets_come_first_then_other_short_names() -> None:
    corpora = [corpus("a", "poem", "field of study", "person"), corpus("b", "person")]
    names = gliner_speed.label_names(corpora, 1000)
    assert names[:3] == ["person", "poem", "field of study"]
    assert len(set(names)) == 1000
    assert max(len(name.split()) for name in names[3:]) == 2
    assert names[:10] == gliner_speed.label_names(corpora, 10)


def test_more_types_than_there_are_names() -> None:
    with pytest.raises(OnomaError, match="only"):
        gliner_speed.label_names([corpus("a", "person")], 100_000)


def test_short_readings_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.75, 1.5, 2.25])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    read: list[str] = []

    def reading(texts: list[str]) -> list[list[Any]]:
        read.extend(texts)
        return []

    assert gliner_speed.seconds(reading, ["text"], 2.0) == 0.75
    assert read == ["text"] * 3


def test_the_fastest_batch_size_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {1: 3.0, 4: 2.0, 8: 1.0, 16: 2.0, 32: 4.0}
    monkeypatch.setattr(gliner_speed, "seconds", lambda read, texts: taken[read.keywords["batch_size"]])
    assert gliner_speed.best_batch_size(lambda texts, batch_size: [], ["text"]) == 8


def test_records_are_those_of_the_best_turns() -> None:
    data = {"onoma": "ours", "gliner": "theirs", "gliner-sorted": "theirs, sorted"}
    rows = gliner_speed.records(SPEEDS, data, "embedded", "gte-small")
    figures = {row.metric.replace("/speed-beside-gliner/crossner/gte-small", ""): row for row in rows}
    assert len(figures) == len(rows) == 13
    assert figures["embedded/10_types_sentences_per_s"].value == 200
    assert figures["gliner/100_types_sentences_per_s"].value == 3
    assert figures["embedded/10_types_times_gliner"].value == 10
    assert figures["embedded/10_types_times_gliner-sorted"].value == 8
    assert figures["embedded/100_types_times_gliner-sorted"].value == 38
    assert figures["embedded/1000_types_against_5"].value == 220 / 160
    assert figures["embedded/10_types_sentences_per_s"].spread == 20
    assert {row.data for name, row in figures.items() if name.startswith("gliner/")} == {"theirs"}


def test_table() -> None:
    console = Console(file=io.StringIO(), record=True, width=160)
    console.print(gliner_speed.table(SPEEDS))
    lines = {line.split("│")[1].strip(): line.split("│") for line in console.export_text().splitlines() if "│" in line}
    assert [cell.strip() for cell in lines["10"][2:-1]] == [
        "200.0 (180.0)",
        "20.0 (10.0)",
        "10.0",
        "25.0 (10.0)",
        "8.0",
    ]
    assert [cell.strip() for cell in lines["1,000"][2:-1]] == ["160.0 (110.0)", "", "", "", ""]


def test_gliner_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(OnomaError, match=r"pip install gliner==0\.2\.29"):
        gliner_speed.build_gliner("some/encoder", 2)


class StandIn:
    """Takes GLiNER's place: finds one entity a text, and remembers what it was asked."""

    asked: ClassVar[list[tuple[str, int, int, bool]]] = []

    def __init__(self, encoder: str) -> None:
        self.encoder = encoder

    @classmethod
    def from_config(cls, config: str) -> StandIn:
        return cls(config)

    def inference(self, texts: list[str], labels: list[str], threshold: float, batch_size: int) -> list[list[Any]]:
        self.asked.append((self.encoder, len(texts), len(labels), texts == sorted(texts, key=len)))
        return [["entity"] for _ in texts]


def test_a_whole_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = SimpleNamespace(GLiNER=StandIn, GLiNERConfig=lambda model_name: model_name, __version__="0.2.29")
    monkeypatch.setitem(sys.modules, "gliner", package)
    monkeypatch.setattr(gliner_speed, "COUNTS", {"onoma": (1, 2, 3), "gliner": (2,), "gliner-sorted": (2,)})
    monkeypatch.setattr(gliner_speed, "SHORTEST_TURN", 0.0)
    for name in gliner_speed.CROSSNER:
        folder = tmp_path / "en" / name
        folder.mkdir(parents=True)
        write(corpus(name).documents, folder / "test.jsonl")
        meta = {"name": name, "types": ["persn"], "type_names": {"persn": "person"}}
        (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    output = tmp_path / "records.json"
    words = ["benchmark", "--data", tmp_path, "--encoder", "here", "--limit", 4, "--turns", 2, "--output", output]
    words += ["--threads", torch.get_num_threads()]  # they stay set for all tests
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    gliner_speed.main()
    rows = {row["metric"].rpartition("/")[2]: row for row in json.loads(output.read_text("utf-8"))}
    assert {"1_types_sentences_per_s", "2_types_times_gliner", "3_types_against_1"} < rows.keys()
    assert set(StandIn.asked) == {("here", texts, 2, ordered) for texts in (5, 20) for ordered in (False, True)}
    theirs = rows["2_types_sentences_per_s"]["data"]
    assert "untrained heads" in theirs
    assert "20 with 2 types" in theirs
