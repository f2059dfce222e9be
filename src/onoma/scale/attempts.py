"""What is known of attempts at a shard that ended with the process: killed, out of memory, crashed.

After some of them, the texts of the shard are read one by one before they are read together, and the row is noted
before it is read. A row in which processes end again and again becomes an error of that row. All of this is in a file
beside the shards, so it does not matter which process or machine makes the next attempt.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from onoma.scale.errors import ShardError
from onoma.scale.storage import OutputFolder

ATTEMPTS = "_attempts"
"""The folder of these files."""
CAREFUL_AFTER = 2
"""Attempts after which rows are noted."""
MAX_DEATHS = 2
"""Processes that may end in a row before it is left out."""
MAX_ATTEMPTS = 6
"""Attempts at a shard, apart from those that found a row to leave out."""

LEFT_OUT = "the process ended each time this row was read (out of memory, or a crash)"


class Attempts:
    """The attempts at one shard, this one included."""

    def __init__(self, folder: OutputFolder, number: int) -> None:
        self.folder, self.name = folder, f"{ATTEMPTS}/{number}.json"
        known = self._read()
        self.count: int = known["count"] + 1
        self.deaths: Counter[int] = Counter({int(row): count for row, count in known["deaths"].items()})
        if known["row"] is not None:
            self.deaths[known["row"]] += 1
        self._write(None)
        if self.count > MAX_ATTEMPTS + MAX_DEATHS * len(self.deaths):
            raise ShardError(f"{self.count - 1} processes ended in it")

    @property
    def is_careful(self) -> bool:
        """Whether rows are to be read one by one first."""
        return self.count > CAREFUL_AFTER

    def is_left_out(self, row: int) -> bool:
        """Whether processes ended in a row too often."""
        return self.deaths[row] >= MAX_DEATHS

    def note(self, row: int) -> None:
        """Note that a row is being read."""
        self._write(row)

    def forget(self) -> None:
        """The shard is done."""
        self.folder.remove(self.name)

    def _read(self) -> dict[str, Any]:
        try:
            known: dict[str, Any] = json.loads(self.folder.read(self.name))
            return known
        except (OSError, ValueError):  # there was none, or it was being written
            return {"count": 0, "row": None, "deaths": {}}

    def _write(self, row: int | None) -> None:
        values = {"count": self.count, "row": row, "deaths": self.deaths}
        with self.folder.write(self.name) as file:
            file.write(json.dumps(values).encode())
