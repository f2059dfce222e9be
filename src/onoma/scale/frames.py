"""Annotation of data that is in memory, or in a pipeline of Ray Data: the same kind of data with one more column."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import tee
from typing import Any, TypedDict, Unpack

from onoma.decoding.overlap import Overlap
from onoma.errors import OnomaError
from onoma.labels.parsing import Labels, Threshold, parse_labels
from onoma.processors import usable_cores
from onoma.scale.columns import entity_type
from onoma.scale.manifest import Settings
from onoma.scale.plan import GROUP_ROWS, GroupCounter
from onoma.scale.rows import missing_column, text_size
from onoma.scale.service import THREAD_VARIABLES
from onoma.scale.worker import annotate_texts, open_model
from onoma.scale.writers import as_values
from onoma.systems.base import Backend

Found = list[dict[str, Any]] | None
"""Entities of a row as plain values; None if it has no text, or one that cannot be annotated."""

logger = logging.getLogger("onoma")


class AnnotateOptions(TypedDict, total=False):
    """Options of `annotate` that `onoma.load` and `Extractor.extract` have, too."""

    model: str | None
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
        dataset: a Ray Dataset, a pyarrow Table, a polars or pandas DataFrame; or an iterable of texts or of mappings
            with a text, which is read as far as its results are.
        labels: as in `Extractor.extract`.
        workers: threads, or actors of Ray; by default one per core.
        gpus_per_worker: of each actor of Ray.
        options: as in `onoma.load` and `Extractor.extract`.

    Rows without a text have no entities but null, as have those that cannot be annotated; the log says why.

    >>> annotate([{"id": 7, "text": "Ann is in Rome."}], ["city"])  # doctest: +SKIP
    """
    settings = Settings(parse_labels(labels), text_column=text_column, entities_column=entities_column, **options)
    match type(dataset).__module__.partition(".")[0]:
        case "ray":
            return _annotate_ray(dataset, settings, workers, gpus_per_worker)
        case "pyarrow":
            return _annotate_arrow(dataset, settings, _Annotator(settings, workers))
        case "pandas":
            texts = _column(dataset, list(dataset.columns), settings)
            return dataset.assign(**{entities_column: list(_Annotator(settings, workers).annotate(texts))})
        case "polars":
            return _annotate_polars(dataset, settings, workers)
    if isinstance(dataset, (str, bytes, Mapping)) or not isinstance(dataset, Iterable):
        raise OnomaError(f"data must be a dataset, a table or an iterable of rows, got {type(dataset).__name__}")
    return _annotate_rows(dataset, settings, workers)


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
    if settings.entities_column in names:
        fix = "give another entities_column"
        raise OnomaError(f"there is a column {settings.entities_column!r} already. Fix: {fix}")
    if settings.text_column not in names:
        raise missing_column("the table", settings.text_column, list(map(str, names)))
    return table[settings.text_column]


def _annotate_arrow(table: Any, settings: Settings, annotator: _Annotator) -> Any:
    import pyarrow as pa

    texts = _column(table, table.column_names, settings).to_pylist()
    found = pa.array(list(annotator.annotate(texts)), entity_type())
    return table.append_column(settings.entities_column, found)


def _annotate_polars(table: Any, settings: Settings, workers: int | None) -> Any:
    import polars as pl

    if not isinstance(table, pl.DataFrame):
        raise OnomaError(f"a polars DataFrame is needed, got {type(table).__name__}. Fix: call collect() first")
    texts = _column(table, table.columns, settings)
    integer, text, number = pl.Int64, pl.String, pl.Float64
    kind = pl.Struct({"start": integer, "end": integer, "text": text, "label": text, "score": number})
    found = list(_Annotator(settings, workers).annotate(texts))
    return table.with_columns(pl.Series(settings.entities_column, found, dtype=pl.List(kind)))


def _annotate_rows(rows: Iterable[Any], settings: Settings, workers: int | None) -> Iterator[dict[str, Any]]:
    ours, again = tee(rows)
    found = _Annotator(settings, workers).annotate(_text(row, settings) for row in again)
    for row, entities in zip(ours, found, strict=True):
        values = dict(row) if isinstance(row, Mapping) else {settings.text_column: row}
        yield values | {settings.entities_column: entities}


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
