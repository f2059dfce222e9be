"""The report as one HTML file that works offline: pictures are inside of it (extra `onoma[report]`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onoma import __version__
from onoma.errors import OnomaError
from onoma.evaluation import plots
from onoma.evaluation.analysis import Analysis, Study
from onoma.evaluation.bootstrap import Difference, Intervals
from onoma.evaluation.errors import MentionError
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.plot_style import as_svg, plot_style
from onoma.evaluation.render import filled_slices, most_confused, score_cells
from onoma.evaluation.report import Report
from onoma.evaluation.scored import CALIBRATED_FROM, FLOOR
from onoma.files import atomic_write

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_CONFUSIONS = 12
"""Rows of the table of types that are confused most often."""
SCORE_HEAD = ("P", "R", "F1", "gold", "predicted")


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG element, what it shows for people who cannot see it, and a caption."""

    svg: str
    alt: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first cell of a row names it. A `folded` table is shown on demand."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; `note` says why there is nothing to show, or how to read it."""

    name: str
    title: str
    note: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    errors: Sequence[MentionError] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    """What the page says about one corpus."""

    name: str
    title: str
    facts: str
    sections: list[Section] = field(default_factory=list)


def write_report(study: Study, path: str | os.PathLike[str]) -> None:
    """Write the report of a study to an HTML file."""
    page = render_report(study)
    with atomic_write(path) as file:
        file.write(page)


def render_report(study: Study) -> str:
    """The report of a study as a complete HTML page.

    >>> page = render_report(study({"mine": model}, [corpus]))  # doctest: +SKIP
    """
    template = _template()
    with plot_style():
        summary = _summary(study)
        chapters = [_chapter(number, row) for number, row in enumerate(study.analyses, 1)]
        training = _training(study)
    page: str = template.render(
        models=study.models,
        summary=summary,
        chapters=chapters,
        training=training,
        kinds=ERROR_KINDS,
        version=__version__,
        style=(TEMPLATES / "report.css").read_text("utf-8"),
        script=(TEMPLATES / "report.js").read_text("utf-8"),
    )
    return page


def require_report() -> None:
    """Raise an error if what a report needs is not installed. Call this before long computations."""
    _template()
    with plot_style():
        pass


def _template() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise OnomaError(f'reports need {error.name}. Fix: pip install "onoma[report]".') from error
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


# --- the summary


def _summary(study: Study) -> Section:
    """Scores of all models on all corpora, with intervals, and the significance of differences."""
    rows, several = [], len(study.models) > 1
    for row, differences in zip(study.analyses, study.differences(), strict=True):
        compared: list[Difference | None] = [None, *differences]
        for one, difference in zip(row, compared, strict=True):
            rows.append([one.corpus.name, *([one.model] * several), *_summary_cells(one, difference, several)])
    head = ["corpus", *["model"] * several, "F1", "95% interval", "P", "R", "documents", "gold", "predicted"]
    head += ["F1 minus first model", "p"] * several
    note = (
        "Strict: a prediction is correct if its first and last characters and its type are those of a gold mention. "
        "Intervals are percentiles of 1,000 bootstrap samples of documents."
    )
    if several:
        note += " p: a paired bootstrap test of the difference to the first model; below 0.05, it is hardly chance."
    shown = [one for row in study.analyses for one in row if one.report.strict.types]
    pictures = []
    if len(shown) > 1:
        svg = as_svg(plots.draw_summary(study), "summary")
        pictures = [Picture(svg, "Strict F1 with 95% intervals, by corpus and model")]
    return Section("scores", "Scores", note, pictures, [Table("", head, rows)])


def _summary_cells(one: Analysis, difference: Difference | None, several: bool) -> list[str]:
    report, intervals = one.report, one.report.intervals
    precision, recall, f1, gold, predicted = score_cells(report.strict.micro)
    cells = [
        f1,
        _range(intervals) if report.strict.types else "-",
        precision,
        recall,
        f"{report.documents:,}",
        gold,
        predicted,
    ]
    if not several:
        return cells
    return [*cells, *(["", ""] if difference is None else [_signed(difference), f"{difference.p_value:.3f}"])]


def _range(intervals: Intervals | None) -> str:
    return "-" if intervals is None else f"{100 * intervals.f1.low:.2f} – {100 * intervals.f1.high:.2f}"


def _signed(difference: Difference) -> str:
    value, low, high = (
        f"{100 * x:+.2f}".replace("-", "−") for x in (difference.f1.value, difference.f1.low, difference.f1.high)
    )
    return f"{value} ({low} to {high})"


# --- one corpus


def _chapter(number: int, row: Sequence[Analysis]) -> Chapter:
    first, name = row[0], f"corpus-{number}"
    report = first.report
    types = sum(one.gold > 0 for one in report.strict.types.values())
    facts = (
        f"Documents: {report.documents:,}, gold mentions: {report.strict.micro.gold:,}, types with gold mentions: "
        f"{types:,}, overlap: {first.overlap}"
    )
    if report.left_out:
        facts += f", predictions left out because their type is not annotated in their document: {report.left_out:,}"
    chapter = Chapter(name, f"Corpus {first.corpus.name}", facts)
    if not report.documents:
        chapter.sections.append(Section(f"{name}-empty", "Nothing to show", "The corpus has no documents."))
    elif not report.strict.types:
        note = "Neither the gold nor the predictions have mentions."
        chapter.sections.append(Section(f"{name}-empty", "Nothing to show", note))
    else:
        chapter.sections.extend(_sections(name, row))
    return chapter


