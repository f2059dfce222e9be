"""What happens around every request: API key, security headers, metrics and a line in the log."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onoma.serve.errors import ApiError
from onoma.serve.metrics import Metrics

logger = logging.getLogger("onoma.serve")

ENDPOINTS = ("/v1/extract", "/v1/extract/stream", "/v1/model", "/healthz", "/readyz", "/metrics", "/", "/docs")
"""Paths that have metrics of their own; a metric for every path that somebody asks for would fill the memory."""
PROTECTED = ("/v1/", "/metrics")
_QUIET = ("/healthz", "/readyz", "/metrics")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def note(scope: Scope, **fields: object) -> None:
    """Add fields to the line of a request in the log."""
    scope.setdefault("onoma.fields", {}).update(fields)


class Gate:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics, api_key: str | None) -> None:
        self.app, self.metrics = app, metrics
        self._key = None if api_key is None else _digest(api_key.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        call = _Call(scope, send, self.metrics)
        try:
            if self._is_refused(scope):
                await self._refuse(call)
            else:
                await self.app(scope, receive, call.send)
        finally:
            call.finish()

    def _is_refused(self, scope: Scope) -> bool:
        if self._key is None or not scope["path"].startswith(PROTECTED):
            return False
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, key = given.partition(b" ")
        # digests have equal lengths, so that the time of the comparison tells nothing of the key
        return not (hmac.compare_digest(_digest(key.strip()), self._key) and scheme.lower() == b"bearer")

    async def _refuse(self, call: _Call) -> None:
        error = ApiError(401, "unauthorized", "the API key is missing or wrong. Fix: send Authorization: Bearer KEY")
        self.metrics.failures.labels(error.code).inc()
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await call.send({"type": "http.response.start", "status": error.status, "headers": headers})
        await call.send({"type": "http.response.body", "body": orjson.dumps(error.to_dict())})


class _Call:
    """One request."""

    def __init__(self, scope: Scope, send: Send, metrics: Metrics) -> None:
        self.scope, self._send, self.metrics = scope, send, metrics
        self.start, self.status = time.perf_counter(), 500
        self.id = secrets.token_hex(8)

    async def send(self, message: Message) -> None:
        """Pass a message on, with our headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            added = [pair for pair in _HEADERS if pair[0] not in names]
            message["headers"] = [*message["headers"], *added, (b"x-request-id", self.id.encode())]
        await self._send(message)

    def finish(self) -> None:
        """Count and log."""
        seconds, path = time.perf_counter() - self.start, self.scope["path"]
        endpoint = path if path in ENDPOINTS else "/page" if path.startswith("/page/") else "other"
        self.metrics.count_request(endpoint, self.status, seconds)
        if endpoint in _QUIET and self.status < 400:
            return
        fields: dict[str, Any] = {
            "event": "request",
            "id": self.id,
            "method": self.scope["method"],
            "endpoint": endpoint,
            "status": self.status,
            "seconds": round(seconds, 4),
            **self.scope.get("onoma.fields", {}),
        }
        logger.info("request", extra={"fields": fields})


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
