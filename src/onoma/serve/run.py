"""Running the service in one process or in several.

With several processes, the models are loaded once and the processes are forked from this one, so that they share the
memory of the weights (all of it with onnxruntime, which never writes to them). PyTorch cannot be forked after it has
run: there, each process loads the models itself.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import uvicorn

from onoma.errors import OnomaError
from onoma.extractor import Extractor
from onoma.processors import usable_cores
from onoma.serve.logs import configure_logs
from onoma.serve.settings import METRICS_FOLDER_VARIABLE, ServeSettings
from onoma.serve.sources import ModelSource, load_all

logger = logging.getLogger("onoma.serve")

Load = Callable[[], Mapping[str, Extractor]]

_SWITCH_SECONDS = 0.001  # after which a thread lets others run Python code; answers need not wait for inference threads
_RESTART_SECONDS = 1.0
_QUICK_SECONDS = 10.0
_MAX_QUICK_FAILURES = 5
_KEEP_ALIVE_SECONDS = 75  # longer than proxies keep idle connections, so that they close them, not we
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the service listens."""

    host: str
    port: int

    def bind(self) -> socket.socket:
        """A listening socket."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.host, self.port))
        except OSError as error:
            listening.close()
            raise OnomaError(
                f"cannot listen on {self.host}, port {self.port} ({error.strerror or error}). Fix: stop what uses the "
                "port, or give another one (--port) or another address (--host)"
            ) from None
        listening.listen(2048)
        listening.set_inheritable(True)
        return listening


def serve(
    sources: Sequence[ModelSource],
    address: Address,
    settings: ServeSettings,
    *,
    workers: int = 1,
    threads: int | None = None,
    log_level: str = "info",
) -> None:
    """Load the models and answer requests until SIGTERM or SIGINT; what was accepted is finished."""
    configure_logs(log_level)
    listening = address.bind()
    try:
        if workers == 1:
            _run_process(load_all(sources, threads), listening, settings)
        elif not hasattr(os, "fork"):
            raise OnomaError("several processes need a system that can fork. Fix: leave out --workers")
        else:
            _Supervisor(sources, listening, settings, workers, threads).run()
    finally:
        listening.close()


def _run_process(extractors: Mapping[str, Extractor], listening: socket.socket, settings: ServeSettings) -> None:
    from onoma.serve.app import create_app  # after PROMETHEUS_MULTIPROC_DIR is set

    sys.setswitchinterval(_SWITCH_SECONDS)
    config = uvicorn.Config(
        create_app(extractors, settings),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, int(settings.shutdown_timeout)),
    )
    for number in _STOP_SIGNALS:
        signal.signal(number, _ignore)  # uvicorn raises signals again when it has ended
    server = uvicorn.Server(config)
    host, port = listening.getsockname()[:2]
    logger.info("listening", extra={"fields": {"event": "start", "host": host, "port": port, "process": os.getpid()}})
    server.run(sockets=[listening])
    logger.info("ended", extra={"fields": {"event": "end", "process": os.getpid()}})


def _ignore(number: int, frame: object) -> None:
    """A handler that does nothing."""


class _Supervisor:
    """Keeps several processes running."""

    def __init__(
        self,
        sources: Sequence[ModelSource],
        listening: socket.socket,
        settings: ServeSettings,
        workers: int,
        threads: int | None,
    ) -> None:
        self.sources, self.listening, self.settings, self.workers = sources, listening, settings, workers
        self.threads = threads or max(1, usable_cores() // workers)
        self.processes: dict[int, float] = {}  # with the time of their start
        self.quick_failures = 0
        self.stopping = False
        self._end_of_parent, self._held_by_parent = os.pipe()

    def run(self) -> None:
        """Start processes, and again those that end, until a signal comes."""
        with _metrics_folder() as forget:
            load = self._shared_load()
            for number in _STOP_SIGNALS:
                signal.signal(number, self._stop)
            for _ in range(self.workers):
                self._start(load)
            while self.processes:
                try:
                    process, status = os.wait()
                except InterruptedError:
                    continue
                started = self.processes.pop(process)
                forget(process)
                if not self.stopping:
                    fields = {"event": "restart", "process": process, "status": os.waitstatus_to_exitcode(status)}
                    logger.error("a process has ended and is started again", extra={"fields": fields})
                    self._count_failure(time.monotonic() - started)
                    time.sleep(_RESTART_SECONDS)
                    self._start(load)
        if self.quick_failures >= _MAX_QUICK_FAILURES:
            raise RuntimeError("the processes of the service end as soon as they are started; see the log")

    def _count_failure(self, seconds: float) -> None:
        """Give up if processes always end at once."""
        self.quick_failures = self.quick_failures + 1 if seconds < _QUICK_SECONDS else 0
        if self.quick_failures >= _MAX_QUICK_FAILURES:
            self._stop(signal.SIGTERM, None)

    def _shared_load(self) -> Load:
        """Load models in this process if the others can share them."""
        if not all(one.is_onnx for one in self.sources):
            return lambda: load_all(self.sources, self.threads)
        extractors = load_all(self.sources, self.threads)
        return lambda: extractors

    def _start(self, load: Load) -> None:
        if self.stopping:
            return
        process = os.fork()
        if process:
            self.processes[process] = time.monotonic()
            return
        code = 1
        try:
            for number in _STOP_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            self._end_with_parent()
            _run_process(load(), self.listening, self.settings)
            code = 0
        except Exception as error:
            logger.error("a process has failed", extra={"fields": {"event": "failure"}}, exc_info=error)
        finally:
            os._exit(code)

    def _end_with_parent(self) -> None:
        """End this process when the parent is gone: then nobody holds the other end of the pipe."""
        os.close(self._held_by_parent)

        def wait() -> None:
            os.read(self._end_of_parent, 1)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait, name="onoma-parent", daemon=True).start()

    def _stop(self, number: int, frame: object) -> None:
        self.stopping = True
        for process in list(self.processes):
            os.kill(process, signal.SIGTERM)


@contextmanager
def _metrics_folder() -> Iterator[Callable[[int], None]]:
    """A folder in which processes share their metrics; yields a function that forgets a process."""
    with TemporaryDirectory(prefix="onoma-metrics-") as folder:
        os.environ[METRICS_FOLDER_VARIABLE] = folder
        from prometheus_client.multiprocess import mark_process_dead  # reads the variable when it is imported

        yield mark_process_dead
