"""Annotation of corpora of any size into a folder of shards, which can be interrupted and continued at any time."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Literal, Protocol, get_args

from onoma.decoding.overlap import Overlap
from onoma.errors import DataError, OnomaError
from onoma.labels.parsing import Labels, Threshold, parse_labels
from onoma.models.hub import is_embedded_name
from onoma.scale.attempts import ATTEMPTS
from onoma.scale.local import LocalEngine
from onoma.scale.manifest import (
    MANIFEST,
    Manifest,
    OutputFormat,
    Settings,
    SourceFile,
    current_versions,
    digest_model,
    effective_thresholds,
)
from onoma.scale.options import check_choice, check_device, check_separator, check_workers
from onoma.scale.rows import FORMATS, SEPARATORS, TEXT, detect_format, is_known
from onoma.scale.scan import OnPlan, check_table, plan_run
from onoma.scale.service import Answer
from onoma.scale.storage import (
    InputFile,
    OutputFolder,
    file_key,
    find_files,
    is_inside,
    is_unfinished,
    is_url,
    open_output,
    output_errors,
)
from onoma.scale.worker import RECEIPTS, open_model, read_receipt
from onoma.systems.base import Backend

ERRORS = "_errors.jsonl"
SUMMARY = "_summary.json"
LOCK = "_lock"
EngineName = Literal["local", "ray"]
Source = str | os.PathLike[str]
OnProgress = Callable[[int, int], None]

_CHECKED_FILES = 20  # that are tried before anything is written
_CHECKED_ROWS = 100  # rows of a file in which the column of texts must be found

logger = logging.getLogger("onoma")


class Engine(Protocol):
    """What reads files and annotates shards; a context manager."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *error: object) -> None: ...

    def scan(self, requests: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Answer]]:
        """The plans of files, each with the number of its request, as they come."""

    def annotate(self, output: str, shards: Sequence[int], list_done: Callable[[], set[int]]) -> Iterator[int]:
        """Annotate shards; the number of each one that is done."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run found."""

    documents: int
    entities: int
    labels: dict[str, int]
    errors: int  # rows that could not be annotated
    shards: int
    output: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def annotate_corpus(
    sources: Source | Iterable[Source],
    output: str | os.PathLike[str],
    labels: Labels,
    *,
    model: str | os.PathLike[str] | None = None,
    threshold: Threshold | None = None,
    overlap: Overlap = "flat",
    several_labels: bool = False,
    batch_size: int = 64,
    backend: Backend = "auto",
    device: str | None = None,
    style: str | None = None,
    text_column: str = "text",
    entities_column: str = "entities",
    input_format: str | None = None,
    separator: str | None = None,
    output_format: OutputFormat | None = None,
    rows_per_shard: int | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
    gpus_per_worker: float = 0.0,
    on_progress: OnProgress | None = None,
    on_plan: OnPlan | None = None,
) -> Summary:
    """Annotate files into a folder; a run that was interrupted there is continued.

    Args:
        sources: a path, folder, pattern with wildcards or URL, or several of them.
        output: a new folder, or one in which the same run was started.
        labels, threshold, overlap, several_labels, batch_size: as in `Extractor.extract`.
        model, backend, device, style: as in `onoma.load`.
        input_format: jsonl, csv, tsv, text or parquet; by default as the names of the files say.
        separator: of the columns of CSV files, such as ";".
        output_format: jsonl, jsonl.gz or parquet; by default parquet if all files are.
        rows_per_shard: about how many rows a file of the output has, at least 256; by default 4,096 or more.
        engine: "local" for processes on this machine, "ray" for Ray Data.
        workers: processes or actors; by default one per core.
        address: of a Ray cluster; by default one is started on this machine.
        gpus_per_worker: GPUs that Ray reserves for each actor; a fraction if several share one.
        on_progress: called with the rows that are done and their total.
        on_plan: called with the rows that were read so far while the run is planned, before any row is annotated.

    >>> annotate_corpus("news/*.jsonl.gz", "annotated", ["person", "city"])  # doctest: +SKIP
    """
    check_choice("engine", engine, get_args(EngineName))
    check_choice("input_format", input_format, FORMATS.values())
    check_choice("output_format", output_format, get_args(OutputFormat))
    check_workers(workers, gpus_per_worker)
    if rows_per_shard is not None and (not isinstance(rows_per_shard, int) or rows_per_shard < 1):
        raise OnomaError(f"rows_per_shard must be an integer of at least 1, got {rows_per_shard!r}")
    if engine == "local" and (address or gpus_per_worker):
        raise OnomaError(
            "an address and GPUs per worker need the engine ray. Fix: choose that engine, or leave them out"
        )
    folder = open_output(os.fspath(output))
    files = _list_files(sources, folder.name, input_format, check_separator(separator))
    if text_column != TEXT and all(file.format == "text" for file in files):
        fix = "leave out --text-column, or name the format with --from"
        raise OnomaError(f"plain text has no column {text_column!r}: each line is a text. Fix: {fix}")
    settings = Settings(
        types=parse_labels(labels),
        threshold=threshold,
        overlap=overlap,
        several_labels=several_labels,
        batch_size=batch_size,
        model=None if model is None else _absolute_model(os.fspath(model)),
        backend=backend,
        device=device,
        style=style,
        text_column=text_column,
        entities_column=entities_column,
        output_format=output_format or ("parquet" if all(one.format == "parquet" for one in files) else "jsonl"),
    )
    for file in files[:_CHECKED_FILES]:
        _check_columns(file, settings)
    check_device(settings, gpus_per_worker)
    extractor = open_model(replace(settings, device="cpu") if gpus_per_worker else settings)  # GPUs may be elsewhere
    digest, thresholds = digest_model(extractor.folder), effective_thresholds(extractor, settings)
    asked = Manifest(settings, files, digest, current_versions(), rows_per_shard, thresholds)
    with _locked(folder):
        manifest = _read_manifest(folder, asked)
        if SUMMARY not in folder.names():
            with _open_engine(engine, workers, address, gpus_per_worker) as opened:
                if manifest is None:
                    manifest = plan_run(asked, opened.scan, on_plan or (lambda rows: None))
                    manifest.write(folder)
                _annotate(folder, manifest, opened, on_progress or (lambda done, total: None))
            _finish(folder, manifest)
        _clean(folder)
        folder.remove(RECEIPTS)
    return Summary(**json.loads(folder.read(SUMMARY)), output=os.fspath(output))


