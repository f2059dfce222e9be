"""onnxruntime reports to nobody: its telemetry is off before it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = "import onoma; print(len(onoma.load().extract('Tom flew to Paris.', ['city'])))"


@pytest.mark.parametrize("home", ["home", "home/none"])
def test_onnxruntime_writes_no_device_identifier_and_no_warning(tmp_path: Path, home: str) -> None:
    folder = tmp_path / "home"
    if home == "home":
        folder.mkdir()
    else:
        folder.write_text("a file, below which nothing can be written")
    unset = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in unset} | {
        "HOME": str(tmp_path / home),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert not list(folder.rglob("*"))
