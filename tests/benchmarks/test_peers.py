"""The speed beside other libraries: what is asked, how turns are taken, what is recorded. Peers are stand-ins."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import peer_worker
import peers
from onoma import Corpus, Document
from onoma.errors import OnomaError

RATES = {
    ("onoma", 10): [200.0, 100.0, 160.0],
    ("onoma", 100): [190.0, 170.0, 150.0],
    ("gliner", 10): [20.0, 20.0, 10.0],
    ("gliner", 100): [2.0, 1.0, 3.0],
}
MEASURED = {key: [peers.Turn(rate, 1000 / rate) for rate in rates] for key, rates in RATES.items()}
RUNS = {"model": "nothing", "encoder": "own", "precision": "float16", "runtime": "none", "threads": 1}
STAND_IN = """
import json, sys
encoder = "gte-small" if sys.argv[1] == "gliner" else "own"
runs = {"model": "nothing", "encoder": encoder, "precision": "float16", "runtime": "none", "threads": 1}
print(json.dumps({"runs": runs}), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    seconds = 0.1 / question["batch_size"]
    print(json.dumps({"seconds": seconds, "cpu_seconds": seconds, "found": len(question["labels"])}), flush=True)
"""


def corpus(size: int, *types: str) -> Corpus:
    texts = [f"{number} is the number of this sentence." for number in range(size)]
    spans = ((0, text.index(" "), one) for text, one in zip(texts, cycle(types), strict=False))
    return Corpus("own", tuple(Document.from_spans(text, [span]) for text, span in zip(texts, spans, strict=True)))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[peers.Peer]:
    """A peer that answers at once."""
    folder = tmp_path / "worker"
    folder.mkdir()
    (folder / "peer_worker.py").write_text(STAND_IN, "utf-8")
    monkeypatch.setattr(peers, "__file__", str(folder / "peers.py"))
    peer = peers.Peer.start("gliner", Path(sys.executable), {"threads": 1}, tmp_path / "log")
    yield peer
    peer.stop()


def test_sentences_come_from_all_parts_of_a_corpus() -> None:
    texts = peers.sentences(corpus(1000, "city"), 20)
    places = [int(text.split()[0]) for text in texts]
    assert len(texts) == len(set(texts)) == 20
    assert min(places) < 250
    assert max(places) > 750
    assert texts == peers.sentences(corpus(1000, "city"), 20)
    assert len(peers.sentences(corpus(3, "city"), 20)) == 3


def test_the_most_common_types_come_first_then_other_short_names() -> None:
    names = peers.label_names(corpus(10, "person", "poem", "field of study", "Person"), 1000)
    assert names[:2] == ["person", "poem"]
    assert len({name.casefold() for name in names}) == 1000
    assert max(len(name.split()) for name in names) == 2
    with pytest.raises(OnomaError, match="only"):
        peers.label_names(corpus(1, "person"), 100_000)


def test_a_peer_gets_its_best_batch_size_and_sentences_by_length(stand_in: peers.Peer) -> None:
    texts = ["x" * length for length in (9, 3, 5, 1)]
    question = peers.prepare_all([stand_in], ["person"], texts)["gliner", 1]
    assert question.batch_size == max(peers.BATCH_SIZES)
    assert question.texts == sorted(texts, key=len)
    assert stand_in.runs["model"] == "nothing"


@pytest.mark.parametrize(("slowest", "count"), [(2.0, 60), (4.0, 120), (1000.0, 240)])
def test_all_read_as_many_sentences_as_the_slowest(
    stand_in: peers.Peer, monkeypatch: pytest.MonkeyPatch, slowest: float, count: int
) -> None:
    rates = iter([500.0, slowest])
    monkeypatch.setattr(peers, "best_batch_size", lambda *_: (4, next(rates)))
    other = peers.Peer("uie", stand_in.process, stand_in.log)
    questions = peers.prepare_all([stand_in, other], ["person"], ["x" * length for length in range(1, 241)])
    chosen = questions["uie", 1].texts
    assert questions["gliner", 1].texts == chosen
    assert len(chosen) == count
    assert len(chosen[0]) < 30
    assert len(chosen[-1]) > 210


def test_a_peer_that_ends_is_reported_with_its_last_words(stand_in: peers.Peer) -> None:
    stand_in.process.kill()
    stand_in.process.wait()
    stand_in.log.write_text("first\nno such encoder\n", "utf-8")
    with pytest.raises(OnomaError, match="no such encoder"):
        stand_in.read(["text"], ["person"], 1)


def test_a_peer_that_fails_in_a_turn_is_left_out(stand_in: peers.Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PAUSE", 0.0)
    questions = peers.prepare_all([stand_in], ["person"], ["text"])
    assert list(peers.take_turns([stand_in], questions, 2)) == [("gliner", 1)]
    stand_in.process.kill()
    assert peers.take_turns([stand_in], questions, 2) == {}


def test_a_peer_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "peer_worker.py").write_text("import time\ntime.sleep(60)\n", "utf-8")
    monkeypatch.setattr(peers, "__file__", str(tmp_path / "peers.py"))
    monkeypatch.setattr(peers, "MAX_ANSWER", 0.5)
    with pytest.raises(OnomaError, match="spacy ended"):
        peers.Peer.start("spacy", Path(sys.executable), {"threads": 1}, tmp_path / "log")


def test_a_package_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[object, ...]] = []

    def fail(*words: object) -> None:
        done.append(words)
        if "pip" in words:
            raise OnomaError("no such package")

    monkeypatch.setattr(peers, "run", fail)
    with pytest.raises(OnomaError, match="no such package"):
        peers.environment(tmp_path, ["nothing==1"])
    assert len(done) == 2
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "installed.txt").write_text("nothing==1", "utf-8")
    assert peers.environment(tmp_path, ["nothing==1"]) == tmp_path / "nothing" / "bin" / "python"
    assert len(done) == 2  # it is there already


def test_ratios_are_those_of_the_same_turn() -> None:
    assert peers.times(MEASURED, "gliner", 10) == [10, 5, 16]
    assert peers.times_cpu(MEASURED, "gliner", 10) == pytest.approx([10, 5, 16])
    console = Console(file=io.StringIO(), record=True, width=300)
    console.print(peers.table(MEASURED, {"onoma": RUNS, "gliner": RUNS | {"precision": "float32"}}))
    shown = console.export_text()
    assert "10.0 times as fast" in shown
    assert "95.0 times as fast" in shown
    assert "float32" in shown


def test_every_peer_has_packages() -> None:
    assert set(peer_worker.PEERS) == {*peers.PACKAGES, peers.OURS}
    needed = {one for packages in peers.PACKAGES.values() for one in packages if one.startswith("torch")}
    assert needed == {"torch==2.13.0"}  # an unpinned one brings gigabytes along


def test_a_whole_run_with_a_stand_in(
    stand_in: peers.Peer, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "load_corpus", lambda *_: corpus(9, "person", "city"))
    monkeypatch.setattr(peers, "environment", lambda folder, packages: Path(sys.executable))
    monkeypatch.setattr(peers, "PAUSE", 0.0)
    output = tmp_path / "records.json"
    words: list[Any] = ["peers.py", "--encoder", tmp_path / "gte-small", "--limit", 4, "--turns", 2]
    words += [
        "--uie",
        tmp_path,
        "--note",
        "tiny",
        "--peers",
        "gliner",
        "uie",
        "--label-counts",
        2,
        3,
        "--environments",
        tmp_path,
        "--output",
        output,
    ]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    peers.main()
    rows = {row["metric"]: row for row in json.loads(output.read_text("utf-8"))}
    setting = "speed-beside-peers/onoma_projects"
    encoders = {"embedded": "own", "gliner": "gte-small", "uie": "own"}
    measures = ("sentences_per_s", "cpu_ms_per_sentence")
    ratios = ("times_gliner", "times_gliner_cpu", "times_uie", "times_uie_cpu")
    assert set(rows) == {
        *(
            f"{name}/{setting}/{own}/{n}_labels_{one}"
            for name, own in encoders.items()
            for n in (2, 3)
            for one in measures
        ),
        *(f"embedded/{setting}/own/{n}_labels_{one}" for n in (2, 3) for one in ratios),
    }
    row = rows[f"embedded/{setting}/own/2_labels_times_gliner"]
    assert "gliner: nothing, encoder gte-small, float16, none, 1 thread" in row["data"]
    assert "onoma: nothing, encoder own" in row["data"]
    assert row["data"].endswith("; tiny")
    assert row["turns"] == 2
    assert {row["data"].split(";")[0] for row in rows.values()} == {"4 sentences"}
