"""Dependencies between modules point inwards, have no cycles, and extraction imports only what it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import onoma
from onoma.systems.registry import SYSTEMS

ROOT = Path(onoma.__file__).parent
CORE = ("onoma.entities", "onoma.errors", "onoma.files", "onoma.text", "onoma.decoding")
"""Modules and packages that know nothing of neural networks and corpora."""
THROUGH_THE_REGISTRY = ("onoma.training", "onoma.models", "onoma.extractor", "onoma.reading")
"""Modules and packages that reach a system only through `onoma.systems.registry`."""
SHARED_BY_SYSTEMS = (
    "onoma.systems.base",
    "onoma.systems.options",
    "onoma.systems.blocks",
    "onoma.onnx",
    "onoma.inputs",
)
SYSTEM_PACKAGES = tuple(target.partition(":")[0] for target in SYSTEMS.values())
NOT_FOR_EXTRACTION = (
    *("torch", "transformers", "onnx"),
    *("onoma.data.formats", "onoma.data.corpora", "onoma.data.inventory"),
    *("onoma.integrations", "spacy", "presidio_analyzer", "pandas", "polars", "pyarrow"),
)


def module_name(path: Path) -> str:
    parts = ("onoma", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below a node, without those that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and is_type_checking(child.test):
            for other in child.orelse:
                yield from (other, *statements(other))
        else:
            yield from (child, *statements(child))


def imports(module: str) -> set[str]:
    """The modules of the package that a module imports explicitly, anywhere in its code."""
    found: set[str] = set()
    for node in statements(ast.parse(FILES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} has a relative import"
            source = node.module or ""
            names = {f"{source}.{alias.name}" for alias in node.names}
            found |= {name if name in FILES else source for name in names}
    return found & FILES.keys() - {module}


GRAPH = {module: imports(module) for module in FILES}


def belongs(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def violations(sources: tuple[str, ...], is_wrong: Callable[[str], bool]) -> list[str]:
    """The imports of modules in `sources` that break a rule."""
    return [
        f"{module} imports {target}"
        for module, targets in GRAPH.items()
        if belongs(module, sources)
        for target in sorted(targets)
        if is_wrong(target)
    ]


def test_the_graph_has_the_imports_that_are_known_to_exist() -> None:
    assert "onoma.decoding.proposals" in GRAPH["onoma.reading"]
    assert "onoma.systems.binder.training" in GRAPH["onoma.systems.binder"]  # inside a function
    assert "onoma.training.stages" not in GRAPH["onoma.systems.binder"]  # for type checkers only
    assert "onoma" in GRAPH["onoma.cli"]
    assert len(GRAPH) > 100


def test_there_are_no_cycles() -> None:
    try:
        TopologicalSorter(GRAPH).prepare()
    except CycleError as error:
        pytest.fail("imports form a cycle: " + " <- ".join(error.args[1]))


def test_core_modules_import_only_each_other() -> None:
    assert violations(CORE, lambda target: not belongs(target, CORE)) == []


def test_systems_are_reached_only_through_the_registry() -> None:
    assert violations(THROUGH_THE_REGISTRY, lambda target: belongs(target, SYSTEM_PACKAGES)) == []


@pytest.mark.parametrize("package", SYSTEM_PACKAGES)
def test_a_system_imports_no_other_system(package: str) -> None:
    others = tuple(other for other in SYSTEM_PACKAGES if other != package)
    assert violations((package,), lambda target: belongs(target, others)) == []


def test_nothing_imports_the_integrations_but_themselves() -> None:
    others = tuple(module for module in GRAPH if module != "onoma" and not belongs(module, ("onoma.integrations",)))
    assert violations(others, lambda target: belongs(target, ("onoma.integrations",))) == []


def test_what_systems_share_imports_no_system() -> None:
    assert violations(SHARED_BY_SYSTEMS, lambda target: belongs(target, SYSTEM_PACKAGES)) == []


EXTRACT = """
import onoma
found = onoma.load().extract(["Maria Silva flew to Oslo.", "马云在杭州。"], ["person", "城市"])
assert all(found), found
"""
COMMAND = """
import sys
from onoma.cli import main
sys.argv = ["onoma", "extract", "Maria Silva flew to Oslo.", "--labels", "person, 城市", "--format", {!r}]
try:
    main()
except SystemExit as stopped:
    assert stopped.code == 0
"""


@pytest.mark.parametrize(
    "program",
    ["import onoma", EXTRACT, *(COMMAND.format(output) for output in ("table", "json", "jsonl", "html", "csv"))],
    ids=["import", "extract", "table", "json", "jsonl", "html", "csv"],
)
def test_extraction_imports_only_what_it_needs(program: str) -> None:
    check = f"import sys\nprint(*(set({NOT_FOR_EXTRACTION}) & sys.modules.keys()), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{check}"], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []


def test_evaluation_imports_neither_pytorch_nor_what_reports_need() -> None:
    program = """import sys, onoma.evaluation, onoma.evaluation.analysis, onoma.evaluation.pages
print(*({"torch", "transformers", "matplotlib", "jinja2"} & sys.modules.keys()))"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
