"""Ray Data gives what the local engine gives, whatever happens to its actors and to the process that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from onoma.errors import OnomaError
from onoma.scale import annotate as annotate_data
from tiny_rows import found, make_rows, read_bytes, read_errors, write_lines

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")
Annotate = Callable[..., Path]
ROWS = 2000


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster that all tests of this file share, unless they start one of their own."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    made: list[Any] = make_rows(ROWS)
    for number in range(17, ROWS, 100):  # 1% are damaged
        made[number] = "{damaged"
    return made


@pytest.fixture
def source(rows: list[Any], tmp_path: Path) -> Path:
    return write_lines(tmp_path / "a.jsonl", rows)


@pytest.fixture
def expected(annotate: Annotate, source: Path) -> dict[str, bytes]:
    folder = annotate(source, "expected", rows_per_shard=256)
    assert len(read_errors(folder)) == ROWS // 100
    return read_bytes(folder)


def test_a_killed_driver_is_continued_by_another_engine(
    annotate: Annotate, source: Path, expected: dict[str, bytes], onnx_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "annotated"
    options = ["--labels", "person, city", "--model", onnx_model, "--rows-per-shard", "256"]
    for engine in ("local", "ray"):
        command = [sys.executable, "-m", "onoma", "corpus", source, folder, *options, "--engine", engine]
        driver = subprocess.Popen([*map(str, command), "--workers", "1"], stderr=subprocess.DEVNULL)
        done = len(list(folder.glob("part-*"))) + 2
        wait_for(lambda done=done: len(list(folder.glob("part-*"))) >= done, driver)
        workers = [one for one in psutil.Process(driver.pid).children() if "onoma.scale.worker" in one.cmdline()]
        assert len(workers) == (engine == "local")
        driver.kill()
        driver.wait()
        assert not (folder / "_summary.json").exists()
        assert psutil.wait_procs(workers, timeout=30)[1] == []  # they end with the driver
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert len(kept) >= 4
    annotate(source)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert read_bytes(folder) == expected


def wait_for(is_reached: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not is_reached():
        assert driver.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_many_files_are_planned_by_the_cluster(
    annotate: Annotate, tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_lines(tmp_path / f"{name}.jsonl", make_rows(20)) for name in "abc"]
    expected = read_bytes(annotate(paths, "expected", output_format="parquet"))
    monkeypatch.setattr("onoma.scale.scan.MANY_BYTES", 0)
    assert read_bytes(annotate(paths, engine="ray", output_format="parquet")) == expected


def test_gpus_that_the_cluster_does_not_have(annotate: Annotate, source: Path, tiny_model: Path, cluster: None) -> None:
    options: dict[str, Any] = {"engine": "ray", "model": tiny_model, "backend": "torch"}
    for wanted in ({"gpus_per_worker": 1.0}, {"workers": 2, "gpus_per_worker": 0.5}):
        with pytest.raises(OnomaError, match="the Ray cluster has 0 GPUs"):
            annotate(source, **options, **wanted)


def test_a_ray_dataset_gets_a_column(onnx_model: Path, cluster: None) -> None:
    rows = make_rows(600)
    table = pa.Table.from_pylist([*rows, {"id": 600, "text": None}])
    options: dict[str, Any] = {"model": str(onnx_model), "workers": 1}
    annotated = annotate_data(ray.data.from_arrow(table), ["person", "city"], **options).take_all()
    assert annotated.pop()["entities"] is None
    expected = list(annotate_data(rows, ["person", "city"], **options))
    assert found(annotated) == found(expected)
    assert [row["weight"] for row in annotated] == [row["weight"] for row in rows]


def test_actors_and_machines_that_are_lost_lose_and_repeat_nothing(
    annotate: Annotate, source: Path, expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.cluster_utils import Cluster

    from onoma.scale import ray_data

    class DyingActor(ray_data.ShardActor):
        """Ends in the middle of some shards: killed, or by itself."""

        def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
            annotate_group = self.worker._annotate_group

            def dying(*arguments: Any) -> None:
                annotate_group(*arguments)
                mark = tmp_path / str(batch["shard"][0])
                if mark.exists():
                    ends[mark.read_text()](mark.unlink())

            ends = {
                "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
                "exited": lambda _: sys.exit(0),
            }
            self.worker._annotate_group = dying
            return super().__call__(batch)

    for number, end in enumerate(("killed", "exited"), 1):
        (tmp_path / str(number)).write_text(end, encoding="utf-8")
    monkeypatch.setattr(ray_data, "ShardActor", DyingActor)
    ray.shutdown()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    lost = cluster.add_node(num_cpus=1)
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        removed = []

        def remove_machine(done: int, total: int) -> None:
            if done > ROWS // 2 and not removed:
                removed.append(done)
                cluster.remove_node(lost, allow_graceful=False)

        folder = annotate(source, rows_per_shard=256, engine="ray", workers=2, on_progress=remove_machine)
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert removed
    assert removed[0] < ROWS
    assert not any((tmp_path / str(number)).exists() for number in range(8))  # all actors ended as they should
    assert read_bytes(folder) == expected


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "localhost:x"])
def test_a_wrong_address_is_an_error_within_seconds(annotate: Annotate, source: Path, address: str) -> None:
    ray.shutdown()
    started = time.monotonic()
    with pytest.raises(OnomaError, match=f"no Ray cluster at '{address}'.* Fix: "):
        annotate(source, engine="ray", address=address)
    assert time.monotonic() - started < 30
    assert not (source.parent / "annotated").exists()
