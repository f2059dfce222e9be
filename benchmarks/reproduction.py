"""docs/reproduction.md: the tables and figures of the papers, the paper's figures and ours in one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path

from figures import HISTORIC, Figure, Figures, difference, published_number, ratio, table_line
from onoma.errors import OnomaError
from papers import Claim, Paper, PaperRow, Papers, PaperTable, is_mean, published_figure

NOT_MEASURED, NOTHING, NO_ENCODER = "not measured", "–", "none"
LARGEST_P = 0.05
HEAD = f"""\
# Reproduction

Every table and figure of the five papers, with the paper's figures and ours in one row. This page is generated from the
records in `benchmarks/results` and from `benchmarks/paper_tables` by `python benchmarks/tables.py`; do not edit it
by hand. Rows that a paper copies from other papers are left out.

- A cell is our figure ± the standard deviation over seeds (or repeats, for speeds), and in brackets the paper's.
  "{NOT_MEASURED}" means that there is no record yet; {NOTHING} that there is no such figure here, for the reason below
  the table. Of a mean over corpora, ± is the mean of their deviations, which is an upper bound.
- {HISTORIC} marks figures that cannot be measured again as they stand; the reason, the command, the commit and the
  machine of each figure are on the [benchmarks page](benchmarks.md).
- F1 is strict and micro-averaged, in percent, on test; everything is chosen on dev.
- Under *claims*, a difference counts as seen if it has the paper's sign and is larger than both deviations together or,
  where a paired bootstrap over sentences and seeds was made, its p is below {LARGEST_P}. With one seed on a side and no
  such test, nothing is concluded. A guess at the reason follows what is not seen.
