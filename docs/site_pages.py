"""Pages of docs/ as the site shows them. The files themselves are plain Markdown, to be read in the repository as well.

- The navigation is made of docs/index.md: every section with links to pages is a part of it.
- A page with `<!-- file: ../CONTRIBUTING.md -->` shows that file; links to the file lead to the page.
- A picture with a dark version beside it, `NAME-dark.svg`, is shown in the version that fits the theme.
- `<!-- api: onoma.load, onoma.Extractor -->` is replaced by signatures and docstrings.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

INDEX = "index.md"
NOT_SEARCHED = ("benchmarks.md", "changelog.md")
"""Pages that have every word, and would be found before the pages that explain it."""
FILE = re.compile(r"<!-- file: (\S+) -->")
API = re.compile(r"<!-- api: ([^>]+?) -->")
SECTION = re.compile(r"^## (.+)\n((?:(?!^## ).*\n?)*)", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"(?<!`)`([^`]+)`(?!`)(?=(\w?))")
PICTURE = re.compile(r"^!\[([^\]]+)\]\(([^()\s]+)\)$", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


class Site:
    """The pages of a folder, and the files elsewhere that some of them show."""

    def __init__(self, docs: Path) -> None:
        self.docs = docs.resolve()
        shown = {page: FILE.search(page.read_text(encoding="utf-8")) for page in sorted(self.docs.rglob("*.md"))}
        self._files = {page: (page.parent / found.group(1)).resolve() for page, found in shown.items() if found}
        self._pages = {file: page for page, file in self._files.items()}

    def origin(self, page: Path) -> Path:
        """The file whose text a page shows."""
        return self._files.get(page.resolve(), page)

    def show(self, page: Path, text: str) -> str:
        """The text of a page for Sphinx."""
        page, origin = page.resolve(), self.origin(page)
        if origin != page:
            text = FRONT_MATTER.sub("", origin.read_text(encoding="utf-8"))
        text = API.sub(lambda found: api_directives(found.group(1)), self._with_links(text, page, origin))
        text = PICTURE.sub(lambda found: with_dark_version(found, page), text)
        if page.name in NOT_SEARCHED:
            text = f"---\nnosearch: true\n---\n{text}"
        return text + navigation(text) if page == self.docs / INDEX else text

    def _with_links(self, text: str, page: Path, origin: Path) -> str:
        """Links as seen from the page, to the pages that show files instead of the files."""

        def move(found: re.Match[str]) -> str:
            target = (origin.parent / found.group(1)).resolve()
            return os.path.relpath(self._pages.get(target, target), page.parent)

        parts = CODE.split(text)  # text, code, text, ...
        parts[::2] = [LINK.sub(move, part) for part in parts[::2]]
        return "".join(parts)


def with_dark_version(picture: re.Match[str], page: Path) -> str:
    """A picture in both versions, if there is a dark one."""
    alt, light = picture.groups()
    dark = Path(light).with_stem(f"{Path(light).stem}-dark")
    if not (page.parent / dark).is_file():
        return picture.group()
    images = "".join(
        f"```{{image}} {path}\n:alt: {alt}\n:class: only-{theme}\n```\n"
        for theme, path in (("light", light), ("dark", dark.as_posix()))
    )
    return f"````{{container}} picture\n{images}````"


def sections(index: str) -> dict[str, list[str]]:
    """The pages that each section of the index links to."""
    found = {
        title: [link for link in LINK.findall(body) if link.endswith(".md")] for title, body in SECTION.findall(index)
    }
    return {title: list(dict.fromkeys(links)) for title, links in found.items() if links}


def navigation(index: str) -> str:
    """The navigation of the site: one hidden table of contents per section of the index."""
    parts = [
        "```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n".format(title, "\n".join(pages))
        for title, pages in sections(index).items()
    ]
    return "\n\n" + "\n".join(parts)


def api_directives(names: str) -> str:
    """Directives that show the docstrings of public names; classes are those with a capital letter."""
    directives = [
        f".. autoclass:: {name}\n   :members:\n"
        if name.rpartition(".")[2][0].isupper()
        else f".. autofunction:: {name}\n"
        for name in re.split(r",\s*", names)
    ]
    return "```{{eval-rst}}\n{}\n```".format("\n".join(directives))


def as_rest(line: str) -> str:
    """A line of a docstring, in which names are in single backquotes as in Markdown, for Sphinx.

    >>> as_rest("names, `EntityType`s, or `None`")
    'names, ``EntityType``\\\\ s, or ``None``'
    """
    return NAME.sub(lambda found: f"``{found.group(1)}``" + ("\\ " if found.group(2) else ""), line)
