"""Files into a folder of shards with worker processes."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from onoma import load
from onoma.errors import DataError, OnomaError
from onoma.scale import annotate_corpus
from onoma.scale.attempts import MAX_ATTEMPTS, Attempts
from onoma.scale.errors import ShardError
from onoma.scale.storage import open_output
from onoma.scale.worker import ShardWorker
from tiny_rows import found, make_rows, read_bytes, read_errors, read_shards, write_lines

Annotate = Callable[..., Path]


def test_all_columns_are_kept_and_entities_are_those_of_the_extractor(
    annotate: Annotate, onnx_model: Path, tmp_path: Path
) -> None:
    rows = make_rows(600)
    folder = annotate(write_lines(tmp_path / "a.jsonl", rows), rows_per_shard=256)
    written = read_shards(folder)
    assert [{key: row[key] for key in ("id", "text", "weight")} for row in written] == rows
    extracted = load(onnx_model).extract([row["text"] for row in rows], ["person", "city"])
    assert found(written) == [[(one.text, one.label) for one in entities] for entities in extracted]
    assert all(row["text"][one["start"] : one["end"]] == one["text"] for row in written for one in row["entities"])
    assert len(list(folder.glob("part-*"))) == 3
    summary = json.loads((folder / "_summary.json").read_text("utf-8"))
    assert (summary["documents"], summary["errors"], summary["shards"]) == (600, 0, 3)
    assert summary["entities"] == sum(summary["labels"].values()) == sum(len(row["entities"]) for row in written) > 600


def test_json_lines_stay_as_they_are_apart_from_the_new_column(annotate: Annotate, tmp_path: Path) -> None:
    line = '{"n":1E2, "big": 123456789012345678901234567890 ,"text":"Tom flew to Rome .", "u": "\\u00e9"  }'
    folder = annotate(write_lines(tmp_path / "a.jsonl", [line]))
    (written,) = (folder / "part-00000.jsonl").read_text("utf-8").splitlines()
    assert written.startswith(line.rstrip(" }") + ', "entities": [{"start": 0, "end": 3, "text": "Tom"')


@pytest.mark.slow
def test_the_result_does_not_depend_on_workers_shards_and_compression(annotate: Annotate, tmp_path: Path) -> None:
    rows: list[Any] = make_rows(1000)
    rows[100] = rows[600] = "{damaged"
    path = write_lines(tmp_path / "a.jsonl", rows)
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "a.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    one = annotate(path, "one", workers=2, rows_per_shard=256)
    others = [
        annotate(path, "two", rows_per_shard=10_000),
        annotate(tmp_path / "packed", "three", workers=2, rows_per_shard=512),
    ]
    assert len(list(one.glob("part-*"))) == 4
    for other in others:
        assert b"".join(path.read_bytes() for path in sorted(other.glob("part-*"))) == b"".join(
            path.read_bytes() for path in sorted(one.glob("part-*"))
        )
        assert [row for _, row in read_errors(other)] == [row for _, row in read_errors(one)] == [101, 601]


@pytest.mark.slow
def test_formats_of_input_and_output_give_the_same_entities(annotate: Annotate, tmp_path: Path) -> None:
    rows = make_rows(300)
    (tmp_path / "in").mkdir()
    inputs = [write_lines(tmp_path / "in" / "a.jsonl", rows), *(tmp_path / "in" / f"a.{end}" for end in ("csv", "txt"))]
    with open(inputs[1], "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    inputs[2].write_text("\n".join(row["text"] for row in rows), encoding="utf-8")
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "in" / "a.parquet")
    inputs.append(tmp_path / "in" / "a.parquet")
    expected = found(read_shards(annotate(inputs[0], "expected")))
    assert sum(map(len, expected)) > 300
    for path in inputs:
        for output in ("jsonl", "parquet"):
            folder = annotate(path, f"{path.suffix}-{output}", output_format=output)
            written = read_shards(folder)
            assert found(written) == expected
            assert [row["text"] for row in written] == [row["text"] for row in rows]
            if path.suffix in (".jsonl", ".parquet"):
                assert [(row["id"], row["weight"]) for row in written] == [(row["id"], row["weight"]) for row in rows]
    assert parquet.read_table(tmp_path / ".parquet-parquet").column_names == ["id", "text", "weight", "entities"]
    assert parquet.read_table(tmp_path / ".csv-parquet").schema.field("id").type == pa.string()


def test_types_of_parquet_are_kept(annotate: Annotate, tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(["Tom flew to Rome .", None, ""], pa.large_string()),
            "when": pa.array([1, 2, None], pa.timestamp("ns", "UTC")),
            "price": pa.array([1, 2, 3], pa.decimal128(10, 2)),
            "raw": [b"\xff", None, b""],
            "x": [float("nan"), 1.0, 2.0],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    folder = annotate(tmp_path / "a.parquet", "columns")
    written = parquet.read_table(folder)
    assert written.schema.remove(5).equals(table.schema)
    assert written.column("text").to_pylist() == ["Tom flew to Rome .", ""]
    assert read_errors(folder) == [("a.parquet", 2)]
    lines = (annotate(tmp_path / "a.parquet", "lines", output_format="jsonl") / "part-00000.jsonl").read_text("utf-8")
    first = json.loads(lines.splitlines()[0], parse_constant=pytest.fail)
    assert (first["raw"], first["x"], first["price"]) == ("/w==", None, "1.00")


def test_damaged_rows_go_to_the_side_file_with_file_row_and_reason(annotate: Annotate, tmp_path: Path) -> None:
    rows: list[Any] = make_rows(300)
    for number in (3, 150, 299):
        rows[number] = '{"text": 5}'
    paths = [write_lines(tmp_path / f"{name}.jsonl", rows) for name in "ab"]
    folder = annotate(paths)
    assert read_errors(folder) == [(path.name, number + 1) for path in paths for number in (3, 150, 299)]
    (reason, *_) = (json.loads(line)["reason"] for line in (folder / "_errors.jsonl").open(encoding="utf-8"))
    assert "not a string but int" in reason
    assert len(read_shards(folder)) == 2 * 297


def test_a_text_on_which_the_model_fails_does_not_affect_the_others(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_rows(20)
    expected = read_bytes(annotate(write_lines(tmp_path / "a.jsonl", rows), "expected"))
    rows.insert(7, {"text": "this one fails"})
    write_lines(tmp_path / "a.jsonl", rows)
    crash_workers(tmp_path, monkeypatch, "raise ArithmeticError('no')", when="'fails' in ' '.join(texts)")
    folder = annotate(tmp_path / "a.jsonl")
    assert read_errors(folder) == [("a.jsonl", 8)]
    assert "ArithmeticError: no" in (folder / "_errors.jsonl").read_text("utf-8")
    assert found(read_shards(folder)) == found([json.loads(line) for line in expected["part-00000.jsonl"].splitlines()])


def change_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Run a program in worker processes before they do anything, as a module that Python imports when it starts."""
    folder = tmp_path / "sitecustomize"
    folder.mkdir(exist_ok=True)
    lines = ["import os, pathlib, signal, sys", 'if "onoma.scale.worker" in sys.orig_argv:', indent(program, "    ")]
    (folder / "sitecustomize.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))


def crash_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, *, when: str) -> None:
    """Change what worker processes do with some texts."""
    program = f"""
from onoma.extractor import Extractor
extract = Extractor.extract
def changed(self, texts, *arguments, **options):
    if {when}:
        {action}
    return extract(self, texts, *arguments, **options)
Extractor.extract = changed
"""
    change_workers(tmp_path, monkeypatch, program)


