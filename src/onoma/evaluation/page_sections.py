"""The chapter of a report about one corpus: one function for each of its sections (extra `onoma[report]`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onoma.evaluation import plots, score_plots
from onoma.evaluation.analysis import Analysis
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.errors import MentionError
from onoma.evaluation.page_parts import Chapter, Picture, Section, ShownError, Table
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.plot_style import as_svg
from onoma.evaluation.render import filled_slices, most_confused, score_cells
from onoma.evaluation.report import Report
from onoma.evaluation.scored import CALIBRATED_FROM, FLOOR

SHOWN_CONFUSIONS = 12
"""Rows of the table of types that are confused most often."""
LONGEST_TABLE = 20
"""Types of a table that is shown at once; a longer one is folded."""
SCORE_HEAD = ("P", "R", "F1", "gold", "predicted")
NO_VALUE = "–"
"""A cell without a value."""


def corpus_chapter(number: int, row: Sequence[Analysis]) -> Chapter:
    """What the page says about one corpus, of which there is at least one analysis."""
    first, name = row[0], f"corpus-{number}"
    report = first.report
    types = sum(one.gold > 0 for one in report.strict.types.values())
    split = f"Split: {first.source.split}, documents" if first.source.split else "Documents"
    facts = (
        f"{split}: {report.documents:,}, gold mentions: {report.strict.micro.gold:,}, types with gold mentions: "
        f"{types:,}, overlap: {first.overlap}"
    )
    if report.left_out:
        facts += f", predictions left out because their type is not annotated in their document: {report.left_out:,}"
    return Chapter(name, f"Corpus {first.source.name}", facts, list(_sections(name, row)))


def _sections(name: str, row: Sequence[Analysis]) -> Iterator[Section]:
    first = row[0]
    yield _types(name, row)
    if any(one.report.error_kinds.errors for one in row):
        yield _confusion(name, first)
        yield _error_kinds(name, row)
        yield _error_examples(name, row)
    else:
        yield Section(f"{name}-errors", "Errors", "There are no errors.")
    yield _slices(name, first.report)
    if first.calibration is None:
        yield Section(f"{name}-calibration", "Scores of spans", "This model gives no scores below its threshold.")
    else:
        yield _calibration(name, row)
        yield from _thresholds(name, first)
        yield from _distributions(name, first)
    yield _projection(name, first)


def _types(name: str, row: Sequence[Analysis]) -> Section:
    reports = _reports(row)
    strict, several = row[0].report.strict, len(row) > 1
    names = sorted(strict.types, key=lambda label: (-strict.types[label].gold, label))
    rows = [[label, *score_cells(strict.types[label]), *_other_f1(row, label)] for label in names]
    rows.append(["micro", *score_cells(strict.micro), *(score_cells(one.report.strict.micro)[2] for one in row[1:])])
    rows.append(
        [
            f"macro over {strict.macro.types} types",
            *score_cells(strict.macro),
            *(score_cells(one.report.strict.macro)[2] for one in row[1:]),
        ]
    )
    head = ["type", *SCORE_HEAD, *(f"F1 of {one.model}" for one in row[1:])]
    svg = as_svg(plots.draw_types(reports), f"{name}-types")
    note = f"P, R, F1 and predicted are those of {row[0].model}." if several else ""
    if len(names) > plots.SHOWN_TYPES:
        note += f" The picture shows the {plots.SHOWN_TYPES} most frequent types."
    is_long = len(names) > LONGEST_TABLE
    table = Table(f"All {len(names)} types" if is_long else "", head, rows, folded=is_long)
    return Section(f"{name}-types", "Scores by type", note, [Picture(svg, "Strict F1 of each type")], [table])


def _reports(row: Sequence[Analysis]) -> dict[str, Report]:
    return {one.model: one.report for one in row}


def _other_f1(row: Sequence[Analysis], label: str) -> list[str]:
    found = (one.report.strict.types.get(label) for one in row[1:])
    return ["-" if scores is None else score_cells(scores)[2] for scores in found]


def _confusion(name: str, one: Analysis) -> Section:
    report = one.report
    _, left_out = most_confused(report, plots.SHOWN_GROUPS)
    note = (
        "Each gold mention is paired with the nearest prediction that shares a character with it, one to one. The row "
        "is its gold type, the column its predicted type. The column “nothing” has missed mentions, the row “nothing” "
        "invented ones. Cells are shaded by their share of the row; boundaries may be wrong. "
        f"The predictions are those of {one.model}."
    )
    if left_out:
        note += f" Types with fewer errors are left out: {left_out}."
    picture = Picture(as_svg(plots.draw_confusion(report), f"{name}-confusion"), "Gold types by predicted types")
    confused = report.confusion.confused[:SHOWN_CONFUSIONS]
    rows = [[each.gold or "", each.predicted or "", f"{each.count:,}"] for each in confused]
    tables = [Table("Types that are confused most often", ["gold", "predicted", "mentions"], rows)] if rows else []
    return Section(f"{name}-confusion", "Confused types", note, [picture], tables)


def _error_kinds(name: str, row: Sequence[Analysis]) -> Section:
    report, reports = row[0].report, _reports(row)
    kinds = report.error_kinds
    note = (
        f"Errors of {row[0].model}: {kinds.errors:,}. Of the predictions with the right type and wrong boundaries, "
        f"{kinds.too_long:,} are too long and {kinds.too_short:,} too short."
    )
    pictures = [Picture(as_svg(plots.draw_error_kinds(reports), f"{name}-kinds"), "Errors by kind")]
    if len(kinds.types) > 1:
        svg = as_svg(plots.draw_type_errors(report), f"{name}-type-kinds")
        pictures.append(
            Picture(svg, "Errors of each type by kind", f"By type, {row[0].model}" if len(row) > 1 else "By type")
        )
    shown = [kind for kind in ERROR_KINDS if any(one.error_kinds.kinds[kind] for one in reports.values())]
    rows = [[ERROR_KINDS[kind], *(f"{one.error_kinds.kinds[kind]:,}" for one in reports.values())] for kind in shown]
    rows.append(["all errors", *(f"{one.error_kinds.errors:,}" for one in reports.values())])
    by_type = [
        [label, *(f"{counts[kind]:,}" for kind in shown)]
        for label, counts in sorted(kinds.types.items(), key=lambda item: -sum(item[1].values()))
    ]
    tables = [
        Table("Errors by kind", ["kind", *reports], rows, folded=True),
        Table("Errors by type and kind", ["type", *(ERROR_KINDS[kind] for kind in shown)], by_type, folded=True),
    ]
    return Section(f"{name}-kinds", "Kinds of errors", note, pictures, tables)


def _error_examples(name: str, row: Sequence[Analysis]) -> Section:
    """The errors of all models, in the order of the corpus."""
    notes = []
    for one in row:
        total, shown = one.report.error_kinds.errors, len(one.errors)
        if shown < total:
            notes.append(f"{shown:,} of the {total:,} errors of {one.model}, chosen so that all kinds and types occur.")
        else:
            notes.append(f"All {total:,} errors of {one.model}.")
    found = {one.model: _found_mentions(one.comparison) for one in row}
    errors = [
        ShownError(error, one.model, _finders(error, row, found) if len(row) > 1 else ())
        for one in row
        for error in one.errors
    ]
    errors.sort(key=lambda one: (one.error.document, one.error.position))
    models = [one.model for one in row] if len(row) > 1 else ()
    return Section(f"{name}-examples", "Errors in context", " ".join(notes), errors=errors, models=models)


def _found_mentions(comparison: Comparison) -> set[tuple[int, int, int, str]]:
    """The gold mentions that are predicted: document, counted from 1, start, end, label."""
    gold, labels = comparison.gold.take(np.flatnonzero(comparison.found)), comparison.corpus.labels
    shift = comparison.offsets[gold.document]
    columns = (gold.document + 1, gold.start - shift, gold.end - shift, gold.label)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {(document, start, end, labels[label]) for document, start, end, label in rows}


def _finders(
    error: MentionError, row: Sequence[Analysis], found: Mapping[str, set[tuple[int, int, int, str]]]
) -> list[str]:
    """The models that find the gold mention of an error."""
    gold = error.gold
    return [one.model for one in row if gold is not None and (error.document, *gold.key) in found[one.model]]


def _slices(name: str, report: Report) -> Section:
    pictures, tables = [], []
    for number, (title, first, rows) in enumerate(filled_slices(report), 1):
        words = title.removeprefix("Strict, ")
        caption = words[:1].upper() + words[1:]
        svg = as_svg(plots.draw_slices(rows, first), f"{name}-slice-{number}")
        pictures.append(Picture(svg, caption, caption))
        tables.append(
            Table(caption, [first, *SCORE_HEAD], [[key, *score_cells(value)] for key, value in rows.items()], True)
        )
    note = (
        "Numbers of gold mentions are in brackets. Nesting depends on gold mentions only, so it has recall but no F1."
    )
    if report.slices.seen is None:
        note += (
            " Give the training data with --training CORPUS for scores of mentions that occur in them and of others."
        )
    if not pictures:
        note = "All mentions are in one group by length, by frequency and by nesting, so there is nothing to compare."
    return Section(f"{name}-slices", "Length, frequency, nesting", note, pictures, tables)


def _calibration(name: str, row: Sequence[Analysis]) -> Section:
    found = {one.model: one.calibration for one in row if one.calibration is not None}
    errors = ", ".join(f"{model} {one.error:.3f}" for model, one in found.items()) if len(found) > 1 else ""
    first = next(iter(found.values()))
    note = (
        "Of the spans with a score of 0.7, 70% should be gold mentions: points on the diagonal. Points below it are "
        f"scores that are too high. The mean distance, of scores from {CALIBRATED_FROM}, is "
        f"{errors or f'{first.error:.3f}'} (expected calibration error)."
    )
    picture = Picture(
        as_svg(score_plots.draw_calibration(found), f"{name}-calibration"), "Score by share of gold mentions"
    )
    rows = [
        [f"{one.score:.2f}", f"{one.share:.2f}", "{:.2f} – {:.2f}".format(*one.interval()), f"{one.spans:,}"]
        for one in first.bins
    ]
    table = Table(
        f"Bins of {row[0].model}", ["mean score", "share of gold mentions", "95% interval", "spans"], rows, True
    )
    return Section(f"{name}-calibration", "Calibration", note, [picture], [table])


def _thresholds(name: str, one: Analysis) -> Iterator[Section]:
    curves = one.thresholds
    if curves is None or not curves.types:
        return
    note = (
        "Strict scores if all types have the threshold on the horizontal axis. The best threshold on these data will "
        "be less good on others: choose thresholds on development data, with onoma tune-thresholds."
    )
    if len(curves.types) > score_plots.SHOWN_PANELS:
        note += f" The picture shows the {score_plots.SHOWN_PANELS} most frequent types."
    if any(len(line.used) > 1 for line in curves.types.values()):
        note += " Several models read these documents, each with its own threshold; all of them are marked."
    picture = Picture(as_svg(score_plots.draw_thresholds(curves), f"{name}-thresholds"), "Scores by threshold and type")
    lines = {"all types (micro)": curves.micro, **curves.types}
    rows = [
        [
            label,
            describe_thresholds(line.used) if line.used else "various",
            NO_VALUE if line.best is None else f"{line.best:.2f}",
            NO_VALUE if line.best is None else f"{100 * max(scores.f1 for scores in line.scores):.2f}",
        ]
        for label, line in lines.items()
    ]
    table = Table("Best thresholds", ["type", "threshold used", "best threshold", "F1 with it"], rows, True)
    yield Section(f"{name}-thresholds", "Thresholds", note, [picture], [table])


def _distributions(name: str, one: Analysis) -> Iterator[Section]:
    found = one.distributions
    if not found:
        return
    unseen = sum(each.unseen for each in found.values())
    note = (
        f"Densities of the scores of gold mentions and of all other spans with a score of at least {FLOOR}. The less "
        "they overlap, the better the model tells mentions from other text."
    )
    if unseen:
        note += (
            f" Gold mentions that are not in these curves: {unseen:,}. Their scores are lower, or the model cannot "
            "predict them because they are too long or do not start and end with words."
        )
    if len(found) > score_plots.SHOWN_PANELS:
        note += f" The picture shows the {score_plots.SHOWN_PANELS} most frequent types."
    svg = as_svg(score_plots.draw_distributions(found), f"{name}-distributions")
    yield Section(
        f"{name}-distributions", "Scores of mentions and other spans", note, [Picture(svg, "Densities of scores")]
    )


def _projection(name: str, one: Analysis) -> Section:
    if one.projection is None:
        note = (
            "Not available: the system of this model has no vectors of spans, or there are fewer than three mentions."
        )
        return Section(f"{name}-vectors", "Vectors of mentions", note)
    note = (
        f"The vectors of {len(one.projection.labels):,} gold mentions in the plane in which they differ most "
        "(principal components). Types whose points overlap are similar for the model, at least in this plane."
    )
    svg = as_svg(score_plots.draw_projection(one.projection), f"{name}-vectors")
    return Section(f"{name}-vectors", "Vectors of mentions", note, [Picture(svg, "Vectors of gold mentions by type")])


def describe_thresholds(values: Sequence[float]) -> str:
    """Thresholds as a cell of a table."""
    return " and ".join(f"{value:.2f}" for value in values)
