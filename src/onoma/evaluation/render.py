"""Tables of a report for the terminal. The title of each table names its measure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from onoma.evaluation.errors import MentionError
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.report import Report
from onoma.evaluation.scores import Averages, Recall, Scores
from onoma.evaluation.semeval import SemEvalScores

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

SHOWN_LABELS = 12
"""Types in the table of confused types; a larger one would not fit a terminal."""
ORDERED_LABELS = 8
"""More types than these are ordered by frequency in the table of confused types."""
NOTHING = "nothing"


def render(report: Report, errors: Sequence[MentionError] = ()) -> RenderableType:
    """All tables of a report, for `rich.print` or a rich console; tables without any mention are left out."""
    from rich.console import Group  # needed for terminal output only
    from rich.text import Text

    head = f"{report.corpus}: {report.documents} documents"
    if report.left_out:
        head += f"; {report.left_out} predictions of labels that are not annotated in their document are left out"
    if not report.strict.types:
        return Group(Text(f"{head}; neither the gold nor the predictions have mentions"))
    tables = [_types(report), _boundaries(report), _semeval(report), *_slices(report), _surface(report)]
    if report.error_kinds.errors:
        tables += [_confusion(report), _error_kinds(report)]
    shown = [_error_lines(errors)] if errors else []
    return Group(Text(head), *tables, *shown)


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
    table.caption = describe_interval(report)
    return table


def describe_interval(report: Report) -> str:
    """The confidence interval of the strict micro F1, in words."""
    if report.intervals is None:
        return "no confidence interval of micro F1: it takes several documents"
    f1 = report.intervals.f1
    low, high = _percent(f1.low, f1.high)
    return f"{100 * report.intervals.level:.0f}% confidence interval of micro F1: {low} to {high}"


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
    return [_score_table(title, first, rows) for title, first, rows in filled_slices(report)]


def filled_slices(report: Report) -> list[tuple[str, str, Mapping[str, Scores | Recall]]]:
    """The slices that divide the mentions, without empty rows: a title, what the rows are, and their scores."""
    slices = report.slices
    known: list[tuple[str, str, Mapping[str, Scores | Recall] | None]] = [
        ("Strict, by words of the mention", "words", slices.mention_length),
        ("Strict, by words of the sentence", "words", slices.sentence_length),
        ("Strict, by gold mentions of the type", "mentions", slices.type_frequency),
        ("Strict, by nesting of the gold mention", "nesting", slices.nesting),
        ("Strict, by whether the mention and its type are in the training data", "mention", slices.seen),
        ("Strict, by how often the mention and its type are in the training data", "times", slices.frequency),
    ]
    filled = [
        (title, first, {name: one for name, one in (rows or {}).items() if one.gold or getattr(one, "predicted", 0)})
        for title, first, rows in known
    ]
    return [one for one in filled if len(one[2]) > 1]


def _confusion(report: Report) -> Table:
    """Gold types by predicted types; the types with most errors if there are many."""
    from rich.text import Text

    shown, left_out = most_confused(report, SHOWN_LABELS)
    numbers = [*map(str, range(1, len(shown) + 1)), NOTHING]  # names of types would not fit
    table = _table("Gold types (rows) by predicted types (columns) of overlapping mentions", "gold", *numbers)
    rows = zip(numbers, [*shown, NOTHING], report.confusion.table(shown).tolist(), strict=True)
    for number, name, row in rows:
        cells = [
            Text(str(count or "·"), "bold" if column == number else "")
            for column, count in zip(numbers, row, strict=True)
        ]
        table.add_row(Text(NOTHING if number == NOTHING else f"{number} {name}"), *cells)
    if left_out:
        table.caption = f"the {len(shown)} types with most errors; {left_out} others are left out"
    return table


def most_confused(report: Report, most: int) -> tuple[list[str], int]:
    """The types with most errors, and the number of those that are left out.

    Few types are in the order of the inventory; of many, the most frequent ones are first.
    """
    gold = {label: scores.gold for label, scores in report.strict.types.items()}
    errors = {label: sum(report.error_kinds.types.get(label, {}).values()) for label in gold}
    chosen = set(sorted(gold, key=lambda label: -errors[label])[:most])
    shown = [label for label in gold if label in chosen]
    if len(shown) > ORDERED_LABELS:
        shown.sort(key=lambda label: -gold[label])
    return shown, len(gold) - len(shown)


def _error_kinds(report: Report) -> Table:
    kinds = report.error_kinds
    table = _table("Errors by kind", "kind", "errors", "share")
    for kind, name in ERROR_KINDS.items():
        if kinds.kinds[kind]:
            table.add_row(name, str(kinds.kinds[kind]), f"{kinds.kinds[kind] / kinds.errors:.1%}")
    table.caption = f"boundaries of the right type: {kinds.too_long} too long, {kinds.too_short} too short"
    return table


def _error_lines(errors: Iterable[MentionError]) -> RenderableType:
    """Errors in context: gold mentions and predictions in brackets."""
    from rich.console import Group
    from rich.text import Text

    lines: list[RenderableType] = [Text("Errors: [gold mention], {prediction}", "italic")]
    for error in errors:
        lines.append(Text(f"{error.document:>6}  {ERROR_KINDS[error.kind]}: {_describe_labels(error)}", "bold"))
        lines.append(_marked(error))
    return Group(*lines)


def _describe_labels(error: MentionError) -> str:
    gold, predicted = error.gold, error.predicted
    found = f"{predicted.label} ({predicted.score:.2f})" if predicted else ""
    if gold and predicted and gold.label != predicted.label:
        return f"{gold.label} as {found}"
    return found or (gold.label if gold else "")


def _marked(error: MentionError) -> RenderableType:
    from rich.padding import Padding
    from rich.text import Text

    line, before = Text("…" * (error.start > 0), overflow="fold"), (False, False)
    for text, *inside, _ in [*error.segments(), ("", False, False, False)]:
        changed = [was != now for was, now in zip(before, inside, strict=True)]
        closed = "".join(
            mark for mark, change, was in zip("}]", changed[::-1], before[::-1], strict=True) if change and was
        )
        opened = "".join(mark for mark, change, now in zip("[{", changed, inside, strict=True) if change and now)
        line.append(closed + opened).append(_one_line(text), "bold" if any(inside) else "")
        before = (inside[0], inside[1])
    return Padding(line.append("…" * error.is_cut), (0, 0, 0, 8))


def _one_line(text: str) -> str:
    return "".join(" " if character.isspace() else character for character in text)


def _surface(report: Report) -> Table:
    normalised, strings = report.surface.normalised, report.surface.strings
    rows: dict[str, Scores | Averages] = {
        "normalised, once per document; micro (UniNER)": normalised.micro,
        f"lower case; macro over {strings.macro.types} types (PUnifiedNER)": strings.macro,
    }
    return _score_table("Strings without positions", "measure", rows)
