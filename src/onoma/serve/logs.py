"""Logs as JSON lines. They never contain texts or labels of users, nor messages of errors, which might quote them."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType


class JsonFormatter(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with its time, level, fields, and the place of an error."""
        values: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        values.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            values["error"] = record.exc_info[0].__name__
            values["trace"] = _places(record.exc_info[2])
        return json.dumps(values, ensure_ascii=False)


def _places(trace: TracebackType | None) -> list[str]:
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]


def configure_logs(level: str = "info") -> None:
    """Write the logs of the service and of uvicorn to stderr, and nothing else of the library."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("onoma.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("onoma").setLevel(logging.ERROR)  # its warnings quote labels
    logging.getLogger("uvicorn.access").disabled = True
