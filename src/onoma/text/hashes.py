"""Sorted 64-bit hashes, in which others are found with array operations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

_LARGEST = np.uint64((1 << 64) - 1)


def highest_bits(hashes: Hashes, shift: np.uint64) -> Integers:
    """As indexes; an index of unsigned numbers would be copied."""
    return (hashes >> shift).view(np.int64)


class SortedHashes:
    """Hashes, sorted, in which others are found by their highest bits and a few steps."""

    def __init__(self, hashes: Hashes) -> None:
        bits = max(1, len(hashes).bit_length())
        self.shift = np.uint64(64 - bits)
        self.buckets = np.searchsorted(hashes, np.arange(1 << bits, dtype=np.uint64) << self.shift)
        self.hashes = np.append(hashes, _LARGEST)  # so that every search ends at one

    def __len__(self) -> int:
        return len(self.hashes) - 1

    def find(self, hashes: Hashes) -> tuple[NDArray[np.bool_], Integers]:
        """Whether each hash is one of these, and its place or that of the next larger one."""
        places = self.buckets.take(highest_bits(hashes, self.shift))
        nearest = self.hashes.take(places)
        behind = np.flatnonzero(nearest < hashes)
        while len(behind):
            places[behind] += 1
            nearest[behind] = self.hashes.take(places[behind])
            behind = behind[nearest[behind] < hashes[behind]]
        return (nearest == hashes) & (places < len(self)), places