def test_a_killed_worker_loses_and_repeats_nothing(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(1000))
    expected = read_bytes(annotate(path, "expected", rows_per_shard=512))
    marks = [tmp_path / "first", tmp_path / "second"]
    for mark in marks:
        mark.touch()
    kill = "next(p for p in marks if p.exists()).unlink(); os.kill(os.getpid(), signal.SIGKILL)"
    setting = f"(marks := [pathlib.Path(p) for p in {[str(mark) for mark in marks]}]) and len(texts) > 200"
    crash_workers(tmp_path, monkeypatch, kill, when=f"{setting} and any(p.exists() for p in marks)")
    folder = annotate(path, rows_per_shard=512, workers=2)
    assert not any(mark.exists() for mark in marks)  # two processes were killed
    assert read_bytes(folder) == expected


@pytest.mark.slow
def test_a_row_in_which_every_process_ends_is_left_out(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = make_rows(40)
    rows[25]["text"] = "poison"
    crash_workers(tmp_path, monkeypatch, "os._exit(3)", when="'poison' in texts")
    folder = annotate(write_lines(tmp_path / "a.jsonl", rows))
    assert read_errors(folder) == [("a.jsonl", 26)]
    assert [row["id"] for row in read_shards(folder)] == [number for number in range(40) if number != 25]
    assert not (folder / "_attempts").exists()


@pytest.mark.slow
def test_a_group_in_which_every_process_ends_is_annotated_row_by_row(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(40))
    expected = found(read_shards(annotate(path, "expected")))
    crash_workers(tmp_path, monkeypatch, "os._exit(3)", when="len(texts) > 1")
    folder = annotate(path)
    assert read_errors(folder) == []
    assert found(read_shards(folder)) == expected


def test_a_process_that_dies_between_rows_blames_none_of_them(tmp_path: Path) -> None:
    folder = open_output(str(tmp_path))
    for _ in range(MAX_ATTEMPTS):
        attempts = Attempts(folder, 0)
        attempts.note(row=7)
        attempts.note()
    assert not attempts.is_left_out(7)
    with pytest.raises(ShardError, match=f"{MAX_ATTEMPTS} processes"):
        Attempts(folder, 0)


def test_a_shard_that_fails_is_named_and_tried_again_by_the_next_run(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(600))
    expected = read_bytes(annotate(path, "expected", rows_per_shard=256))
    program = """
from onoma.scale.plan import ShardRows
read = ShardRows.read
def changed(self, shard):
    if shard.first == 256:
        raise RuntimeError("no such row")
    return read(self, shard)
ShardRows.read = changed
"""
    with monkeypatch.context() as changed:
        change_workers(tmp_path, changed, program)
        with pytest.raises(ShardError, match=r"^1 shard could not .*shard 1: RuntimeError: no such row"):
            annotate(path, rows_per_shard=256)
    folder = tmp_path / "annotated"
    assert {one.name for one in folder.glob("part-*")} == {"part-00000.jsonl", "part-00002.jsonl"}
    annotate(path)
    assert read_bytes(folder) == expected


class _Stopped(Exception):  # noqa: N818
    pass


def _stop_after(count: int) -> Callable[[int, int], None]:
    calls = iter(range(count + 1))

    def on_progress(done: int, total: int) -> None:
        if next(calls) == count:
            raise _Stopped

    return on_progress


def test_a_restart_continues_after_the_finished_shards(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[Any] = make_rows(1000)
    rows[0] = "{damaged"
    path = write_lines(tmp_path / "a.jsonl", rows)
    expected = read_bytes(annotate(path, "expected", rows_per_shard=256))
    with pytest.raises(_Stopped):
        annotate(path, rows_per_shard=256, on_progress=_stop_after(2))
    folder = tmp_path / "annotated"
    first = {path: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    assert 2 <= len(first) < 4
    (folder / ".0123456789abcdef.part").write_text("half a shard", encoding="utf-8")
    steps = list[tuple[int, int]]()
    annotate(path, on_progress=lambda *step: steps.append(step))
    assert steps[0] == (sum(256 for _ in first), 1000)
    assert steps[-1] == (1000, 1000)
    assert {path: path.stat().st_mtime_ns for path in first} == first
    assert read_bytes(folder) == expected
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*[a-z]")}
    annotate(path)  # there is nothing left to do
    assert {path: path.stat().st_mtime_ns for path in before if path.name != "_lock"} == {
        path: time for path, time in before.items() if path.name != "_lock"
    }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"labels": ["person"]}, "types"),
        ({"threshold": 0.9}, "threshold"),
        ({"overlap": "nested"}, "overlap"),
        ({"rows_per_shard": 300}, "rows_per_shard"),
        ({"model": None}, "model"),
        ({"output_format": "jsonl.gz"}, "output_format"),
    ],
)
def test_a_restart_with_other_settings_is_refused(
    annotate: Annotate, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(5))
    annotate(path)
    with pytest.raises(DataError, match=f"other settings.*{named} was .* and is .*"):
        annotate(path, **change)


