"""The local engine: worker processes on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onoma.processors import usable_cores
from onoma.scale.errors import ShardError
from onoma.scale.service import Answer, run_tasks

MAX_SCAN_DEATHS = 3


class LocalEngine:
    """Processes, by default one per core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to do: processes end with the work."""

    def scan(self, requests: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Answer]]:
        """The plans of files, each with the number of its request."""
        tasks = {number: json.dumps(request) for number, request in enumerate(requests)}
        return run_tasks("onoma.scale.scan", [], tasks, self.workers, MAX_SCAN_DEATHS)

    def annotate(self, output: str, shards: Sequence[int], list_done: Callable[[], set[int]]) -> Iterator[int]:
        """Annotate shards; the number of each one that is done. Workers count attempts at shards themselves."""
        failures: dict[int, str] = {}
        tasks = {number: str(number) for number in shards}
        for number, answer in run_tasks("onoma.scale.worker", [output], tasks, self.workers):
            if "failed" in answer:
                failures[number] = answer["failed"]
            else:
                yield number
        if failures:
            raise ShardError.of(failures)
