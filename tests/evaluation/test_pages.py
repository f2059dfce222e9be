"""The report as a page: complete, safe, and without what there is nothing to show of."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from onoma import Corpus, Document, EntityType, Extractor, OnomaError
from onoma.evaluation.analysis import Study, analyse, study
from onoma.evaluation.history import History, StageHistory
from onoma.evaluation.pages import render_report, require_report, write_report
from tiny import corpus, documents

HOSTILE = '<script>alert(1)</script> & "q" $x$ url(#a) id="z"'


class Page(HTMLParser):
    """What tests look at: headings, elements, ids, addresses, scripts and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.ids, self.addresses, self.handlers = list[str](), list[str](), list[str](), list[str]()
        self.headings, self.text, self._open = list[str](), "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open = tag
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href") and not (value or "").startswith("#"):
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_data(self, data: str) -> None:
        if self._open in ("h1", "h2", "h3") and data.strip():
            self.headings.append(data.strip())
        if self._open not in ("script", "style"):
            self.text += data
        self._open = ""


@pytest.fixture(scope="module")
def small() -> Corpus:
    return Corpus("small", documents()[::9], corpus().types)


@pytest.fixture(scope="module")
def page(ner: Extractor, small: Corpus) -> Page:
    wrong = [*small.documents[:-1], Document.from_spans("Tom likes soup .", [(10, 14, "city")])]
    return Page(render_report(study({"tiny": ner}, [Corpus("small", wrong, small.types)], training=corpus())))


def test_a_page_has_all_sections_and_needs_no_other_file(page: Page) -> None:
    for title in (
        "Scores",
        "Scores by type",
        "Confused types",
        "Kinds of errors",
        "Errors in context",
        "Length, frequency, nesting",
        "Calibration",
        "Thresholds",
        "Scores of mentions and other spans",
        "Vectors of mentions",
        "About this report",
    ):
        assert title in page.headings
    assert "Training" not in page.headings  # the model does not belong to a run
    assert page.addresses == []
    assert page.tags.count("svg") >= 8
    assert "By whether the mention and its type are in the training data" in page.text


def test_ids_are_unique(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))


def test_texts_and_labels_are_not_read_as_html(ner: Extractor) -> None:
    text = "</script><img src=x onerror=alert(2)> Tom <b>flew</b> to Paris ."
    spans = [
        (text.index(word), text.index(word) + len(word), label) for word, label in (("Tom", HOSTILE), ("Paris", "city"))
    ]
    hostile = Corpus("<i>name</i>", [Document.from_spans(text, spans)] * 3)
    rendered = render_report(study({"<b>model</b>": ner}, [hostile]))
    found = Page(rendered)
    assert not {"img", "b", "i"} & set(found.tags) - {"b"}
    assert found.tags.count("script") == 1
    assert found.handlers == found.addresses == []
    assert HOSTILE in found.text
    assert "<b>model</b>" in found.headings
    assert "<img src=x onerror=alert(2)>" in found.text


def test_several_models_are_compared_with_the_first(ner: Extractor, small: Corpus) -> None:
    strict = [analyse(ner, small, name, threshold=value) for name, value in (("usual", None), ("strict", 0.999))]
    compared = Study([strict])
    own, difference = compared.differences()[0]
    assert own is None
    assert difference is not None
    assert difference.f1.value < 0
    found = Page(render_report(compared))
    assert "F1 minus usual" in found.text
    assert "compared with strict" in found.text
    assert "F1 of strict" in found.text


@pytest.mark.parametrize(
    "empty", [Corpus("none", []), Corpus("asked", [Document("It .")], (EntityType("city"),))], ids=["none", "asked"]
)
def test_corpora_without_gold_mentions_are_refused(ner: Extractor, small: Corpus, empty: Corpus) -> None:
    with pytest.raises(OnomaError, match="has no"):
        study({"tiny": ner}, [small, empty])


def test_one_document_has_no_interval(ner: Extractor, small: Corpus) -> None:
    one = Corpus("one", small.documents[:1], small.types)
    found = Page(render_report(study({"a": ner, "b": ner}, [one])))
    assert "A corpus of one document cannot be resampled" in found.text
    assert "100.00 – 100.00" not in found.text


def test_errors_of_all_models_are_shown_with_the_models_that_find_the_mention(ner: Extractor, small: Corpus) -> None:
    rows = [analyse(ner, small, name, threshold=value) for name, value in (("usual", None), ("strict", 0.999))]
    page = render_report(Study([rows]))
    assert 'data-model="strict"' in page
    assert "found by usual" in page


def test_a_long_table_of_types_is_folded(ner: Extractor) -> None:
    text = "Tom flew to Paris ."
    documents = [Document.from_spans(text, [(0, 3, f"type {number}")]) for number in range(30)]
    page = render_report(study({"tiny": ner}, [Corpus("many", documents)]))
    assert "<summary>All 30 types</summary>" in page


def test_a_corpus_without_errors(ner: Extractor) -> None:
    perfect = Corpus("perfect", [Document.from_spans("Tom flew to Paris .", [(0, 3, "person"), (12, 17, "city")])])
    assert "There are no errors." in Page(render_report(study({"tiny": ner}, [perfect]))).text


def test_learning_curves_of_the_run(ner: Extractor, small: Corpus) -> None:
    history = History((StageHistory("contrast", {"training loss": ((1, 2.0), (2, 1.0)), "dev F1": ((2, 40.0),)}),), {})
    found = Page(render_report(Study([[analyse(ner, small, "tiny")]], history)))
    assert "Training" in found.headings
    assert "contrast" in found.text


def test_a_report_is_written_to_a_file(ner: Extractor, small: Corpus, tmp_path: Path) -> None:
    found = study({"tiny": ner}, [small])
    write_report(found, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page == render_report(study({"tiny": ner}, [small]))  # equal results give equal files


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("jinja2", "matplotlib.figure"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(OnomaError, match=re.escape('pip install "onoma[report]"')):
                require_report()