def _sections(name: str, row: Sequence[Analysis]) -> Iterator[Section]:
    first = row[0]
    yield _types(name, row)
    if first.report.error_kinds.errors:
        yield _confusion(name, first.report)
        yield _error_kinds(name, row)
        yield _error_examples(name, first)
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
    note = f"Columns without a name are those of {row[0].model}." if several else ""
    if len(names) > plots.SHOWN_TYPES:
        note += f" The picture shows the {plots.SHOWN_TYPES} most frequent types."
    return Section(
        f"{name}-types", "Scores by type", note, [Picture(svg, "Strict F1 of each type")], [Table("", head, rows)]
    )


def _reports(row: Sequence[Analysis]) -> dict[str, Report]:
    return {one.model: one.report for one in row}


def _other_f1(row: Sequence[Analysis], label: str) -> list[str]:
    found = (one.report.strict.types.get(label) for one in row[1:])
    return ["-" if scores is None else score_cells(scores)[2] for scores in found]


def _confusion(name: str, report: Report) -> Section:
    _, left_out = most_confused(report, plots.SHOWN_GROUPS)
    note = (
        "Each gold mention is paired with the nearest prediction that shares a character with it, one to one. The row "
        "is its gold type, the column its predicted type. The column “nothing” has missed mentions, the row “nothing” "
        "invented ones. Cells are shaded by their share of the row; boundaries may be wrong."
    )
    if left_out:
        note += f" Types with fewer errors are left out: {left_out}."
    picture = Picture(as_svg(plots.draw_confusion(report), f"{name}-confusion"), "Gold types by predicted types")
    confused = report.confusion.confused[:SHOWN_CONFUSIONS]
    rows = [[one.gold or "", one.predicted or "", f"{one.count:,}"] for one in confused]
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


def _error_examples(name: str, one: Analysis) -> Section:
    total, shown = one.report.error_kinds.errors, len(one.errors)
    note = f"All errors of {one.model}."
    if shown < total:
        note = f"{shown:,} of the {total:,} errors of {one.model}, chosen so that all kinds and types occur."
    return Section(f"{name}-examples", "Errors in context", note, errors=one.errors)


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
    note = "Where only gold mentions are divided, as by nesting, there is recall alone."
    if report.slices.seen is None:
        note += " With --training CORPUS, there are scores by whether the training data have a mention."
    if not pictures:
        note = "All mentions are alike: there is nothing to divide by length, frequency or nesting."
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
    picture = Picture(as_svg(plots.draw_calibration(found), f"{name}-calibration"), "Score by share of gold mentions")
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
        "Strict scores if all types have the threshold of the axis. A best threshold that was chosen on these data is "
        "too optimistic: choose it on other data with onoma tune-thresholds."
    )
    if len(curves.types) > plots.SHOWN_PANELS:
        note += f" The picture shows the {plots.SHOWN_PANELS} most frequent types."
    picture = Picture(as_svg(plots.draw_thresholds(curves), f"{name}-thresholds"), "Scores by threshold and type")
    lines = {"all types (micro)": curves.micro, **curves.types}
    rows = [
        [
            label,
            "various" if line.own is None else f"{line.own:.2f}",
            f"{line.best:.2f}",
            f"{100 * max(scores.f1 for scores in line.scores):.2f}",
        ]
        for label, line in lines.items()
    ]
    table = Table("Best thresholds", ["type", "threshold of the model", "best threshold", "F1 with it"], rows, True)
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
            f" Gold mentions in no density: {unseen:,}. Their scores are lower, or the model cannot find them because "
            "they are too long or do not start and end with words."
        )
    if len(found) > plots.SHOWN_PANELS:
        note += f" The picture shows the {plots.SHOWN_PANELS} most frequent types."
    svg = as_svg(plots.draw_distributions(found), f"{name}-distributions")
    yield Section(
        f"{name}-distributions", "Scores of mentions and other spans", note, [Picture(svg, "Densities of scores")]
    )


def _projection(name: str, one: Analysis) -> Section:
    if one.projection is None:
        note = "Left out: the system of this model offers no vectors of spans, or there are too few mentions."
        return Section(f"{name}-vectors", "Vectors of mentions", note)
    note = (
        f"The vectors of {len(one.projection.labels):,} gold mentions in the plane in which they differ most "
        "(principal components). Types whose points mix are hard to tell apart for the model, at least in this plane."
    )
    svg = as_svg(plots.draw_projection(one.projection), f"{name}-vectors")
    return Section(f"{name}-vectors", "Vectors of mentions", note, [Picture(svg, "Vectors of gold mentions by type")])


# --- the training run


def _training(study: Study) -> Section | None:
    history = study.history
    if history is None:
        return None
    pictures = [
        Picture(
            as_svg(plots.draw_history(stage), f"stage-{number}"),
            f"Loss and dev scores: {stage.stage}",
            stage.stage,
        )
        for number, stage in enumerate(history.stages, 1)
    ]
    if history.sizes:
        svg = as_svg(plots.draw_sizes(history), "sizes")
        pictures.append(Picture(svg, "F1 by training sentences", "By number of training sentences"))
    return Section("training", "Training", f"The run that {study.models[0]} belongs to.", pictures)
