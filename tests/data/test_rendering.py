"""Output of entities: tables, JSON, JSON lines and HTML."""

from __future__ import annotations

import colorsys
import csv
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from rich.console import Console

from onoma import Document, Entity, OnomaError
from onoma.data import read, rendering
from onoma.data.rendering import (
    DARK,
    LIGHT,
    as_html,
    as_json,
    as_jsonl,
    as_table,
    write_csv,
    write_documents,
    write_parquet,
    write_tables,
)
from onoma.data.texts import Located

TOM = Document(
    "Tom <3\n[red] Paris & Co",
    (
        Entity(0, 3, "Tom", "person", 0.91239),
        Entity(13, 18, "Paris", "city"),
        Entity(13, 23, "Paris & Co", 'a "b" <c>', 0.5),
    ),
    id="<1>",
)
EMPTY = Document("nothing here")


class Page(HTMLParser):
    """A parsed page: the text of its paragraphs and the highlighted spans in them, as (start, end, label)."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.marks: list[list[tuple[int, int, str]]] = []
        self.legend: list[str] = []
        self.open: list[tuple[str, int, str]] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self.texts.append("")
            self.marks.append([])
        if tag not in ("meta",):
            label = (dict(attributes).get("title") or "").rpartition(",")[0]
            self.open.append((tag, len(self.texts[-1]) if self.texts else 0, label))

    def handle_endtag(self, tag: str) -> None:
        opened, start, label = self.open.pop()
        assert opened == tag
        if tag == "mark" and label:
            self.marks[-1].append((start, len(self.texts[-1]), label))

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _, _ in self.open]
        if tags[-1:] == ["mark"] and "li" in tags:
            self.legend.append(data)
        elif "p" in tags and tags[-1] != "span":
            self.texts[-1] += data


def page(documents: list[Document], labels: list[str]) -> Page:
    return Page("".join(as_html(documents, labels)))


def test_a_page_has_each_text_with_its_entities_and_a_legend() -> None:
    parsed = page([TOM, EMPTY], ["person", "city", 'a "b" <c>'])
    assert parsed.texts == [TOM.text, EMPTY.text]
    assert sorted(parsed.marks[0]) == [(0, 3, "person"), (13, 18, "city"), (13, 23, 'a "b" <c>')]
    assert parsed.marks[1] == []
    assert parsed.legend == ["person", "city", 'a "b" <c>']


def test_a_page_has_no_external_resources_and_no_scripts() -> None:
    html = "".join(as_html([Document("<script>alert(1)</script>", (), id="<script>")], ["<script>"]))
    assert "<script" not in html
    assert "http" not in html
    assert "src=" not in html
    assert "prefers-color-scheme: dark" in html


def test_labels_are_written_and_not_only_coloured() -> None:
    assert "<span>city</span>Paris</mark>" in "".join(as_html([TOM], ["city"]))


@st.composite
def overlapping(draw: st.DrawFn) -> Document:
    text = draw(st.text("ab<&\"' \n", min_size=1, max_size=12))
    edges = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted).filter(lambda e: e[0] < e[1])
    spans = draw(st.lists(st.tuples(edges, st.sampled_from("XYZ")), max_size=6, unique_by=str))
    return Document.from_spans(text, [(start, end, label) for (start, end), label in spans])


@given(st.lists(overlapping(), max_size=3))
def test_all_entities_are_highlighted_in_full_however_they_overlap(documents: list[Document]) -> None:
    parsed = page(documents, ["X", "Y", "Z"])
    assert parsed.texts == [document.text for document in documents]
    for document, marks in zip(documents, parsed.marks, strict=True):
        for label in "XYZ":
            covered = [sum(start <= place < end for start, end, name in marks if name == label) for place in range(12)]
            expected = [
                sum(one.start <= place < one.end for one in document.entities if one.label == label)
                for place in range(12)
            ]
            assert covered == expected


@pytest.mark.parametrize(("background", "ink"), [(LIGHT, 0x1B), (DARK, 0xF2)])
def test_highlighted_text_has_enough_contrast_in_every_colour(background: tuple[int, int], ink: int) -> None:
    def luminance(red: float, green: float, blue: float) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    saturation, lightness = background
    for hue in range(360):
        dark, light = sorted(
            (luminance(*colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)), luminance(*[ink / 255] * 3))
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2.2, level AA


def test_json_is_an_array_of_documents() -> None:
    first, second = json.loads("".join(as_json([TOM, EMPTY])))
    assert first["text"] == TOM.text
    assert first["entities"][0] == {"start": 0, "end": 3, "text": "Tom", "label": "person", "score": 0.9124}
    assert second == {"text": "nothing here", "entities": []}
    assert json.loads("".join(as_json([]))) == []


def test_json_lines_are_in_the_format_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    write_documents([TOM, EMPTY], ["person"], "jsonl", path)
    assert [[one.key for one in document.entities] for document in read(path)] == [
        [one.key for one in TOM.entities],
        [],
    ]
    assert len("".join(as_jsonl([TOM, EMPTY])).splitlines()) == 2


@pytest.mark.parametrize("identifier", ["a", 7])
def test_json_keeps_the_id_and_other_fields_of_the_source(identifier: str | int) -> None:
    document = replace(TOM, id=identifier, meta={"source": "news", "entities": "of the source", "text": None})
    (record,) = json.loads("".join(as_json([document])))
    assert json.loads("".join(as_jsonl([document]))) == record
    assert (record["id"], record["source"]) == (identifier, "news")
    assert record["text"] == TOM.text
    assert len(record["entities"]) == 3


class Flushes(io.StringIO):
    """A file that remembers what had been written at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[str] = []

    def flush(self) -> None:
        super().flush()
        self.flushed.append(self.getvalue())


