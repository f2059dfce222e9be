"""Graphs run by onnxruntime, set up for extraction on the CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from onoma.errors import OnomaError

Floats = NDArray[np.float32]

_ERRORS_ONLY = 3
_PROCESSORS = Path("/sys/devices/system/cpu")


class OnnxGraph:
    """A loaded graph. Its `run` may be called from several threads at once."""

    def __init__(self, path: str | os.PathLike[str], threads: int | None = None) -> None:
        """`threads` None takes one a physical core: two on one core only take turns at its arithmetic."""
        if threads is not None and threads < 1:
            raise OnomaError(f"threads must be at least 1, got {threads}")
        try:
            self.session = onnxruntime.InferenceSession(
                os.fspath(path), _options(threads or physical_cores()), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a kind of its own for each cause
            reason = str(error).strip().split("\n")[0]
            raise OnomaError(f"{path} cannot be loaded ({reason}); export or download the model again") from error
        self.outputs = tuple(one.name for one in self.session.get_outputs())

    def run(self, outputs: Sequence[str], **inputs: NDArray[np.int64]) -> list[Floats]:
        """The wanted outputs for the inputs of the graph."""
        values: list[Floats] = self.session.run(outputs, inputs)
        return values


def _options(threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = threads
    # Our graphs are written as they are to be run; further fusions (of sums with layer norms) make them slower.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # Every batch has a shape of its own: a plan of its memory would not serve a second time.
    options.enable_mem_pattern = False
    # Threads wait busily between operators, but not after a run: the cores are then needed for the rest of the work.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return options


def physical_cores() -> int:
    """How many physical cores this process may use; 0, which leaves it to onnxruntime, where that cannot be told."""
    if not hasattr(os, "sched_getaffinity"):
        return 0
    try:
        files = (_PROCESSORS / f"cpu{cpu}/topology/thread_siblings_list" for cpu in os.sched_getaffinity(0))
        siblings = {file.read_text() for file in files}
    except OSError:
        return 0
    return len(siblings)
