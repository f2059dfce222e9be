from __future__ import annotations

import colorsys
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from onoma import Document, Entity
from onoma.data import read
from onoma.rendering import DARK, LIGHT, as_html, as_json, as_jsonl, as_table, write

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
    """What a browser makes of a page: the text of its paragraphs and the marks in them, as (start, end, label)."""

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


def test_a_page_shows_each_text_with_its_marks() -> None:
    shown = page([TOM, EMPTY], ["person", "city", 'a "b" <c>'])
    assert shown.texts == [TOM.text, EMPTY.text]
    assert sorted(shown.marks[0]) == [(0, 3, "person"), (13, 18, "city"), (13, 23, 'a "b" <c>')]
    assert shown.marks[1] == []
    assert shown.legend == ["person", "city", 'a "b" <c>']


def test_a_page_needs_nothing_from_elsewhere_and_runs_nothing() -> None:
    html = "".join(as_html([Document("<script>alert(1)</script>", (), id="<script>")], ["<script>"]))
    assert "<script" not in html
    assert "http" not in html
    assert "src=" not in html
    assert "prefers-color-scheme: dark" in html


def test_the_label_is_there_for_those_who_see_no_colours() -> None:
    assert "<span>city</span>Paris</mark>" in "".join(as_html([TOM], ["city"]))


@st.composite
def overlapping(draw: st.DrawFn) -> Document:
    text = draw(st.text("ab<&\"' \n", min_size=1, max_size=12))
    edges = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(sorted).filter(lambda e: e[0] < e[1])
    spans = draw(st.lists(st.tuples(edges, st.sampled_from("XYZ")), max_size=6, unique_by=str))
    return Document.from_spans(text, [(start, end, label) for (start, end), label in spans])


@given(st.lists(overlapping(), max_size=3))
def test_marks_cover_what_the_entities_cover_however_they_overlap(documents: list[Document]) -> None:
    shown = page(documents, ["X", "Y", "Z"])
    assert shown.texts == [document.text for document in documents]
    for document, marks in zip(documents, shown.marks, strict=True):
        for label in "XYZ":
            covered = [sum(start <= place < end for start, end, name in marks if name == label) for place in range(12)]
            expected = [
                sum(one.start <= place < one.end for one in document.entities if one.label == label)
                for place in range(12)
            ]
            assert covered == expected


@pytest.mark.parametrize(("background", "ink"), [(LIGHT, 0x1B), (DARK, 0xF2)])
def test_marked_text_has_enough_contrast_in_every_colour(background: tuple[int, int], ink: int) -> None:
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


def test_json_lines_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    write([TOM, EMPTY], ["person"], "jsonl", path)
    assert [[one.key for one in document.entities] for document in read(path)] == [
        [one.key for one in TOM.entities],
        [],
    ]
    assert len("".join(as_jsonl([TOM, EMPTY])).splitlines()) == 2


def test_json_lines_are_written_as_documents_come() -> None:
    def documents() -> object:
        yield TOM
        raise RuntimeError("the second was asked for")

    assert json.loads(next(as_jsonl(documents())))["id"] == "<1>"  # type: ignore[arg-type]


def text_of(documents: list[Document]) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(as_table(documents))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_table_has_a_row_for_each_entity() -> None:
    table = text_of([Document.from_spans("in New\nYork [b]", [(3, 11, "city"), (12, 15, "[i]")])])
    assert "New York" in table
    assert "[b]" in table
    assert "[i]" in table
    assert "document" not in table
    assert "document" in text_of([EMPTY, TOM])


def test_a_table_sends_no_control_characters_to_a_terminal() -> None:
    table = text_of([Document.from_spans("Tom\x1b[31m\x9bRed", [(0, 12, "person")])])
    assert "Tom\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}Red" in table
    assert "\x1b" not in table


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "html"])
def test_files_and_standard_output_get_the_same(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write([TOM], ["person"], form, tmp_path / "out")  # type: ignore[arg-type]
    write([TOM], ["person"], form)  # type: ignore[arg-type]
    printed = capsys.readouterr().out
    assert "person" in printed
    assert (tmp_path / "out").read_text("utf-8") == printed
