"""Entities of columns of pandas and Polars."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pandas as pd
import polars as pl
import pytest

import onoma.integrations.pandas
import onoma.integrations.polars
from onoma import Extractor, OnomaError

TEXTS = ["Maria Silva flew to Paris .", None, "We eat soup .", "In Oslo it rains , says Tom ."]
LABELS = ["person", "city"]
EXPECTED = [
    (0, 0, 11, "Maria Silva", "person"),
    (0, 20, 25, "Paris", "city"),
    (3, 3, 7, "Oslo", "city"),
    (3, 24, 27, "Tom", "person"),
]

LIBRARIES = [(onoma.integrations.pandas, pd), (onoma.integrations.polars, pl)]


@pytest.fixture(params=LIBRARIES, ids=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return request.param


def test_one_row_per_entity_in_pandas(ner: Extractor) -> None:
    frame = pd.DataFrame({"note": TEXTS, "id": list("abcd")}, index=[10, 11, 12, 13])
    found = onoma.integrations.pandas.extract_entities(frame, LABELS, text="note", model=ner)
    assert list(found.drop(columns="score").itertuples(name=None)) == [(10 + row, *rest) for row, *rest in EXPECTED]
    assert found["score"].between(0.5, 1.0).all()
    joined = frame.join(found, how="inner")
    assert list(joined["id"]) == ["a", "a", "d", "d"]


def test_one_row_per_entity_in_polars(ner: Extractor) -> None:
    frame = pl.DataFrame({"note": TEXTS, "id": list("abcd")})
    found = onoma.integrations.polars.extract_entities(frame, LABELS, text="note", model=ner)
    assert found.drop("score").rows() == EXPECTED
    joined = frame.with_row_index("row").join(found, on="row")
    assert joined["id"].to_list() == ["a", "a", "d", "d"]


def test_without_entities_columns_have_the_same_types(library: tuple[Any, Any], ner: Extractor) -> None:
    module, frames = library
    full, empty, blank = (
        module.extract_entities(frames.DataFrame({"text": texts}), LABELS, model=ner)
        for texts in (TEXTS, ["We eat soup ."], ["", " "])
    )
    assert len(full) > len(empty) == len(blank) == 0
    assert list(full.dtypes) == list(empty.dtypes) == list(blank.dtypes)
    assert list(full.columns) == list(empty.columns)
    if frames is pd:
        assert full.index.dtype == empty.index.dtype


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_values_of_pandas(ner: Extractor, missing: Any) -> None:
    series = pd.Series([missing, "Tom flew to Oslo ."], index=["x", "y"], dtype=object)
    found = onoma.integrations.pandas.extract_entities(series, ["city"], model=ner)
    assert list(found[["text"]].itertuples(name=None)) == [("y", "Oslo")]


def test_a_column_per_label(library: tuple[Any, Any], ner: Extractor) -> None:
    module, frames = library
    frame = frames.DataFrame({"text": TEXTS})
    found = module.add_entities(frame, {"person": "a human being with a name", "city": ""}, prefix="a ", model=ner)
    assert list(found.columns) == ["text", "a city", "a person"]
    assert [list(one) for one in found["a person"]] == [["Maria Silva"], [], [], ["Tom"]]
    assert [list(one) for one in found["a city"]] == [["Paris"], [], [], ["Oslo"]]
    assert list(frame.columns) == ["text"]  # the frame itself stays as it is


def test_options(library: tuple[Any, Any], ner: Extractor) -> None:
    module, frames = library
    frame = frames.DataFrame({"text": ["The Rome Players will sing for Maria Silva today ."]})
    found = module.extract_entities(frame, ["band", "city"], model=ner, overlap="nested", threshold={"city": 0.1})
    assert list(found["text"]) == ["The Rome Players", "Rome"]


def test_frames_without_rows_and_without_entities(library: tuple[Any, Any], ner: Extractor) -> None:
    module, frames = library
    full = module.extract_entities(frames.DataFrame({"text": TEXTS}), LABELS, model=ner)
    for texts in ([], ["We eat soup ."], [None]):
        frame = frames.DataFrame({"text": frames.Series(texts, dtype=object if frames is pd else pl.String)})
        found = module.extract_entities(frame, LABELS, model=ner)
        assert found.shape == (0, full.shape[1])
        assert list(found.columns) == list(full.columns)
        assert found["start"].dtype == full["start"].dtype
        assert found["score"].dtype == full["score"].dtype
        assert [list(one) for one in module.add_entities(frame, ["city"], model=ner)["city"]] == [[]] * len(texts)


def test_the_embedded_model_is_the_default(library: tuple[Any, Any]) -> None:
    module, frames = library
    found = module.extract_entities(frames.Series(["Maria Silva flew to Oslo."]), ["city"])
    assert list(found["text"]) == ["Oslo"]


def test_bad_use_is_explained(library: tuple[ModuleType, Any], ner: Extractor) -> None:
    module, frames = library
    frame = frames.DataFrame({"text": TEXTS, "city": TEXTS, "number": [1, 2, 3, 4]})
    with pytest.raises(OnomaError, match=r"no column 'body' \(columns: text, city, number\)\. Fix: name it"):
        module.extract_entities(frame, LABELS, text="body", model=ner)
    with pytest.raises(OnomaError, match=r"there is a column 'city' already\. Fix: give a prefix"):
        module.add_entities(frame, LABELS, model=ner)
    with pytest.raises(OnomaError, match=r"row 0 is not a text but int: 1\. Fix: convert"):
        module.extract_entities(frame, LABELS, text="number", model=ner)
    with pytest.raises(OnomaError, match=r"DataFrame or Series, got list"):
        module.extract_entities(TEXTS, LABELS, model=ner)
    with pytest.raises(OnomaError, match="no labels"):
        module.extract_entities(frame, [], model=ner)


def test_lazy_frames_must_be_collected(ner: Extractor) -> None:
    with pytest.raises(OnomaError, match=r"LazyFrame\. Fix: call collect\(\) first"):
        onoma.integrations.polars.extract_entities(pl.LazyFrame({"text": TEXTS}), LABELS, model=ner)  # type: ignore[arg-type]
