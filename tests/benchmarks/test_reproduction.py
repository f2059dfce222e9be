"""The page with the tables of the papers, and the parts of other pages that are made from records."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from onoma import OnomaError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from figures import Figure, Figures, published_number
from papers import Papers, published_figure, read_papers
from reproduction import Verdict, judge, render, render_part
from tables import fill_parts, pages, stale

ROOT = Path(__file__).parents[2]
INDEX = """
papers: [tiny]
encoders: {large: the large one, small: the small one}
"""
TINY = """
title: Tiny
reference: A Tiny Paper, Nobody, 2020
page: systems/tiny.md
without_results: Figure 9 is no result.
tables:
  - name: Table 1
    about: two systems
    encoder: theirs
    encoders: [large]
    columns: {Secret: null, News: news, Talk: talk, mean: news+talk}
    rows:
      - name: ours to be
        ours: tiny/full/{}/*/f1
        paper: [99.0, 80.5, 70]
      - name: plain
        ours: tiny/plain/{}/*/f1
        paper: [98.0, 80.0, 60]
      - name: of others
        paper: [97.0]
    command: python benchmarks/tables.py tiny
    differences:
      - News is at {tiny/full/news/small/f1 minus paper:tiny/full/news/*/f1} against the paper.
      - Large has {tiny/full/news/large/f1}.
      - Talk has {tiny/full/talk/small/f1 percent of tiny/full/news/small/f1} of news.
    claims:
      - text: Full is better than plain
        more: tiny/full/news/*/f1
        less: tiny/plain/news/*/f1
        guess: the moon was full
      - text: Full is better on talk
        more: tiny/full/talk/*/f1
        less: tiny/plain/talk/*/f1
        p_value: tiny/plain/talk/*/p_value
  - name: Figure 1
    about: a picture
    encoder: theirs
    pictures: [images/tiny.svg]
"""


def record(metric: str, value: float, seeds: int = 3, spread: float | None = 0.5, **others: Any) -> dict[str, Any]:
    rest = {"paper": None, "command": "python x.py", "commit": "c", "data": "d", "machine": "m"}
    return {"metric": metric, "value": value, "seeds": list(range(seeds)), "spread": spread, **rest, **others}


RECORDS = [
    record("tiny/full/news/small/f1", 79.5),
    record("tiny/full/talk/small/f1", 71.25, seeds=1, spread=None, historic="lost"),
    record("tiny/full/news/base/f1", 82.0, spread=0.25),
    record("tiny/plain/news/small/f1", 79.0),
    record("tiny/plain/news/base/f1", 81.0, spread=0.25),
    record("tiny/plain/talk/small/f1", 70.0),
]


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    (tmp_path / "index.yaml").write_text(INDEX)
    (tmp_path / "tiny.yaml").write_text(TINY)
    return read_papers(tmp_path)


@pytest.fixture
def figures(papers: Papers) -> Figures:
    return Figures(RECORDS, papers.published())


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "systems").mkdir(parents=True)
    return folder


def lines_with(page: str, start: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith(start)]


# --- tables


def test_every_encoder_with_records_has_a_line_and_the_wanted_one_too(
    papers: Papers, figures: Figures, docs: Path
) -> None:
    large, small, base = lines_with(render(papers, figures, docs), "| ours to be ")
    assert large == (
        "| ours to be | large | – | – (99.0) | not measured (80.5) | not measured (70) | not measured (75.25) |"
    )
    assert small == "| ours to be | small | 1–3 | – (99.0) | 79.50 ± 0.50 (80.5) | 71.25 † (70) | 75.38 † (75.25) |"
    assert base.startswith(
        "| ours to be | base | 3 | – (99.0) | 82.00 ± 0.25 (80.5) | not measured (70) | not measured"
    )


def test_a_row_that_nobody_measures_shows_the_paper_only(papers: Papers, figures: Figures, docs: Path) -> None:
    assert lines_with(render(papers, figures, docs), "| of others") == ["| of others | – | – | – (97.0) | – | – | – |"]


def test_the_spread_of_a_mean_over_corpora_is_that_of_its_parts(papers: Papers) -> None:
    rows = [record("a/b/x/e/f1", 10.0, spread=1.0), record("a/b/y/e/f1", 20.0, seeds=2, spread=3.0)]
    assert Figures(rows, {}).by_encoder("a/b/x+y/*/f1") == {"e": Figure(15.0, 2.0, 2)}
    assert Figures(rows[:1], {}).by_encoder("a/b/x+y/*/f1") == {}


def test_published_figures_keep_their_decimals() -> None:
    assert [published_number(one) for one in (90.0, 93.34, 2571, 220000000)] == [
        "90.0",
        "93.34",
        "2,571",
        "220,000,000",
    ]


# --- sentences and claims


def test_sentences_have_the_figures_of_records_or_are_left_out(papers: Papers, figures: Figures, docs: Path) -> None:
    page = render(papers, figures, docs)
    assert "- News is at −1.00 against the paper." in page
    assert "- Talk has 90% of news." in page
    assert "- Large has" not in page


@pytest.mark.parametrize(
    ("more", "less", "verdict"),
    [
        (Figure(80.0, 0.2, 3), Figure(79.0, 0.3, 3), Verdict.SEEN),
        (Figure(79.0, 0.2, 3), Figure(80.0, 0.3, 3), Verdict.OPPOSITE),
        (Figure(79.5, 0.2, 3), Figure(79.0, 0.3, 3), Verdict.UNCLEAR),
        (Figure(80.0, None, 1), Figure(70.0, 0.3, 3), Verdict.ONE_SEED),
        (Figure(80.0, 0.1, 3), Figure(70.0, None, 0), Verdict.SEEN),
    ],
)
def test_a_claim_is_seen_if_the_difference_exceeds_both_spreads(more: Figure, less: Figure, verdict: Verdict) -> None:
    assert judge(more, less) is verdict


def test_a_test_of_both_sides_decides_if_there_is_one(papers: Papers) -> None:
    more, less = Figure(80.0, None, 1), Figure(79.0, None, 1)
    assert judge(more, less, Figure(0.01)) is Verdict.SEEN
    assert judge(less, more, Figure(0.01)) is Verdict.OPPOSITE
    assert judge(more, less, Figure(0.2)) is Verdict.UNCLEAR
    rows = [*RECORDS, record("tiny/plain/talk/small/p_value", 0.0123, spread=None)]
    assert "small +1.25 (p = 0.012): seen." in render_part("claims", "tiny", papers, Figures(rows, {}))


def test_claims_are_judged_for_each_encoder_and_explained_if_unseen(
    papers: Papers, figures: Figures, docs: Path
) -> None:
    page = render(papers, figures, docs)
    assert (
        "- Full is better than plain. Paper: +0.50. Ours: small +0.50: no difference beyond chance; "
        "base +1.00: seen. Best guess why: the moon was full."
    ) in page
    assert "- Full is better on talk. Paper: +10.00. Ours: small +1.25: one seed, no conclusion." in page
    assert "| [Tiny](#tiny) | 6 of 6 | 2 | 0 | 1 | 0 | 1 | 0 |" in page


def test_a_claim_without_guess_or_records_says_that_it_is_not_measured(papers: Papers, docs: Path) -> None:
    page = render(papers, Figures([], papers.published()), docs)
    assert "- Full is better than plain. Paper: +0.50. Ours: not measured." in page
    assert "moon" not in page


def test_a_side_with_one_other_encoder_is_compared_with_all(papers: Papers) -> None:
    rows = [record("tiny/full/news/large/f1", 90.0), record("tiny/plain/news/t5/f1", 80.0)]
    assert "large against t5 +10.00: seen" in render_part("claims", "tiny", papers, Figures(rows, {}))


# --- what is missing


def test_gaps_are_listed_below_the_command_that_closes_them(papers: Papers, figures: Figures, docs: Path) -> None:
    page = render(papers, figures, docs)
    assert "- `python benchmarks/tables.py tiny`\n    - Table 1 (large): ours to be; plain\n" in page
    assert "- no command yet\n    - Figure 1: `images/tiny.svg`\n" in page
    some = Figures([record("tiny/full/news/large/f1", 80.0)], {})
    assert "    - Table 1 (large): ours to be (Talk); plain\n" in render(papers, some, docs)


def test_a_picture_is_shown_once_it_is_drawn(papers: Papers, figures: Figures, docs: Path) -> None:
    assert "The picture is not drawn yet." in render(papers, figures, docs)
    (docs / "images").mkdir()
    (docs / "images" / "tiny.svg").write_text("<svg/>")
    page = render(papers, figures, docs)
    assert "![a picture](images/tiny.svg)" in page
    assert "no command yet" not in page


# --- pages


def test_what_stands_between_markers_is_replaced(papers: Papers, figures: Figures) -> None:
    text = "# Tiny\n\n<!-- table: tiny, Table 1 -->\nold\n<!-- end -->\n\nkept\n\n<!-- claims: tiny -->\n<!-- end -->\n"
    filled = fill_parts(text, papers, figures)
    assert "old" not in filled
    assert "kept" in filled
    assert "| ours to be | small |" in filled
    assert "- Full is better than plain." in filled
    assert fill_parts(filled, papers, figures) == filled


@pytest.mark.parametrize("marker", ["table: tiny, Table 7", "table: other, Table 1", "claims: other", "table: tiny"])
def test_unknown_markers_are_errors(marker: str, papers: Papers, figures: Figures) -> None:
    with pytest.raises(OnomaError, match=r"there is no .*Fix: write"):
        fill_parts(f"<!-- {marker} -->\n<!-- end -->", papers, figures)


def test_pages_are_stale_after_a_new_record(papers: Papers, docs: Path) -> None:
    system = docs / "systems" / "tiny.md"
    system.write_text("<!-- table: tiny, Table 1 -->\n<!-- end -->\n")
    (docs / "other.md").write_text("nothing of records\n")
    made = pages(docs, RECORDS, papers)
    assert stale(made) == [docs / "benchmarks.md", docs / "reproduction.md", system]
    for path, text in made.items():
        path.write_text(text)
    assert stale(pages(docs, RECORDS, papers)) == []
    added = [*RECORDS, record("tiny/full/news/large/f1", 83.0)]
    assert stale(pages(docs, added, papers)) == [docs / "benchmarks.md", docs / "reproduction.md", system]


# --- the files of the papers


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("about: two", "abuot: two", "abuot"),
        ("title: Tiny", "title: [", "while parsing"),
        ("paper: [97.0]", "paper: [1, 2, 3, 4, 5]", "more figures than columns"),
        ("ours: tiny/full/{}/*/f1", "ours: tiny/full/{}/f1", "a metric is"),
        ("more: tiny/full/news/*/f1", "more: tiny/full/news/large/f1", "a metric is"),
    ],
)
def test_mistakes_in_the_file_of_a_paper_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "index.yaml").write_text(INDEX)
    (tmp_path / "tiny.yaml").write_text(TINY.replace(old, new, 1))
    with pytest.raises(OnomaError, match=message):
        read_papers(tmp_path)


def test_no_metric_has_two_published_figures() -> None:
    found: dict[str, float] = {}
    for metric, figure in read_papers()._published():
        assert found.setdefault(metric, figure) == figure, metric


def test_records_have_the_published_figures_of_the_files() -> None:
    for path in (ROOT / "benchmarks/results").glob("*.json"):
        for row in json.loads(path.read_text(encoding="utf-8")):
            figure = published_figure(row["metric"])
            if figure is not None and row["paper"] is not None:
                assert row["paper"] == figure, row["metric"]


def test_sentences_name_metrics_that_are_in_a_table() -> None:
    papers = read_papers()
    tables = [table for paper in papers.papers.values() for table in paper.tables]
    known = {metric for table in tables for row in table.rows for metric in table.metrics(row).values() if metric}
    for table in tables:
        named = [
            re.sub(r"^paper:", "", one) for text in table.differences for one in re.findall(r"[^\s{}]+/[^\s{}]+", text)
        ]
        for metric in (one for one in named if one.count("/") == 4):
            system, setting, corpora, _, measure = metric.split("/")
            parts = [f"{system}/{setting}/{corpus}/*/{measure}" for corpus in corpora.split("+")]
            assert set(parts) <= known, (table.name, metric)


def test_commands_name_scripts() -> None:
    for paper in read_papers().papers.values():
        for table in paper.tables:
            for command in filter(None, (table.command, *(row.command for row in table.rows))):
                python, script, *_ = command.split()
                assert python == "python"
                assert (ROOT / script).is_file(), command
