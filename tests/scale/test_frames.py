"""Tables in memory and iterables get a column of entities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset

from onoma.errors import OnomaError
from onoma.scale import annotate
from tiny_rows import found, make_rows

LABELS = ["person", "city"]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [*make_rows(700), {"id": 700, "text": None, "weight": 1.0}]


@pytest.fixture(scope="module")
def expected(rows: list[dict[str, Any]], onnx_model: Path) -> list[Any]:
    annotated = list(annotate(rows, LABELS, model=str(onnx_model), workers=1))
    assert sum(map(len, found(annotated[:-1]))) > 700
    return [row["entities"] for row in annotated]


@pytest.mark.parametrize("workers", [1, 3])
def test_every_kind_of_table_gets_the_same_column(
    rows: list[dict[str, Any]], expected: list[Any], onnx_model: Path, workers: int
) -> None:
    options: dict[str, Any] = {"model": str(onnx_model), "workers": workers}
    arrow = annotate(pa.Table.from_pylist(rows), LABELS, **options)
    assert arrow.column("entities").to_pylist() == expected
    assert arrow.column_names == ["id", "text", "weight", "entities"]
    polars = annotate(pl.DataFrame(rows), LABELS, **options)
    assert polars["entities"].to_list() == expected
    pandas = annotate(pd.DataFrame(rows), LABELS, **options)
    assert pandas["entities"].tolist() == expected
    assert pandas["id"].tolist() == list(range(701))
    batch = annotate(pa.RecordBatch.from_pylist(rows), LABELS, **options)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.column("entities").to_pylist() == expected
    table = pa.Table.from_pylist(rows)
    for lazy in (table.to_reader(max_chunksize=90), dataset.dataset(table.slice(0, 350)), dataset.dataset(table)):
        reader = annotate(lazy, LABELS, **options)
        assert isinstance(reader, pa.RecordBatchReader)
        read = reader.read_all()
        assert read.column("entities").to_pylist() == expected[: len(read)]
        assert read.select(["id", "text", "weight"]).equals(table.slice(0, len(read)))


def test_an_iterable_is_read_as_far_as_its_results_are(onnx_model: Path) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "Tom flew to Rome ."

    annotated = annotate(endless(), LABELS, model=str(onnx_model), workers=1)
    first = next(annotated)
    assert [one["text"] for one in first["entities"]] == ["Tom", "Rome"]
    assert first["text"] == "Tom flew to Rome ."
    assert taken <= 3 * 256


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a text", "iterable of texts"),
        (7, "iterable of texts"),
        (pa.array(["a"]), "pandas or polars DataFrame.* got StringArray"),
        (pa.chunked_array([["a"]]), "got ChunkedArray"),
        (pd.Series(["a"]), "got Series"),
        (pl.Series(["a"]), "got Series"),
        (pa.table({"body": ["a"]}), "column of texts with text_column; the columns are: body"),
        (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "same name"),
        (pd.DataFrame({"text": ["a"], "entities": [1]}), "entities_column"),
        (pl.DataFrame({"text": ["a"]}).lazy(), "collect"),
    ],
)
def test_what_cannot_be_annotated_is_an_error(data: Any, message: str, onnx_model: Path) -> None:
    with pytest.raises(OnomaError, match=message):
        annotate(data, LABELS, model=str(onnx_model))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": -1}, "workers must be an integer of at least 1"),
        ({"workers": 0}, "workers must be an integer of at least 1"),
        ({"colour": 1}, "no option 'colour'"),
        ({"output_format": "jsonl"}, "no option 'output_format'"),
        ({"device": "cuda"}, "the onnx backend runs on CPUs only"),
        ({"labels": []}, "no labels"),
        ({"threshold": 7}, "threshold"),
    ],
)
def test_wrong_options_are_errors_at_once(options: dict[str, Any], message: str, onnx_model: Path) -> None:
    with pytest.raises(OnomaError, match=message):
        annotate(["Tom"], **{"labels": LABELS, "model": onnx_model} | options)


def test_a_name_that_no_row_has_is_an_error(onnx_model: Path) -> None:
    rows = [{"txt": "Tom flew to Rome ."}] * 3
    with pytest.raises(OnomaError, match="text_column; the columns are: txt"):
        next(annotate(rows, LABELS, model=onnx_model))
    found_rows = list(annotate([*rows, {"text": "Tom"}], LABELS, model=onnx_model, workers=1))
    assert [row["entities"] is None for row in found_rows] == [True, True, True, False]
    assert list(annotate([], LABELS, model=onnx_model)) == []


def test_a_text_that_fails_has_null_and_a_line_in_the_log(onnx_model: Path, caplog: pytest.LogCaptureFixture) -> None:
    annotated = list(annotate(["Tom flew to Rome .", "\ud800", 5], LABELS, model=str(onnx_model)))
    assert [row["entities"] is None for row in annotated][2] is True
    assert len(annotated[0]["entities"]) == 2
