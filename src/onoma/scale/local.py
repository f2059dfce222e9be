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
from onoma.scale.worker import THREAD_VARIABLES

MAX_ATTEMPTS = 5
"""Processes that may end in one shard before it is given up."""
_PACKAGES = str(Path(onoma.__file__).parents[1])


class ShardError(RuntimeError):
    """Shards that could not be annotated. All others are."""


def run_local(output: str, shards: Sequence[int], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Annotate shards with processes; the number of each one that is done, and what was counted in it."""
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
        self.done: SimpleQueue[tuple[int, dict[str, Any]] | Exception | None] = SimpleQueue()
        self.failures: list[str] = []
        self.processes: set[subprocess.Popen[str]] = set()
        self.stopped, self.lock = Event(), Lock()
        self.threads = [Thread(target=self._feed, daemon=True) for _ in range(workers)]

    def results(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for thread in self.threads:
            thread.start()
        running = len(self.threads)
        while running:
            match self.done.get():
                case None:
                    running -= 1
                case Exception() as error:
                    raise error
                case result:
                    yield result
        if self.failures:
            raise ShardError("; ".join(sorted(self.failures)))

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
                    self.failures.append(f"shard {number}: {answer['failed']}")
                else:
                    self.done.put((number, answer))
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
        """The answer to a shard."""
        codes: list[int | None] = []
        while len(codes) < MAX_ATTEMPTS and not self.pool.stopped.is_set():
            answer = self._ask(number)
            if answer is not None:
                return answer
            codes.append(self.close())
        return {"failed": f"{len(codes)} processes ended in it, with exit codes {', '.join(map(str, codes))}"}

    def _ask(self, number: int) -> dict[str, Any] | None:
        """The answer of the process; None if it ended."""
        if self.process is None:
            self.process = self.pool.start()
            ready = self._read()
            if ready is None:
                return None
            if "refused" in ready:
                raise OnomaError(ready["refused"])
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