def test_a_restart_with_a_changed_file_or_version_is_refused(annotate: Annotate, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(5))
    folder = annotate(path)
    manifest = folder / "_manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"onoma": "', '"onoma": "9.'), encoding="utf-8")
    with pytest.raises(DataError, match="version of onoma"):
        annotate(path)


def test_a_restart_with_other_input_names_the_files(annotate: Annotate, tmp_path: Path) -> None:
    paths = [write_lines(tmp_path / f"{name}.jsonl", make_rows(5)) for name in "ab"]
    annotate(paths)
    content = paths[0].read_text("utf-8")
    paths[0].write_text(content.replace('"id": 1', '"id": 7'), encoding="utf-8")  # of the same size
    with pytest.raises(DataError, match=r"a\.jsonl has changed: its content or time"):
        annotate(paths)
    with pytest.raises(DataError, match=r"b\.jsonl is missing"):
        annotate(paths[:1])


def test_each_file_is_annotated_once_and_the_output_is_not_input(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lines(tmp_path / "in.jsonl", make_rows(5))
    (tmp_path / "link.jsonl").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    names = ["in.jsonl", "./in.jsonl", path, "*.jsonl", f"file://{path}", f"local://{path}", "link.jsonl", "."]
    assert len(read_shards(annotate(names))) == 5
    assert len(read_shards(annotate(names))) == 5  # the output is in the last source
    with pytest.raises(OnomaError, match="in the output folder"):
        annotate("annotated/*.jsonl")


def test_a_folder_may_hold_other_files(annotate: Annotate, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "README.md").write_text("about this", encoding="utf-8")
    with pytest.raises(DataError, match=r"README\.md.*not known"):
        annotate(tmp_path / "in")
    write_lines(tmp_path / "in" / "a.jsonl", make_rows(5))
    assert len(read_shards(annotate(tmp_path / "in"))) == 5
    assert "ignored: README.md" in caplog.text
    with pytest.raises(DataError, match=r"README\.md.*not known"):
        annotate([tmp_path / "in", tmp_path / "in" / "README.md"])


def test_a_table_with_entities_is_refused_wherever_it_comes(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.scale.corpus._CHECKED_FILES", 1)
    for name in "abc":
        values: dict[str, Any] = {"text": ["Tom flew to Rome ."]} | ({"entities": [1]} if name == "c" else {})
        parquet.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    for output in ("parquet", "jsonl"):
        with pytest.raises(DataError, match=r"c\.parquet: there is a column 'entities'"):
            annotate(f"{tmp_path}/*.parquet", output_format=output)
    for name, header in (("a", "text"), ("b", "body"), ("c", "text,entities")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\nTom{',1' * header.count(',')}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"b\.csv: there is no column 'text'"):
        annotate(f"{tmp_path}/*.csv")
    assert not (tmp_path / "annotated").exists()


@pytest.mark.parametrize("output", ["parquet", "jsonl"])
def test_a_late_row_with_entities_is_an_error_of_that_row(annotate: Annotate, tmp_path: Path, output: str) -> None:
    rows = make_rows(150)
    rows[120]["entities"] = []
    folder = annotate(write_lines(tmp_path / "a.jsonl", rows), output_format=output)
    assert read_errors(folder) == [("a.jsonl", 121)]
    assert "there is a field 'entities' already" in (folder / "_errors.jsonl").read_text("utf-8")
    assert [row["id"] for row in read_shards(folder)] == [number for number in range(150) if number != 120]


def test_a_file_may_start_with_rows_without_text(annotate: Annotate, tmp_path: Path) -> None:
    rows: list[Any] = [{"text": None}] * 100
    folder = annotate(write_lines(tmp_path / "a.jsonl", [*rows, *make_rows(3)]))
    assert len(read_errors(folder)) == 100
    assert len(read_shards(folder)) == 3


@pytest.mark.parametrize("kind", ["string_view", "large_string", "dictionary"])
def test_all_types_of_strings_in_parquet(annotate: Annotate, tmp_path: Path, kind: str) -> None:
    texts = pa.array(["Tom flew to Rome .", None, "Tom flew to Rome ."])
    types = {"large_string": pa.large_string(), "dictionary": pa.dictionary(pa.int32(), pa.string())}
    columns = {"text": texts.cast(types.get(kind, pa.string())), "raw": pa.array([b"a", None, b"c"])}
    if kind == "string_view":
        columns = {
            "text": pa.array(texts.to_pylist(), pa.string_view()),
            "raw": pa.array([b"a", None, b"c"], pa.binary_view()),
        }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    written = parquet.read_table(annotate(tmp_path / "a.parquet"))
    assert written.column("raw").to_pylist() == [b"a", b"c"]
    assert written.schema.field("text").type == columns["text"].type
    assert read_errors(tmp_path / "annotated") == [("a.parquet", 2)]


def test_mixed_columns_are_json_whatever_files_they_come_from(annotate: Annotate, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [{"text": "Tom", "x": 1}, {"text": "Tom", "x": "1"}])
    parquet.write_table(pa.table({"text": ["Tom"], "x": ["one"]}), tmp_path / "b.parquet")
    folder = annotate([tmp_path / "a.jsonl", tmp_path / "b.parquet"], output_format="parquet")
    assert [json.loads(row["x"]) for row in read_shards(folder)] == [1, "1", "one"]
    again = annotate(folder, "again", entities_column="more")
    assert [json.loads(row["x"]) for row in read_shards(again)] == [1, "1", "one"]


def test_the_separator_of_a_table_can_be_chosen(annotate: Annotate, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;text\n1;Tom flew to Rome .\n", encoding="utf-8")
    with pytest.raises(DataError, match="separated by ';': name the separator with --separator"):
        annotate(tmp_path / "a.csv")
    (row,) = read_shards(annotate(tmp_path / "a.csv", separator=";"))
    assert (row["id"], row["text"]) == ("1", "Tom flew to Rome .")
    with pytest.raises(DataError, match="--separator"):
        annotate(tmp_path / "a.csv", separator="|")


def test_the_manifest_names_the_threshold_of_each_type(annotate: Annotate, onnx_model: Path, tmp_path: Path) -> None:
    folder = annotate(write_lines(tmp_path / "a.jsonl", make_rows(2)), threshold={"city": 0.75})
    manifest = json.loads((folder / "_manifest.json").read_text("utf-8"))
    assert manifest["thresholds"]["."] == {"city": 0.75, "person": pytest.approx(load(onnx_model).config.threshold)}


def test_planning_reports_the_rows_that_it_read(annotate: Annotate, tmp_path: Path) -> None:
    paths = [write_lines(tmp_path / f"{name}.jsonl", make_rows(1500)) for name in "ab"]
    steps = list[int]()
    with pytest.raises(_Stopped):
        annotate(paths, on_plan=steps.append, on_progress=_stop_after(0))
    assert steps == sorted(steps)
    assert {1024, 1500, 2524, 3000} <= set(steps)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, "engine must be one of local, ray"),
        ({"output_format": "xml"}, "output_format must be one of jsonl, "),
        ({"input_format": "xml"}, "input_format must be one of jsonl, "),
        ({"rows_per_shard": 0}, "rows_per_shard must be an integer of at least 1"),
        ({"workers": -2}, "workers must be an integer of at least 1"),
        ({"gpus_per_worker": -1.0}, "gpus_per_worker"),
        ({"separator": ";;"}, "one character"),
        ({"separator": ";"}, "no file is CSV"),
        ({"text_column": "body", "input_format": "text"}, "plain text has no column 'body'"),
        ({"device": "cuda"}, "the onnx backend runs on CPUs only"),
        ({"engine": "ray", "gpus_per_worker": 1.0}, "the onnx backend runs on CPUs only"),
    ],
)
def test_wrong_options_are_named(annotate: Annotate, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(2))
    with pytest.raises(OnomaError, match=message):
        annotate(path, **options)
    assert not (tmp_path / "annotated").exists()


