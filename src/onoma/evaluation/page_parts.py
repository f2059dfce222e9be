"""The parts that a report consists of, as the template of the page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onoma.evaluation.errors import MentionError


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
class ShownError:
    """An error of a model; `found_by` are the models that find its gold mention."""

    error: MentionError
    model: str
    found_by: Sequence[str]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; `note` says why there is nothing to show, or how to read it."""

    name: str
    title: str
    note: str = ""
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    errors: Sequence[ShownError] = ()
    models: Sequence[str] = ()  # those of the errors, if there are several


@dataclass(frozen=True, slots=True)
class Chapter:
    """What the page says about one corpus."""

    name: str
    title: str
    facts: str
    sections: list[Section] = field(default_factory=list)
