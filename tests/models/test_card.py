"""Cards of models on the hub."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from onoma import DataError
from onoma.models.card import write_hub_card
from onoma.models.hub import EMBEDDED


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def parts(folder: Path) -> tuple[dict[str, Any], str]:
    _, head, body = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


def test_a_model_without_a_card_gets_one(folder: Path) -> None:
    (folder / "README.md").unlink(missing_ok=True)
    write_hub_card(folder, "somebody/tiny", {"license": "mit"})
    fields, body = parts(folder)
    assert fields == {
        "library_name": "onoma",
        "pipeline_tag": "token-classification",
        "license": "mit",
        "tags": ["named-entity-recognition"],
    }
    assert body.startswith("# tiny\n")
    assert 'onoma.load("somebody/tiny")' in body
    assert "| binder | tiny |" in body


def test_a_card_is_completed(folder: Path) -> None:
    head = "---\nlicense: mit\ntags: [drugs, named-entity-recognition]\n---\n"
    (folder / "README.md").write_text(f'{head}# Mine\nonoma.load("path/to/this/folder")\n---\n')
    write_hub_card(folder, "somebody/tiny", {"license": "cc-by-4.0", "language": ["en"]})
    fields, body = parts(folder)
    assert fields["license"] == "cc-by-4.0"
    assert fields["language"] == ["en"]
    assert fields["tags"] == ["drugs", "named-entity-recognition"]
    assert body == '# Mine\nonoma.load("somebody/tiny")\n---\n'
    before = (folder / "README.md").read_bytes()
    write_hub_card(folder, "somebody/tiny")
    assert (folder / "README.md").read_bytes() == before


def test_a_card_without_fields_gets_them(folder: Path) -> None:
    (folder / "README.md").write_text("# Mine\n---\nlicense: not a field\n---\n")
    write_hub_card(folder, "somebody/tiny")
    fields, body = parts(folder)
    assert "license" not in fields
    assert body == "# Mine\n---\nlicense: not a field\n---\n"


def test_several_models_have_one_card(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EMBEDDED, tmp_path / "model", ignore=shutil.ignore_patterns("README.md")))
    write_hub_card(folder, "somebody/both")
    fields, body = parts(folder)
    assert fields["language"] == ["en", "zh"]
    assert body.count("| binder |") == 2


@pytest.mark.parametrize("head", ["just words", "license: [mit"])
def test_a_damaged_card_is_an_error_that_names_it(folder: Path, head: str) -> None:
    (folder / "README.md").write_text(f"---\n{head}\n---\n# Mine\n")
    with pytest.raises(DataError, match=r"README\.md"):
        write_hub_card(folder, "somebody/tiny")
