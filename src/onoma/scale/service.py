"""Processes that do one task after the other, and the pool that feeds them.

A process reads tasks from standard input, line by line, and answers each with a line of JSON. When the parent ends,
standard input ends, and so does the process, even in the middle of a task. Each process of a pool is fed by a thread of
the parent. If one ends in the middle of a task, whatever the reason, a new one gets the task.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import IO, Any

import onoma
from onoma.errors import OnomaError
from onoma.scale.errors import ShardError

THREAD_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The environment of workers: libraries must not start threads of their own, because workers share the cores."""
MAX_STARTS = 5
"""Processes in a row that may end before they are ready."""

Answer = dict[str, Any]
_PACKAGES = str(Path(onoma.__file__).parents[1])


def serve(prepare: Callable[[], Callable[[str], Answer]]) -> None:
    """Answer tasks until standard input ends; `prepare` returns the function that does."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not get between the answers
    tasks = _read_tasks()
    try:
        answer = prepare()
    except Exception as error:
        _write(answers, {"refused": describe(error)})
        return
    _write(answers, {"ready": os.getpid()})
    while True:
        task = tasks.get()
        try:
            _write(answers, answer(task))
        except Exception as error:
            _write(answers, {"failed": describe(error)})


def describe(error: Exception) -> str:
    """An error in one line: the message of an error of Onoma, with the name of the class for all others."""
    return str(error) if isinstance(error, OnomaError) else f"{type(error).__name__}: {error}"[:1000]


def _write(file: IO[str], values: Answer) -> None:
    file.write(json.dumps(values) + "\n")
    file.flush()


def _read_tasks() -> SimpleQueue[str]:
    """The lines of standard input. The process ends with it."""
    tasks: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            tasks.put(line)
        os._exit(0)

    Thread(target=read, daemon=True).start()
    return tasks


def run_tasks(
    module: str, arguments: Sequence[str], tasks: Mapping[int, str], workers: int, max_deaths: int | None = None
) -> Iterator[tuple[int, Answer]]:
    """The answers to tasks from processes that run a module, each with the number of its task, as they come.

    `max_deaths`: processes that may end in one task before it counts as failed.
    """
    with closing(_Pool(module, arguments, tasks, min(workers, len(tasks)), max_deaths)) as pool:
        yield from pool.results()


class _Pool:
    def __init__(
        self, module: str, arguments: Sequence[str], tasks: Mapping[int, str], workers: int, max_deaths: int | None
    ) -> None:
        self.program = [sys.executable, "-m", module, *arguments]
        self.tasks, self.max_deaths = tasks, max_deaths
        self.waiting: SimpleQueue[int] = SimpleQueue()
        for number in tasks:
            self.waiting.put(number)
        self.done: SimpleQueue[tuple[int, Answer] | Exception | None] = SimpleQueue()
        self.processes: set[subprocess.Popen[str]] = set()
        self.stopped, self.lock = Event(), Lock()
        self.threads = [Thread(target=self._feed, daemon=True) for _ in range(workers)]

    def results(self) -> Iterator[tuple[int, Answer]]:
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

    def close(self) -> None:
        """End all processes."""
        with self.lock:
            self.stopped.set()
            for process in self.processes:
                process.kill()
        for thread in self.threads:
            if thread.ident is not None:
                thread.join()

    def _feed(self) -> None:
        """Give tasks to one process after the other until none is left."""
        worker = _Worker(self)
        try:
            while not self.stopped.is_set():
                number = self.waiting.get_nowait()
                self.done.put((number, worker.answer(self.tasks[number])))
        except Empty:
            pass
        except Exception as error:
            self.done.put(error)
        finally:
            worker.end()
            self.done.put(None)

    def start(self) -> subprocess.Popen[str]:
        """A new process."""
        path = os.pathsep.join(filter(None, [_PACKAGES, os.environ.get("PYTHONPATH")]))
        with self.lock:
            if self.stopped.is_set():
                raise RuntimeError("the run was stopped")
            process = subprocess.Popen(
                self.program,
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

    def answer(self, task: str) -> Answer:
        """The answer to a task, from a new process if one ends."""
        deaths = 0
        while self.pool.max_deaths is None or deaths < self.pool.max_deaths:
            process = self.process or self._start()
            answer = _ask(process, task)
            if answer is not None:
                return answer
            code = self.end()
            deaths += 1
        return {"failed": f"{deaths} processes ended in it, the last one with exit code {code}"}

    def _start(self) -> subprocess.Popen[str]:
        """Start a process, and wait until it is ready."""
        code: int | None = None
        for _ in range(MAX_STARTS):
            self.process = self.pool.start()
            ready = _read(self.process)
            if ready is not None and "refused" in ready:
                raise OnomaError(ready["refused"])
            if ready is not None:
                return self.process
            code = self.end()
        raise ShardError(f"{MAX_STARTS} processes ended when they were started, the last one with exit code {code}")

    def end(self) -> int | None:
        """End the process; its exit code."""
        process, self.process = self.process, None
        if process is None:
            return None
        with self.pool.lock:
            self.pool.processes.discard(process)
        process.communicate()  # closes standard input, at which it ends
        return process.returncode


def _ask(process: subprocess.Popen[str], task: str) -> Answer | None:
    """The answer of a process; None if it ended."""
    assert process.stdin is not None
    try:
        process.stdin.write(f"{task}\n")
        process.stdin.flush()
    except OSError:
        return None
    return _read(process)


def _read(process: subprocess.Popen[str]) -> Answer | None:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.endswith("\n"):
        return None
    answer: Answer = json.loads(line)
    return answer
