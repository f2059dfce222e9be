"""Other names of types: the file of them, and names that mean nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onoma.errors import DataError, OnomaError
from onoma.training.aliases import nonsense_names, read_aliases
from onoma.training.recipe import load_recipe


def test_the_aliases_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "aliases.jsonl"
    file.write_text(
        '{"name": "person", "aliases": ["PER"]}\n{"name": "人名", "aliases": ["姓名"]}\n'
        '{"name": "person", "aliases": ["people"]}\n',
        "utf-8",
    )
    assert read_aliases(file) == {"person": ["PER", "people"], "人名": ["姓名"]}


@pytest.mark.parametrize("line", ['{"name": "person"}', '{"name": "person", "aliases": "PER"}', "[]"])
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "aliases.jsonl"
    file.write_text('{"name": "city", "aliases": ["town"]}\n' + line + "\n", "utf-8")
    with pytest.raises(DataError) as error:
        read_aliases(file)
    assert error.value.line == 2
    assert "PER" in str(error.value)


def test_nonsense_is_different_letters() -> None:
    names = nonsense_names(50, np.random.default_rng(1))
    assert len(set(names)) == 50
    assert all(one.isalpha() and 3 <= len(one) <= 9 for one in names)


def test_a_rate_without_aliases_is_refused() -> None:
    recipe = Path(__file__).parents[2] / "recipes" / "binder" / "conll2003.yaml"
    with pytest.raises(OnomaError, match=r"data\.aliases"):
        load_recipe(recipe, ["training.alias_rate=0.3"])
