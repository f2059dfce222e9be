"""The README and the documentation: examples run as written, links exist, reference tables are complete."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from typer.main import get_command

from onoma.cli import app
from onoma.models.config import FORMAT, ModelConfig, RoutedConfig
from onoma.systems.binder.options import BinderOptions
from onoma.systems.nerco.options import NerCoOptions
from onoma.systems.punifiedner.options import PUnifiedNerOptions
from onoma.systems.scl_rai.options import SclRaiOptions
from onoma.systems.suner.options import SunerOptions
from onoma.training.recipe import CorpusRecipe, DataRecipe, Recipe, RelabelRecipe, TrainingRecipe, load_recipe

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from doc_examples import (  # noqa: E402
    APPROXIMATE,
    DOCS,
    NOT_RUN,
    PAGES,
    REASONS,
    Block,
    blocks,
    example_folder,
    examples,
    is_same,
    is_shown,
    refreshed,
    run,
    run_lines,
)
from doc_files import make_files  # noqa: E402

README = ROOT / "README.md"
LINKED = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    ROOT / "corpora/README.md",
    ROOT / "src/onoma/models/default/README.md",
]
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")


OPENING = re.compile(r"^```(\w*) *(.*)\n(?:.*\n)*?```$", re.MULTILINE)
CALL_TREE = 'ner.extract("Tom flew to Paris.", ["person", "city"])\n│'
"""A picture of what a call does."""


def lines_to_run(page: Path) -> list[Block]:
    """The bash blocks of a page that are run."""
    return [block for block in blocks(page.read_text("utf-8"), "bash") if block.is_run]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- examples


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_examples_print_what_they_show(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    with example_folder():
        for block in blocks(page.read_text("utf-8"), "python", "console"):
            for example in examples(block) if block.is_run else ():
                printed = run(block, example, page, namespace)
                fix = f"Fix: python tools/doc_examples.py {name(page)}"
                assert is_shown(block, example, printed), f"line {block.line} prints:\n{printed}\n{fix}"


@pytest.mark.parametrize("page", [one for one in PAGES if lines_to_run(one)], ids=name)
def test_commands_run(page: Path) -> None:
    with example_folder():
        make_files(Path.cwd())
        for block in lines_to_run(page):
            run_lines(block)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    text = page.read_text("utf-8")
    for language, mark in OPENING.findall(text):
        place = f"{name(page)}: ```{language} {mark}"
        assert language in {"python", "console", "bash", "yaml", "json", "text"}, place
        if mark.startswith(NOT_RUN):
            assert mark.removeprefix(NOT_RUN) in REASONS, f"{place}; the reasons are {', '.join(sorted(REASONS))}"
        else:
            assert mark in ("", APPROXIMATE), place
    for block in blocks(text, "text"):
        is_example = re.search(r"^(\$ |import |from |┏)|^\w+\(|\w\.\w+\(.*\)$", block.source, re.MULTILINE)
        assert not is_example or not block.is_run or block.source.startswith(CALL_TREE), f"{name(page)}:{block.line}"
    for block in blocks(text, "python"):
        compile(block.source, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_a_command_that_fails_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line, message in (("onoma info nowhere", "no such file"), ("false | cat", "false")):
        (block,) = blocks(f"```bash\n{line}\n```\n", "bash")
        with pytest.raises(RuntimeError, match=message):
            run_lines(block)


def test_examples_that_print_something_else_are_rewritten() -> None:
    page = """Text
