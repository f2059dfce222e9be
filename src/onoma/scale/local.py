"""The local engine: worker processes on this machine.

Each process is fed by a thread of this one. If a process ends in the middle of a shard, whatever the reason, the shard
is given to a new process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

import onoma
from onoma.errors import OnomaError
from onoma.scale.errors import ShardError
from onoma.scale.worker import THREAD_VARIABLES

MAX_STARTS = 5
"""Processes in a row that may end before their model is loaded."""
_PACKAGES = str(Path(onoma.__file__).parents[1])


def run_local(output: str, shards: Sequence[int], workers: int) -> Iterator[int]:
    """Annotate shards with processes; the number of each one that is done."""
    pool = _Pool(output, shards, min(workers, len(shards)))
    try:
        yield from pool.results()
    finally:
        pool.stop()


class _Pool:
    def __init__(self, output: str, shards: Sequence[int], workers: int) -> None:
        self.output = output
        self.waiting: SimpleQueue[int] = SimpleQueue()
        for number in shards:
            self.waiting.put(number)
        self.done: SimpleQueue[int | Exception | None] = SimpleQueue()
        self.failures: dict[int, str] = {}
        self.processes: set[subprocess.Popen[str]] = set()
        self.stopped, self.lock = Event(), Lock()
        self.threads = [Thread(target=self._feed, daemon=True) for _ in range(workers)]

    def results(self) -> Iterator[int]:
        for thread in self.threads:
            thread.start()
        running = len(self.threads)
        while running:
            match self.done.get():
                case None:
                    running -= 1
                case Exception() as error:
                    raise error
                case number:
                    yield number
        if self.failures:
            raise ShardError.of(self.failures)

    def stop(self) -> None:
        with self.lock:
            self.stopped.set()
            for process in self.processes:
                process.kill()
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()

    def _feed(self) -> None:
        """Give shards to one process after the other until none is left."""
        worker = _Worker(self)
        try:
            while not self.stopped.is_set():
                number = self.waiting.get_nowait()
                answer = worker.annotate(number)
                if "failed" in answer:
                    self.failures[number] = answer["failed"]
                else:
                    self.done.put(number)
        except Empty:
            pass
        except Exception as error:
            if not self.stopped.is_set():
                self.done.put(error)
        finally:
            worker.close()
            self.done.put(None)

    def start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
        with self.lock:
            if self.stopped.is_set():
                raise RuntimeError("stopped")
            process = subprocess.Popen(
                [sys.executable, "-m", "onoma.scale.worker", self.output],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                env=os.environ | THREAD_VARIABLES | {"PYTHONPATH": path},
            )
            self.processes.add(process)
            return process


class _Worker:
    """A process, which is replaced when it ends."""

    def __init__(self, pool: _Pool) -> None:
        self.pool = pool
        self.process: subprocess.Popen[str] | None = None

    def annotate(self, number: int) -> dict[str, Any]:
        """The answer to a shard, from a new process if one ends; the worker itself counts attempts."""
        while not self.pool.stopped.is_set():
            if self.process is None:
                self._start()
            answer = self._ask(number)
            if answer is not None:
                return answer
            self.close()
        return {"failed": "the run was stopped"}

    def _start(self) -> None:
        """Start a process, and wait until its model is loaded."""
        code: int | None = None
        for _ in range(MAX_STARTS):
            self.process = self.pool.start()
            ready = self._read()
            if ready is not None and "refused" in ready:
                raise OnomaError(ready["refused"])
            if ready is not None:
                return
            code = self.close()
        raise ShardError(f"{MAX_STARTS} processes ended when they were started, the last one with exit code {code}")

    def _ask(self, number: int) -> dict[str, Any] | None:
        """The answer of the process; None if it ended."""
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
        except OSError:
            return None
        return self._read()

    def _read(self) -> dict[str, Any] | None:
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> int | None:
        """End the process; its exit code."""
        process, self.process = self.process, None
        if process is None:
            return None
        with self.pool.lock:
            self.pool.processes.discard(process)
        process.communicate()  # closes standard input, at which it ends
        return process.returncode
