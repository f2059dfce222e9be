"""The benchmark of lattices, on a few words and sentences."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import lattice_speed
from onoma import Document
from onoma.data import write
from onoma.errors import OnomaError


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    lists = tmp_path / "zh" / "lexicons"
    (lists / "thuocl").mkdir(parents=True)
    (lists / "jieba.txt").write_text("大桥 5 n\n长江 3 ns\n", "utf-8")
    (lists / "thuocl" / "places.txt").write_text("南京\t9\n长江\t1\n", "utf-8")
    documents = [Document(f"第{day}天，她走过南京長江大橋。") for day in range(200)]
    write(documents, tmp_path / "zh" / "msra" / "train.jsonl")
    return tmp_path


def test_figures_are_recorded(monkeypatch: pytest.MonkeyPatch, corpora: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(lattice_speed, "LISTS", ("jieba.txt", "thuocl"))
    words = ["--data", corpora, "--repeats", 2, "--automata", "--output", tmp_path / "records.json"]
    monkeypatch.setattr(sys, "argv", ["lattice_speed.py", *map(str, words)])
    lattice_speed.main()
    rows = {row["metric"]: row for row in json.loads((tmp_path / "records.json").read_text("utf-8"))}
    assert rows["nerco/speed/msra/none/words"]["value"] == 3
    assert rows["nerco/speed/msra/none/lattice_characters_per_second"]["value"] > 0
    assert rows["nerco/speed/msra/none/lattice_characters_per_second"]["spread"] is not None
    assert rows["nerco/speed/msra/none/matches_per_character"]["value"] > 0.15
    assert rows["nerco/speed/msra/none/load_s"]["data"].startswith("3 words of jieba.txt and thuocl; 200 sentences")
    if lattice_speed.is_installed("ahocorasick_rs"):
        assert rows["ahocorasick_rs/speed/msra/none/find_characters_per_second"]["value"] > 0


def test_a_corpus_without_text_is_refused(monkeypatch: pytest.MonkeyPatch, corpora: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(lattice_speed, "LISTS", ("jieba.txt",))
    (corpora / "zh" / "msra" / "train.jsonl").write_text("", "utf-8")
    with pytest.raises(OnomaError, match="Fix"):
        lattice_speed.prepare(corpora / "zh", tmp_path)
