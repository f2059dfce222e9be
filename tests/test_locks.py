"""Forking while threads extract: the child finds no lock held by a thread that it does not have."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import onoma
from onoma import Extractor
from onoma.models.export import export

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

TEXT, LABELS = "Tom flew to Paris .", ["person", "city"]


@pytest.fixture(scope="module")
def exported(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(tiny_model, tmp_path_factory.mktemp("exported") / "tiny")


def held_by_a_thread(locks: list[Any], then: Callable[[], None]) -> None:
    """Call a function while another thread holds locks."""
    ready, done = Event(), Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            ready.set()
            done.wait(60)

    thread = Thread(target=hold, daemon=True)
    thread.start()
    ready.wait(60)
    try:
        then()
    finally:
        done.set()
        thread.join(60)


def assert_child_extracts(ner: Extractor, expected: list[onoma.Entity]) -> None:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if ner.extract(TEXT, LABELS) == expected else 3)
        finally:
            os._exit(4)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        number, status = os.waitpid(child, os.WNOHANG)
        if number:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def test_a_child_extracts_although_threads_of_the_parent_held_all_locks(exported: Path) -> None:
    expected = onoma.load(exported, threads=1).extract(TEXT, LABELS)
    assert {one.label for one in expected} == set(LABELS)
    ner = onoma.load(exported, threads=1)  # no type is encoded and no word is tokenised yet
    model, runtime = ner._models[0], ner.single("test").runtime
    locks = [model._lock, runtime.tokenizer._lock, runtime.types._lookup_lock, runtime.types._encode_lock]
    held_by_a_thread(locks, lambda: assert_child_extracts(ner, expected))
    assert ner.extract(TEXT, LABELS) == expected


def test_a_graph_that_was_running_at_the_fork_is_loaded_again_in_the_child(exported: Path) -> None:
    ner = onoma.load(exported, threads=1)
    expected = ner.extract(TEXT, LABELS)
    session, loaded = ner.single("test").runtime.text, ner.single("test").runtime.text.session

    class Hanging:
        """A session with a lock that another thread holds."""

        def run(self, *_: object) -> None:
            time.sleep(3600)

    session.session = Hanging()
    session._running.add(1)
    assert_child_extracts(ner, expected)
    session._running.clear()
    session.session = loaded
    assert ner.extract(TEXT, LABELS) == expected
