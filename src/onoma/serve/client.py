"""A client for the service, which answers as `Extractor` does: `Client`, and `AsyncClient` for asyncio.

>>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
...     client.extract("Tom flew to Paris.", ["person", "city"])
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack, overload

from onoma.decoding.overlap import Overlap
from onoma.entities import Entity, EntityType
from onoma.errors import OnomaError
from onoma.labels.parsing import Labels, Threshold
from onoma.reading import Section

try:
    import httpx
except ModuleNotFoundError as error:
    raise OnomaError('the client needs httpx. Fix: pip install "onoma[serve]"') from error

DEFAULT_URL = "http://127.0.0.1:8000"

_RETRIED = (429, 503)  # the request was not accepted, so that it can be sent again
_FIRST_WAIT = 0.5  # seconds, if the service does not name any; doubled each time
_LONGEST_WAIT = 60.0


class ServiceError(OnomaError):
    """An answer of the service that is not a result."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"the service answers with {status} ({code}): {message}")
        self.status, self.code, self.message = status, code, message


class Options(TypedDict, total=False):
    """Options of a request."""

    threshold: Threshold | None
    overlap: Overlap
    model: str | None


class _Calls:
    """What both clients share: requests and answers without the network."""

    def __init__(self, api_key: str | None, retries: int) -> None:
        self.headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self.headers["Authorization"] = f"Bearer {api_key}"
        self.retries = retries

    def body(self, texts: Iterable[str], labels: Labels, options: Options) -> bytes:
        """The body of a request."""
        values = {"texts": list(texts), "labels": _plain_labels(labels), **options}
        try:
            return json.dumps(values, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:  # UnicodeEncodeError is a ValueError
            raise OnomaError(f"the request cannot be sent as JSON in UTF-8 ({type(error).__name__})") from None

    def wait(self, response: httpx.Response, attempt: int) -> float | None:
        """Seconds until a request should be sent again; None: it should not."""
        if response.status_code not in _RETRIED or attempt >= self.retries:
            return None
        named = response.headers.get("Retry-After", "")
        return min(_LONGEST_WAIT, float(named) if named.isdecimal() else _FIRST_WAIT * 2**attempt)


class Client:
    """A client. Threads may share it."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout: float = 120.0,
        retries: int = 3,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`retries`: how often a request is sent again that the service has no room for."""
        self._calls = _Calls(api_key, retries)
        self._http = httpx.Client(base_url=url, headers=self._calls.headers, timeout=timeout, transport=transport)

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"

    @overload  # a string is also an iterable of strings, but it is one text
    def extract(self, texts: str, labels: Labels, **options: Unpack[Options]) -> list[Entity]: ...  # type: ignore[overload-overlap]

    @overload
    def extract(self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]) -> list[list[Entity]]: ...

    def extract(
        self, texts: str | Iterable[str], labels: Labels, **options: Unpack[Options]
    ) -> list[Entity] | list[list[Entity]]:
        """Find the mentions of types: a list of entities for a string, a list of lists for several strings."""
        several = [texts] if isinstance(texts, str) else texts
        found = _read_results(self._post("/v1/extract", self._calls.body(several, labels, options)))
        return found[0] if isinstance(texts, str) else found

    def stream_sections(self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]) -> Iterator[Section]:
        """The same in parts, for long texts."""
        body = self._calls.body(texts, labels, options)
        with self._http.stream("POST", "/v1/extract/stream", content=body) as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _error(response)
            for line in response.iter_lines():
                section = _read_line(line)
                if section is None:
                    return
                yield section
        raise OnomaError("the stream has ended before the last text")

    def model(self, name: str | None = None) -> dict[str, Any]:
        """What the service says of a model and of its limits."""
        response = self._http.get("/v1/model", params={} if name is None else {"name": name})
        return _read(response)

    def _post(self, path: str, body: bytes) -> dict[str, Any]:
        attempt = 0
        while True:
            response = self._http.post(path, content=body)
            wait = self._calls.wait(response, attempt)
            if wait is None:
                return _read(response)
            time.sleep(wait)
            attempt += 1

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient:
    """The same for asyncio."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        api_key: str | None = None,
        timeout: float = 120.0,
        retries: int = 3,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`retries`: how often a request is sent again that the service has no room for."""
        self._calls = _Calls(api_key, retries)
        self._http = httpx.AsyncClient(base_url=url, headers=self._calls.headers, timeout=timeout, transport=transport)

    def __repr__(self) -> str:
        return f"AsyncClient({str(self._http.base_url)!r})"

    @overload  # a string is also an iterable of strings, but it is one text
    async def extract(self, texts: str, labels: Labels, **options: Unpack[Options]) -> list[Entity]: ...  # type: ignore[overload-overlap]

    @overload
    async def extract(self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]) -> list[list[Entity]]: ...

    async def extract(
        self, texts: str | Iterable[str], labels: Labels, **options: Unpack[Options]
    ) -> list[Entity] | list[list[Entity]]:
        """Find the mentions of types: a list of entities for a string, a list of lists for several strings."""
        several = [texts] if isinstance(texts, str) else texts
        found = _read_results(await self._post("/v1/extract", self._calls.body(several, labels, options)))
        return found[0] if isinstance(texts, str) else found

    async def stream_sections(
        self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]
    ) -> AsyncIterator[Section]:
        """The same in parts, for long texts."""
        body = self._calls.body(texts, labels, options)
        async with self._http.stream("POST", "/v1/extract/stream", content=body) as response:
            if response.status_code != httpx.codes.OK:
                await response.aread()
                raise _error(response)
            async for line in response.aiter_lines():
                section = _read_line(line)
                if section is None:
                    return
                yield section
        raise OnomaError("the stream has ended before the last text")

    async def model(self, name: str | None = None) -> dict[str, Any]:
        """What the service says of a model and of its limits."""
        return _read(await self._http.get("/v1/model", params={} if name is None else {"name": name}))

    async def _post(self, path: str, body: bytes) -> dict[str, Any]:
        attempt = 0
        while True:
            response = await self._http.post(path, content=body)
            wait = self._calls.wait(response, attempt)
            if wait is None:
                return _read(response)
            await asyncio.sleep(wait)
            attempt += 1

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _plain_labels(labels: Labels) -> object:
    if isinstance(labels, Mapping):
        return dict(labels)
    if isinstance(labels, (str, bytes, EntityType)) or not isinstance(labels, Iterable):
        raise OnomaError(f'labels must be a list such as ["person", "city"] or name → description, got {labels!r:.80}')
    return [_plain_label(one) for one in labels]


def _plain_label(label: str | EntityType) -> object:
    if isinstance(label, str):
        return label
    values = {"description": label.description, "examples": list(label.examples), "threshold": label.threshold}
    return {"name": label.name, **{name: value for name, value in values.items() if value}}


def _read(response: httpx.Response) -> dict[str, Any]:
    if response.status_code != httpx.codes.OK:
        raise _error(response)
    values: dict[str, Any] = response.json()
    return values


def _error(response: httpx.Response) -> ServiceError:
    try:
        error = response.json()["error"]
        return ServiceError(response.status_code, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):  # something between client and service has answered
        return ServiceError(response.status_code, "unknown", response.text[:200])


def _read_results(values: Mapping[str, Any]) -> list[list[Entity]]:
    return [[Entity(**one) for one in own] for own in values["results"]]


def _read_line(line: str) -> Section | None:
    """A section, or None at the end."""
    values = json.loads(line)
    if "error" in values:
        raise ServiceError(httpx.codes.OK, values["error"]["code"], values["error"]["message"])
    if "done" in values:
        return None
    entities = [Entity(**one) for one in values["entities"]]
    return Section(values["text"], entities, values["end"], values["is_last"])
