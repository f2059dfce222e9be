"""Tables of a report for the terminal. The title of each table names its measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onoma.evaluation.report import Report
from onoma.evaluation.scores import Averages, Recall, Scores
from onoma.evaluation.semeval import SemEvalScores

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def render(report: Report) -> RenderableType:
    """All tables of a report, for `rich.print` or a rich console."""
    from rich.console import Group  # needed for terminal output only
    from rich.text import Text

    tables = [_types(report), _boundaries(report), _semeval(report), *_slices(report), _surface(report)]
    head = f"{report.corpus}: {report.documents} documents"
    if report.left_out:
        head += f"; {report.left_out} predictions of labels that are not annotated in their document are left out"
    return Group(Text(head), *tables)


def _table(title: str, first: str, *columns: str) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _percent(*values: float) -> list[str]:
    return [f"{100 * value:.2f}" for value in values]


def score_cells(scores: Scores | Recall | Averages) -> list[str]:
    """P, R and F1 in percent, gold and predicted mentions, as strings; "-" for values that are not defined."""
    if isinstance(scores, Averages):
        return [*_percent(scores.precision, scores.recall, scores.f1), "-", "-"]
    recall = _percent(scores.recall)[0] if scores.gold else "-"
    if isinstance(scores, Recall):
        return ["-", recall, "-", str(scores.gold), "-"]
    precision = _percent(scores.precision)[0] if scores.predicted else "-"
    f1 = _percent(scores.f1)[0] if scores.gold or scores.predicted else "-"
    return [precision, recall, f1, str(scores.gold), str(scores.predicted)]


def _score_table(title: str, first: str, rows: Mapping[str, Scores | Recall | Averages]) -> Table:
    from rich.text import Text

    table = _table(title, first, "P", "R", "F1", "gold", "predicted")
    for name, scores in rows.items():
        table.add_row(Text(name), *score_cells(scores))  # as Text, brackets in a label are not markup
    return table


def _types(report: Report) -> Table:
    strict = report.strict
    table = _score_table("Strict: same characters, same label", "type", strict.types)
    table.add_section()
    table.add_row("micro", *score_cells(strict.micro), style="bold")
    table.add_row(f"macro over {strict.macro.types} types", *score_cells(strict.macro))
    return table


def _boundaries(report: Report) -> Table:
    rows = {
        "strict": report.strict.micro,
        "start and label": report.start_only.micro,
        "end and label": report.end_only.micro,
        "loose: overlap and label": report.loose.micro,
        "span without label": report.spans.span,
    }
    table = _score_table("Boundaries and types, micro", "what must match", rows)
    table.caption = f"Type accuracy of correct spans: {_percent(report.spans.type_accuracy)[0]}"
    return table


def _semeval(report: Report) -> Table:
    table = _table("SemEval 2013", "measure", "P", "R", "F1", "COR", "INC", "PAR", "MIS", "SPU")
    table.caption = "correct, incorrect, partial, missed, spurious"
    for name in ("strict", "exact", "partial", "type"):
        scores: SemEvalScores = getattr(report.semeval, name)
        counts = (scores.correct, scores.incorrect, scores.partial, scores.missed, scores.spurious)
        table.add_row(name, *_percent(scores.precision, scores.recall, scores.f1), *map(str, counts))
    return table


def _slices(report: Report) -> list[Table]:
    slices = report.slices
    tables = [
        _score_table("Strict, by words of the mention", "words", slices.mention_length),
        _score_table("Strict, by words of the sentence", "words", slices.sentence_length),
        _score_table("Strict, by nesting of the gold mention", "nesting", slices.nesting),
    ]
    if slices.seen is not None:
        title = "Strict, by whether the training data have the string with that label"
        tables.append(_score_table(title, "mention", slices.seen))
    return tables


def _surface(report: Report) -> Table:
    normalised, strings = report.surface.normalised, report.surface.strings
    rows: dict[str, Scores | Averages] = {
        "normalised, once per document; micro (UniNER)": normalised.micro,
        f"lower case; macro over {strings.macro.types} types (PUnifiedNER)": strings.macro,
    }
    return _score_table("Strings without positions", "measure", rows)
