"""A tiny exported model, and a way to run it over files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def annotate(onnx_model: Path, tmp_path: Path) -> Callable[..., Path]:
    """Annotates files into a folder with the tiny model and returns the folder."""
    from onoma.scale import annotate_corpus

    def run(sources: Any, output: str = "annotated", **options: Any) -> Path:
        sources = [str(one) for one in sources] if isinstance(sources, list) else str(sources)
        settings = {"model": onnx_model, "workers": 1, "labels": ["person", "city"]} | options
        annotate_corpus(sources, tmp_path / output, **settings)
        return tmp_path / output

    return run
