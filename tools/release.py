"""Build the wheel and the source archive, and check what a user would get: `make dist`.

    python tools/release.py [--output dist] [--python python3.12 ...]

The tree must be clean and the version must have a dated heading in CHANGELOG.md. Both archives must hold exactly the
tracked files. Then the wheel is installed into a fresh environment of each Python, without extras, and tried there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/onoma/"
MAX_INSTALLED_MB = 320
"""The package with the embedded model and all dependencies, without pip."""
TEXT = "Maria Silva flew from Lisbon to Oslo. 张伟在北京大学工作。"
MENTIONS = ("Maria Silva", "Lisbon", "Oslo", "张伟", "北京大学")
EXTRAS = {
    "train": ["train", "--start", "embedded", "--data", "examples/stories.jsonl"],
    "serve": ["serve"],
    "parquet": ["extract", TEXT, "--labels", "city", "--output", "found.parquet"],
    "spacy": ["convert", "examples/stories.jsonl", "stories.spacy"],
    "report": ["report", "embedded", "examples/stories.jsonl", "--output", "report.html"],
    "ray": ["corpus", "examples/prizes.txt", "annotated", "--labels", "city", "--engine", "ray"],
}
"""Commands that need an extra, and must name it where it is not installed."""


class ReleaseError(Exception):
    """What has to be changed before a release."""


def changelog_date(changelog: str, version: str) -> str:
    """The date of a version in the changelog."""
    found = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE)
    if found is None:
        raise ReleaseError(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'")
    return found[1]


def check_files(archive: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise an error that names files which an archive lacks or should not hold."""
    found, wanted = set(found), set(wanted)
    problems = [f"lacks {name}" for name in sorted(wanted - found)]
    problems += [f"should not hold {name}" for name in sorted(found - wanted)]
    if problems:
        raise ReleaseError(f"{archive}: {'; '.join(problems[:10])}" + "; ..." * (len(problems) > 10))


def check_wheel(wheel: Path, tracked: Iterable[str]) -> None:
    """A wheel holds the package and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not re.match(r"onoma-[^/]+\.dist-info/", name)]
    check_files(wheel.name, names, [name.removeprefix("src/") for name in tracked if name.startswith(PACKAGE)])


def check_sdist(sdist: Path, tracked: Iterable[str]) -> None:
    """A source archive holds all tracked files, and its metadata."""
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive.getmembers() if not member.isdir()]
    check_files(sdist.name, names, [*tracked, "PKG-INFO"])


def installed_sizes(site_packages: Path) -> dict[str, float]:
    """Megabytes (10⁶ bytes) of everything in site-packages but pip, the largest first."""
    sizes = {
        entry.name: sum(file.stat().st_size for file in [entry, *entry.rglob("*")] if file.is_file()) / 1e6
        for entry in site_packages.iterdir()
        if not entry.name.startswith("pip")
    }
    return dict(sorted(sizes.items(), key=lambda one: -one[1]))


def run(*command: str | Path, folder: Path = ROOT, status: int = 0) -> str:
    """What a command prints; an error if it does not exit with `status`."""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode != status:
        message = f"`{' '.join(map(str, command))}` exits with {done.returncode} instead of {status}"
        raise ReleaseError(f"{message}:\n{(done.stdout + done.stderr).strip()[-3000:]}")
    return done.stdout + done.stderr


def build(output: Path) -> tuple[Path, Path]:
    """The wheel, built from the source archive, and the source archive itself."""
    run(sys.executable, "-m", "build", "--outdir", output)
    (wheel,), (sdist,) = output.glob("*.whl"), output.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def try_wheel(wheel: Path, python: str, version: str, folder: Path) -> str:
    """Install the wheel into a fresh environment and use it; returns one line about it."""
    run(python, "-m", "venv", folder)
    own = folder / "bin"
    run(own / "python", "-m", "pip", "install", "--quiet", wheel)
    (site_packages,) = (folder / "lib").glob("python*/site-packages")
    sizes = installed_sizes(site_packages)
    largest = ", ".join(f"{name} {size:.0f}" for name, size in list(sizes.items())[:4])
    if "torch" in sizes or sum(sizes.values()) > MAX_INSTALLED_MB:
        raise ReleaseError(f"{sum(sizes.values()):.0f} MB installed, at most {MAX_INSTALLED_MB} wanted: {largest}")
    if version not in run(own / "onoma", "--version", folder=folder):
        raise ReleaseError(f"`onoma --version` does not print {version}")
    found = run(own / "onoma", "extract", TEXT, "--labels", "person, city, university", folder=folder)
    missing = [mention for mention in MENTIONS if mention not in found]
    if missing:
        raise ReleaseError(f"`onoma extract` does not find {', '.join(missing)}:\n{found}")
    for extra, command in EXTRAS.items():
        words = [str(ROOT / word) if word.startswith("examples/") else word for word in command]
        if f"onoma[{extra}]" not in run(own / "onoma", *words, folder=folder, status=2):
            raise ReleaseError(f"`onoma {command[0]}` does not name the extra {extra}")
    number = run(own / "python", "--version").strip()
    return f"{number}: installed {sum(sizes.values()):.0f} MB (largest: {largest}), extracts, names missing extras"


def release(output: Path, pythons: Sequence[str]) -> None:
    """Build and check a release."""
    if run("git", "status", "--porcelain"):
        raise ReleaseError("there are changes that are not committed, or files that git does not know")
    tracked = run("git", "ls-files").splitlines()
    (version,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    date = changelog_date((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    print(f"onoma {version}, {date}")
    if output.exists() and any(output.iterdir()):
        raise ReleaseError(f"{output} is not empty: remove what was built before")
    wheel, sdist = build(output)
    check_sdist(sdist, tracked)
    check_wheel(wheel, tracked)
    for archive in (wheel, sdist):
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, only tracked files, passes twine")
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            print(try_wheel(wheel, python, version, Path(folder) / "venv"), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the wheel and the source archive, and check both.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder of both archives (default: dist)")
    parser.add_argument("--python", action="append", help="interpreter to install the wheel with; may be repeated")
    arguments = parser.parse_args()
    try:
        release(arguments.output.resolve(), arguments.python or [sys.executable])
    except ReleaseError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
