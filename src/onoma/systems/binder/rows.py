"""The rows of a query, one per type, as both runtimes keep them in their caches.

e^B, e^Q, e (three vectors), offset, b (only with a breadth head), and what a runtime adds: number or thresholds
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onoma.systems.binder.options import BinderOptions

Floats = NDArray[np.float32]


def with_offset(encoded: Floats, options: BinderOptions) -> Floats:
    """Encoded types (e^B, e^Q, e and, with a breadth head, b) with an offset of 0 behind the vectors."""
    return np.insert(encoded, 3 * options.vector_size, 0, axis=1)


def breadth_column(rows: Floats, options: BinderOptions) -> Floats | None:
    """b of each type; None without a breadth head."""
    return rows[:, 3 * options.vector_size + 1] if options.breadth_head else None
