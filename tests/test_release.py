"""Checks of a release: changelog, contents of archives, sizes."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from onoma import __version__

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from release import ReleaseError, changelog_date, check_sdist, check_wheel, installed_sizes  # noqa: E402

TRACKED = ["README.md", "src/onoma/__init__.py", "src/onoma/models/default/en/model.onnx", "tests/test_files.py"]


def wheel(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*names, "onoma-0.1.0.dist-info/METADATA"):
            archive.writestr(name, "")
    return path


def sdist(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in (*names, "PKG-INFO"):
            archive.addfile(tarfile.TarInfo(f"onoma-0.1.0/{name}"), io.BytesIO())
    return path


def test_the_version_of_the_package_has_a_date_in_the_changelog() -> None:
    assert changelog_date((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)


@pytest.mark.parametrize("heading", ["## [1.0.0] - unreleased", "## [1.0.0]", "## [11.0.0] - 2030-01-01", ""])
def test_a_version_without_a_date_is_refused(heading: str) -> None:
    with pytest.raises(ReleaseError, match=r"CHANGELOG\.md has no heading '## \[1\.0\.0\]"):
        changelog_date(f"# Changelog\n\n{heading}\n\n- more\n", "1.0.0")


def test_archives_hold_the_tracked_files_and_nothing_else(tmp_path: Path) -> None:
    package = [name.removeprefix("src/") for name in TRACKED[1:3]]
    check_wheel(wheel(tmp_path / "a.whl", *package), TRACKED)
    check_sdist(sdist(tmp_path / "a.tar.gz", *TRACKED), TRACKED)

    with pytest.raises(ReleaseError, match=r"b\.whl: lacks onoma/models/default/en/model\.onnx"):
        check_wheel(wheel(tmp_path / "b.whl", package[0]), TRACKED)
    with pytest.raises(ReleaseError, match=r"c\.whl: should not hold tests/test_files\.py"):
        check_wheel(wheel(tmp_path / "c.whl", *package, "tests/test_files.py"), TRACKED)
    with pytest.raises(ReleaseError, match=r"b\.tar\.gz: lacks README\.md; should not hold notes\.txt"):
        check_sdist(sdist(tmp_path / "b.tar.gz", *TRACKED[1:], "notes.txt"), TRACKED)


def test_sizes_count_everything_but_pip(tmp_path: Path) -> None:
    for name, size in {
        "small/a/b.py": 1_000_000,
        "large.so": 3_000_000,
        "pip/p.py": 5,
        "pip-24.dist-info/R": 5,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    assert list(installed_sizes(tmp_path).items()) == [("large.so", 3.0), ("small", 1.0)]
