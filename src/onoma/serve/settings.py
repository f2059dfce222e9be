"""Settings of the service."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from onoma.errors import OnomaError
from onoma.files import open_text

KEY_VARIABLE = "ONOMA_API_KEY"
METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Must be set before `prometheus_client` is imported for the first time, if there are several processes."""
ONNX_BATCH_TOKENS = 768
"""Tokens of the texts that a thread reads at once on a CPU: a few of the small batches that a core's cache holds."""
TORCH_BATCH_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may contain."""

    body_bytes: int = 4 << 20
    texts: int = 1_024
    characters: int = 500_000  # of all texts
    labels: int = 1_000
    label_characters: int = 100_000  # of the names, descriptions and examples of all labels
    candidate_characters: int = 20_000  # of all texts, if candidates are asked for

    def to_dict(self) -> dict[str, int]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How the service behaves."""

    limits: Limits = field(default_factory=Limits)
    queue_tokens: int = 131_072
    """Tokens, estimated, of the texts that were accepted and not answered yet."""
    timeout: float = 60.0
    """Seconds after which a request is given up."""
    shutdown_timeout: float = 30.0
    """Seconds that accepted requests have when the service is to end."""
    batch_tokens: int | None = None
    api_key: str | None = field(default=None, repr=False)


def read_api_key(path: Path | None) -> str | None:
    """The API key from a file or from ONOMA_API_KEY; None if there is neither."""
    if path is None:
        key, source = os.environ.get(KEY_VARIABLE), KEY_VARIABLE
        if key is None:
            return None
    else:
        with open_text(path) as file:
            key, source = file.read(), str(path)
    if not key.strip():
        raise OnomaError(f"the API key in {source} is empty. Fix: write a key there, or leave it out")
    return key.strip()
