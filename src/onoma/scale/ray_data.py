"""The Ray engine: Ray Data on a cluster of any size, or on this machine.

What flows through Ray Data are the numbers of shards, not their rows: actors read their rows themselves and write
shards as the processes of the local engine do. A shard is done when its file exists, whatever happens to actors,
machines and this process. Ray restarts actors that were killed and gives them their shard again. If an actor exits by
itself, Ray ends the pipeline; it is then started again with the shards that are left.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from onoma.errors import OnomaError
from onoma.scale.errors import ShardError, count_shards
from onoma.scale.scan import scan_file
from onoma.scale.service import THREAD_VARIABLES, Answer, describe
from onoma.scale.storage import require
from onoma.scale.worker import ShardWorker

CPUS_PER_WORKER = 0.9
"""Actors that take all CPUs of a cluster leave none for the other work of the pipeline, which then hangs."""
MAX_ROUNDS_WITHOUT_RESULT = 3
CONNECT_SECONDS = 10
"""After which a machine that does not answer is not waited for."""

_OBJECT_STORE_BYTES = 100_000_000  # numbers of shards need little

logger = logging.getLogger("onoma")


class ShardActor:
    """A worker in an actor of Ray Data. A batch is the number of one shard."""

    def __init__(self, output: str) -> None:
        os.environ.update(THREAD_VARIABLES)
        self.refused = ""
        try:
            self.worker = ShardWorker(output)
        except Exception as error:  # as an answer: Ray would start the actor again and again
            self.refused = describe(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        number, failed = int(batch["shard"][0]), ""
        if not self.refused:
            try:
                self.worker.annotate(number)
            except Exception as error:
                failed = describe(error)
        return {"shard": [number], "refused": [self.refused], "failed": [failed]}


class RayEngine:
    """A cluster, or one that is started on this machine and ends with the block."""

    def __init__(self, workers: int | None, address: str | None, gpus_per_worker: float) -> None:
        self.workers, self.address, self.gpus_per_worker = workers, address, gpus_per_worker

    def __enter__(self) -> RayEngine:
        self.is_ours = connect(self.address)
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_ours:
            require("ray", "the engine ray").shutdown()

    def scan(self, requests: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Answer]]:
        """The plans of files, each with the number of its request."""
        import ray

        remote = ray.remote(num_cpus=CPUS_PER_WORKER)(_scan)
        running = {remote.remote(request): number for number, request in enumerate(requests)}
        while running:
            (done, *_), _ = ray.wait(list(running))
            yield running.pop(done), ray.get(done)

    def annotate(self, output: str, shards: Sequence[int], list_done: Callable[[], set[int]]) -> Iterator[int]:
        """Annotate shards with actors; the number of each one that is done."""
        import ray

        arguments = actor_arguments(ray, self.workers, self.gpus_per_worker)
        left, failures, idle = list(shards), dict[int, str](), 0
        while left:
            reported = set[int]()
            problem: Exception | None = None
            try:
                for number, failed in _results(ray, output, left, arguments):
                    reported.add(number)
                    if failed:
                        failures[number] = failed
                    else:
                        yield number
            except OnomaError:
                raise
            except Exception as error:  # an actor that exited, a lost machine, ...
                problem = error
            unreported = (set(left) - reported) & list_done()
            reported |= unreported
            yield from unreported
            left = [number for number in left if number not in reported]
            idle = 0 if reported else idle + 1
            if left and idle == MAX_ROUNDS_WITHOUT_RESULT:
                raise ShardError(
                    f"Ray could not annotate {count_shards(len(left))} ({_first_line(problem)})"
                ) from problem
            if left and problem is not None:
                logger.warning(
                    "the pipeline is started again with %s (%s)", count_shards(len(left)), _first_line(problem)
                )
        if failures:
            raise ShardError.of(failures)


def _scan(request: dict[str, Any]) -> Answer:
    try:
        return scan_file(request)
    except Exception as error:
        return {"failed": describe(error)}


def _first_line(error: Exception | None) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]


def _results(ray: Any, output: str, shards: Sequence[int], arguments: ActorArguments) -> Iterator[tuple[int, str]]:
    """One pass of the pipeline over shards: each with the reason if it failed."""
    pool = ray.data.ActorPoolStrategy(size=min(arguments.workers, len(shards)), max_tasks_in_flight_per_actor=2)
    numbers = ray.data.from_items([{"shard": number} for number in shards], override_num_blocks=len(shards))
    annotated = numbers.map_batches(
        ShardActor,
        batch_size=1,
        compute=pool,
        fn_constructor_args=(output,),
        **arguments.resources,
    )
    for row in annotated.iter_rows():
        if row["refused"]:
            raise OnomaError(row["refused"])
        yield int(row["shard"]), row["failed"]


class ActorArguments(NamedTuple):
    """The number of actors, and what each of them takes of the cluster."""

    workers: int
    resources: dict[str, float]


def actor_arguments(ray: Any, workers: int | None, gpus_per_worker: float) -> ActorArguments:
    """The number of actors, and what each of them takes of the cluster."""
    resources = ray.cluster_resources()
    cpus, gpus = resources.get("CPU", 1.0), resources.get("GPU", 0.0)
    if gpus_per_worker > gpus:
        fix = "start machines with GPUs, or leave out --gpus-per-worker"
        raise OnomaError(f"the Ray cluster has {gpus:g} GPUs, fewer than one worker needs. Fix: {fix}")
    by_default = int(gpus / gpus_per_worker) if gpus_per_worker else int(cpus)
    workers = workers or max(1, by_default)
    wanted = {"num_cpus": min(CPUS_PER_WORKER, CPUS_PER_WORKER * cpus / workers)}
    if gpus_per_worker:
        wanted["num_gpus"] = gpus_per_worker
    return ActorArguments(workers, wanted)


def connect(address: str | None) -> bool:
    """Connect to a cluster, or start one on this machine; False if there is a connection already."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = require("ray", "the engine ray")
    require("ray.data", "the engine ray").DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what ends a pipeline is logged here, in one line
    if ray.is_initialized():
        return False
    if address:
        _require_reachable(address)
    own = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        ray.init(
            address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **({} if address else own)
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_cluster(str(address), error) from error
    return True


def _require_reachable(address: str) -> None:
    """Raise an error if nothing answers at HOST:PORT, for which Ray would wait many minutes."""
    host, colon, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not colon:  # "auto" or "local"
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> OnomaError:
    fix = "check the address, or give auto on a machine of the cluster; `ray status` shows whether a cluster runs"
    return OnomaError(f"there is no Ray cluster at {address!r} ({_first_line(error)}). Fix: {fix}")
