"""The commands of the quick start, run one after another: here those of a small page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import quick_start

PAGE = """
```bash
mkdir place
cd place
```

```bash
python -c "open('made.txt', 'w')"
ls made.txt
```

```python
not a command
```
"""


def test_the_page_begins_with_a_clone_and_ends_with_a_report() -> None:
    lines = list(quick_start.commands())
    assert lines[0].startswith(f"git clone {quick_start.ADDRESS}")
    assert sum(line.startswith("onoma evaluate ") for line in lines) == 2
    assert lines[-1].startswith("onoma report ")


def test_the_page_names_the_time_that_was_measured() -> None:
    rows = json.loads((quick_start.RESULTS / "quick_start.json").read_text("utf-8"))
    seconds = {row["metric"].rpartition("/")[2]: row["value"] for row in rows}
    page = quick_start.PAGE.read_text("utf-8")
    assert f"three and a half minutes ({seconds['seconds']:.0f} s)" in page
    assert "two minutes of training" in page
    assert (round(seconds["seconds"] / 30) / 2, round(seconds["training_seconds"] / 60)) == (3.5, 2)


def test_commands_run_in_the_folder_that_they_change_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, "utf-8")
    monkeypatch.setattr(quick_start, "PAGE", page)
    seconds, scores = quick_start.follow(tmp_path)
    assert (tmp_path / "place" / "made.txt").exists()
    assert list(seconds) == ["mkdir place", "python -c \"open('made.txt', 'w')\"", "ls made.txt"]
    assert scores == {}
