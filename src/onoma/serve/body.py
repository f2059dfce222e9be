"""Reading the body of a request with a limit on its size and on the time that it takes."""

from __future__ import annotations

import asyncio

from fastapi import Request
from starlette.requests import ClientDisconnect

from onoma.serve.errors import ApiError

DISCARDED_BYTES = 256 << 20
"""Of a body that is too large, so many bytes are read and dropped, because most clients read no answer before."""
_CLOSE = {"Connection": "close"}


async def read_body(request: Request, limit: int, timeout: float) -> bytes:
    """The body of a JSON request; an ApiError if it is too large, too slow, or something else."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise ApiError(
            415, "unsupported_media_type", "the body must be JSON. Fix: send the header Content-Type: application/json"
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ApiError(415, "unsupported_media_type", "compressed bodies are not accepted. Fix: send plain JSON")
    length = request.headers.get("content-length", "")
    too_long = length.isdecimal() and int(length) > limit
    if too_long and request.headers.get("expect", "").lower() == "100-continue":
        raise _too_large(limit)  # the client has not sent it yet
    try:
        async with asyncio.timeout(timeout):
            return await _read(request, limit, too_long)
    except TimeoutError:
        raise ApiError(408, "timeout", f"the body did not arrive within {timeout:g} seconds", _CLOSE) from None
    except ClientDisconnect:
        raise ApiError(499, "cancelled", "the client has gone") from None


async def _read(request: Request, limit: int, too_long: bool) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit or too_long:
            parts.clear()
            too_long = True
            if size > DISCARDED_BYTES:
                break
        elif part:
            parts.append(part)
    if too_long:
        raise _too_large(limit)
    return b"".join(parts)


def _too_large(limit: int) -> ApiError:
    return ApiError(
        413,
        "too_large",
        f"the body is too large; at most {limit:,} bytes are allowed (body_bytes). Fix: send several requests",
        _CLOSE,
    )
