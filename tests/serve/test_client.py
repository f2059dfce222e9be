from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from onoma import Entity, EntityType, Extractor, OnomaError
from onoma.serve.client import AsyncClient, Client, ServiceError
from serve.services import Running

TEXTS = ["Maria Silva flew to Oslo.", "", "马云在杭州。"]
LABELS = ["person", "city"]


def keys(found: list[list[Entity]]) -> list[list[tuple[int, int, str]]]:
    return [[one.key for one in own] for own in found]


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (LABELS, {}),
        ({"person": "a human being"}, {"threshold": 0.3, "overlap": "nested"}),
        ([EntityType("city", "a town", ("Rome",), 0.2), "person"], {"threshold": {"person": "precise"}}),
    ],
)
def test_clients_answer_as_the_extractor_does(
    service: Running, embedded: Extractor, labels: Any, options: dict[str, Any]
) -> None:
    expected = keys(embedded.extract(TEXTS, labels, **options))
    with Client(service.url) as client:
        assert keys(client.extract(TEXTS, labels, **options)) == expected
        assert keys([client.extract(TEXTS[0], labels, **options)]) == expected[:1]
        sections = list(client.stream_sections(TEXTS, labels, **options))
        assert [(one.text, [entity.key for entity in one.entities]) for one in sections] == list(enumerate(expected))
        assert client.model()["name"] == "embedded"

    async def run() -> None:
        async with AsyncClient(service.url) as client:
            assert keys(await client.extract(iter(TEXTS), labels, **options)) == expected
            several = await asyncio.gather(*(client.extract(text, labels, **options) for text in TEXTS))
            assert keys(several) == expected
            found = [section async for section in client.stream_sections(TEXTS, labels, **options)]
            assert [section.end for section in found] == list(map(len, TEXTS))
            assert (await client.model("second"))["name"] == "second"

    asyncio.run(run())


def test_errors_of_the_service_are_raised(service: Running) -> None:
    with Client(service.url) as client:
        with pytest.raises(ServiceError, match="Fix: use one of: embedded, second") as caught:
            client.extract("a", LABELS, model="third")
        assert (caught.value.status, caught.value.code) == (404, "unknown_model")
        with pytest.raises(ServiceError, match="invalid_request"):
            list(client.stream_sections(["a"], []))
        with pytest.raises(OnomaError, match="UTF-8"):
            client.extract("\ud800", LABELS)
        with pytest.raises(OnomaError, match="labels must be a list"):
            client.extract("a", "person")


def test_a_busy_service_is_asked_again() -> None:
    answers = [
        httpx.Response(429, headers={"Retry-After": "0"}, json={"error": {"code": "overloaded", "message": "full"}}),
        httpx.Response(503, headers={"Retry-After": "0"}, text="a proxy"),
        httpx.Response(200, json={"results": [[]], "model": "m"}),
    ]
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answers[len(seen) - 1]

    with Client(api_key="k", transport=httpx.MockTransport(answer)) as client:
        assert client.extract("a", LABELS) == []
    assert len(seen) == 3
    assert {request.headers["Authorization"] for request in seen} == {"Bearer k"}
    seen.clear()
    with (
        Client(retries=1, transport=httpx.MockTransport(answer)) as client,
        pytest.raises(ServiceError, match=r"503 \(unknown\): a proxy"),
    ):
        client.extract("a", LABELS)
    assert len(seen) == 2


def test_clients_say_where_they_send_requests() -> None:
    assert repr(Client("http://ner.example:9000", api_key="secret")) == "Client('http://ner.example:9000')"
    assert repr(AsyncClient("http://ner.example:9000")) == "AsyncClient('http://ner.example:9000')"


def test_the_example_of_the_guide_runs(service: Running) -> None:
    page = (Path(__file__).parents[2] / "docs/guides/serve.md").read_text("utf-8")
    (source,) = [one for one in re.findall(r"^```python.*?\n(.*?)^```$", page, re.M | re.S) if "AsyncClient" in one]
    source = source.replace("http://127.0.0.1:8000", service.url).replace(
        "AsyncClient()", f"AsyncClient({service.url!r})"
    )
    code = compile(source, "serve.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    asyncio.run(eval(code, {"texts": TEXTS, "book": TEXTS[0]}))
