"""Annotation of data that is in memory, or in a pipeline of Ray Data: the same kind of data with one more column."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice, tee
from typing import Any, TypedDict, Unpack

from onoma.decoding.overlap import Overlap
from onoma.errors import OnomaError
from onoma.labels.parsing import Labels, Threshold, parse_labels
from onoma.processors import usable_cores
from onoma.scale.columns import entity_type
from onoma.scale.manifest import Settings
from onoma.scale.options import check_device, check_workers
from onoma.scale.plan import GROUP_ROWS, GroupCounter
from onoma.scale.rows import missing_column, text_size
from onoma.scale.service import THREAD_VARIABLES
from onoma.scale.worker import annotate_texts, open_model
from onoma.scale.writers import as_values
from onoma.systems.base import Backend

Found = list[dict[str, Any]] | None
"""Entities of a row as plain values; None if it has no text, or one that cannot be annotated."""

logger = logging.getLogger("onoma")


ACCEPTED = (
    "a Ray Dataset, a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a pandas or polars DataFrame, "
    "or an iterable of texts or mappings"
)

_CHECKED_ROWS = 100  # mappings of which one must have a text


class AnnotateOptions(TypedDict, total=False):
    """Options of `annotate` that `onoma.load` and `Extractor.extract` have, too."""

    model: str | os.PathLike[str] | None
    threshold: Threshold | None
    overlap: Overlap
    several_labels: bool
    batch_size: int
    backend: Backend
    device: str | None
    style: str | None


def annotate(
    dataset: Any,
    labels: Labels,
    *,
    text_column: str = "text",
    entities_column: str = "entities",
    workers: int | None = None,
    gpus_per_worker: float = 0.0,
    **options: Unpack[AnnotateOptions],
) -> Any:
    """The same data with a column of entities.

    Args:
        dataset: a Ray Dataset, a pyarrow Table or RecordBatch, a polars or pandas DataFrame; or an iterable of texts or
            of mappings with a text, which is read only as far as its results are. Of a pyarrow Dataset or
            RecordBatchReader, the result is a RecordBatchReader that is read in the same way.
        labels: as in `Extractor.extract`.
        workers: threads, or actors of Ray; by default one per core.
        gpus_per_worker: of each actor of Ray.
        options: as in `onoma.load` and `Extractor.extract`.

    Rows without a text have no entities but null, as have those that cannot be annotated; the log says why.

    >>> annotate([{"id": 7, "text": "Ann is in Rome."}], ["city"])  # doctest: +SKIP
    """
    unknown = sorted(options.keys() - AnnotateOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(AnnotateOptions.__annotations__)
        raise OnomaError(f"there is no option {unknown[0]!r}. Fix: choose from {known}")
    check_workers(workers, gpus_per_worker)
    settings = Settings(parse_labels(labels), text_column=text_column, entities_column=entities_column, **options)
    check_device(settings, gpus_per_worker)
    match type(dataset).__module__.partition(".")[0], type(dataset).__name__:
        case "ray", "Dataset" | "MaterializedDataset":
            return _annotate_ray(dataset, settings, workers, gpus_per_worker)
        case "pyarrow", "Table" | "RecordBatch":
            return _annotate_arrow(dataset, settings, _Annotator(settings, workers))
        case "pyarrow", "RecordBatchReader":
            return _annotate_batches(dataset, settings, workers)
        case "pyarrow", _ if hasattr(dataset, "scanner"):
            return _annotate_batches(dataset.scanner().to_reader(), settings, workers)
        case "pandas", "DataFrame":
            return _annotate_pandas(dataset, settings, workers)
        case "polars", "DataFrame":
            return _annotate_polars(dataset, settings, workers)
        case "polars", "LazyFrame":
            raise OnomaError("a polars DataFrame is needed, got LazyFrame. Fix: call collect() first")
        case (("ray" | "pyarrow" | "pandas" | "polars"), kind):
            fix = "make a table with a column of texts, or give the texts as a list"
            raise OnomaError(f"data must be {ACCEPTED}, got {kind}. Fix: {fix}")
    if isinstance(dataset, (str, bytes, Mapping)) or not isinstance(dataset, Iterable):
        fix = "give a list of texts, such as [text]"
        raise OnomaError(f"data must be {ACCEPTED}, got {type(dataset).__name__}. Fix: {fix}")
    return _annotate_rows(dataset, settings, _Annotator(settings, workers))


class _Annotator:
    """A model on one thread per group of texts; equal groups give equal results, however many threads there are."""

    def __init__(self, settings: Settings, workers: int | None) -> None:
        self.settings, self.workers = settings, workers or usable_cores()
        self.extractor = open_model(settings)

    def annotate(self, texts: Iterable[object]) -> Iterator[Found]:
        """The entities of each text, in order; only some groups are read ahead."""
        running: deque[Future[list[Found]]] = deque()
        with ThreadPoolExecutor(self.workers) as pool:
            for group in _groups(texts):
                running.append(pool.submit(self._annotate_group, group))
                if len(running) > self.workers:
                    yield from running.popleft().result()
            while running:
                yield from running.popleft().result()

    def _annotate_group(self, group: Sequence[object]) -> list[Found]:
        texts = [text for text in group if isinstance(text, str)]
        results = iter(annotate_texts(self.extractor, texts, self.settings))
        found: list[Found] = []
        for text in group:
            result = next(results) if isinstance(text, str) else None
            if isinstance(result, str):
                logger.warning("a text could not be annotated: %s", result)
            found.append(None if result is None or isinstance(result, str) else as_values(result))
        return found


def _groups(texts: Iterable[object]) -> Iterator[list[object]]:
    group, counter = list[object](), GroupCounter()
    for text in texts:
        group.append(text)
        if counter.is_complete_with(text_size(text)):
            yield group
            group = []
    if group:
        yield group


def _column(table: Any, names: Sequence[str], settings: Settings) -> Any:
    """The column of texts, if there is one and entities can be added."""
    if len(set(names)) < len(names):
        raise OnomaError("two columns of the table have the same name. Fix: rename one of them")
    if settings.entities_column in names:
        fix = "give another entities_column"
        raise OnomaError(f"there is a column {settings.entities_column!r} already. Fix: {fix}")
    if settings.text_column not in names:
        raise missing_column("the table", settings.text_column, list(map(str, names)), "text_column")
    return table[settings.text_column]


def _annotate_arrow(table: Any, settings: Settings, annotator: _Annotator) -> Any:
    import pyarrow as pa

    texts = _column(table, table.column_names, settings).to_pylist()
    found = pa.array(list(annotator.annotate(texts)), entity_type())
    return table.append_column(settings.entities_column, found)


def _annotate_batches(reader: Any, settings: Settings, workers: int | None) -> Any:
    """The record batches of a reader with entities, as a reader that is as lazy."""
    import pyarrow as pa

    _column(dict.fromkeys(reader.schema.names), reader.schema.names, settings)
    ours, again = tee(reader)
    texts = (text for batch in again for text in batch.column(settings.text_column).to_pylist())
    found = _Annotator(settings, workers).annotate(texts)
    field = pa.field(settings.entities_column, entity_type())
    schema = reader.schema.append(field)
    batches = (
        pa.record_batch([*batch.columns, pa.array(list(islice(found, len(batch))), field.type)], schema=schema)
        for batch in ours
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _annotate_pandas(table: Any, settings: Settings, workers: int | None) -> Any:
    texts = _column(table, list(table.columns), settings)
    return table.assign(**{settings.entities_column: list(_Annotator(settings, workers).annotate(texts))})


def _annotate_polars(table: Any, settings: Settings, workers: int | None) -> Any:
    import polars as pl

    texts = _column(table, table.columns, settings)
    integer, text, number = pl.Int64, pl.String, pl.Float64
    kind = pl.Struct({"start": integer, "end": integer, "text": text, "label": text, "score": number})
    found = list(_Annotator(settings, workers).annotate(texts))
    return table.with_columns(pl.Series(settings.entities_column, found, dtype=pl.List(kind)))


def _annotate_rows(rows: Iterable[Any], settings: Settings, annotator: _Annotator) -> Iterator[dict[str, Any]]:
    ours, again = tee(_checked(rows, settings))
    found = annotator.annotate(_text(row, settings) for row in again)
    for row, entities in zip(ours, found, strict=True):
        values = dict(row) if isinstance(row, Mapping) else {settings.text_column: row}
        yield values | {settings.entities_column: entities}


def _checked(rows: Iterable[Any], settings: Settings) -> Iterator[Any]:
    """The same rows, unless none of the first ones has a text: then its name is a mistake."""
    following = iter(rows)
    first = list(islice(following, _CHECKED_ROWS))
    if first and all(isinstance(row, Mapping) and settings.text_column not in row for row in first):
        names = dict.fromkeys(str(name) for row in first for name in row)
        raise missing_column("the data", settings.text_column, list(names), "text_column")
    return chain(first, following)


def _text(row: object, settings: Settings) -> object:
    if not isinstance(row, Mapping):
        return row
    if settings.entities_column in row:
        raise OnomaError(f"a row has {settings.entities_column!r} already. Fix: give another entities_column")
    return row.get(settings.text_column)


def _annotate_ray(dataset: Any, settings: Settings, workers: int | None, gpus_per_worker: float) -> Any:
    import ray

    from onoma.scale.ray_data import actor_arguments

    arguments = actor_arguments(ray, workers, gpus_per_worker)
    return dataset.map_batches(
        _TableActor,
        batch_size=GROUP_ROWS,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=arguments.workers),
        fn_constructor_args=(settings.to_dict(),),
        **arguments.resources,
    )


class _TableActor:
    """Annotates tables in an actor of Ray Data."""

    def __init__(self, settings: dict[str, Any]) -> None:
        os.environ.update(THREAD_VARIABLES)
        self.settings = Settings.from_dict(settings)
        self.annotator = _Annotator(self.settings, workers=1)

    def __call__(self, table: Any) -> Any:
        return _annotate_arrow(table, self.settings, self.annotator)
