"""`onoma serve` as a process: start, shutdown, several processes, crashes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from onoma import Extractor
from serve.services import Running, as_command, wait_until_ready

TEXT = "Maria Silva flew to Oslo."
LABELS = ["person", "city"]
LONG = " ".join(f"In the year {year}, Maria Silva flew from Oslo to Rome." for year in range(60))


def command(*options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onoma", "serve", *map(str, options)], capture_output=True, text=True, timeout=60
    )


def rest_of_log(service: Running) -> list[dict[str, Any]]:
    assert service.process is not None
    assert service.process.stderr is not None
    return [json.loads(line) for line in service.process.stderr.read().splitlines()]


def test_bad_options_are_errors() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("--port", taken.getsockname()[1])
    assert done.returncode == 2
    assert "Fix: stop what uses the port" in done.stderr
    for options, message in (
        (["--model", "nowhere"], "there is no model folder"),
        (["--model", "embedded", "--model", "embedded"], "two models have the name"),
        (["--model", "a b=embedded"], "cannot be the name of a model"),
        (["--api-key-file", "nowhere"], "nowhere"),
        (["--host", "256.0.0.1"], "cannot listen"),
    ):
        done = command("--port", 0, *options)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_what_was_accepted_is_finished_on_sigterm() -> None:
    with as_command("--shutdown-timeout", 120) as service, ThreadPoolExecutor(8) as pool:
        assert service.process is not None
        body = {"texts": [LONG] * 4, "labels": LABELS}
        running = [pool.submit(httpx.post, f"{service.url}/v1/extract", json=body, timeout=120) for _ in range(8)]
        end = time.monotonic() + 30
        while service.metric("onoma_label_sets_total") < 8:  # until all are accepted
            assert time.monotonic() < end
        service.process.send_signal(signal.SIGTERM)
        answers = [one.result() for one in running]
        assert [one.status_code for one in answers] == [200] * 8
        assert all(one.json()["results"][0] for one in answers)
        assert service.process.wait(60) == 0
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{service.url}/healthz")
        assert rest_of_log(service)[-1]["event"] == "end"


@pytest.mark.slow
def test_options_reach_the_service(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("s3cret\n")
    options = ("--model", "embedded", "--model", "again=embedded", "--api-key-file", key, "--max-texts", 1)
    with as_command(*options) as service:
        service.http.headers["Authorization"] = "Bearer s3cret"
        assert service.http.get("/v1/model").json()["models"] == ["embedded", "again"]
        assert service.extract([TEXT], LABELS, model="again").status_code == 200
        assert service.extract([TEXT] * 2, LABELS).status_code == 413
        service.http.headers["Authorization"] = "Bearer other"
        assert service.extract([TEXT], LABELS).status_code == 401


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="several processes need fork")
def test_processes_are_replaced_share_memory_and_count_together(embedded: Extractor) -> None:
    expected = [one.key for one in embedded.extract(TEXT, LABELS)]
    with as_command("--workers", 2) as service:
        assert service.process is not None
        parent = psutil.Process(service.process.pid)
        workers = {one.pid for one in parent.children()}
        assert len(workers) == 2
        stop, statuses = threading.Event(), Counter[int]()

        def send() -> None:
            while not stop.is_set():
                try:
                    answer = httpx.post(
                        f"{service.url}/v1/extract", json={"texts": [TEXT], "labels": LABELS}, timeout=30
                    )
                except httpx.TransportError:  # the connections of the process that was killed
                    statuses[0] += 1
                    continue
                statuses[answer.status_code] += 1
                assert [(one["start"], one["end"], one["label"]) for one in answer.json()["results"][0]] == expected

        with ThreadPoolExecutor(6) as pool:
            clients = [pool.submit(send) for _ in range(6)]
            time.sleep(2)
            os.kill(min(workers), signal.SIGKILL)
            end = time.monotonic() + 30
            while len({one.pid for one in parent.children()} - {min(workers)}) < 2:
                assert time.monotonic() < end
                time.sleep(0.1)
            time.sleep(2)
            stop.set()
            for client in clients:
                client.result()
        assert statuses.keys() <= {0, 200}
        assert statuses[0] <= 12  # what the killed process was working on, and what waited for it to accept
        assert statuses[200] > 20
        counted = service.metric("onoma_requests_total")
        assert counted >= statuses[200]
        assert service.metric("onoma_queue_tokens") == 0
        assert_memory_is_shared([one.pid for one in parent.children()])
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0
        assert not [one for one in workers if psutil.pid_exists(one) and psutil.Process(one).name() == parent.name()]


def assert_memory_is_shared(workers: list[int]) -> None:
    """Most of the memory that is not files is that of the parent."""
    for worker in workers:
        rows = Path(f"/proc/{worker}/smaps_rollup").read_text().splitlines()[1:]
        sizes = {name.rstrip(":"): int(size) for name, size, *_ in map(str.split, rows)}
        assert sizes["Shared_Dirty"] + sizes["Shared_Clean"] > sizes["Rss"] / 2, sizes


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="several processes need fork")
def test_processes_end_when_the_one_that_started_them_is_killed() -> None:
    with as_command("--workers", 2) as service:
        assert service.process is not None
        workers = psutil.Process(service.process.pid).children()
        service.process.kill()
        gone, alive = psutil.wait_procs(workers, timeout=30)
        assert (len(gone), alive) == (2, [])


@pytest.mark.slow
def test_a_killed_service_starts_again_on_its_port() -> None:
    with as_command() as service:
        assert service.process is not None
        service.process.kill()
        service.process.wait()
        arguments = [sys.executable, "-m", "onoma", "serve", "--port", str(service.port)]
        again = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready(service.http)
            assert service.extract([TEXT], LABELS).status_code == 200
        finally:
            again.terminate()
            assert again.wait(30) == 0