def _open_engine(name: EngineName, workers: int | None, address: str | None, gpus_per_worker: float) -> Engine:
    if name == "local":
        return LocalEngine(workers)
    from onoma.scale.ray_data import RayEngine

    return RayEngine(workers, address, gpus_per_worker)


def _absolute_model(name: str) -> str:
    """The path of a folder from anywhere; other names stay as they are."""
    return os.path.abspath(name) if os.path.isdir(name) and not is_embedded_name(name) else name


def _list_files(
    sources: Source | Iterable[Source], output: str, input_format: str | None, separator: str | None
) -> tuple[SourceFile, ...]:
    """The files of the input, each once and none of the output."""
    found: dict[str, InputFile] = {}
    for source in _parse_sources(sources):
        for file in _with_known_format(find_files(source), source) if input_format is None else find_files(source):
            found.setdefault(file_key(file.name), file)
    own = file_key(output)
    read = [file for key, file in found.items() if not is_inside(key, own)]
    if not read:
        fix = "name the files to annotate, and a folder for the output"
        raise OnomaError(f"all files of the input are in the output folder {output}. Fix: {fix}")
    files = [
        SourceFile(name, size, input_format or detect_format(name), version)
        for name, size, version in (
            one._replace(name=one.name if is_url(one.name) else os.path.abspath(one.name)) for one in read
        )
    ]
    if separator is not None and not any(one.format in SEPARATORS for one in files):
        raise OnomaError("a separator is for CSV, but no file is CSV. Fix: leave out --separator, or choose --from csv")
    return tuple(replace(one, separator=separator) if one.format in SEPARATORS else one for one in files)


def _parse_sources(sources: Source | Iterable[Source]) -> list[str]:
    listed = (
        [sources] if isinstance(sources, (str, bytes, os.PathLike)) or not isinstance(sources, Iterable) else sources
    )
    parsed = []
    for source in listed:
        if not isinstance(source, (str, os.PathLike)) or isinstance(os.fspath(source), bytes):
            raise OnomaError(f"a source must be a path, a pattern or a URL, got {type(source).__name__}")
        parsed.append(os.fspath(source))
    if not parsed:
        raise OnomaError("no sources are given. Fix: name files, folders, patterns or URLs")
    return parsed


def _with_known_format(files: Sequence[InputFile], source: str) -> Sequence[InputFile]:
    """The files of a folder or pattern without those that cannot be rows, such as a README.md, if there are others."""
    known = [file for file in files if file.name == source or is_known(file.name)]
    if not known or len(known) == len(files):
        return files
    ignored = [os.path.basename(file.name) for file in files if file not in known]
    shown = ", ".join(ignored[:3]) + (", ..." if len(ignored) > 3 else "")
    logger.warning("files of unknown formats in %s are ignored: %s (--from names a format)", source, shown)
    return known