```python approx
for word in ("a", "b"):
    print(word, 0.5)
#> a 0.51
#> b 0.5
x = 3
print(x)
#> 4
print("after")
```
```console
$ echo one
1
$ echo two; echo 2
two
2
```
```bash
echo not run
```
"""
    wanted = (
        page.replace("#> 4", "#> 3")
        .replace('print("after")\n', 'print("after")\n#> after\n')
        .replace("one\n1", "one\none")
    )
    assert refreshed(page, README) == wanted
    assert refreshed(wanted, README) == wanted
    assert refreshed(README.read_text("utf-8")[:200], README) == README.read_text("utf-8")[:200]


def test_outputs_that_differ_are_noticed() -> None:
    assert is_same("Tom person 0.93\n", "Tom person 0.92", 0.02)
    assert not is_same("Tom person 0.93\n", "Tom person 0.92", 0.0)
    assert not is_same("Tom person 0.93\n", "Tom person 0.80", 0.02)
    assert not is_same("Tom person 0.93\n", "Tim person 0.93", 0.02)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_yaml_and_json_are_valid(page: Path) -> None:
    for block in blocks(page.read_text("utf-8"), "yaml", "json"):
        values = (yaml.safe_load if block.language == "yaml" else json.loads)(block.source)
        if isinstance(values, dict) and {"system", "encoder", "data"} <= values.keys():
            load_recipe(values)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_exist_and_accept_their_options(page: Path) -> None:
    for block in blocks(page.read_text("utf-8"), "bash"):
        for line in block.source.replace("\\\n", " ").splitlines():
            for words in _programs(line.removeprefix("$ ")):
                if "onoma" in words[:1] or words[:2] == ["-m", "onoma"]:
                    check_command(words[1 + words.index("onoma") :])
                elif words[0] == "python" and words[1].endswith(".py"):
                    assert (ROOT / words[1]).is_file(), f"{name(page)}: {line}"


def _programs(line: str) -> Iterator[list[str]]:
    """The programs of a shell line, with their arguments; for torchrun, from `-m` on."""
    if not re.match(r"(onoma|python|torchrun|cat|zcat)\b", line):
        return
    words = shlex.split(line, comments=True)
    for part in " ".join(map(shlex.quote, words)).split(" '|' "):
        program = shlex.split(part)
        yield program[program.index("-m") :] if program[0] == "torchrun" else program


def check_command(arguments: list[str]) -> None:
    """Parse arguments without running the command, and apply `--set` to the recipe if it is one of ours."""
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    context = command.make_context("onoma", list(arguments))
    recipe = context.params.get("recipe")
    if recipe is not None and (ROOT / recipe).is_file():
        load_recipe(ROOT / recipe, context.params["changes"] or ())


@pytest.mark.slow
def test_tour_runs() -> None:
    tour = [sys.executable, str(ROOT / "examples/tour.py")]
    done = subprocess.run(tour, capture_output=True, encoding="utf-8", env=os.environ | {"PYTHONUTF8": "1"}, check=True)
    assert "Peking University" in done.stdout
    assert done.stdout.rstrip().endswith("`onoma --help`.")


# --- README and links


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize(
    "metric",
    [
        "embedded/zero-shot/average-of-seven/gte-small/f1",
        "embedded/zero-shot/average-of-three/gte-small/f1",
        "embedded/zero-shot/average-of-four/bge-small-zh-v1.5/f1",
        "embedded/development/average-en/gte-small/f1",
        "embedded/development/average-zh/bge-small-zh-v1.5/f1",
        "uie-nano/development/average-zh/uie-nano-zh/f1",
        "uie-nano/zero-shot/average-of-four/uie-nano-zh/f1",
        *(
            f"{peer}/speed-beside-peers/onoma_projects/gte-small/{labels}_labels_sentences_per_s"
            for peer in ("embedded", "gliner", "gliner-onnx-int8")
            for labels in (10, 100)
        ),
        "embedded/speed-beside-peers/onoma_projects/gte-small/10_labels_times_gliner-onnx-int8",
        "embedded/speed-beside-peers/onoma_projects/gte-small/100_labels_times_gliner-onnx-int8",
    ],
)
def test_figures_of_the_readme_are_those_of_the_records(metric: str) -> None:
    files = (ROOT / "benchmarks/results").glob("*.json")
    records = [record for file in files for record in json.loads(file.read_text(encoding="utf-8"))]
    (value,) = [record["value"] for record in records if record["metric"] == metric]
    assert re.search(rf"\b{value:.1f}\b", README.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_links_exist(page: Path) -> None:
    for target, anchor in LINK.findall(_without_code(page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        assert file.exists(), f"{name(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(file), f"{name(page)} links to {target}#{anchor}, which does not exist"


def test_every_page_of_the_documentation_is_in_its_index() -> None:
    index = DOCS / "index.md"
    linked = {(DOCS / target).resolve() for target, _ in LINK.findall(index.read_text(encoding="utf-8"))}
    assert {page for page in DOCS.rglob("*.md") if page != index} <= linked


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.*)$", _without_code(page.read_text(encoding="utf-8")), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        number = 1
        while (numbered := anchor if number == 1 else f"{anchor}-{number - 1}") in found:
            number += 1
        found.add(numbered)
    return found


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


# --- reference tables


def section(page: Path, heading: str) -> str:
    """The text below a heading, up to the next heading of any level."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{name(page)} has no section {heading!r}"
    return found.group(1)


