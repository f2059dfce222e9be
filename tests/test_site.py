"""The documentation site: its navigation, pages that show other files, and the reference of the Python interface."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import onoma
from onoma import data, evaluation, scale, training
from onoma.evaluation import plots

sys.path.insert(0, str(Path(__file__).parent.parent / "docs"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from site_pages import API, LINK, Site, as_rest, navigation, sections

from dark_pictures import IMAGES, PICTURES, is_current

DOCS = Path(__file__).parent.parent / "docs"
OTHERS = {"FORMATS", "__version__"}
"""Public names that are neither classes nor functions."""


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(DOCS)


def test_the_navigation_has_every_page_once() -> None:
    listed = [page for pages in sections((DOCS / "index.md").read_text(encoding="utf-8")).values() for page in pages]
    assert sorted(["index.md", *listed]) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_a_section_of_the_index_is_a_part_of_the_navigation() -> None:
    index = "# Top\n[no](part.md)\n## First\n| [a](a.md) | [b](b/c.md#d) |\n## Empty\ntext\n## Last\n[x](x.md)\n"
    assert sections(index) == {"First": ["a.md", "b/c.md"], "Last": ["x.md"]}
    assert ":caption: First\n\na.md\nb/c.md\n" in navigation(index)


def test_no_link_of_the_site_is_dead(site: Site) -> None:
    for page in sorted(DOCS.rglob("*.md")):
        shown = re.sub(r"^```.*?^```$", "", site.show(page, page.read_text("utf-8")), flags=re.MULTILINE | re.DOTALL)
        for link in LINK.findall(shown):
            target = (page.parent / link).resolve()
            assert target.exists(), f"{page} links to {link}, which does not exist"
            assert target.suffix != ".md" or target.is_relative_to(DOCS), (
                f"{page} links to {link}, not part of the site"
            )


def test_a_page_shows_a_file_that_stands_elsewhere(site: Site) -> None:
    page = DOCS / "model-card.md"
    shown = site.show(page, page.read_text(encoding="utf-8"))
    assert shown.startswith("# Onoma's embedded model\n")  # without the front matter of the card
    assert "](../model-card.md)" in site.show(DOCS / "lab/x.md", "[card](../../src/onoma/models/default/README.md)")


def test_pictures_have_a_current_dark_version_which_the_site_shows(site: Site) -> None:
    for name in PICTURES:
        assert is_current(IMAGES / name), f"{name}. Fix: python tools/dark_pictures.py"
    page = DOCS / "concepts.md"
    shown = site.show(page, page.read_text(encoding="utf-8"))
    assert "```{image} images/data-flow.svg\n:alt: Text becomes words" in shown
    assert "```{image} images/data-flow-dark.svg\n" in shown
    assert ":class: only-dark" in shown
    assert site.show(page, "![x](images/extract-html.png)\n") == "![x](images/extract-html.png)\n"


def test_every_picture_is_shown_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    files = [path for path in IMAGES.rglob("*") if path.suffix in (".svg", ".png") and not path.stem.endswith("-dark")]
    assert [path.name for path in files if path.name not in pages] == []


def test_code_of_a_page_is_left_as_it_is(site: Site) -> None:
    code = "```text\n[a](../../README.md)\n```\n"
    assert site.show(DOCS / "guides/x.md", code) == code


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "reference/api.md").read_text(encoding="utf-8")
    listed = {name for names in API.findall(page) for name in re.split(r",\s*", names)}
    figures = [f"{one.__module__}.{name}" for name, one in vars(plots).items() if name.startswith("draw_")]
    assert {name for name in figures if name.startswith(plots.__name__)} <= listed
    public = {f"{one.__name__}.{name}" for one in (onoma, data, evaluation, scale, training) for name in one.__all__}
    same = {"onoma.training.train"}  # onoma.train
    assert {name for name in public - listed - same if name.rpartition(".")[2] not in OTHERS} == set()
    for name in sorted(listed):
        module, _, attribute = name.rpartition(".")
        assert getattr(import_module(module), attribute).__doc__, f"{name} has no docstring"


def test_a_property_is_not_taken_for_its_type() -> None:
    """Napoleon reads what stands before a colon in the docstring of an attribute as its type."""
    page = (DOCS / "reference/api.md").read_text(encoding="utf-8")
    shown = [name.rpartition(".") for names in API.findall(page) for name in re.split(r",\s*", names)]
    described = {
        f"{name}.{attribute}": inspect.getdoc(value) or ""
        for module, _, name in shown
        for attribute, value in vars(getattr(import_module(module), name)).items()
        if isinstance(value, property | cached_property) and not attribute.startswith("_")
    }
    assert len(described) > 10
    assert [name for name, text in described.items() if ":" in re.sub("`.*?`", "", text.partition("\n")[0])] == []


def test_public_objects_say_what_they_are() -> None:
    page = (DOCS / "reference/api.md").read_text(encoding="utf-8")
    shown = [name.rpartition(".") for names in API.findall(page) for name in re.split(r",\s*", names)]
    kinds = [getattr(import_module(module), name) for module, _, name in shown]
    classes = [one for one in kinds if isinstance(one, type) and not getattr(one, "_is_protocol", False)]
    assert len(classes) > 20
    assert [one.__name__ for one in classes if one.__repr__ is object.__repr__] == []


def test_names_in_docstrings_become_code() -> None:
    assert as_rest("`a` or `B`s, ``c``") == "``a`` or ``B``\\ s, ``c``"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("furo") is None, reason='the site needs pip install "onoma[docs]"')
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "Extractor.extract" in (tmp_path / "reference/api.html").read_text(encoding="utf-8")
    assert "Limits and biases" in (tmp_path / "model-card.html").read_text(encoding="utf-8")
    assert (tmp_path / "searchindex.js").is_file()
