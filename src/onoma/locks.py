"""What must be renewed after a fork: locks, and objects of libraries with locks of their own.

A fork copies the memory of a process but only the thread that forks. A lock that another thread holds at that moment
would stay locked in the child for ever. What such a lock protects must therefore be usable at any moment: data is
replaced as a whole or added before it is announced, never left half-changed.
"""

from __future__ import annotations

import os
from threading import Lock
from types import TracebackType
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something that other threads may have been using when the process forked."""

    def renew(self) -> None:
        """Called in the child, where these threads do not exist."""


_RENEWED: WeakSet[Renewable] = WeakSet()


def renew_after_fork(one: Renewable) -> None:
    """Call `one.renew` in child processes after a fork, as long as the object exists."""
    _RENEWED.add(one)


class ForkSafeLock:
    """A lock for `with` statements, which is free in a child process after a fork, whoever held it in the parent."""

    def __init__(self) -> None:
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock by a free one."""
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


def _renew_all() -> None:
    for one in list(_RENEWED):
        one.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