def test_sources_are_paths_or_strings(onnx_model: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(2))
    for number, sources in enumerate((path, [path], iter([str(path)]))):
        summary = annotate_corpus(sources, tmp_path / str(number), ["city"], model=onnx_model, workers=1)
        assert summary.documents == 2
    wrong: Any
    for wrong in ([], 7, [7], b"a.jsonl"):
        with pytest.raises(OnomaError, match="source"):
            annotate_corpus(wrong, tmp_path / "out", ["city"], model=onnx_model)


def test_a_run_that_is_refused_leaves_nothing_behind(annotate: Annotate, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,id\n"Tom flew to Rome .",1\n', encoding="utf-8")
    with pytest.raises(_Stopped):
        annotate(path, on_plan=_stop)
    assert not (tmp_path / "annotated").exists()
    with pytest.raises(DataError, match=r"cannot be written .* Fix: "):
        annotate(path, "a.csv/annotated")


def _stop(*arguments: object) -> None:
    raise _Stopped


def test_a_finished_run_with_missing_parts_is_refused(annotate: Annotate, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(5))
    (annotate(path) / "part-00000.jsonl").unlink()
    with pytest.raises(DataError, match="missing"):
        annotate(path)


def test_a_worker_with_another_model_is_refused(annotate: Annotate, tmp_path: Path) -> None:
    folder = annotate(write_lines(tmp_path / "a.jsonl", make_rows(5)))
    manifest = json.loads((folder / "_manifest.json").read_text("utf-8"))
    assert set(manifest) >= {"settings", "model_digest", "versions", "files", "shards"}
    (folder / "_manifest.json").write_text(json.dumps(manifest | {"model_digest": "0" * 32}), encoding="utf-8")
    with pytest.raises(OnomaError, match="same on all machines"):
        ShardWorker(str(folder))


def test_a_folder_with_other_files_is_not_touched(annotate: Annotate, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(5))
    (tmp_path / "annotated").mkdir()
    (tmp_path / "annotated" / "thesis.txt").touch()
    with pytest.raises(DataError, match=r"thesis\.txt"):
        annotate(path)
    with pytest.raises(DataError, match="this is a file"):
        annotate(path, "a.jsonl")


def test_two_runs_cannot_write_to_one_folder(annotate: Annotate, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", make_rows(600))

    def run_again(done: int, total: int) -> None:
        with pytest.raises(DataError, match="another run"):
            annotate(path)

    annotate(path, rows_per_shard=256, on_progress=run_again)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('{"text": "a", "entities": []}', {}, "--entities-column"),
        ('{"body": "a"}', {}, "--text-column"),
        ("[1, 2]", {}, "--from"),
        ('{"text": "a"}', {"labels": []}, "no labels"),
        ('{"text": "a"}', {"threshold": {"drug": 0.5}}, "drug"),
        ('{"text": "a"}', {"address": "auto"}, "engine ray"),
    ],
)
def test_what_cannot_work_is_an_error_before_anything_is_written(
    annotate: Annotate, tmp_path: Path, content: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OnomaError, match=message):
        annotate(write_lines(tmp_path / "a.jsonl", [content]), **options)
    assert not (tmp_path / "annotated").exists()