@pytest.mark.parametrize("form", ["json", "jsonl", "html"])
def test_each_document_is_flushed_before_the_next_is_read(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Flushes()
    monkeypatch.setattr(sys, "stdout", output)

    def documents() -> Iterator[Document]:
        for number in range(3):
            yield Document(f"text {number}")
            assert f"text {number}" in output.flushed[-1]

    write_documents(documents(), [], form)  # type: ignore[arg-type]
    assert output.flushed[-1] == output.getvalue()
    assert output.getvalue().count("text ") == 3


def test_standard_output_is_utf8_in_any_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii"))
    write_documents([Document("北京 Å")], [], "jsonl")
    sys.stdout.flush()
    assert json.loads(buffer.getvalue().decode("utf-8"))["text"] == "北京 Å"


Rows = list[tuple[int, Entity]]


def rows_of(*documents: Document) -> Rows:
    return [(number, entity) for number, document in enumerate(documents, start=1) for entity in document.entities]


def printed(rows: Rows) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(as_table(rows))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_table_has_one_row_per_entity() -> None:
    table = printed(rows_of(Document.from_spans("in New\nYork [b]", [(3, 11, "city"), (12, 15, "[i]")])))
    assert "New York" in table
    assert "[b]" in table
    assert "[i]" in table
    assert "document" not in table


def test_a_table_numbers_documents_if_there_are_several() -> None:
    table = printed(rows_of(EMPTY, TOM))
    assert "document" in table
    assert [line.split()[1] for line in table.splitlines() if "Tom" in line] == ["2"]


def test_a_table_has_no_control_characters() -> None:
    table = printed(rows_of(Document.from_spans("Tom\x1b[31m\x9bRed", [(0, 12, "person")])))
    assert "Tom\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}Red" in table
    assert "\x1b" not in table


def test_rows_are_printed_while_entities_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "SECONDS_BETWEEN_TABLES", -1.0)
    monkeypatch.setenv("COLUMNS", "100")
    output = Flushes()
    monkeypatch.setattr(sys, "stdout", output)

    def sections() -> Iterator[tuple[int, tuple[Entity, ...]]]:
        yield 1, (Entity(0, 3, "Tom", "person"),)
        assert "Tom" in output.flushed[-1]
        yield 2, ()  # a text without entities prints nothing
        yield 3, (Entity(4, 7, "Ann", "person"), Entity(40_000, 40_005, "Paris", "city"))
        assert "Paris" in output.flushed[-1]

    write_tables(sections())
    lines = [line for line in output.getvalue().splitlines() if line.strip()]
    assert sum("document" in line for line in lines) == 1  # one header
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "1.00" in line]
    assert rows == [
        ["1", "0", "3", "Tom", "person", "1.00"],
        ["3", "4", "7", "Ann", "person", "1.00"],
        ["3", "40000", "40005", "Paris", "city", "1.00"],
    ]
    assert len({tuple(place for place, sign in enumerate(line) if sign == "│") for line in lines if "│" in line}) == 1


