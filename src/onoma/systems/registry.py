"""The systems by name. A new system is one package under `onoma.systems` and one line here."""

from __future__ import annotations

from importlib import import_module

from onoma.errors import OnomaError
from onoma.systems.base import System

SYSTEMS = {
    "binder": "onoma.systems.binder:SYSTEM",
    "suner": "onoma.systems.suner:SYSTEM",
    "scl-rai": "onoma.systems.scl_rai:SYSTEM",
    "nerco": "onoma.systems.nerco:SYSTEM",
    "punifiedner": "onoma.systems.punifiedner:SYSTEM",
}
"""Name -> module and object, which are imported when the system is used."""


def get_system(name: str) -> System:
    """A system by name."""
    if name not in SYSTEMS:
        raise OnomaError(f"there is no system {name!r}; the systems are: {', '.join(SYSTEMS)}")
    module, _, attribute = SYSTEMS[name].partition(":")
    system: System = getattr(import_module(module), attribute)
    return system
