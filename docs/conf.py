"""Settings of the documentation site, which `make docs` builds with Sphinx; site_pages.py prepares the pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import onoma

sys.path.insert(0, str(Path(__file__).parent))

from site_pages import Site, as_rest

DOCS = Path(__file__).parent

project = "Onoma"
version = release = onoma.__version__
project_copyright = "the authors of Onoma"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["*.py", "__pycache__"]
templates_path: list[str] = []

myst_heading_anchors = 4

autodoc_mock_imports = ["torch", "transformers", "accelerate", "safetensors", "onnx", "spacy", "presidio_analyzer"]
autodoc_mock_imports += ["pandas", "polars", "pyarrow", "ray", "fsspec", "httpx", "matplotlib", "thinc"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "Onoma"
html_favicon = "../src/onoma/serve/page/favicon.svg"
html_logo = html_favicon
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": False}
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp"


def setup(app: Sphinx) -> None:
    """Let Sphinx read each page as it is shown on the site."""
    site = Site(DOCS)

    def show(app: Sphinx, page: str, source: list[str]) -> None:
        path = DOCS / f"{page}.md"
        source[0] = site.show(path, source[0])
        if (origin := site.origin(path)) != path:
            app.env.note_dependency(str(origin))

    def convert(*arguments: Any) -> None:
        lines: list[str] = arguments[-1]
        lines[:] = map(as_rest, lines)

    app.connect("source-read", show)
    app.connect("autodoc-process-docstring", convert)
