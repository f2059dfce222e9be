"""Fuzzing: cases can be repeated, and what goes wrong is found."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fuzz
from onoma import OnomaError


@pytest.mark.parametrize(("kind", "cases"), [("readers", 15), ("models", 2)])
def test_the_first_cases_find_nothing(kind: str, cases: int) -> None:
    assert [problem for case in range(cases) if (problem := fuzz.try_case(kind, 7, case))] == []


def test_a_case_depends_on_nothing_but_its_number() -> None:
    contents = [
        [fuzz.damaged(b"some bytes of a file", random.Random(f"{seed} readers {case}")) for case in range(20)]
        for seed in (1, 1, 2)
    ]
    assert contents[0] == contents[1] != contents[2]


def test_anything_but_an_error_for_users_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(chance: random.Random, folder: Path) -> None:
        raise (OnomaError("bad input. Fix: change it") if chance.random() < 0.5 else KeyError("a"))

    monkeypatch.setitem(fuzz.KINDS, "texts", fail)
    problems = [fuzz.try_case("texts", 1, case) for case in range(30)]
    assert set(problems) == {"", "KeyError: 'a'"}


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import time; print('[5, \"\"]', flush=True); time.sleep(60)", "took more than 1 seconds"),
        ("import os; print('[5, \"\"]', flush=True); os.abort()", "the process died with code -6"),
        ("print('[5, \"\"]'); print('[6, \"KeyError\"]', flush=True)", "KeyError"),
    ],
)
def test_hangs_and_deaths_are_failures_of_the_case_behind_the_last_one(
    program: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(program)
    monkeypatch.setattr(fuzz, "__file__", str(worker))
    monkeypatch.setattr(fuzz, "SECONDS_PER_CASE", {"texts": 1})
    assert fuzz.watch("texts", 1, 5, time.monotonic() + 30) == (6, problem)


@pytest.mark.slow
def test_cases_and_failures_are_recorded(tmp_path: Path) -> None:
    words = ["--minutes", "0.05", "--kind", "readers", "--output", str(tmp_path / "fuzz.json")]
    done = subprocess.run([sys.executable, fuzz.__file__, *words], capture_output=True, text=True, check=True)
    records = {row["metric"]: row["value"] for row in json.loads((tmp_path / "fuzz.json").read_text())}
    assert records.keys() == {"fuzz/readers/none/none/cases", "fuzz/readers/none/none/failures"}
    assert records["fuzz/readers/none/none/failures"] == 0
    assert done.stdout == f"readers: {records['fuzz/readers/none/none/cases']} cases, 0 failures\n"
