"""Attempts at a shard during which the process died: it was killed, ran out of memory or crashed.

After some of them, the rows of each group are read one by one before the group is read as a whole, and what is being
read is noted first. A row in which processes die repeatedly becomes an error of that row; a group in which they die,
although each of its rows can be read, is annotated row by row. The notes are in a file beside the shards, so any
process on any machine can make the next attempt.
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
"""Processes that may die in a row before it is left out, or in a group before it is split."""
MAX_ATTEMPTS = 6
"""Attempts at a shard, apart from those that died in a known row or group."""
MAX_CULPRITS = 50
"""Rows and groups of a shard that may raise this limit: with more of them, something else is wrong."""

LEFT_OUT = "the process ended each time this row was read (out of memory, or a crash)"


class Attempts:
    """The attempts at one shard, this one included."""

    def __init__(self, folder: OutputFolder, number: int) -> None:
        self.folder, self.name = folder, f"{ATTEMPTS}/{number}.json"
        known = self._read()
        self.count: int = known["count"] + 1
        self.row_deaths, self.group_deaths = _counts(known["row_deaths"]), _counts(known["group_deaths"])
        for deaths, noted in ((self.row_deaths, known["row"]), (self.group_deaths, known["group"])):
            if noted is not None:
                deaths[noted] += 1
        self.note()
        culprits = min(len(self.row_deaths) + len(self.group_deaths), MAX_CULPRITS)
        if self.count > MAX_ATTEMPTS + MAX_DEATHS * culprits:
            raise ShardError(f"{self.count - 1} processes ended in it")

    @property
    def is_careful(self) -> bool:
        """Whether rows are to be read one by one first."""
        return self.count > CAREFUL_AFTER

    def is_left_out(self, row: int) -> bool:
        """Whether processes died in a row too often."""
        return self.row_deaths[row] >= MAX_DEATHS

    def is_split(self, group: int) -> bool:
        """Whether processes died too often in a group, given by its first row."""
        return self.group_deaths[group] >= MAX_DEATHS

    def note(self, *, row: int | None = None, group: int | None = None) -> None:
        """Note what is being read: a row, a group (by its first row), or nothing that is to blame."""
        values = {
            "count": self.count,
            "row": row,
            "group": group,
            "row_deaths": self.row_deaths,
            "group_deaths": self.group_deaths,
        }
        with self.folder.write(self.name) as file:
            file.write(json.dumps(values).encode())

    def forget(self) -> None:
        """The shard is done."""
        self.folder.remove(self.name)

    def _read(self) -> dict[str, Any]:
        try:
            known: dict[str, Any] = json.loads(self.folder.read(self.name))
            return known
        except (OSError, ValueError):  # there was none, or it was being written
            return {"count": 0, "row": None, "group": None, "row_deaths": {}, "group_deaths": {}}


def _counts(values: dict[str, int]) -> Counter[int]:
    return Counter({int(number): count for number, count in values.items()})
