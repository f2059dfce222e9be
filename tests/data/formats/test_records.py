"""The JSON formats: jsonl, tokens, doccano and gliner, in lines or in one array."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onoma import DataError, Document
from onoma.data.formats import detect, json_values, read, write


def parsed(folder: Path, *records: Any, format: str) -> list[Document]:
    path = folder / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return list(read(path, format))


def keys_of(document: Document) -> list[tuple[int, int, str]]:
    return [entity.key for entity in document.entities]


def test_jsonl_reads_all_fields_of_a_document(tmp_path: Path) -> None:
    entity = {"start": 0, "end": 3, "label": "per", "text": "Ann", "score": 0.5}
    record = {
        "text": "Ann ran",
        "entities": [entity],
        "annotated": ["per", "loc"],
        "words": [[0, 3]],
        "id": "7",
        "x": [],
    }
    (document,) = parsed(tmp_path, record, format="jsonl")
    assert keys_of(document) == [(0, 3, "per")]
    assert document.entities[0].score == 0.5
    assert document.annotated == {"per", "loc"}
    assert (document.words, document.id, document.meta) == (((0, 3),), "7", {"x": []})
    later = {"start": 4, "end": 7, "label": "act"}
    (unsorted,) = parsed(tmp_path, record | {"entities": [later, entity], "annotated": ["act", "per"]}, format="jsonl")
    assert [(entity.label, entity.score) for entity in unsorted.entities] == [("per", 0.5), ("act", 1.0)]
    (unlabelled,) = parsed(tmp_path, {"text": "Ann ran"}, format="jsonl")
    assert unlabelled.annotated == frozenset()


def test_tokens_list_the_annotated_labels(tmp_path: Path) -> None:
    row = {"tokens": ["Ann", "Lee", "ran"], "entities": [{"start": 0, "end": 2, "type": "per"}], "discontinuous": 3}
    plain, queried, absent, unlabelled = parsed(
        tmp_path,
        row,
        row | {"queried_types": ["per", "loc"]},
        row | {"absent": ["date"]},
        {"tokens": ["Ann"]},
        format="tokens",
    )
    assert (plain.text, keys_of(plain), plain.annotated) == ("Ann Lee ran", [(0, 7, "per")], None)
    assert plain.words == ((0, 3), (4, 7), (8, 11))
    assert queried.annotated == {"per", "loc"}
    assert absent.annotated == {"per", "date"}
    assert (unlabelled.annotated, unlabelled.entities) == (frozenset(), ())
    path = tmp_path / "back.jsonl"
    write([plain, queried, absent, unlabelled], path, "tokens")
    assert list(read(path)) == [plain, queried, absent, unlabelled]


def test_tokens_and_gliner_have_a_text_only_if_joined_tokens_do_not_reproduce_it(tmp_path: Path) -> None:
    document = Document.from_spans("Ann's  mill", [(0, 3, "per"), (7, 11, "thing")])
    for format in ("tokens", "gliner"):
        write([document, Document("plain words")], tmp_path / "a.jsonl", format)
        first, second = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(first)["text"] == document.text
        assert "text" not in json.loads(second)


@pytest.mark.parametrize(
    "record",
    [
        {"id": 3, "text": "Ann ran", "label": [[0, 3, "per"]]},
        {"id": 3, "data": "Ann ran", "labels": [[0, 3, "per"]], "Comments": []},
        {
            "id": 3,
            "text": "Ann ran",
            "entities": [{"id": 1, "label": "per", "start_offset": 0, "end_offset": 3}],
            "relations": [],
        },
    ],
)
def test_all_variants_of_doccano_are_read(tmp_path: Path, record: dict[str, Any]) -> None:
    (document,) = parsed(tmp_path, record, format="doccano")
    assert (document.text, keys_of(document), document.id) == ("Ann ran", [(0, 3, "per")], 3)
    assert detect(tmp_path / "a.jsonl") == "doccano"


def test_the_end_of_a_gliner_mention_is_inclusive(tmp_path: Path) -> None:
    record = {"tokenized_text": ["Ann", "Lee", "ran"], "ner": [[0, 1, "per"], [2, 2, "act"]]}
    (document,) = parsed(tmp_path, record, format="gliner")
    assert keys_of(document) == [(0, 7, "per"), (8, 11, "act")]
    write([document], tmp_path / "b.json")
    assert json.loads((tmp_path / "b.json").read_text()) == [record]


RECORDS: dict[str, dict[str, Any]] = {
    "jsonl": {"text": "Ann ran", "entities": [{"start": 0, "end": 3, "label": "per"}]},
    "tokens": {"tokens": ["Ann", "ran"], "entities": [{"start": 0, "end": 1, "type": "per"}]},
    "doccano": {"text": "Ann ran", "label": [[0, 3, "per"]]},
    "gliner": {"tokenized_text": ["Ann", "ran"], "ner": [[0, 0, "per"]]},
}
JSONL = RECORDS["jsonl"]
EXTRA = {"source": "news", "pages": [1, 2], "nested": {"a": None}, "Comments": [], "score": 0.5}


@pytest.mark.parametrize("format", RECORDS)
@pytest.mark.parametrize("identifier", [7, 0, "7", "é", 10**20])
def test_other_keys_and_ids_survive_a_round_trip(tmp_path: Path, format: str, identifier: str | int) -> None:
    record = RECORDS[format] | {"id": identifier} | EXTRA
    (document,) = parsed(tmp_path, record, format=format)
    assert (document.id, type(document.id)) == (identifier, type(identifier))
    assert document.meta == EXTRA
    write([document], tmp_path / "back.jsonl", format)
    assert json.loads((tmp_path / "back.jsonl").read_text(encoding="utf-8")) == record
    assert list(read(tmp_path / "back.jsonl", format)) == [document]


@pytest.mark.parametrize("source", RECORDS)
@pytest.mark.parametrize("target", RECORDS)
def test_other_keys_and_ids_survive_conversion(tmp_path: Path, source: str, target: str) -> None:
    documents = parsed(tmp_path, RECORDS[source] | {"id": 7} | EXTRA, format=source)
    write(documents, tmp_path / "back.jsonl", target)
    record = json.loads((tmp_path / "back.jsonl").read_text(encoding="utf-8"))
    assert {key: record[key] for key in EXTRA} == EXTRA
    (back,) = read(tmp_path / "back.jsonl", target)
    assert (back.id, back.meta, back.entities) == (7, EXTRA, documents[0].entities)


@pytest.mark.parametrize("format", RECORDS)
def test_meta_never_replaces_a_key_of_the_format(tmp_path: Path, format: str) -> None:
    keys = (
        "text",
        "entities",
        "tokens",
        "tokenized_text",
        "ner",
        "label",
        "labels",
        "data",
        "id",
        "annotated",
        "words",
    )
    document = Document.from_spans("Ann ran", [(0, 3, "per")], meta={**dict.fromkeys(keys, "wrong"), "kept": 1})
    write([document], tmp_path / "a.jsonl", format)
    (back,) = read(tmp_path / "a.jsonl", format)
    assert (back.text, keys_of(back), back.meta["kept"]) == ("Ann ran", [(0, 3, "per")], 1)


@pytest.mark.parametrize("format", RECORDS)
def test_a_missing_or_null_id_is_no_id(tmp_path: Path, format: str) -> None:
    first, second = parsed(tmp_path, RECORDS[format], RECORDS[format] | {"id": None}, format=format)
    assert first.id is second.id is None


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_a_json_array_is_read_in_chunks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None, chunk: int
) -> None:
    monkeypatch.setattr(json_values, "_CHUNK", chunk)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([JSONL, {**JSONL, "text": "Bob \u2028 ] , {"}], indent=indent, ensure_ascii=False))
    first, second = read(path)
    assert (first.text, second.text) == ("Ann ran", "Bob \u2028 ] , {")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[", 1),
        ("[\n{}", 2),
        ('[\n{"text": "a"},\n', 3),
        ('[\n{"text": "a"},\n]', 3),
        ('[\n{"text": "a"}\n{"text": "b"}]', 3),
        ('[{"text": "a"}]\n]', 2),
        ('[{"text": "a"},\n{\n"text": "b}]', 3),
        ("[\n1]", 2),
        ('[\n{"text": "a",\n "id": ' + "9" * 5000 + "}]", 2),
    ],
)
def test_an_invalid_array_is_an_error_with_its_line(tmp_path: Path, content: str, line: int) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        list(read(path, "jsonl"))
    assert caught.value.line == line


ENTITY = {"start": 0, "end": 3, "label": "per"}
WRONG: dict[str, list[Any]] = {
    "jsonl": [
        7,
        "text",
        [],
        {},
        {"text": None},
        {"text": ["Ann"]},
        {"text": "Ann", "entities": None},
        {"text": "Ann", "entities": {}},
        {"text": "Ann", "entities": ["x"]},
        {"text": "Ann", "entities": [{}]},
        *(
            {"text": "Ann", "entities": [{**ENTITY, **change}]}
            for change in (
                {"start": "0"},
                {"start": 0.0},
                {"start": False},
                {"start": None},
                {"start": -1},
                {"start": 3},
                {"end": 4},
                {"end": 10**30},
                {"end": -(10**30)},
                {"label": ""},
                {"label": 1},
                {"score": "high"},
                {"score": True},
                {"score": float("nan")},
                {"score": float("inf")},
                {"score": 10**400},
                {"text": "Anna"},
                {"text": 3},
            )
        ),
        {"text": "Ann", "entities": [ENTITY], "annotated": []},
        {"text": "Ann", "entities": [ENTITY], "annotated": "per"},
        {"text": "Ann", "entities": [], "words": [[0, 4]]},
        {"text": "Ann", "entities": [], "words": [[0, 2], [1, 3]]},
        {"text": "Ann", "entities": [], "words": [[0]]},
        {"text": "Ann", "entities": [], "words": [[False, True]]},
        {"text": "Ann", "entities": [], "id": 1.5},
        {"text": json.loads("[" * 60 + "]" * 60)},
    ],
    "tokens": [
        {"tokens": "Ann"},
        {"tokens": ["Ann", 1]},
        {"tokens": ["Ann", ""]},
        {"tokens": ["Ann"], "entities": [{"start": 0, "end": 2, "type": "x"}]},
        {"tokens": ["Ann"], "entities": [{"start": 0, "end": 0, "type": "x"}]},
        {"tokens": ["Ann"], "entities": [{"start": -1, "end": 1, "type": "x"}]},
        {"tokens": ["Ann"], "entities": [{"start": 0, "end": 1, "type": ""}]},
        {"tokens": ["Ann"], "entities": [{"start": 0, "end": 1, "label": "x"}]},
        {"tokens": ["Ann"], "entities": [], "absent": [1]},
        {"tokens": ["Ann"], "entities": [{"start": 0, "end": 1, "type": "x"}], "queried_types": ["y"]},
        {"tokens": ["Ann"], "entities": [], "text": "Bob"},
    ],
    "doccano": [
        {"label": []},
        {"text": "Ann", "label": [[0, 3]]},
        {"text": "Ann", "label": [[0, 3, 1]]},
        {"text": "Ann", "label": [[0, 4, "x"]]},
        {"text": "Ann", "label": ["positive"]},
        {"text": "Ann", "entities": [{"start_offset": 0, "label": "x"}]},
    ],
    "gliner": [
        {"tokenized_text": ["Ann"], "ner": None},
        {"tokenized_text": ["Ann"], "ner": [[0, 1, "x"]]},
        {"tokenized_text": ["Ann"], "ner": [[0, 10**30, "x"]]},
        {"tokenized_text": ["Ann"], "ner": [[1, 0, "x"]]},
        {"tokenized_text": "Ann", "ner": []},
    ],
}


@pytest.mark.parametrize(("format", "record"), [(format, record) for format in WRONG for record in WRONG[format]])
def test_an_invalid_record_is_an_error_with_its_line_and_an_example(tmp_path: Path, format: str, record: Any) -> None:
    good = {"jsonl": JSONL, "tokens": {"tokens": ["Ann"]}, "doccano": {"text": "Ann"}}
    with pytest.raises(DataError) as caught:
        parsed(tmp_path, good.get(format, {"tokenized_text": [], "ner": []}), record, format=format)
    assert caught.value.line == 2
    assert "a record looks like {" in caught.value.fix


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "a"',
        "{'text': 'a'}",
        '{"text": "a"} {"text": "b"}',
        '{"text": "\\ud83d"}',
        '{"text": "a", "id": ' + "1" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 100_000,
        f'{{"text": "a", "meta": {"[" * 500}{"]" * 500}}}',
        "\x00" * 5000,
        "not json",
    ],
)
def test_invalid_json_is_an_error_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n\n' + line + "\n")
    with pytest.raises(DataError) as caught:
        list(read(path))
    assert caught.value.line == 3


def test_surrogate_pairs_are_characters(tmp_path: Path) -> None:
    (document,) = parsed(tmp_path, {"text": "😀 ran", "entities": []}, format="jsonl")  # dumped as \ud83d\ude00
    assert document.text == "😀 ran"


def test_an_unpaired_surrogate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[\n{"text": "\\udc00"}]')
    with pytest.raises(DataError, match="surrogate"):
        list(read(tmp_path / "a.json", "jsonl"))