"""


class Verdict(Enum):
    """Whether a claim of a paper is seen in our figures."""

    SEEN = "seen"
    UNCLEAR = "no difference beyond chance"
    OPPOSITE = "the opposite is seen"
    ONE_SEED = "one seed, no conclusion"
    MISSING = NOT_MEASURED


# --- the page


def render(papers: Papers, figures: Figures, docs: Path) -> str:
    """The whole page."""
    encoders = "; ".join(f"{name} ({what})" for name, what in papers.encoders.items())
    lines = [HEAD, f"Our encoders: {encoders}.", "", *_overview(papers, figures), ""]
    for paper in papers.papers.values():
        lines += [f"## {paper.title}", "", f"*{paper.reference}.* Code and options: [{paper.title}]({paper.page}).", ""]
        for table in paper.tables:
            lines += _section(table, papers, figures, docs)
        lines += [f"### Missing for {paper.title}", "", *missing(paper, figures, docs), "", paper.without_results, ""]
    return "\n".join(lines)


def _overview(papers: Papers, figures: Figures) -> Iterator[str]:
    """How much of each paper is measured, and what became of its claims."""
    yield table_line(["paper", "figures measured", "claims", *(one.value for one in Verdict)])
    yield table_line(["---", *["---:"] * (2 + len(Verdict))])
    for paper in papers.papers.values():
        cells = [found for table in paper.tables for row in table.rows for found in _is_measured(table, row, figures)]
        claims = [claim for table in paper.tables for claim in table.claims]
        verdicts = Counter(weakest(claim, figures) for claim in claims)
        counts = [f"{sum(cells)} of {len(cells)}", str(len(claims)), *(str(verdicts[one]) for one in Verdict)]
        yield table_line([f"[{paper.title}](#{paper.title.lower()})", *counts])


def _section(table: PaperTable, papers: Papers, figures: Figures, docs: Path) -> Iterator[str]:
    encoder = f"Encoder of the paper: {table.encoder}." if table.encoder else "Not in the paper."
    yield from (f"### {table.name}: {table.about}", "", encoder, "")
    if table.rows:
        yield from (*render_table(table, papers, figures), "")
    for picture in table.pictures:
        shown = f"![{table.about}]({picture})" if (docs / picture).is_file() else "The picture is not drawn yet."
        yield from (shown, "")
    sentences = [text for text in map(figures.fill, table.differences) if text is not None]
    if sentences:
        yield from (*(f"- {one}" for one in sentences), "")
    if table.claims:
        yield from ("Claims:", "", *render_claims(table.claims, figures), "")


# --- tables


def render_table(table: PaperTable, papers: Papers, figures: Figures) -> Iterator[str]:
    """A table: one line for each row of the paper and encoder of ours."""
    yield table_line(["", "encoder", "seeds", *table.columns])
    yield table_line(["---", "---", "---:", *["---:"] * len(table.columns)])
    for row in table.rows:
        for encoder in shown_encoders(table, row, papers, figures):
            yield table_line(_table_line(table, row, encoder, figures))


def shown_encoders(table: PaperTable, row: PaperRow, papers: Papers, figures: Figures) -> list[str]:
    """The encoders of a row: those that it should have and those that have records, in the order of the file."""
    found = dict.fromkeys(table.encoders_of(row))
    for metric in filter(None, table.metrics(row).values()):
        found |= dict.fromkeys(figures.by_encoder(metric))
    order = list(papers.encoders)
    return sorted(found, key=lambda one: (order.index(one) if one in order else len(order), one)) or [NOTHING]


def _table_line(table: PaperTable, row: PaperRow, encoder: str, figures: Figures) -> Iterator[str]:
    metrics = list(table.metrics(row).values())
    found = [None if metric is None else figures.by_encoder(metric).get(encoder) for metric in metrics]
    yield from (row.name, encoder, _seeds(found))
    for column, (metric, figure) in enumerate(zip(metrics, found, strict=True)):
        published = row.figure(column)
        if published is None and metric is not None:
            published = None if row.reused else published_figure(metric, figures.published)
        yield _cell(metric, figure, published)


def _cell(metric: str | None, figure: Figure | None, published: float | None) -> str:
    ours = str(figure) if figure is not None else NOTHING if metric is None else NOT_MEASURED
    return ours if published is None else f"{ours} ({published_number(published)})"


def _seeds(found: list[Figure | None]) -> str:
    """The numbers of seeds of a line."""
    counts = sorted({one.seeds for one in found if one is not None and one.seeds})
    return NOTHING if not counts else "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


# --- claims


def render_claims(claims: Iterable[Claim], figures: Figures) -> Iterator[str]:
    """One sentence for each claim: the paper's difference, ours, whether it is seen, and else a guess why not."""
    for claim in claims:
        compared = list(compare(claim, figures))
        parts = [f"{name} {shown}: {verdict.value}" for name, shown, verdict in compared] or [NOT_MEASURED]
        published = _published_difference(claim, figures)
        text = f"- {claim.text}. {published}Ours: {'; '.join(parts)}."
        unseen = any(verdict in (Verdict.UNCLEAR, Verdict.OPPOSITE) for _, _, verdict in compared)
        yield f"{text} Best guess why: {claim.guess}." if unseen and claim.guess else text


def compare(claim: Claim, figures: Figures) -> Iterator[tuple[str, str, Verdict]]:
    """The two sides of a claim for each encoder: its name, the difference or ratio, and the verdict.

    A side that was measured with one encoder only, such as a T5, is compared with all encoders of the other one.
    """
    more, less = figures.by_encoder(claim.more), figures.by_encoder(claim.less)
    tests = figures.by_encoder(claim.p_value) if claim.p_value else {}
    only = next(iter(less)) if len(less) == 1 and not less.keys() & more.keys() else None
    for name, one in more.items():
        other = name if name in less else only
        if other is not None:
            pair = name if other in (name, NO_ENCODER) else f"{name} against {other}"
            shown, p = _difference(claim, one.value, less[other].value), tests.get(name)
            yield pair, shown if p is None else f"{shown} (p = {p.value:.3f})", judge(one, less[other], p)


