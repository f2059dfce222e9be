"""A cheap HTTP client for load tests: HTTP/1.1 with connections that stay open, in a process of its own.

It takes a small part of the time of a request, so that client and service can share a machine of two cores.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import NamedTuple, cast

from onoma.errors import OnomaError


class Answer(NamedTuple):
    """The answer to one request; status 0: the connection failed."""

    request: int
    status: int
    seconds: float
    finished: float  # since the start of the run
    body: bytes


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent: `requests` bodies in turn, by a number of clients, or at a rate."""

    port: int
    bodies: Sequence[bytes]
    requests: int
    clients: int = 64
    rate: float | None = None
    """Requests per second, whether they are answered or not; None: each client sends when it has its answer."""
    seconds: float | None = None
    """Ends a run without a rate earlier."""
    keep_bodies: bool = True

    def run(self) -> list[Answer]:
        """Send everything from another process."""
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(_run, self).result()


def _run(load: Load) -> list[Answer]:
    with suppress(ImportError):
        import uvloop

        return uvloop.run(_Sender(load).send())
    return asyncio.run(_Sender(load).send())


class _Connection(asyncio.Protocol):
    """A connection with one request at a time."""

    def __init__(self) -> None:
        self.received = b""
        self.answer: asyncio.Future[tuple[int, bytes]] | None = None
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are of another class

    def request(self, data: bytes) -> asyncio.Future[tuple[int, bytes]]:
        self.answer = asyncio.get_running_loop().create_future()
        self.received = b""
        self.transport.write(data)
        return self.answer

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if not separator or self.answer is None or self.answer.done():
            return
        lower = head.lower()
        start = lower.index(b"content-length:") + 15
        length = int(lower[start:].partition(b"\r\n")[0])
        if len(body) >= length:
            self.is_open = self.is_open and b"connection: close" not in lower
            self.answer.set_result((int(head[9:12]), body))

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self.answer is not None and not self.answer.done():
            self.answer.set_result((0, b""))


class _Sender:
    def __init__(self, load: Load) -> None:
        self.load = load
        self.data = [_head(load.port, body) + body for body in load.bodies]
        self.answers: list[Answer] = []
        self.free: list[_Connection] = []

    async def send(self) -> list[Answer]:
        self.start = time.perf_counter()
        if self.load.rate is None:
            numbers = iter(range(self.load.requests))
            await asyncio.gather(*(self._client(numbers) for _ in range(self.load.clients)))
        else:
            await self._at_rate(self.load.rate)
        return self.answers

    async def _client(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            if self.load.seconds is not None and time.perf_counter() - self.start > self.load.seconds:
                return
            await self._one(number)

    async def _at_rate(self, rate: float) -> None:
        tasks = []
        for number in range(self.load.requests):
            wait = self.start + number / rate - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            tasks.append(asyncio.ensure_future(self._one(number)))
        await asyncio.gather(*tasks)

    async def _one(self, number: int) -> None:
        begin = time.perf_counter()
        try:
            connection = await self._connection()
            status, body = await connection.request(self.data[number % len(self.data)])
        except OSError:
            status, body = 0, b""
        else:
            if connection.is_open:
                self.free.append(connection)
        end = time.perf_counter()
        kept = body if self.load.keep_bodies or status != 200 else b""
        self.answers.append(Answer(number, status, end - begin, end - self.start, kept))

    async def _connection(self) -> _Connection:
        while self.free:
            connection = self.free.pop()
            if connection.is_open:
                return connection
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, "127.0.0.1", self.load.port)
        return connection


def _head(port: int, body: bytes) -> bytes:
    if not body:
        raise OnomaError("a request needs a body")
    return (
        f"POST /v1/extract HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