def test_quick_output_is_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    write_tables([(number, TOM.entities) for number in (1, 2, 3)])
    assert capsys.readouterr().out.count("┏") == 1
    write_tables([])
    assert "score" in capsys.readouterr().out  # the header alone


@pytest.mark.parametrize("form", ["json", "jsonl", "html"])
def test_files_and_standard_output_have_the_same_documents(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_documents([TOM], ["person"], form, tmp_path / "out")  # type: ignore[arg-type]
    write_documents([TOM], ["person"], form)  # type: ignore[arg-type]
    output = capsys.readouterr().out
    assert "person" in output
    assert (tmp_path / "out").read_text("utf-8") == output


def test_files_and_standard_output_have_the_same_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tables([(1, TOM.entities)], tmp_path / "out")
    write_tables([(1, TOM.entities)])
    output = capsys.readouterr().out
    assert "person" in output
    assert (tmp_path / "out").read_text("utf-8") == output


LOCATED = [Located("a.txt", 1, TOM), Located("b.jsonl", 2, EMPTY), Located("b.jsonl", 3, replace(TOM, id=None))]


def test_csv_has_one_row_per_entity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(LOCATED, tmp_path / "found.csv")
    write_csv(LOCATED)
    assert capsys.readouterr().out == (tmp_path / "found.csv").read_text("utf-8")
    with open(tmp_path / "found.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], row["document"], row["id"]) for row in rows] == [("a.txt", "1", "<1>")] * 3 + [
        ("b.jsonl", "3", "")
    ] * 3
    found = [(int(row["start"]), int(row["end"]), row["text"], row["label"]) for row in rows[:3]]
    assert found == [(one.start, one.end, one.text, one.label) for one in TOM.entities]
    assert [row["score"] for row in rows[:3]] == ["0.9124", "1.0", "0.5"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_csv_keeps_every_character(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("csv") / "found.csv"
    write_csv([Located("", 1, Document(text, (Entity(0, len(text), text, "a,b"),)))], path)
    with open(path, newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["text"], row["label"]) == (text, "a,b")


def test_parquet_has_one_row_per_entity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "ROWS_PER_GROUP", 4)
    write_parquet(iter(LOCATED), tmp_path / "found.parquet")
    table = parquet.read_table(tmp_path / "found.parquet")
    assert parquet.ParquetFile(tmp_path / "found.parquet").num_row_groups == 2
    assert table.column_names == ["file", "document", "id", "start", "end", "text", "label", "score"]
    rows = table.to_pylist()
    assert [(row["file"], row["document"], row["id"]) for row in rows[2:4]] == [
        ("a.txt", 1, "<1>"),
        ("b.jsonl", 3, None),
    ]
    rounded = [replace(one, score=round(one.score, 4)) for one in TOM.entities]
    assert [Entity(*(row[name] for name in table.column_names[3:])) for row in rows] == rounded * 2  # as in CSV
    write_parquet([], tmp_path / "empty.parquet")
    assert parquet.read_table(tmp_path / "empty.parquet").schema == table.schema


def test_parquet_needs_a_file() -> None:
    with pytest.raises(OnomaError, match=r"Fix: --output found\.parquet"):
        write_parquet(LOCATED, None)


def test_tables_name_documents_of_several_files(capsys: pytest.CaptureFixture[str]) -> None:
    write_tables([("b.jsonl:3", TOM.entities[:1]), ("a.txt", TOM.entities[1:2])])
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows if row] == ["b.jsonl:3", "a.txt"]


def test_pages_name_the_file_of_a_document_without_an_id() -> None:
    page = "".join(as_html([Document("Tom", meta={"file": "a&b.txt"}), replace(TOM, meta={"file": "b.txt"})], []))
    assert "<h2>a&amp;b.txt</h2>" in page
    assert "<h2>&lt;1&gt;</h2>" in page


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    def documents() -> Iterator[Document]:
        yield TOM
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_documents(documents(), [], "jsonl", tmp_path / "out.jsonl")
    assert not any(tmp_path.iterdir())
