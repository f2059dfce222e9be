"""The manifest of a run: all that its result depends on, and the plan of its shards.

It is written once, when a run starts in a new folder. A later run continues there if it would give the same result.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from onoma import __version__
from onoma.decoding.overlap import Overlap
from onoma.entities import EntityType
from onoma.errors import DataError, OnomaError
from onoma.extractor import Extractor, load
from onoma.labels.parsing import Threshold
from onoma.models.folder import CARD_FILE
from onoma.scale.columns import read_schema
from onoma.scale.plan import Shard
from onoma.scale.rows import RowReader, open_rows
from onoma.scale.storage import OutputFolder
from onoma.systems.base import Backend

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "_manifest.json"
FORMAT = 2
OutputFormat = Literal["jsonl", "jsonl.gz", "parquet"]

_LIBRARIES = ("numpy", "onnxruntime", "tokenizers", "torch", "transformers")
"""Libraries whose versions may change scores."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All options that the result depends on."""

    types: tuple[EntityType, ...]
    threshold: Threshold | None = None
    overlap: Overlap = "flat"
    several_labels: bool = False
    batch_size: int = 64
    model: str | os.PathLike[str] | None = None
    backend: Backend = "auto"
    device: str | None = None
    style: str | None = None
    text_column: str = "text"
    entities_column: str = "entities"
    output_format: OutputFormat = "jsonl"

    def load(self) -> Extractor:
        """The model, on one thread: several processes share the cores."""
        return load(self.model, self.backend, self.device, threads=1, style=self.style)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = asdict(self)
        values["types"] = [{**asdict(one), "examples": list(one.examples)} for one in self.types]
        values["model"] = None if self.model is None else os.fspath(self.model)
        values["threshold"] = dict(self.threshold) if isinstance(self.threshold, Mapping) else self.threshold
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        """The settings that `to_dict` gave."""
        return cls(**(values | {"types": tuple(EntityType(**one) for one in values["types"])}))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the input."""

    name: str
    bytes: int
    format: str
    version: str = ""  # see `InputFile`
    separator: str | None = None  # of CSV, if it is not the usual one
    rows: int = 0
    columns: tuple[str, ...] = ()  # of CSV

    def open(self, text_column: str) -> RowReader:
        """A reader of its rows."""
        return open_rows(self.name, self.format, text_column, self.columns, self.separator)

    def differences(self, other: SourceFile) -> list[str]:
        """What is different in another file of the same name."""
        names = {"bytes": "its size", "version": "its content or time", "format": "--from", "separator": "--separator"}
        return [words for name, words in names.items() if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is written to the file."""

    settings: Settings
    files: tuple[SourceFile, ...]
    model_digest: str
    versions: dict[str, str]
    rows_per_shard: int | None
    thresholds: dict[str, dict[str, float]]  # of each type, for each model in the folder
    shards: tuple[Shard, ...] = ()
    schema: pa.Schema | None = None  # of the input, for output in Parquet

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(shard.rows for shard in self.shards)

    def shard_name(self, number: int) -> str:
        """The file of a shard; names sort in the order of the input."""
        width = max(5, len(str(len(self.shards) - 1)))
        return f"part-{number:0{width}}.{self.settings.output_format}"

    def write(self, folder: OutputFolder) -> None:
        """Write the file."""
        values = {
            "format": FORMAT,
            "settings": self.settings.to_dict(),
            "model_digest": self.model_digest,
            "versions": self.versions,
            "rows_per_shard": self.rows_per_shard,
            "thresholds": self.thresholds,
            "files": [asdict(file) for file in self.files],
            "schema": None if self.schema is None else base64.b64encode(self.schema.serialize()).decode("ascii"),
            "shards": self.shards,
        }
        with folder.write(MANIFEST) as file:
            file.write((json.dumps(values, ensure_ascii=False) + "\n").encode())

    @classmethod
    def read(cls, folder: OutputFolder) -> Manifest:
        """Read the file of a folder."""
        path = f"{folder.name}/{MANIFEST}"
        try:
            values = json.loads(folder.read(MANIFEST))
            if values["format"] != FORMAT:
                fix = "finish the run with the version that started it, or use a new folder"
                raise DataError(f"the manifest has format {values['format']!r}, not {FORMAT}", path=path, fix=fix)
            return cls(
                settings=Settings.from_dict(values["settings"]),
                files=tuple(SourceFile(**(one | {"columns": tuple(one["columns"])})) for one in values["files"]),
                model_digest=values["model_digest"],
                versions=values["versions"],
                rows_per_shard=values["rows_per_shard"],
                thresholds=values["thresholds"],
                shards=tuple(Shard(*one) for one in values["shards"]),
                schema=read_schema(values["schema"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, OnomaError):
                raise
            raise DataError(f"the manifest is damaged ({error})", path=path, fix="use a new folder") from None

    def require_same(self, other: Manifest, folder: OutputFolder) -> None:
        """Raise an error if another run, which was not planned yet, would not give the same result."""
        ours, theirs = self._comparable(), other._comparable()
        if other.rows_per_shard is None:
            theirs["rows_per_shard"] = ours["rows_per_shard"]
        different = [
            f"{name} was {_short(ours.get(name))} and is {_short(theirs.get(name))}"
            for name in ours | theirs
            if ours.get(name) != theirs.get(name)
        ]
        if different:
            fix = "use the same settings to continue this run, or give a new folder"
            message = f"this folder holds a run with other settings ({'; '.join(different)})"
            raise DataError(message, path=folder.name, fix=fix)
        changes = self._changed_files(other)
        if changes:
            shown = "; ".join(changes[:3]) + ("; ..." if len(changes) > 3 else "")
            fix = "give a new folder, or restore the input of this run"
            raise DataError(
                f"the input files are not those of the run in this folder ({shown})", path=folder.name, fix=fix
            )

    def _changed_files(self, other: Manifest) -> list[str]:
        """What is different in the files of another run: nothing may be, not even their order."""
        ours, theirs = ({file.name: file for file in one.files} for one in (self, other))
        changes = [f"{name} is missing" for name in ours.keys() - theirs.keys()]
        changes += [f"{name} is new" for name in theirs.keys() - ours.keys()]
        for name in ours.keys() & theirs.keys():
            if different := ours[name].differences(theirs[name]):
                changes.append(f"{name} has changed: {', '.join(different)}")
        if not changes and list(ours) != list(theirs):
            changes.append("they have another order")
        return sorted(changes)

    def _comparable(self) -> dict[str, Any]:
        settings = self.settings.to_dict()
        del settings["model"]  # its digest says more
        versions = {f"version of {name}": number for name, number in self.versions.items()}
        return {**settings, "model": self.model_digest, **versions, "rows_per_shard": self.rows_per_shard}

    def planned(
        self, rows: Sequence[int], columns: Sequence[Sequence[str]], shards: Sequence[Shard], schema: pa.Schema | None
    ) -> Manifest:
        """The same with a plan: rows and columns of each file, the shards, and for Parquet the schema."""
        files = [
            replace(file, rows=count, columns=tuple(names) if file.format in ("csv", "tsv") else ())
            for file, count, names in zip(self.files, rows, columns, strict=True)
        ]
        return replace(self, files=tuple(files), shards=tuple(shards), schema=schema)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."


def current_versions() -> dict[str, str]:
    """The versions of everything that scores may depend on."""
    found = {"onoma": __version__, "python": ".".join(platform.python_version_tuple()[:2])}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def effective_thresholds(extractor: Extractor, settings: Settings) -> dict[str, dict[str, float]]:
    """The threshold of each type, for each model in the folder by its relative path."""
    reader = extractor.prepare(settings.types, threshold=settings.threshold)
    thresholds = {}
    for number, model in enumerate(reader.models):
        question = reader.question(number)
        values = (round(float(one), 6) for one in question.thresholds)
        name = os.path.relpath(model.folder.path, extractor.folder)
        thresholds[name] = dict(zip(question.labels, values, strict=True))
    return thresholds


def digest_model(folder: Path) -> str:
    """Identifies all files of a model folder that its results depend on."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.is_file() and path.name != CARD_FILE and not any(part.startswith(".") for part in inner.parts):
            with path.open("rb") as file:
                digest.update(inner.as_posix().encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]
