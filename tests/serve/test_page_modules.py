"""The scripts and colours of the page, compared with the library."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Route

import onoma.serve
from onoma import Document
from onoma.data import read
from onoma.decoding import Proposals, decode, ranking_scores
from onoma.decoding.decode import label_preferences

PAGE = Path(onoma.serve.__file__).parent / "page"
SITE = "http://page.test"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page that can import the scripts."""

    def answer(route: Route) -> None:
        name = route.request.url.removeprefix(f"{SITE}/")
        script = (PAGE / name).read_text(encoding="utf-8") if name.endswith(".js") else ""
        route.fulfill(body=script, content_type="text/javascript" if script else "text/html")

    opened = browser.new_page()
    opened.route(f"{SITE}/**", answer)
    opened.goto(f"{SITE}/")
    yield opened
    opened.close()


def call(page: Page, module: str, expression: str, value: Any) -> Any:
    """The value of an expression with the names of a module; `value` is its argument."""
    names = ", ".join(re.findall(r"^export (?:function\*? |class |const )(\w+)", (PAGE / module).read_text(), re.M))
    parsed = f"const {{ {names} }} = await import('/{module}'); const value = JSON.parse(text)"
    return page.evaluate(f"async (text) => {{ {parsed}; return {expression} }}", json.dumps(value))


# --- decoding

SCORES = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.8, 0.9])  # few, so that many are equal
LABELS = ("Zoo", "a", "misc", "\uff21", "\U00020bb7")
"""In the order of code points, in which the last two are not in the order of UTF-16 units; "misc" is a catch-all."""


@st.composite
def proposals(draw: st.DrawFn) -> Proposals:
    keys = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 4)), unique=True, max_size=30))
    scores = draw(st.lists(SCORES, min_size=len(keys), max_size=len(keys)))
    first, width, kind = (np.array(column, np.int64) for column in (zip(*keys, strict=True) if keys else ([], [], [])))
    return Proposals(np.zeros(len(keys), np.int64), first, first + width, kind, np.array(scores, np.float32))


PENALTIES = st.none() | st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=5, max_size=5)


@settings(max_examples=25)
@given(st.lists(st.tuples(proposals(), st.lists(SCORES, min_size=5, max_size=5), PENALTIES), min_size=20, max_size=20))
@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_decoding_is_that_of_the_library(page: Page, overlap: Any, cases: list[Any]) -> None:
    sent, wanted = [], []
    for rows, thresholds, penalties in cases:
        rank = ranking_scores(rows.score, rows.type, LABELS, ["misc"])
        preference = label_preferences(rows, LABELS, ["misc"], penalties)
        columns = zip(rows.first, rows.last, rows.type, rows.score, rank, preference, strict=True)
        candidates = [
            {
                "start": int(a) * 4,
                "end": int(b) * 4 + 3,
                "label": LABELS[kind],
                "score": float(score),
                "rank": float(r),
                "preference": float(p),
            }
            for a, b, kind, score, r, p in columns
        ]
        sent.append([candidates, dict(zip(LABELS, thresholds, strict=True))])
        found = decode(rows, LABELS, thresholds=thresholds, overlap=overlap, catch_all=["misc"], penalties=penalties)
        decoded = zip(found.first, found.last, found.type, strict=True)
        wanted.append([[int(a) * 4, int(b) * 4 + 3, LABELS[kind]] for a, b, kind in decoded])
    expression = (
        "value.map(([rows, limits]) => decode(rows, (one) => limits[one.label], "
        f"{json.dumps(overlap)}).map((one) => [one.start, one.end, one.label]))"
    )
    assert call(page, "decode.js", expression, sent) == wanted


# --- offsets and files

TEXTS = st.text(st.sampled_from("aé 中𠮷😀👩\u200d🇳🇴\u0301\n.,'5"), max_size=30)


@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_offsets_are_those_of_python(page: Page, texts: list[str]) -> None:
    expression = """value.map((text) => {
        const points = new CodePoints(text);
        const all = Array.from({ length: points.length + 1 }, (_, point) => point);
        return { length: points.length, units: all.map((point) => points.toUtf16(point)),
                 back: all.map((point) => points.toPoint(points.toUtf16(point))),
                 prefixes: all.map((point) => points.slice(0, point)) } })"""
    for text, found in zip(texts, call(page, "offsets.js", expression, texts), strict=True):
        places = range(len(text) + 1)
        assert found["length"] == len(text)
        assert found["units"] == [len(text[:place].encode("utf-16-le")) // 2 for place in places]
        assert found["back"] == list(places)
        assert found["prefixes"] == [text[:place] for place in places]


@st.composite
def documents(draw: st.DrawFn) -> Document:
    text = draw(TEXTS.filter(lambda text: bool(text.strip())))
    is_inside = [not letter.isspace() for letter in text]
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [
        (start, end, draw(st.sampled_from(["drug", "人名"])))
        for start, end in zip(places[::2], places[1::2], strict=False)
        if is_inside[start] and is_inside[end - 1]
    ]
    return Document.from_spans(text, spans)


@pytest.mark.parametrize("name", ["JSONL", "CoNLL"])
@given(st.lists(documents(), min_size=1, max_size=10))
def test_files_hold_what_was_found(
    page: Page, tmp_path_factory: pytest.TempPathFactory, name: str, given: list[Document]
) -> None:
    sent = [
        {
            "text": one.text,
            "entities": [{"start": e.start, "end": e.end, "label": e.label, "score": 1} for e in one.entities],
        }
        for one in given
    ]
    expression = f"""await import('/offsets.js').then(({{ CodePoints }}) =>
        FORMATS.{name}.write(value.map((one) => ({{ ...one, points: new CodePoints(one.text) }}))))"""
    file = tmp_path_factory.mktemp("saved") / f"saved.{name.lower()}"
    file.write_text(call(page, "formats.js", expression, sent), encoding="utf-8", newline="")
    found = [(one.text, [e.key for e in one.entities]) for one in read(file)]
    assert found == [(one.text, [e.key for e in one.entities]) for one in given]


# --- colours

# Machado, Oliveira & Fernandes (2009): linear RGB as people without one kind of cones see it
COLOUR_VISION = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
WHITE = [0.95047, 1.0, 1.08883]


def themes() -> dict[str, tuple[list[str], list[str]]]:
    """The colours of labels and the backgrounds on which they lie, for each theme."""
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    labels = re.findall(r"\.colour-\d \{ --c: light-dark\((#\w{6}), (#\w{6})\) \}", style)
    grounds = [
        re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", style).groups() for name in ("page", "card")
    ]  # type: ignore[union-attr]
    assert len(labels) == 6
    return {
        theme: ([pair[side] for pair in labels], [pair[side] for pair in grounds])
        for side, theme in enumerate(("light", "dark"))
    }


def linear(colour: str) -> NDArray[np.float64]:
    value = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    dark, light = sorted(float(linear(colour) @ TO_XYZ[1]) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y, z = np.cbrt(np.maximum(np.array(TO_XYZ) @ np.clip(rgb, 0, 1) / WHITE, 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_of_labels_can_be_read(theme: str) -> None:
    colours, grounds = themes()[theme]
    assert min(contrast(colour, ground) for colour in colours for ground in grounds) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("vision", COLOUR_VISION)
def test_labels_are_told_apart_by_everybody(theme: str, vision: str) -> None:
    seen = [lab(np.array(COLOUR_VISION[vision]) @ linear(colour)) for colour in themes()[theme][0]]
    assert min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(seen, 2)) > 18
