"""Polars: entities of a column of texts, as rows or as columns of a DataFrame."""

from __future__ import annotations

from typing import Unpack

from onoma.errors import OnomaError
from onoma.extractor import Options
from onoma.integrations.columns import check_columns, entity_rows, find_entities, mention_columns
from onoma.integrations.models import Model
from onoma.labels.parsing import Labels, parse_labels

try:
    import polars as pl
except ModuleNotFoundError as error:
    raise OnomaError('this module needs Polars. Fix: pip install "onoma[polars]"') from error


def extract_entities(
    data: pl.DataFrame | pl.Series,
    labels: Labels,
    *,
    text: str = "text",
    model: Model = None,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """One row per entity: row (the number of the text, from 0), start, end, text, label and score.

    Args:
        data: a frame with a column of texts, or a series of texts. Null values have no entities.
        labels: as for `Extractor.extract`.
        text: the column of texts.
        model: a loaded model, a folder, a hub name, or None for the embedded model.
        options: threshold, overlap, several_labels and batch_size, as for `Extractor.extract`.

    >>> extract_entities(pl.Series(["Tom flew to Paris."]), ["city"]).drop("score").rows()
    [(0, 12, 17, 'Paris', 'city')]
    """
    series = _texts(data, text)
    places, columns = entity_rows(find_entities(series, labels, model, **options))
    schema = {
        "row": pl.get_index_type(),  # as in with_row_index, to join with it
        "start": pl.Int64,
        "end": pl.Int64,
        "text": pl.String,
        "label": pl.String,
        "score": pl.Float64,
    }
    return pl.DataFrame({"row": places, **columns}, schema=schema)


def add_entities(
    data: pl.DataFrame,
    labels: Labels,
    *,
    text: str = "text",
    prefix: str = "",
    model: Model = None,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """The frame with one more column per label, which has lists of mentions.

    >>> add_entities(pl.DataFrame({"text": ["Tom flew to Paris."]}), ["person", "city"]).drop("text").rows()
    [(['Paris'], ['Tom'])]
    """
    types = parse_labels(labels)
    series = _texts(data, text)
    check_columns(data.columns, text, (prefix + one.name for one in types))
    columns = mention_columns(find_entities(series, types, model, **options), types)
    return data.with_columns(
        pl.Series(prefix + label, rows, dtype=pl.List(pl.String)) for label, rows in columns.items()
    )


def _texts(data: pl.DataFrame | pl.Series, text: str) -> pl.Series:
    if isinstance(data, pl.Series):
        return data
    if not isinstance(data, pl.DataFrame):
        fix = "call collect() first" if isinstance(data, pl.LazyFrame) else "convert it"
        raise OnomaError(f"data must be a Polars DataFrame or Series, got {type(data).__name__}. Fix: {fix}")
    check_columns(data.columns, text)
    return data[text]
