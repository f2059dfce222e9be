"""The records of benchmarks, and the page that is made from them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from onoma import OnomaError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    specification = importlib.util.spec_from_file_location("records", ROOT / "benchmarks" / "records.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "records", module)  # dataclasses look their module up there
    specification.loader.exec_module(module)
    return module


def test_a_record_replaces_that_of_its_metric_and_keeps_the_others(records: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, second = "binder/supervised/tiny/none/f1", "binder/speed/tiny/none/sentences_per_s"
    records.write_records(path, [records.Record(metric, 1.0, "make it", "own") for metric in (first, second)])
    records.write_records(path, [records.Record(first, 2.0, "make it", "own", paper=1.5, seeds=(1, 2), spread=0.1)])
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert {row["metric"]: row["value"] for row in rows} == {first: 2.0, second: 1.0}
    keys = {"metric", "value", "paper", "command", "commit", "data", "encoder", "seeds", "spread", "machine"}
    assert all(set(row) == keys for row in rows)
    assert all(row["commit"] and "cores" in row["machine"] for row in rows)


def test_records_are_refused_from_a_changed_tree(
    records: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("x = 1\n")
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    subprocess.run(["git", "-C", tmp_path, *identity, "commit", "-q", "-m", "First"], check=True)
    monkeypatch.delenv(records.COMMIT_VARIABLE, raising=False)
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(records, "RESULTS", tmp_path / "benchmarks" / "results")
    path = tmp_path / "benchmarks" / "results" / "tiny.json"
    record = records.Record("binder/supervised/tiny/none/f1", 1.0, "make it", "own")
    records.write_records(path, [record])
    records.write_records(path, [record])  # a new result is not a change
    assert len(json.loads(path.read_text("utf-8"))[0]["commit"]) == 12
    (tmp_path / "src" / "code.py").write_text("x = 2\n")
    with pytest.raises(OnomaError, match=r"there are changes \(src/code.py\)\. Fix: commit, then measure"):
        records.write_records(path, [record])
    records.write_records(tmp_path / "elsewhere.json", [record])
    assert json.loads((tmp_path / "elsewhere.json").read_text("utf-8"))[0]["commit"].endswith("+changes")


def test_commands_name_folders_by_variables(records: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPORA", "/data/corpora")
    words = ["benchmarks/x.py", "--data", "/data/corpora", "--corpus", "/data/corpora/en/a b", "--output", "o.json"]
    monkeypatch.setattr(sys, "argv", [*words, "--set", "a=1 2"])
    found = records.command(without=["--output"])
    assert found == """python benchmarks/x.py --data $CORPORA --corpus "$CORPORA/en/a b" --set 'a=1 2'"""


def test_every_record_can_be_measured_again_or_is_marked(records: ModuleType) -> None:
    for path in sorted(records.RESULTS.rglob("*.json")):
        for row in records.read_records(path):
            if row.get("historic"):
                continue
            assert "+changes" not in row["commit"], (path.name, row["metric"])
            assert "CORPORA" not in row["command"].replace("$CORPORA", ""), (path.name, row["metric"])
            assert "…" not in row["command"], (path.name, row["metric"])
            assert "MODEL" not in row["command"], (path.name, row["metric"])
            script = row["command"].split()[1]
            assert (ROOT / script).is_file(), (path.name, row["metric"])


def test_a_metric_has_five_parts(records: ModuleType) -> None:
    with pytest.raises(ValueError, match="system/setting/corpus/encoder/measure"):
        records.Record("f1", 1.0, "make it", "own")


def test_the_page_shows_the_records() -> None:
    done = subprocess.run([sys.executable, ROOT / "benchmarks/tables.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("task", [("words", "mixed", "1"), ("decoding", "documents", "nested"), ("import",)])
def test_the_benchmark_of_the_foundation_runs(task: tuple[str, ...]) -> None:
    script = ROOT / "benchmarks" / "foundation.py"
    done = subprocess.run([sys.executable, script, *task], capture_output=True, text=True, check=True)
    assert 0 < json.loads(done.stdout)["seconds"] < 600


def test_the_median_over_turns_has_their_number_and_range(records: ModuleType, tmp_path: Path) -> None:
    path, metric = tmp_path / "results.json", "binder/speed/tiny/none/sentences_per_s"
    records.write_records(path, [records.Record.of_turns(metric, [1.0, 4.0, 10.0], "make it", "own")])
    (row,) = json.loads(path.read_text(encoding="utf-8"))
    assert (row["value"], row["turns"], row["range"]) == (4.0, 3, [1.0, 10.0])
    assert row["spread"] == pytest.approx(4.5826)  # the standard deviation
    assert records.Record.of_turns(metric, [1.0], "make it", "own").spread is None


def test_a_family_of_records_is_of_one_run(records: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, second, other = (f"{name}/none/e/f1" for name in ("a/speed", "b/speed", "a/start"))
    records.write_records(path, [records.Record(metric, 1.0, "make it", "own") for metric in (first, second, other)])
    records.write_records(path, [records.Record(first, 2.0, "make it", "own")], family="*/speed/*")
    assert {row["metric"]: row["value"] for row in records.read_records(path)} == {other: 1.0, first: 2.0}


def test_a_row_has_the_data_of_its_figures(records: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import tables

    same = {"paper": None, "spread": None, "seeds": [], "command": "make it", "commit": "abc", "machine": "small"}
    rows = [
        {"metric": f"a/b/corpus/e/{measure}", "value": value, "data": data, **same}
        for measure, value, data in (("f1", 1.5, "all texts"), ("rate", 2.5, "ten texts"))
    ]
    page = tables.render(rows)
    assert "| corpus | e | 1.50 |  | all texts |" in page
    assert "| corpus | e |  | 2.50 | ten texts |" in page
    turns = [rows[0] | {"spread": 0.25, "turns": 5, "range": [1.0, 2.0]}, rows[1]]
    page = tables.render(turns)
    assert "| corpus | e | f1 | 1.50 | 0.25 | 1.00–2.00 | 5 | all texts |" in page
    assert "| corpus | e | rate | 2.50 |  |  |  | ten texts |" in page
