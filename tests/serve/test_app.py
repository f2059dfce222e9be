"""The API over a real socket, with the embedded model."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import onoma
from onoma import Entity, EntityType, Extractor
from onoma.models.config import ModelConfig, load_config
from onoma.serve.logs import JsonFormatter
from onoma.serve.settings import Limits, ServeSettings
from serve.services import Running, in_process

TEXTS = [
    "Maria Silva flew to Oslo.",
    "",
    "马云在杭州创办了阿里巴巴。",
    "The CEO of 腾讯, 马化腾, met Tim Cook in Paris.",
    "🙂 Anna 𠮷田 lives in Rome 🇮🇹.",
]
LABELS = ["person", "city", "company"]
LONG = " ".join(f"In the year {year}, Maria Silva flew from Oslo to Rome with Omar Haddad." for year in range(100))


def entities(answer: httpx.Response) -> list[list[Entity]]:
    assert answer.status_code == 200, answer.text
    return [[Entity(**one) for one in own] for own in answer.json()["results"]]


def assert_same(found: list[list[Entity]], expected: list[list[Entity]]) -> None:
    assert [[one.key for one in own] for own in found] == [[one.key for one in own] for own in expected]
    scores = [[one.score for own in both for one in own] for both in (found, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def error(answer: httpx.Response, status: int, code: str) -> str:
    """The message of an error in the form of all errors."""
    assert answer.status_code == status, answer.text
    content = answer.json()
    assert content.keys() == {"error"}
    assert content["error"]["code"] == code
    return str(content["error"]["message"])


# --- answers


@pytest.mark.parametrize(
    ("labels", "options"),
    [
        (LABELS, {}),
        (LABELS, {"overlap": "nested", "threshold": 0.05}),
        ({"person": "a human being", "city": ""}, {"threshold": {"person": 0.3}}),
        ([{"name": "person", "description": "a human being", "threshold": "precise"}, "city"], {"overlap": "any"}),
        ([{"name": "city", "examples": ["Oslo", "from [[Rome]] to"]}], {"threshold": "complete"}),
    ],
)
def test_answers_are_those_of_the_extractor(
    service: Running, embedded: Extractor, labels: Any, options: dict[str, Any]
) -> None:
    given = labels
    if isinstance(labels, list):
        given = [one if isinstance(one, str) else EntityType(**one) for one in labels]
    answer = service.extract(TEXTS, labels, **options)
    assert_same(entities(answer), embedded.extract(TEXTS, given, **options))
    assert answer.json()["model"] == "embedded"
    assert answer.json()["usage"]["texts"] == len(TEXTS)
    assert answer.json()["usage"]["tokens"] > 30


def test_offsets_count_code_points(service: Running) -> None:
    for text, own in zip(TEXTS, entities(service.extract(TEXTS, LABELS)), strict=True):
        assert all(text[one.start : one.end] == one.text for one in own)


def test_a_string_is_one_text_and_no_texts_give_no_results(service: Running) -> None:
    assert entities(service.extract(TEXTS[0], LABELS)) == entities(service.extract(TEXTS[:1], LABELS))
    assert service.extract([], LABELS).json()["results"] == []


def test_a_long_text_is_read_whole(service: Running, embedded: Extractor) -> None:
    assert_same(entities(service.extract([LONG, TEXTS[0]], LABELS)), embedded.extract([LONG, TEXTS[0]], LABELS))


def test_models_are_found_by_name(service: Running) -> None:
    assert service.extract(TEXTS[:1], LABELS, model="second").json()["model"] == "second"
    described = service.http.get("/v1/model", params={"name": "second"}).json()
    assert described["name"] == "second"
    assert described["models"] == ["embedded", "second"]
    assert described["labels"] is None
    assert described["limits"]["labels"] == 1000
    assert described["presets"]["complete"] < described["presets"]["balanced"] == described["threshold"]


@pytest.mark.parametrize(
    "name", ["", "third", "../embedded", "/etc/passwd", "embedded/", "en", "%2e%2e", "a\0b", "owner/name"]
)
def test_other_names_of_models_are_refused(service: Running, name: str) -> None:
    error(service.extract(TEXTS, LABELS, model=name), 404, "unknown_model")
    error(service.http.get("/v1/model", params={"name": name}), 404, "unknown_model")


# --- candidates


def decode(
    candidates: list[dict[str, Any]], overlap: str, thresholds: dict[str, float] | None
) -> list[tuple[int, int, str]]:
    """The decoder as a program without Onoma would write it."""

    def conflict(one: dict[str, Any], other: dict[str, Any]) -> bool:
        if one["end"] <= other["start"] or other["end"] <= one["start"] or overlap == "any":
            return False
        inside = one["start"] >= other["start"] and one["end"] <= other["end"]
        around = one["start"] <= other["start"] and one["end"] >= other["end"]
        return overlap == "flat" or not (inside or around)

    passed = [one for one in candidates if one["score"] >= (thresholds or {}).get(one["label"], one["threshold"])]
    kept: list[dict[str, Any]] = []
    for one in sorted(passed, key=lambda one: (-one["rank"], one["start"], one["end"], one["label"])):
        same = any((one["start"], one["end"]) == (other["start"], other["end"]) for other in kept)
        if not same and not any(conflict(one, other) for other in kept):
            kept.append(one)
    spans = {(one["start"], one["end"]) for one in kept}
    best = []
    for span in spans:
        labels = [one for one in passed if (one["start"], one["end"]) == span]
        best.append((*span, min(labels, key=lambda one: (-one["preference"], one["label"]))["label"]))
    return sorted(best)


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
@pytest.mark.parametrize("threshold", [None, 0.1, 0.6, {"person": 0.9, "miscellaneous": 0.05}])
def test_candidates_can_be_decoded_again(service: Running, embedded: Extractor, overlap: Any, threshold: Any) -> None:
    labels = [*LABELS, "miscellaneous", "organisation", "人名"]
    answer = service.extract(TEXTS, labels, overlap=overlap, candidates=0.05)
    expected = embedded.extract(TEXTS, labels, overlap=overlap, threshold=threshold)
    given = dict.fromkeys(labels, threshold) if isinstance(threshold, float) else threshold
    found = [decode(own, overlap, given) for own in answer.json()["candidates"]]
    assert found == [[one.key for one in own] for own in expected]
    assert_same(entities(answer), embedded.extract(TEXTS, labels, overlap=overlap))
    for own in answer.json()["candidates"]:
        scores = [one["score"] for one in own]
        assert scores == sorted(scores, reverse=True)
        assert all(0.05 <= score <= 1.0 for score in scores)


def test_thresholds_of_candidates_are_named(service: Running) -> None:
    options = {"candidates": 0.5, "threshold": {"city": 0.25}}
    english = load_config(Path(onoma.__file__).parent / "models/default/en")
    assert isinstance(english, ModelConfig)
    assert service.extract(TEXTS[:1], ["person", "city"], **options).json()["thresholds"] == {
        "city": 0.25,
        "person": pytest.approx(english.threshold),
    }


def test_candidates_are_bounded(service: Running) -> None:
    many = service.extract([TEXTS[3] * 20], [f"label {number}" for number in range(60)], candidates=0.0)
    assert [len(own) for own in many.json()["candidates"]] == [2000]
    message = error(service.extract([LONG] * 3, LABELS, candidates=0.05), 413, "too_large")
    assert "20,000" in message
    assert "candidate_characters" in message


# --- streams


def lines(service: Running, texts: Any, labels: Any = LABELS) -> list[dict[str, Any]]:
    with service.http.stream("POST", "/v1/extract/stream", json={"texts": texts, "labels": labels}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in answer.iter_lines()]


def test_a_stream_has_all_sections_in_order(service: Running, embedded: Extractor) -> None:
    texts = [TEXTS[0], LONG, *TEXTS]
    *sections, done = lines(service, texts)
    assert done["done"] is True
    assert done["usage"]["texts"] == len(texts)
    places = [one["text"] for one in sections]
    assert places == sorted(places)
    assert places.count(1) > 1
    found: list[list[Entity]] = [[] for _ in texts]
    for one in sections:
        found[one["text"]] += [Entity(**entity) for entity in one["entities"]]
    assert_same(found, embedded.extract(texts, LABELS))
    ends = [(one["text"], one["end"]) for one in sections if one["is_last"]]
    assert ends == [(place, len(text)) for place, text in enumerate(texts)]


def test_an_empty_stream_ends(service: Running) -> None:
    assert [line["done"] for line in lines(service, [])] == [True]


def test_a_stream_is_checked_like_any_request(service: Running) -> None:
    for body, status in (({"texts": ["a"], "labels": []}, 422), ({"texts": ["a"], "labels": ["b"], "model": "c"}, 404)):
        assert service.http.post("/v1/extract/stream", json=body).status_code == status


# --- bad requests


def post(service: Running, body: bytes, **headers: str) -> httpx.Response:
    return service.http.post("/v1/extract", content=body, headers={"Content-Type": "application/json", **headers})


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe{}", 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b'{"a":' * 100_000, 400, "invalid_json"),
        (b'{"texts": ["\\ud83d"], "labels": ["a"]}', 400, "invalid_json"),
        (b'{"texts": ["a"], "labels": ["\\udc00"]}', 400, "invalid_json"),
        (b'{"texts": ["a"], "labels": ["a"], "threshold": NaN}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "threshold": 1e999}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "threshold": ' + b"9" * 10_000 + b"}", 400, "invalid_json"),
        (b"null", 422, "invalid_request"),
        (b"[]", 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b'{"texts": null, "labels": ["a"]}', 422, "invalid_request"),
        (b'{"texts": [1], "labels": ["a"]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": "person"}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": []}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": {}}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": [""]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": [" "]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a\\u0000b"]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a\\u202eb"]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": [{"name": "a", "color": 1}]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": [{"name": "a", "examples": ["[[b"]}]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a", {"name": "a", "description": "b"}]}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "threshold": 1.5}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "threshold": true}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "threshold": {"b": 0.5}}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "overlap": "none"}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "candidates": -1}', 422, "invalid_request"),
        (b'{"texts": ["a"], "labels": ["a"], "colour": "red"}', 422, "invalid_request"),
    ],
)
def test_malformed_requests_say_what_to_change(service: Running, body: bytes, status: int, code: str) -> None:
    message = error(post(service, body), status, code)
    assert "Fix:" in message or "got" in message or "not among" in message
    assert len(message) < 1000


def test_messages_do_not_repeat_what_was_sent(service: Running) -> None:
    secret = "secret" * 10
    for body in ({"texts": [secret, 1], "labels": [secret]}, {"texts": ["a"], "labels": ["a"], secret: 1}):
        assert secret not in error(service.http.post("/v1/extract", json=body), 422, "invalid_request")


def test_other_bodies_than_json_are_refused(service: Running) -> None:
    body = b'{"texts": ["a"], "labels": ["b"]}'
    error(service.http.post("/v1/extract", content=body), 415, "unsupported_media_type")
    error(post(service, body, **{"Content-Type": "text/plain"}), 415, "unsupported_media_type")
    error(post(service, gzip.compress(body), **{"Content-Encoding": "gzip"}), 415, "unsupported_media_type")
    assert post(service, body, **{"Content-Type": "Application/JSON; charset=utf-8"}).status_code == 200


@pytest.mark.parametrize(
    ("values", "limit", "name"),
    [
        ({"texts": ["a"] * 2_000, "labels": ["a"]}, "1,024", "texts"),
        ({"texts": ["a" * 600_000], "labels": ["a"]}, "500,000", "characters"),
        ({"texts": ["a"], "labels": [f"l{number}" for number in range(2_000)]}, "1,000", "labels"),
        ({"texts": ["a"], "labels": {"a": "b" * 200_000}}, "100,000", "label_characters"),
        ({"texts": ["a"], "labels": [{"name": "a", "examples": ["b"] * 200_000}]}, "100,000", "label_characters"),
        ({"texts": ["测" * 200_000], "labels": ["a"]}, "131,072", "queue_tokens"),
        ({"texts": ["a"], "labels": [f"l{number:06}" for number in range(1_000_000)]}, "4,194,304", "body_bytes"),
        ({"texts": ["a"], "labels": [str(number) for number in range(400_000)]}, "1,000", "labels"),
    ],
)
def test_limits_are_named(service: Running, values: Any, limit: str, name: str) -> None:
    message = error(service.http.post("/v1/extract", json=values), 413, "too_large")
    assert limit in message
    assert name in message
    assert "Fix:" in message


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_100_megabytes_is_refused_without_being_kept(service: Running, chunked: bool) -> None:
    import psutil

    size, part = 100 << 20, b"x" * (1 << 20)
    before, most = psutil.Process().memory_info().rss, 0

    def parts() -> Iterator[bytes]:
        nonlocal most
        for _ in range(size // len(part)):
            most = max(most, psutil.Process().memory_info().rss)
            yield part

    headers = {} if chunked else {"Content-Length": str(size)}
    answer = service.http.post("/v1/extract", content=parts(), headers={"Content-Type": "application/json", **headers})
    assert "4,194,304" in error(answer, 413, "too_large")
    assert most - before < 50 << 20
    assert service.extract(TEXTS[:1], LABELS).status_code == 200


def test_a_client_that_waits_for_permission_need_not_send_a_large_body(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        head = "POST /v1/extract HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n"
        connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        connection.settimeout(10)
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    "garbage", [b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/extract HTTP/1.1\r\n\x00: a\r\n\r\n"]
)
def test_garbage_instead_of_http_does_no_harm(service: Running, garbage: bytes) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(garbage)
        connection.settimeout(10)
        connection.recv(1000)
    assert service.extract(TEXTS[:1], LABELS).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/v1/extract/",
        "/page/../app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e%2fapp.py",
        "/page/.hidden",
        "/page/app.py",
        "/page/a%00b.js",
        "/page//etc/passwd",
    ],
)
def test_other_paths_are_not_found(service: Running, path: str) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split(b" ")[1] in (b"404", b"405")
    assert b"import " not in answer


def test_texts_with_strange_characters_are_read(service: Running, embedded: Extractor) -> None:
    texts = [
        "\0\x01\x1b[31mMaria Silva\x7f",
        "\ufeffOslo\u200b\u202e",
        "\r\n\t\u2028",
        "a\u0301" * 50,
        "\U0010ffff\ufffe",
    ]
    assert_same(entities(service.extract(texts, LABELS)), embedded.extract(texts, LABELS))


# --- load


@pytest.mark.slow
def test_a_full_queue_gives_429_and_recovers(embedded: Extractor) -> None:
    with in_process({"embedded": embedded}, ServeSettings(queue_tokens=1_000)) as service:
        expected = service.extract(TEXTS, LABELS).json()["results"]

        def send(number: int) -> tuple[int, Any, str]:
            with httpx.Client(base_url=service.url, timeout=60) as http:
                answer = http.post("/v1/extract", json={"texts": TEXTS * 2, "labels": LABELS})
                return answer.status_code, answer.json(), answer.headers.get("Retry-After", "")

        with ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(send, range(60)))
        statuses = {status for status, _, _ in answers}
        assert statuses == {200, 429}
        for status, content, retry in answers:
            if status == 200:
                assert [[one["text"] for one in own] for own in content["results"][:5]] == [
                    [one["text"] for one in own] for own in expected
                ]
            else:
                assert content["error"]["code"] == "overloaded"
                assert int(retry) >= 1
        assert service.extract(TEXTS, LABELS).status_code == 200
        assert service.metric("onoma_queue_tokens") == 0
        assert service.metric("onoma_failures_total") >= 1


def test_requests_whose_clients_have_gone_leave_the_queue(service: Running) -> None:
    before = service.metric("onoma_cancelled_requests_total")
    body = json.dumps({"texts": [LONG] * 30, "labels": LABELS}).encode()
    head = (
        f"POST /v1/extract HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(head.encode() + body)
        wait_for(lambda: service.batcher.pending > 10_000)
    wait_for(lambda: service.batcher.pending == 0, 5)
    assert service.metric("onoma_cancelled_requests_total") == before + 1


def test_a_stream_whose_client_has_gone_leaves_the_queue(service: Running) -> None:
    with service.http.stream("POST", "/v1/extract/stream", json={"texts": [LONG] * 30, "labels": LABELS}) as answer:
        next(answer.iter_lines())
    wait_for(lambda: service.batcher.pending == 0, 5)


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def test_slow_requests_are_given_up(embedded: Extractor) -> None:
    with in_process({"embedded": embedded}, ServeSettings(timeout=0.3)) as service:
        assert "0.3 seconds" in error(service.extract([LONG] * 30, LABELS), 504, "timeout")
        wait_for(lambda: service.batcher.pending == 0)
        *_, last = lines(service, [LONG] * 30)
        assert last["error"]["code"] == "timeout"
        wait_for(lambda: service.extract(TEXTS[:1], LABELS).status_code == 200)
        with socket.create_connection(("127.0.0.1", service.port)) as connection:  # a body that never comes
            connection.sendall(
                b"POST /v1/extract HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
            )
            connection.settimeout(10)
            assert connection.recv(1000).startswith(b"HTTP/1.1 408")


@pytest.mark.slow
def test_short_texts_do_not_wait_for_long_ones(service: Running) -> None:
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(
            httpx.post, f"{service.url}/v1/extract", json={"texts": [LONG] * 6, "labels": LABELS}, timeout=120
        )
        wait_for(lambda: service.batcher.pending > 10_000)
        for _ in range(3):
            assert service.extract(TEXTS[:1], LABELS).status_code == 200
        assert not long.done()
        assert long.result().status_code == 200


def test_equal_label_sets_share_what_is_prepared(service: Running) -> None:
    readers = service.app.app.others.state.service.models
    forms: list[Any] = [
        ["ship", "river"],
        ["river", "ship", "ship"],
        {"ship": "", "river": ""},
        [{"name": "river"}, "ship"],
    ]
    for form in forms:
        assert service.extract(TEXTS[:1], form).status_code == 200
    found = [reader for reader in readers._readers.values() if [one.name for one in reader.types] == ["river", "ship"]]
    assert len(found) >= 2
    assert len(set(map(id, found))) == 1


def test_label_sets_that_are_kept_are_bounded(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.serve.models.MAX_KEPT_LABELS", 40)
    for number in range(30):
        assert service.extract([""], [f"thing {number}", f"other {number}"]).status_code == 200
    models = service.app.app.others.state.service.models
    assert sum(len(reader.types) for reader in models._readers.values()) == models._kept_labels <= 40


# --- operations


def test_health_metrics_and_pages(service: Running) -> None:
    assert service.http.get("/healthz").json() == {"status": "ok"}
    assert service.http.get("/readyz").json() == {"status": "ready"}
    tokens = service.metric("onoma_tokens_total")
    answer = service.extract(TEXTS, ["quokka", "person"])
    assert service.metric("onoma_tokens_total") == tokens + answer.json()["usage"]["tokens"]
    for name in (
        *("onoma_requests_total", "onoma_request_seconds_count", "onoma_queue_seconds_count", "onoma_batch_texts_sum"),
        *("onoma_batch_tokens_sum", "onoma_inference_seconds_sum", "onoma_tokenization_seconds_sum"),
        *("onoma_type_cache_total", "onoma_label_sets_total"),
    ):
        assert service.metric(name) > 0, name
    page = service.http.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    documentation = service.http.get("/docs").text
    assert "/v1/extract" in documentation
    assert "http://" not in documentation
    assert "https://" not in documentation
    assert service.http.get("/openapi.json").json()["paths"]["/v1/extract"]["post"]["requestBody"]


def test_paths_that_do_not_exist_make_no_metrics(service: Running) -> None:
    for number in range(5):
        service.http.get(f"/nothing/{number}")
    assert "nothing" not in service.http.get("/metrics").text


def test_other_sites_cannot_read_answers(service: Running) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    for answer in (
        service.http.options("/v1/extract", headers=headers),
        service.http.post("/v1/extract", json={"texts": ["a"], "labels": ["b"]}, headers=headers),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_an_api_key_is_needed_if_there_is_one(embedded: Extractor) -> None:
    with in_process({"embedded": embedded}, ServeSettings(api_key="s3cret")) as service:
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "s3cret"},
            {"Authorization": "Basic s3cret"},
        ):
            answer = service.http.post("/v1/extract", json={"texts": ["a"], "labels": ["b"]}, headers=headers)
            error(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert service.http.get("/v1/model").status_code == service.http.get("/metrics").status_code == 401
        assert service.http.get("/healthz").status_code == service.http.get("/").status_code == 200
        right = {"Authorization": "Bearer s3cret"}
        assert service.http.get("/v1/model", headers=right).status_code == 200
        assert (
            service.http.post("/v1/extract", json={"texts": ["a"], "labels": ["b"]}, headers=right).status_code == 200
        )


def test_logs_are_json_without_texts(service: Running) -> None:
    records: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(JsonFormatter().format(record))

    handler, logger = Keep(), logging.getLogger("onoma.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        service.extract(["Maria Silva flew to Oslo."], ["zebra crossing"])
        service.extract(["Maria Silva flew to Oslo."], ["zebra\0crossing"])
        service.http.get("/zebra")
        try:
            raise ValueError("Maria Silva")
        except ValueError as error:
            logger.error("failed", exc_info=error)
    finally:
        logger.removeHandler(handler)
    lines = [json.loads(line) for line in records]
    assert [line.get("status") for line in lines] == [200, 422, 404, None]
    assert lines[0]["model"] == "embedded"
    assert lines[0]["tokens"] == 6
    assert lines[3]["error"] == "ValueError"
    assert not [line for line in records if "Maria" in line or "zebra" in line or "Oslo" in line]


def test_a_model_with_a_closed_set_of_labels_names_them(embedded: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded.runtime, "labels", frozenset({"person", "city"}))
    with in_process({"closed": embedded}) as service:
        message = error(service.extract(TEXTS[:1], ["ship"]), 422, "invalid_request")
        assert "city, person" in message


def test_a_failing_text_does_not_fail_the_requests_of_others(
    service: Running, embedded: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model itself fails: requests that shared its batch are answered."""
    from onoma.systems.binder import onnx_runtime

    real = onnx_runtime.OnnxBinder.propose

    def propose(self: Any, batch: Any, *arguments: Any) -> Any:
        if any("POISON" in text for text in batch.texts):
            raise MemoryError
        return real(self, batch, *arguments)

    monkeypatch.setattr(onnx_runtime.OnnxBinder, "propose", propose)
    texts = [f"Maria Silva flew to Oslo {number} times." for number in range(30)]
    texts[11] += " POISON"
    start = threading.Barrier(len(texts))

    def send(text: str) -> int:
        start.wait()
        return httpx.post(f"{service.url}/v1/extract", json={"texts": [text], "labels": LABELS}, timeout=60).status_code

    with ThreadPoolExecutor(len(texts)) as pool:
        statuses = list(pool.map(send, texts))
    assert statuses == [500 if number == 11 else 200 for number in range(30)]
    assert service.http.get("/healthz").status_code == 200


def test_many_connections_at_once(service: Running, embedded: Extractor) -> None:
    texts = [f"Maria Silva flew to Oslo {number} times." for number in range(120)]
    expected = embedded.extract(texts, LABELS)

    async def run() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as http:
            return await asyncio.gather(
                *(http.post("/v1/extract", json={"texts": text, "labels": LABELS}) for text in texts)
            )

    assert_same([entities(one)[0] for one in asyncio.run(run())], expected)


def test_limits_can_be_set(embedded: Extractor) -> None:
    limits = Limits(body_bytes=2_000, texts=2, characters=100, labels=3, label_characters=50)
    with in_process({"embedded": embedded}, ServeSettings(limits=limits)) as service:
        assert service.http.get("/v1/model").json()["limits"]["characters"] == 100
        for texts, labels, limit in ((["a"] * 3, ["a"], "2"), (["a" * 101], ["a"], "100"), (["a"], list("abcd"), "3")):
            assert f"at most {limit} are allowed" in error(service.extract(texts, labels), 413, "too_large")
        assert "2,000 bytes" in error(service.extract(["a" * 3_000], ["a"]), 413, "too_large")
