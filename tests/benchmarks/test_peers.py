"""The speed beside other libraries: what is asked, how turns are taken, what is recorded. Peers are stand-ins."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import peer_worker
import peers
from onoma import Corpus, Document, EntityType
from onoma.data import write
from onoma.errors import OnomaError

SPEEDS = {
    ("onoma", 10): [200.0, 100.0, 160.0],
    ("onoma", 100): [190.0, 170.0, 150.0],
    ("gliner", 10): [20.0, 20.0, 10.0],
    ("gliner", 100): [2.0, 1.0, 3.0],
}
STAND_IN = """
import json, sys
print(json.dumps({"runs": "nothing"}), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps({"seconds": 0.1 / question["batch_size"], "found": len(question["labels"])}), flush=True)
"""


def corpus(name: str, *types: str, size: int = 9) -> Corpus:
    documents = tuple(Document(f"Sentence {number} of {name}.") for number in range(size))
    return Corpus(name, documents, tuple(EntityType(one) for one in types))


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


def test_sentences_come_from_all_parts_of_all_sets() -> None:
    corpora = [corpus("a", size=1000), corpus("b", size=3)]
    texts = peers.sentences(corpora, 20)
    places = [int(text.split()[1]) for text in texts]
    assert len(texts) == len(set(texts)) == 23
    assert places[20:] == [0, 1, 2]
    assert min(places[:20]) < 250
    assert max(places[:20]) > 750
    assert texts == peers.sentences(corpora, 20)


def test_types_of_most_sets_come_first_then_other_short_names() -> None:
    corpora = [corpus("a", "poem", "field of study", "person"), corpus("b", "person")]
    names = peers.label_names(corpora, 1000)
    assert names[:3] == ["person", "poem", "field of study"]
    assert len(set(names)) == 1000
    assert max(len(name.split()) for name in names[3:]) == 2
    with pytest.raises(OnomaError, match="only"):
        peers.label_names(corpora, 100_000)


def test_a_peer_gets_its_best_batch_size_and_sentences_by_length(stand_in: peers.Peer) -> None:
    texts = ["x" * length for length in (9, 3, 5, 1)]
    question = peers.prepare(stand_in, ["person"], texts)
    assert question.batch_size == max(peers.BATCH_SIZES)
    assert question.texts == sorted(texts, key=len)
    assert stand_in.runs == "nothing"


def test_a_slow_peer_reads_fewer_sentences(stand_in: peers.Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "MAX_TURN", 0.1 / max(peers.BATCH_SIZES))  # as long as a dozen sentences take
    texts = ["x" * length for length in range(1, 241)]
    chosen = peers.prepare(stand_in, ["person"], texts).texts
    assert 10 <= len(chosen) <= 14
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
    question = peers.prepare(stand_in, ["person"], ["text"])
    assert list(peers.take_turns([stand_in], {("gliner", 1): question}, 2)) == [("gliner", 1)]
    stand_in.process.kill()
    assert peers.take_turns([stand_in], {("gliner", 1): question}, 2) == {}


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
    assert peers.times(SPEEDS, "gliner", 10) == [10, 5, 16]
    console = Console(file=io.StringIO(), record=True, width=200)
    console.print(peers.table(SPEEDS, {"onoma": "int8", "gliner": "float32"}))
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
    for name in peers.CROSSNER:
        folder = tmp_path / "en" / name
        folder.mkdir(parents=True)
        write(corpus(name).documents, folder / "test.jsonl")
        meta = {"name": name, "types": ["persn"], "type_names": {"persn": "person"}}
        (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    monkeypatch.setattr(peers, "environment", lambda folder, packages: Path(sys.executable))
    monkeypatch.setattr(peers, "PAUSE", 0.0)
    output = tmp_path / "records.json"
    words: list[Any] = ["peers.py", "--data", tmp_path, "--encoder", tmp_path / "gte-small", "--limit", 4, "--turns", 2]
    words += ["--peers", "gliner", "uie", "--label-counts", 2, 3, "--environments", tmp_path, "--output", output]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    peers.main()
    rows = {row["metric"]: row for row in json.loads(output.read_text("utf-8"))}
    prefix = "speed-beside-peers/crossner/gte-small"
    assert set(rows) == {
        *(f"{name}/{prefix}/{count}_labels_sentences_per_s" for name in ("embedded", "gliner") for count in (2, 3)),
        *(f"embedded/{prefix}/{count}_labels_times_gliner" for count in (2, 3)),
    }
    assert "untrained heads on gte-small" in rows[f"gliner/{prefix}/2_labels_sentences_per_s"]["data"]
