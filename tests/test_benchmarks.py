"""The records of benchmarks, and the page that is made from them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    specification = importlib.util.spec_from_file_location("records", ROOT / "benchmarks" / "records.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "records", module)  # dataclasses look their module up there
    specification.loader.exec_module(module)
    return module


def test_a_record_replaces_that_of_its_metric_and_leaves_the_others(records: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first, second = "binder/supervised/tiny/none/f1", "binder/speed/tiny/none/sentences_per_s"
    records.write_records(path, [records.Record(metric, 1.0, "make it", "own") for metric in (first, second)])
    records.write_records(path, [records.Record(first, 2.0, "make it", "own", paper=1.5, seeds=(1, 2), spread=0.1)])
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert {row["metric"]: row["value"] for row in rows} == {first: 2.0, second: 1.0}
    keys = {"metric", "value", "paper", "command", "commit", "data", "encoder", "seeds", "spread", "machine"}
    assert all(set(row) == keys for row in rows)
    assert all(row["commit"] and "cores" in row["machine"] for row in rows)


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
