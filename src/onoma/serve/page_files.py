"""The files of the page, with headers that allow no other source."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.responses import Response

from onoma.serve.errors import ApiError

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*", re.ASCII)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def page_file(folder: Path, name: str) -> Response:
    """A file of the page; only plain names of known kinds are looked up."""
    path = folder / name
    if not _NAME.fullmatch(name) or path.suffix not in _TYPES or not path.is_file():
        raise ApiError(404, "not_found", "there is no such file. Fix: the page is at /")
    return Response(path.read_bytes(), headers=HEADERS, media_type=_TYPES[path.suffix])