def judge(more: Figure, less: Figure, p: Figure | None = None) -> Verdict:
    """Whether one figure is above another one by a test of both, or by more than their spreads."""
    if p is not None:
        by_chance = p.value >= LARGEST_P
    elif more.noise is None or less.noise is None:
        return Verdict.ONE_SEED
    else:
        by_chance = abs(more.value - less.value) <= more.noise + less.noise
    if by_chance:
        return Verdict.UNCLEAR
    return Verdict.SEEN if more.value > less.value else Verdict.OPPOSITE


def weakest(claim: Claim, figures: Figures) -> Verdict:
    """The verdict that speaks most against a claim, over all encoders."""
    found = {verdict for _, _, verdict in compare(claim, figures)}
    order = (Verdict.OPPOSITE, Verdict.UNCLEAR, Verdict.SEEN, Verdict.ONE_SEED)
    return next((one for one in order if one in found), Verdict.MISSING)


def _published_difference(claim: Claim, figures: Figures) -> str:
    one, other = claim.paper or (published_figure(metric, figures.published) for metric in (claim.more, claim.less))
    return "" if one is None or other is None else f"Paper: {_difference(claim, one, other)}. "


def _difference(claim: Claim, one: float, other: float) -> str:
    return f"{ratio(one, other)} times" if claim.shown_as == "ratio" else difference(one, other)


# --- what is missing


def missing(paper: Paper, figures: Figures, docs: Path) -> list[str]:
    """What has no record or picture yet, below the command that makes it."""
    found: dict[str, dict[str, list[str]]] = {}
    for table in paper.tables:
        for row in table.rows:
            gaps = found.setdefault(row.command or table.command or "", {})
            for encoder, text in _missing_in(table, row, figures):
                gaps.setdefault(f"{table.name} ({encoder})", []).append(text)
        pictures = [one for one in table.pictures if not (docs / one).is_file()]
        if pictures:
            found.setdefault(table.command or "", {})[table.name] = [f"`{one}`" for one in pictures]
    lines = []
    for command, tables in found.items():
        if tables:
            lines.append(f"- `{command}`" if command else "- no command yet")
            lines += [f"    - {name}: {'; '.join(texts)}" for name, texts in tables.items()]
    return lines or ["Nothing."]


def _missing_in(table: PaperTable, row: PaperRow, figures: Figures) -> Iterator[tuple[str, str]]:
    """The encoders for which a row has gaps, with its name and the names of columns unless all are missing."""
    metrics = {name: one for name, one in table.metrics(row).items() if one is not None and not is_mean(one)}
    for encoder in table.encoders_of(row):
        names = [name for name, metric in metrics.items() if encoder not in figures.by_encoder(metric)]
        if names:
            yield encoder, row.name if len(names) == len(metrics) else f"{row.name} ({', '.join(names)})"


def _is_measured(table: PaperTable, row: PaperRow, figures: Figures) -> Iterator[bool]:
    """For each figure of a row, whether there is a record of it with any encoder."""
    for metric in filter(None, table.metrics(row).values()):
        yield bool(figures.by_encoder(metric))


# --- parts of other pages


def render_part(kind: str, key: str, papers: Papers, figures: Figures) -> str:
    """What stands between markers of a page: `table: binder, Table 1` or `claims: binder`."""
    name, _, table_name = key.partition(", ")
    paper = papers.papers.get(name)
    if paper is not None and kind == "claims" and not table_name:
        return "\n".join(render_claims((claim for table in paper.tables for claim in table.claims), figures))
    tables = [] if paper is None else [table for table in paper.tables if table.name == table_name]
    if kind == "table" and tables:
        return "\n".join(render_table(tables[0], papers, figures))
    raise OnomaError(
        f"there is no {kind} {key!r} in benchmarks/paper_tables. "
        'Fix: write "table: PAPER, NAME", such as "table: binder, Table 1", or "claims: PAPER".'
    )