def test_columns_can_have_other_names_and_gold_is_kept(annotate: Annotate, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"body": "Tom flew to Rome .", "entities": [1]}])
    (row,) = read_shards(annotate(path, text_column="body", entities_column="predicted"))
    assert row["entities"] == [1]
    assert [one["text"] for one in row["predicted"]] == ["Tom", "Rome"]


@pytest.mark.parametrize("output", ["jsonl", "parquet"])
def test_a_corpus_without_rows_gives_a_folder_without_shards(annotate: Annotate, tmp_path: Path, output: str) -> None:
    folder = annotate(write_lines(tmp_path / "a.jsonl", []), output_format=output)
    assert json.loads((folder / "_summary.json").read_text("utf-8"))["documents"] == 0
    assert list(folder.glob("part-*")) == []


def test_input_and_output_by_url(onnx_model: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", make_rows(300))
    summary = annotate_corpus(
        f"file://{tmp_path}/*.jsonl",
        f"file://{tmp_path}/annotated",
        ["person"],
        model=onnx_model,
        workers=1,
        output_format="parquet",
    )
    assert (summary.documents, summary.errors) == (300, 0)
    assert len(parquet.read_table(tmp_path / "annotated")) == 300


@pytest.mark.parametrize("output", ["jsonl", "parquet"])
def test_many_files_are_planned_side_by_side(
    annotate: Annotate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    paths = [write_lines(tmp_path / f"{name}.jsonl", make_rows(20)) for name in "abc"]
    (tmp_path / "d.csv").write_text("id,text\n1,Tom flew to Rome .\n", encoding="utf-8")
    paths.append(tmp_path / "d.csv")
    if output == "parquet":  # numbers and strings in one column
        with pytest.raises(DataError, match="'id'"):
            annotate(paths, "refused", output_format=output)
        paths.pop()
    expected = read_bytes(annotate(paths, "expected", output_format=output))
    monkeypatch.setattr("onoma.scale.scan.MANY_BYTES", 0)
    assert read_bytes(annotate(paths, workers=2, output_format=output)) == expected
    paths[0].write_bytes(b"%PDF-1.7")
    monkeypatch.setattr("onoma.scale.corpus._check_columns", lambda file, settings: None)
    with pytest.raises(OnomaError, match="PDF"):
        annotate(paths, "damaged", output_format=output)
