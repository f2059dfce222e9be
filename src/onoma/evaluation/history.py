"""The training run that a model belongs to: loss and dev scores by step, and curves of few-shot runs.

A run folder has the model in `model/`, and beside it `curve.jsonl`, or one `curve-STAGE.jsonl` per stage. Fine-tuning
with few data has a second run in `check/`, which has dev scores. A folder of few-shot runs has a `results.json` (figure
3 of SUNER).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onoma.evaluation.curves import Point

MOST_POINTS = 500
"""Points of a line; of more, some are left out evenly."""
_MEASURES = {"loss": "training loss", "eval_loss": "dev loss", "eval_f1": "dev F1"}
_RESULTS = "results.json"
CHECK = "check"


@dataclass(frozen=True, slots=True)
class StageHistory:
    """What was logged in a stage of training: lines of (step, value) by measure."""

    stage: str
    lines: Mapping[str, tuple[tuple[float, float], ...]]

    def is_informative(self) -> bool:
        """Whether there is more to show than a line between two points of the training loss."""
        return len(self.lines) > 1 or max(map(len, self.lines.values())) > 2


@dataclass(frozen=True, slots=True)
class History:
    """The stages of a run, and F1 by number of training sentences for each corpus of a few-shot run."""

    stages: tuple[StageHistory, ...]
    sizes: Mapping[str, Sequence[Point]]


def read_history(model: Path) -> History | None:
    """The history of the run that a model folder belongs to; None if there is none."""
    run = model if any(model.glob("curve*.jsonl")) else model.resolve().parent
    files = sorted(run.glob("curve*.jsonl"), key=lambda path: (path.stat().st_mtime, path.name))  # as they were trained
    checked = sorted((run / CHECK).glob("curve*.jsonl"))
    read = [*map(_read_stage, files), *(_read_stage(path, f"{CHECK}: ") for path in checked)]
    stages = tuple(one for one in read if one is not None and one.is_informative())
    sizes = next((found for folder in (run, *run.parents[:3]) if (found := _read_sizes(folder / _RESULTS))), {})
    return History(stages, sizes) if stages or sizes else None


def _read_stage(path: Path, prefix: str = "") -> StageHistory | None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in _rows(path):
        for key, name in _MEASURES.items():
            value, step = row.get(key), row.get("step")
            if isinstance(value, (int, float)) and isinstance(step, (int, float)) and math.isfinite(value):
                lines.setdefault(name, []).append((float(step), float(value)))
    if not lines:
        return None
    stage = path.stem.removeprefix("curve").removeprefix("-") or "training"
    return StageHistory(
        prefix + stage, {name: tuple(points[:: len(points) // MOST_POINTS + 1]) for name, points in lines.items()}
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a log; what cannot be read is left out, because a picture is no reason to stop."""
    for line in path.read_text("utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _read_sizes(path: Path) -> dict[str, list[Point]]:
    try:
        values = json.loads(path.read_text("utf-8"))["values"]
        found = [
            (one["corpus"], Point(one["sentences"], one["f1"], one["spread"])) for one in values if one["sentences"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    curves: dict[str, list[Point]] = {}
    for corpus, point in found:
        curves.setdefault(corpus, []).append(point)
    return {corpus: points for corpus, points in curves.items() if len(points) > 1}
