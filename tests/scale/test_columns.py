"""Types of columns, found in JSON lines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from onoma.errors import DataError
from onoma.scale.columns import ColumnTypes, is_json, to_table, unify
from onoma.scale.rows import open_rows
from onoma.scale.writers import ParquetWriter
from tiny_rows import write_lines


def schema_of(path: Path, rows: list[Any]) -> pa.Schema:
    reader = open_rows(str(write_lines(path, rows)), "jsonl", "text")
    types = ColumnTypes(reader, "entities")
    list(types.watch(reader.rows()))
    return types.schema()


def test_values_of_one_type_keep_it_and_others_become_json(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "n": 1, "mixed": 1, "list": [1], "nested": {"a": 1}, "empty": {}, "null": None, "big": 10**30},
        {"text": "b", "n": 2.5, "mixed": "x", "list": None, "nested": {"b": "y"}, "later": True},
    ]
    schema = schema_of(tmp_path / "a.jsonl", rows)
    assert schema.field("n").type == pa.float64()
    assert schema.field("list").type == pa.list_(pa.int64())
    assert schema.field("later").type == pa.bool_()
    assert {field.name for field in schema if is_json(field)} == {"mixed", "empty", "big"}
    table = to_table(rows, schema).to_pylist()
    assert [row["mixed"] for row in table] == ["1", '"x"']
    assert [row["nested"] for row in table] == [{"a": 1, "b": None}, {"a": None, "b": "y"}]
    assert table[0]["big"] == "1" + "0" * 30
    assert [row["later"] for row in table] == [None, True]


def test_types_are_found_beyond_the_first_thousand_rows(tmp_path: Path) -> None:
    rows = [{"text": "a", "n": 1} for _ in range(2500)] + [{"text": "a", "n": "late"}]
    assert is_json(schema_of(tmp_path / "a.jsonl", rows).field("n"))


def test_objects_with_ever_new_keys_become_json(tmp_path: Path) -> None:
    rows = [{"text": "a", "counts": {f"key {number}": 1}} for number in range(300)]
    assert is_json(schema_of(tmp_path / "a.jsonl", rows).field("counts"))


def test_files_with_other_columns_have_one_schema() -> None:
    one, other = pa.schema({"text": pa.string(), "n": pa.int64()}), pa.schema({"text": pa.string(), "m": pa.int8()})
    assert unify([one, other], ["a", "b"]).names == ["text", "n", "m"]
    with pytest.raises(DataError, match="'n'"):
        unify([one, pa.schema({"n": pa.string()})], ["a", "b"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "\ud800"]), VALUES), min_size=1, max_size=6))
def test_whatever_is_in_json_lines_is_written_or_an_error_of_its_row(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_text("".join(json.dumps({"text": "a"} | one) + "\n" for one in records), encoding="utf-8")
    reader, file = open_rows(str(path), "jsonl", "text"), io.BytesIO()
    types = ColumnTypes(reader, "entities")
    rows = [row for row in types.watch(reader.rows()) if row.error is None]
    writer = ParquetWriter(file, "entities", types.schema())
    for row in rows:
        writer.write(row, [])
    writer.finish()
    assert (
        len(parquet.read_table(file)) + len(writer.errors) == len(rows) == sum("\ud800" not in one for one in records)
    )
