"""The report as one HTML file that works offline: pictures are inside of it (extra `onoma[report]`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from onoma import __version__
from onoma.entities import SHOWN_TYPES
from onoma.errors import OnomaError
from onoma.evaluation import plots, score_plots
from onoma.evaluation.analysis import Analysis, Study
from onoma.evaluation.bootstrap import Difference, Intervals
from onoma.evaluation.page_parts import Picture, Section, Table
from onoma.evaluation.page_sections import NO_VALUE, corpus_chapter, describe_thresholds
from onoma.evaluation.pairs import ERROR_KINDS
from onoma.evaluation.plot_style import as_svg, plot_style
from onoma.evaluation.render import score_cells
from onoma.files import atomic_write

TEMPLATES = Path(__file__).parent / "templates"


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
        chapters = [corpus_chapter(number, row) for number, row in enumerate(study.analyses, 1)]
        training = _training(study)
    page: str = template.render(
        models=study.models,
        corpora=[row[0].source.name for row in study.analyses],
        summary=summary,
        chapters=chapters,
        training=training,
        about=_about(study),
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
        for one, difference in zip(row, differences, strict=True):
            rows.append([one.source.name, *([one.model] * several), *_summary_cells(one, difference, several)])
    head = ["corpus", *["model"] * several, "F1", "95% interval", "P", "R", "documents", "gold", "predicted"]
    head += [f"F1 minus {study.models[0]}", "p"] * several
    note = (
        "Strict: a prediction is correct if its first and last characters and its type are those of a gold mention. "
        "Intervals are percentiles of 1,000 bootstrap samples of documents."
    )
    if any(one.report.documents == 1 for row in study.analyses for one in row):
        note += " A corpus of one document cannot be resampled, so it has no interval."
    if several:
        note += (
            f" p: a two-sided paired bootstrap test of the difference to {study.models[0]}. The smaller it is, the "
            "less likely the difference is due to the choice of documents; 0.05 is a common limit."
        )
    for sentence in study.left_out:
        note += f" Note: {sentence}."
    pictures = []
    if sum(map(len, study.analyses)) > 1:
        svg = as_svg(plots.draw_summary(study), "summary")
        pictures = [Picture(svg, "Strict F1 with 95% intervals, by corpus and model")]
    return Section("scores", "Scores", note, pictures, [Table("", head, rows)])


def _summary_cells(one: Analysis, difference: Difference | None, several: bool) -> list[str]:
    report, intervals = one.report, one.report.intervals
    precision, recall, f1, gold, predicted = score_cells(report.strict.micro)
    cells = [
        f1,
        _range(intervals),
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
    return NO_VALUE if intervals is None else f"{100 * intervals.f1.low:.2f} – {100 * intervals.f1.high:.2f}"


def _signed(difference: Difference) -> str:
    value, low, high = (
        f"{100 * x:+.2f}".replace("-", "−") for x in (difference.f1.value, difference.f1.low, difference.f1.high)
    )
    return f"{value} ({low} to {high})"


# --- the training run


def _training(study: Study) -> Section | None:
    history = study.history
    if history is None:
        return None
    pictures = [
        Picture(
            as_svg(score_plots.draw_history(stage), f"stage-{number}"),
            f"Loss and dev scores: {stage.stage}",
            stage.stage,
        )
        for number, stage in enumerate(history.stages, 1)
    ]
    if history.sizes:
        svg = as_svg(score_plots.draw_sizes(history), "sizes")
        pictures.append(Picture(svg, "F1 by training sentences", "By number of training sentences"))
    return Section("training", "Training", f"The training run of {study.models[0]}.", pictures)


# --- where the numbers come from


def _about(study: Study) -> Section:
    """Corpora, models and settings: what is needed to make the report again."""
    head = ["corpus", "path", "split", "documents", "model", "overlap", "threshold used"]
    rows = [
        [
            one.source.name,
            one.source.path or NO_VALUE,
            one.source.split or NO_VALUE,
            f"{len(one.corpus):,}",
            one.model,
            one.overlap,
            _threshold_cell(one),
        ]
        for row in study.analyses
        for one in row
    ]
    note = f"Made with Onoma {__version__} on {study.date}."
    if study.command:
        note += f" Command: {study.command}"
    return Section("about", "About this report", note, tables=[Table("", head, rows)])


def _threshold_cell(one: Analysis) -> str:
    """The thresholds of all types, or those of each type if they differ."""
    if len(set(one.used.values())) == 1:
        return describe_thresholds(next(iter(one.used.values())))
    shown = [f"{label} {describe_thresholds(values)}" for label, values in list(one.used.items())[:SHOWN_TYPES]]
    more = len(one.used) - SHOWN_TYPES
    return ", ".join(shown) + (f" and {more} more types" if more > 0 else "") or NO_VALUE
