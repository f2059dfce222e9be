"""Without a library, what needs it says how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("integrations.spacy", "spacy", "spacy"),
        ("integrations.presidio", "presidio_analyzer", "presidio"),
        ("integrations.pandas", "pandas", "pandas"),
        ("integrations.polars", "polars", "polars"),
        ("serve.client", "httpx", "serve"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(module: str, library: str, extra: str) -> None:
    script = f"""
import sys
sys.modules[{library!r}] = None  # as if it were not installed
from onoma import OnomaError
try:
    import onoma.{module}
except OnomaError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith(f'Fix: pip install "onoma[{extra}]"')


def test_parquet_without_pyarrow_is_explained() -> None:
    script = """
import sys
sys.modules["pyarrow"] = None
from onoma.cli import main
sys.argv = ["onoma", "extract", "Tom", "--labels", "person", "--output", "found.parquet"]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'Fix: pip install "onoma[parquet]"' in done.stderr
