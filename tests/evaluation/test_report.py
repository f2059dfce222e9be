"""Reports: all measures, JSON and tables."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings

from evaluation.strategies import entities, scored
from onoma import Corpus, Document, Entity, EntityType
from onoma.evaluation import Report, evaluate, render

TEXT = "Tom saw Ann in New York."
GOLD = [(0, 3, "person"), (8, 11, "person"), (15, 23, "city")]
PREDICTED = [(0, 3, "person"), (8, 11, "city"), (19, 23, "city"), (4, 7, "verb")]


@pytest.fixture
def report() -> Report:
    corpus = Corpus("tiny", [Document.from_spans(TEXT, GOLD)])
    training = Corpus("train", [Document.from_spans("TOM", [(0, 3, "person")])])
    return evaluate(corpus, [entities(TEXT, PREDICTED)], training=training)


def test_scores_computed_by_hand(report: Report) -> None:
    assert (report.corpus, report.documents, report.left_out) == ("tiny", 1, 1)  # "verb" is not in the inventory
    assert report.strict.micro.f1 == pytest.approx(1 / 3)
    assert report.end_only.micro.f1 == pytest.approx(2 / 3)  # "York" ends where "New York" does
    assert report.start_only.micro.f1 == pytest.approx(1 / 3)
    assert report.loose.micro.f1 == pytest.approx(2 / 3)
    assert report.spans.span.f1 == pytest.approx(2 / 3)
    assert report.spans.type_accuracy == 0.5
    assert report.semeval.exact.f1 == pytest.approx(2 / 3)
    assert report.slices.mention_length["2"].gold == 1
    assert report.slices.seen is not None
    assert report.slices.seen["seen"].recall == 1.0
    assert report.surface.normalised.micro.f1 == pytest.approx(1 / 3)


def test_the_short_form_has_the_main_scores(report: Report) -> None:
    scores = "precision 33.33, recall 33.33, f1 33.33"
    assert repr(report) == f"Report('tiny', 1 documents, strict micro: {scores})"


def test_the_dictionary_has_counts_and_scores_and_is_ready_for_json(report: Report) -> None:
    result = report.to_dict()
    assert json.loads(json.dumps(result)) == result
    assert result["strict"]["types"]["person"] == {
        "gold": 2,
        "predicted": 1,
        "found": 1,
        "correct": 1,
        "precision": 1.0,
        "recall": 0.5,
        "f1": pytest.approx(2 / 3),
    }
    assert result["strict"]["macro"]["types"] == 2
    assert result["semeval"]["type"]["possible"] == 3
    assert result["slices"]["nesting"]["flat"] == {"gold": 3, "found": 1, "recall": pytest.approx(1 / 3)}
    assert result["spans"]["type_accuracy"] == 0.5


PRESENT_OR_NOT = (".slices.seen", ".slices.frequency", ".intervals")


def test_the_keys_do_not_depend_on_the_data(report: Report) -> None:
    def keys(value: object, path: str = "") -> set[str]:
        if not isinstance(value, dict) or path.endswith(".types") or path in PRESENT_OR_NOT:
            return {path}
        return {path}.union(*(keys(item, f"{path}.{key}") for key, item in value.items()))

    empty = evaluate(Corpus("empty", [], (EntityType("person"),)), [])
    assert keys(empty.to_dict()) == keys(report.to_dict())


def test_tables_contain_the_scores_and_name_the_measures(report: Report) -> None:
    from rich.console import Console

    console = Console(width=150)
    with console.capture() as capture:
        console.print(render(report))
    printed = capture.get()
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines()]
    assert ["micro", "33.33", "33.33", "33.33", "3", "3"] in lines
    assert ["person", "100.00", "50.00", "66.67", "2", "1"] in lines
    assert not any(line[0] == "7+" for line in lines if line)  # no mention of that length
    assert "nesting" not in printed  # all mentions are flat
    assert ["2", "-", "0.00", "0.00", "1", "0"] in lines  # "New York" was missed
    assert ["exact", "66.67", "66.67", "66.67", "2", "1", "0", "0", "0"] in lines
    for words in ("same characters, same label", "SemEval 2013", "UniNER", "PUnifiedNER", "1 predictions of labels"):
        assert words in printed
    assert "Type accuracy of correct spans: 50.00" in printed


def test_column_headers_fit_into_80_columns(report: Report) -> None:
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as capture:
        console.print(render(report))
    assert "COR" in capture.get()
    assert "…" not in capture.get()


def test_brackets_in_labels_are_not_markup() -> None:
    from rich.console import Console

    console = Console(width=150)
    with console.capture() as capture:
        console.print(render(evaluate(Corpus("c", [Document.from_spans("Tom", [(0, 3, "[red]")])]), [[]])))
    assert "[red]" in capture.get()


@settings(max_examples=20)
@given(scored())
def test_any_report_can_be_printed(case: tuple[Corpus, list[list[Entity]]]) -> None:
    from rich.console import Console

    console = Console(width=150)
    with console.capture() as capture:
        console.print(render(evaluate(*case)))
    assert f"random: {len(case[0])} documents" in capture.get()


def test_importing_the_measures_does_not_import_rich() -> None:
    code = "import sys, onoma.evaluation; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
