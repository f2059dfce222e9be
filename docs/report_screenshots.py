"""Make the screenshots of a report: python docs/report_screenshots.py

The report is about the embedded model on one of the projects of corpora/onoma_projects. (The pictures of the guide are
of the model of 0.1.0, which was not trained on it.)
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from screenshots import open_browser, shrink

from onoma import Corpus, EntityType, load
from onoma.data import read
from onoma.evaluation.analysis import study
from onoma.evaluation.pages import write_report

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images" / "report"
SCHEMA = "e2_satellite_updates"


class Shot(NamedTuple):
    """A picture: some sections of the report, one below the other, in a theme; of the first one, so many pixels."""

    name: str
    sections: tuple[str, ...]
    theme: str
    width: int = 1180
    height: int | None = None


SHOTS = (
    Shot("scores", ("scores", "corpus-1-types"), "light"),
    Shot("confusion", ("corpus-1-confusion",), "dark"),
    Shot("errors", ("corpus-1-examples",), "light", 1000, 620),
    Shot("kinds", ("corpus-1-kinds",), "light"),
    Shot("thresholds", ("corpus-1-thresholds",), "dark", 900),
    Shot("distributions", ("corpus-1-distributions",), "light", 900),
    Shot("vectors", ("corpus-1-vectors",), "dark", 900),
)


def example_corpus() -> Corpus:
    """The documents of one project."""
    documents = [
        one
        for one in read(ROOT / "corpora" / "onoma_projects" / "en" / "train.jsonl.xz")
        if one.meta.get("schema") == SCHEMA
    ]
    labels = sorted(set().union(*(one.annotated or () for one in documents)))
    return Corpus("satellites", documents, tuple(map(EntityType, labels)))


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary, open_browser() as browser:
        report = Path(temporary) / "report.html"
        write_report(study({"embedded": load()}, [example_corpus()]), report)
        for shot in SHOTS:
            page = browser.new_page(viewport={"width": shot.width, "height": 900}, color_scheme=shot.theme)
            page.goto(report.as_uri())
            boxes = [page.locator(f"#{name}").bounding_box() for name in shot.sections]
            first, last = boxes[0], boxes[-1]
            assert first is not None
            assert last is not None
            height = shot.height or last["y"] + last["height"] - first["y"]
            area = {"x": first["x"], "y": first["y"], "width": first["width"], "height": height}
            page.screenshot(path=IMAGES / f"{shot.name}.png", clip=area, full_page=True)
            page.close()
            shrink(IMAGES / f"{shot.name}.png")


if __name__ == "__main__":
    main()