def _check_columns(file: SourceFile, settings: Settings) -> None:
    """Raise an error for a file whose first rows have no texts, or entities that would be overwritten."""
    reader = file.open(settings.text_column)
    rows = [reader.parse(row) for row in islice(reader.rows(), _CHECKED_ROWS)]
    check_table(file.name, reader.columns, reader.text_column, settings.entities_column)
    names = list(dict.fromkeys(name for row in rows for name in row.values()))
    check_table(file.name, names, next(iter(names), ""), settings.entities_column)
    reasons = [row.error for row in rows if row.error]
    if reasons and not any(row.text is not None or row.has_null(reader.text_column) for row in rows):
        fix = "check the format (--from) and the column of texts (--text-column)"
        raise DataError(f"none of the first {len(rows)} rows can be read ({reasons[0]})", path=file.name, fix=fix)


def _read_manifest(folder: OutputFolder, asked: Manifest) -> Manifest | None:
    """The manifest of the run that was started in a folder, which must be the same run; None for a new folder."""
    names = folder.names()
    if MANIFEST in names:
        known = Manifest.read(folder)
        known.require_same(asked, folder)
        if SUMMARY in names and len(_finished_shards(folder, known)) < len(known.shards):
            fix = "put them back, or use a new folder"
            raise DataError("this run was finished, but some of its parts are missing now", path=folder.name, fix=fix)
        _clean(folder)
        return known
    others = sorted(name for name in names if name != LOCK and not is_unfinished(name))
    if others:
        fix = "give a new folder, or one in which the same run was started"
        raise DataError(f"the folder holds other files ({', '.join(others[:3])})", path=folder.name, fix=fix)
    return None


def _clean(folder: OutputFolder) -> None:
    """Remove what processes left that were killed."""
    for name in (ATTEMPTS, *filter(is_unfinished, folder.names())):
        folder.remove(name)


def _annotate(folder: OutputFolder, manifest: Manifest, engine: Engine, on_progress: OnProgress) -> None:
    """Annotate the shards that are not there yet."""

    def list_done() -> set[int]:
        return _finished_shards(folder, manifest)

    left = sorted(set(range(len(manifest.shards))) - list_done())
    finished = manifest.rows - sum(manifest.shards[number].rows for number in left)
    on_progress(finished, manifest.rows)
    for number in engine.annotate(folder.name, left, list_done) if left else ():
        finished += manifest.shards[number].rows
        on_progress(finished, manifest.rows)


def _finished_shards(folder: OutputFolder, manifest: Manifest) -> set[int]:
    names = folder.names()
    return {number for number in range(len(manifest.shards)) if manifest.shard_name(number) in names}


def _finish(folder: OutputFolder, manifest: Manifest) -> None:
    """Write the side file with all errors and the summary; the receipts are not needed then."""
    labels: Counter[str] = Counter()
    documents = errors = 0
    with folder.write(ERRORS) as file:
        for number in range(len(manifest.shards)):
            receipt = read_receipt(folder, number)
            documents += receipt["documents"]
            labels.update(receipt["labels"])
            errors += len(receipt["errors"])
            for error in receipt["errors"]:
                file.write((json.dumps(error, ensure_ascii=False) + "\n").encode())
    summary = {
        "documents": documents,
        "entities": labels.total(),
        "labels": dict(sorted(labels.items())),
        "errors": errors,
        "shards": len(manifest.shards),
    }
    with folder.write(SUMMARY) as file:
        file.write((json.dumps(summary, ensure_ascii=False, indent=1) + "\n").encode())


@contextmanager
def _locked(folder: OutputFolder) -> Iterator[None]:
    """Keep a second run out of a folder on a disk. The lock ends with the process, even if that is killed."""
    if is_url(folder.name):
        yield
        return
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    path, is_new = os.path.join(folder.name, LOCK), not os.path.exists(folder.name)
    with output_errors(folder.name):
        os.makedirs(folder.name, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_current = os.path.samestat(os.stat(path), os.fstat(file))
        except OSError:
            is_current = False
        if not is_current:  # locked by another run, or removed by one that has just ended
            fix = "wait for it to end, or give another folder"
            raise DataError("another run is writing to this folder", path=folder.name, fix=fix) from None
        try:
            yield
        finally:
            os.unlink(path)
            if is_new:
                with suppress(OSError):  # something was written to it
                    os.rmdir(folder.name)
    finally:
        os.close(file)
