"""How integrations are given a model: by name, or loaded."""

from __future__ import annotations

import os

from onoma.extractor import Extractor, load

Model = Extractor | str | os.PathLike[str] | None
"""A loaded model, a folder, a hub name, or None (or "embedded") for the embedded model."""


def as_extractor(model: Model) -> Extractor:
    """The model, which is loaded if only its name is given."""
    return model if isinstance(model, Extractor) else load(model)
