"""pandas: entities of a column of texts, as rows or as columns of a DataFrame."""

from __future__ import annotations

from typing import Unpack

from onoma.errors import OnomaError
from onoma.extractor import Options
from onoma.integrations.columns import check_columns, entity_rows, find_entities, mention_columns
from onoma.integrations.models import Model
from onoma.labels.parsing import Labels, parse_labels

try:
    import pandas as pd
except ModuleNotFoundError as error:
    raise OnomaError('this module needs pandas. Fix: pip install "onoma[pandas]"') from error


def extract_entities(
    data: pd.DataFrame | pd.Series,
    labels: Labels,
    *,
    text: str = "text",
    model: Model = None,
    **options: Unpack[Options],
) -> pd.DataFrame:
    """One row per entity, with start, end, text, label and score; the index is that of the text.

    Args:
        data: a frame with a column of texts, or a series of texts. Missing values have no entities.
        labels: as for `Extractor.extract`.
        text: the column of texts.
        model: a loaded model, a folder, a hub name, or None for the embedded model.
        options: threshold, overlap, several_labels and batch_size, as for `Extractor.extract`.

    >>> extract_entities(pd.Series(["Tom flew to Paris."], ["a"]), ["city"])[["start", "end", "text", "label"]]
       start  end   text label
    a     12   17  Paris  city
    """
    series = _texts(data, text)
    places, columns = entity_rows(find_entities(_values(series), labels, model, **options))
    strings = pd.Series([""]).dtype  # object or str, as pandas is set
    kinds = {"start": "int64", "end": "int64", "text": strings, "label": strings, "score": "float64"}
    return pd.DataFrame(columns, index=series.index.take(places)).astype(kinds)  # the same without rows


def add_entities(
    data: pd.DataFrame,
    labels: Labels,
    *,
    text: str = "text",
    prefix: str = "",
    model: Model = None,
    **options: Unpack[Options],
) -> pd.DataFrame:
    """The frame with one more column per label, which has lists of mentions.

    >>> add_entities(pd.DataFrame({"text": ["Tom flew to Paris."]}), ["person", "city"])
                     text     city person
    0  Tom flew to Paris.  [Paris]  [Tom]
    """
    types = parse_labels(labels)
    series = _texts(data, text)
    check_columns(list(data.columns), text, (prefix + one.name for one in types))
    columns = mention_columns(find_entities(_values(series), types, model, **options), types)
    added = {prefix + label: pd.Series(rows, index=data.index, dtype=object) for label, rows in columns.items()}
    return pd.concat([data, pd.DataFrame(added, index=data.index)], axis=1)


def _texts(data: pd.DataFrame | pd.Series, text: str) -> pd.Series:
    if isinstance(data, pd.Series):
        return data
    if not isinstance(data, pd.DataFrame):
        raise OnomaError(f"data must be a pandas DataFrame or Series, got {type(data).__name__}")
    check_columns(list(data.columns), text)
    return data[text]


def _values(series: pd.Series) -> list[object]:
    """The values, with None for whatever pandas takes for a missing value."""
    return [None if missing else value for value, missing in zip(series, series.isna(), strict=True)]
