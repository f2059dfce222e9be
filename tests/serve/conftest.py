from __future__ import annotations

from collections.abc import Iterator

import pytest

import onoma
from onoma import Extractor
from serve.services import Running, in_process


@pytest.fixture(scope="session")
def embedded() -> Extractor:
    """The embedded model."""
    return onoma.load(threads=2)


@pytest.fixture(scope="session")
def service(embedded: Extractor) -> Iterator[Running]:
    """A service with the embedded model under two names."""
    with in_process({"embedded": embedded, "second": embedded}) as running:
        yield running
