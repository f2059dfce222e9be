"""The error for shards that failed."""

from __future__ import annotations

from collections.abc import Mapping

SHOWN = 3


class ShardError(RuntimeError):
    """Shards that could not be annotated. All others are there; the same command tries those that are missing again."""

    @classmethod
    def of(cls, failures: Mapping[int, str]) -> ShardError:
        """An error that names shards with the reasons why they failed."""
        first = sorted(failures.items())[:SHOWN]
        reasons = "; ".join(f"shard {number}: {reason}" for number, reason in first)
        return cls(
            f"{count_shards(len(failures))} could not be annotated ({reasons}); run the same command to try them again"
        )


def count_shards(number: int) -> str:
    """A number of shards in words."""
    return "1 shard" if number == 1 else f"{number} shards"
