"""The style of all pictures, and pictures as parts of a page (matplotlib, extra `onoma[report]`).

In an SVG for a page, text stays text, so that the fonts of the reader show any script, and colours are variables of the
page, so that the picture follows its theme. The colours of both themes (`templates/report.css` has the dark ones) were
chosen so that any two of them stay apart in protanopia, deuteranopia and tritanopia, and from the page; bars differ in
their hatches, lines in their dashes and points in their markers as well.
"""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onoma.evaluation.curves import SETTINGS, new_figure

INK, SOFT, LINE, PAPER = "#1c2430", "#566070", "#c9d0d8", "#fefefe"
BLUE, ORANGE, GREEN, PURPLE, TEAL, RED, YELLOW = (
    *("#3161ff", "#955f19", "#027059", "#720da1", "#129fb5", "#8e0a25", "#ad8d33"),
)
COLOURS = (BLUE, RED, GREEN, PURPLE, ORANGE, TEAL, YELLOW)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))
VARIABLES = {INK: "ink", SOFT: "soft", LINE: "line", PAPER: "card"} | {
    colour: f"plot-{name}"
    for name, colour in zip(
        ("blue", "orange", "green", "purple", "teal", "red", "yellow"),
        (BLUE, ORANGE, GREEN, PURPLE, TEAL, RED, YELLOW),
        strict=True,
    )
}
"""The variables of the page that stand for colours."""

_LONGEST_NAME = 26  # columns of a label
FONT_SIZE = 9  # size of the font
_STYLE: Any = {
    **SETTINGS,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "figure.facecolor": "none",
    "font.size": FONT_SIZE,
    "hatch.linewidth": 0.8,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": FONT_SIZE,
    "savefig.facecolor": "none",
    "text.color": INK,
    "text.parse_math": False,  # a label may have dollar signs
    "xtick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.color": LINE,
    "ytick.labelcolor": SOFT,
}


@contextmanager
def plot_style() -> Iterator[None]:
    """The style of all pictures; they are drawn and written inside of it."""
    new_figure()  # raises an error that says what to install
    from matplotlib import rc_context
    from matplotlib.rcsetup import cycler

    style = _STYLE | {"axes.prop_cycle": cycler(color=COLOURS)}
    with rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # the reader's fonts have it
        yield


def as_svg(figure: Any, name: str) -> str:
    """A figure as an SVG element for a page; `name` makes its ids different from those of other pictures."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = buffer.getvalue().decode("utf-8")
    svg = svg[svg.index("<svg") :]
    width = round(figure.get_figwidth() * 96)
    svg = re.sub(r'width="[^"]*pt" height="[^"]*pt"|height="[^"]*pt" |width="[^"]*pt" ', "", svg, count=2)
    svg = svg.replace("<svg ", f'<svg width="{width}" style="max-width: 100%; min-width: {width * 7 // 10}px" ', 1)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda found: _variable(found.group()), svg)
    return re.sub(r"font-family: [^;\"]*; ", "", svg)  # the page chooses the font


def _variable(colour: str) -> str:
    return f"var(--{VARIABLES[colour]}, {colour})" if colour in VARIABLES else colour


def shorten(name: str, longest: int = _LONGEST_NAME) -> str:
    """A name in one line of limited width; East Asian characters are two columns wide.

    >>> shorten("a very long name of an entity type")
    'a very long name of an en…'
    """
    name, used = " ".join(name.split()), 0
    for place, character in enumerate(name):
        used += _columns(character)
        if used > longest or (used == longest and place + 1 < len(name)):
            return name[:place] + "…"
    return name


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def width_in_inches(names: Sequence[str], size: float = FONT_SIZE) -> float:
    """The width of the widest of some names; matplotlib's own font has no East Asian characters to measure."""
    return max(map(_columns, names), default=0) * 0.6 * size / 72


def figure_with_margins(
    width: float, height: float, left: float, right: float = 0.15, bottom: float = 0.5, top: float = 0.1
) -> Any:
    """A figure with margins in inches."""
    figure = new_figure((width, height), layout=None)
    figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
    return figure


def add_legend(axes: Any, columns: int, **options: Any) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0.3, columnspacing=1.3, **options)


def legend_of_models(models: Sequence[str], width: float) -> tuple[int, float]:
    """The columns of a legend of models that is at most so wide, and its height; a single model needs no legend."""
    columns = max(1, min(3, int(width / (width_in_inches([shorten(name) for name in models]) + 0.6))))
    return columns, 0.0 if len(models) < 2 else 0.15 + 0.2 * -(-len(models) // columns)
