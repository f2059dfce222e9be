"""A service on a port of this machine, in this process or as `onoma serve`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from onoma import Extractor
from onoma.serve.app import create_app
from onoma.serve.settings import ServeSettings

WAIT = 60.0


@dataclass(frozen=True)
class Running:
    """A service and a client for it."""

    url: str
    http: httpx.Client
    app: Any = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def batcher(self) -> Any:
        """The queue, if the service runs in this process."""
        return self.app.app.others.state.service.batcher

    def extract(self, texts: str | Sequence[str], labels: Any, **options: Any) -> httpx.Response:
        """The answer to a request for entities."""
        return self.http.post("/v1/extract", json={"texts": texts, "labels": labels, **options})

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = self.http.get("/metrics", timeout=30).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


@contextmanager
def in_process(extractors: Mapping[str, Extractor], settings: ServeSettings | None = None) -> Iterator[Running]:
    """The service in a thread of this process, with a real server."""
    app = create_app(extractors, settings)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=10))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with httpx.Client(base_url=url, timeout=WAIT) as http:
        wait_until_ready(http)
        try:
            yield Running(url, http, app)
        finally:
            server.should_exit = True
            thread.join(WAIT)
            listening.close()


@contextmanager
def as_command(*options: object, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """`onoma serve` in a process of its own."""
    command = [sys.executable, "-m", "onoma", "serve", "--port", "0", *map(str, options)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ | dict(environment or {}))
    assert process.stderr is not None
    try:
        port = _port(process)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT) as http:
            wait_until_ready(http)
            yield Running(f"http://127.0.0.1:{port}", http, process=process)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def _port(process: subprocess.Popen[bytes]) -> int:
    """The port that the log names."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if b'"event": "start"' in line:
            return int(json.loads(line)["port"])
    raise AssertionError(b"".join(lines).decode())


def wait_until_ready(http: httpx.Client) -> None:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            if http.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.02)
    raise AssertionError("the service does not become ready")