def table(page: Path, heading: str) -> dict[str, str]:
    """The first two columns of the table below a heading: the key, without backquotes, and its default."""
    rows = re.findall(r"^\| `([^`|]+)` \| ([^|]*) \|", section(page, heading), re.MULTILINE)
    return {key: default.strip().strip("`") for key, default in rows}


def check_defaults(shown: dict[str, str], defaults: dict[str, Any]) -> None:
    """Compare a table with defaults; ... stands for a value that is required."""
    assert shown.keys() == defaults.keys()
    for key, default in defaults.items():
        value = ... if shown[key] == "required" else yaml.safe_load(shown[key])
        assert value == (list(default) if isinstance(default, tuple) else default), key


def recipe_defaults(model: type[BaseModel]) -> dict[str, Any]:
    return {
        key: ... if field.is_required() else {} if isinstance(field.default, BaseModel) else field.default
        for key, field in model.model_fields.items()
    }


def dataclass_defaults(kind: Any) -> dict[str, Any]:
    required = {one.name: ... for one in fields(kind) if one.name in ("system", "routes")}
    made = kind(**required)
    return {one.name: required.get(one.name, getattr(made, one.name)) for one in fields(kind)}


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("Top level", Recipe),
        ("data", DataRecipe),
        ("data.corpora", CorpusRecipe),
        ("data.relabel", RelabelRecipe),
        ("training", TrainingRecipe),
    ],
)
def test_every_key_of_a_recipe_is_documented(heading: str, model: type[BaseModel]) -> None:
    check_defaults(table(DOCS / "reference/recipes.md", heading), recipe_defaults(model))


@pytest.mark.parametrize(
    ("page", "options"),
    [
        ("binder", BinderOptions),
        ("suner", SunerOptions),
        ("scl-rai", SclRaiOptions),
        ("nerco", NerCoOptions),
        ("punifiedner", PUnifiedNerOptions),
    ],
)
def test_every_option_of_a_system_is_documented(page: str, options: Any) -> None:
    check_defaults(table(DOCS / f"systems/{page}.md", "Options"), dataclass_defaults(options))


@pytest.mark.parametrize(("heading", "kind"), [("One model", ModelConfig), ("Several models", RoutedConfig)])
def test_every_key_of_config_json_is_documented(heading: str, kind: Any) -> None:
    defaults = {"format": FORMAT, **dataclass_defaults(kind)}
    shown = table(DOCS / "reference/model-folders.md", heading)
    check_defaults(shown, defaults | ({"system": "routed"} if kind is RoutedConfig else {}))


def test_every_command_and_option_is_documented() -> None:
    page = DOCS / "reference/command-line.md"
    for path, command in _commands(get_command(app), ("onoma",)):
        text = section(page, " ".join(path))
        listed = set(re.findall(r"^\| `(--?[\w-]+)", text, re.MULTILINE))
        options = {one.opts[0] for one in command.params if one.opts[0].startswith("-")}
        assert listed == options - {"--help", "-h"}, " ".join(path)


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for word, inner in command.commands.items():
        yield from _commands(inner, (*path, word))
