"""Errors as the service answers them: {"error": {"code": ..., "message": ...}}."""

from __future__ import annotations

from collections.abc import Mapping


class ApiError(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    def to_dict(self) -> dict[str, object]:
        """The body of the answer."""
        return {"error": {"code": self.code, "message": self.message}}


def too_large(what: str, got: int, limit: int, name: str, fix: str) -> ApiError:
    """A request over one of the limits of the service."""
    return ApiError(413, "too_large", f"{what} ({got:,}); at most {limit:,} are allowed ({name}). Fix: {fix}")
