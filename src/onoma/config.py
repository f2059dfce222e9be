"""What a saved model says of itself: `config.json` of a model folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from onoma.data.files import atomic_write
from onoma.errors import OnomaError


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How a model was built and how it is to be used.

    `system` names the way from windows to proposals, `options` are that system's own. A score is
    sigmoid(scale · margin + bias), fitted on development data; `threshold` is the default for it.
    """

    system: str
    encoder: str = ""
    max_tokens: int = 256  # of a window, with its first and last token
    overlap: int = 16  # words that neighbouring windows share
    threshold: float = 0.5
    scale: float = 1.0
    bias: float = 0.0
    thresholds: dict[str, float] = field(default_factory=dict)  # tuned ones, by type name
    types: dict[str, str] = field(default_factory=dict)  # name -> description of the types it was trained on
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> ModelConfig:
        """Read the configuration of a model folder."""
        path = Path(folder) / "config.json"
        try:
            values = json.loads(path.read_text("utf-8"))
            known = {one.name for one in fields(cls)}
            if not isinstance(values, dict) or "system" not in values:
                raise OnomaError(f"{path} is no Onoma model: it names no 'system'")
            return cls(**{key: value for key, value in values.items() if key in known})
        except FileNotFoundError:
            raise OnomaError(f"{folder} is no model folder: it has no config.json") from None
        except (ValueError, TypeError, UnicodeDecodeError) as error:
            if isinstance(error, OnomaError):
                raise
            raise OnomaError(f"{path} is damaged ({error}); save or download the model again") from error

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write `config.json`."""
        with atomic_write(Path(folder) / "config.json") as file:
            json.dump({"format": 1, **asdict(self)}, file, ensure_ascii=False, indent=2)


def is_model(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a model, of ours or, like an encoder, of transformers."""
    try:
        values = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and not values.keys().isdisjoint(("system", "model_type"))
