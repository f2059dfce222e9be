"""The commands `onoma bench joint`, `zero-shot`, `few-shot` and `curve`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from onoma import __version__
from onoma.data import write
from onoma.training.recipe import load_recipe
from onoma.training.run import train
from tiny import documents

PROTOCOLS = ("joint", "zero-shot", "few-shot", "curve")
SHORT = {"max_steps": 2, "eval_steps": 1, "checkpoints": False}
FEW = ("--samples", 2, "--steps", 2)


@pytest.fixture(scope="module")
def place(recipe_values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two corpora, a recipe for them, and a run that was trained on one of them."""
    root, texts = tmp_path_factory.mktemp("bench"), documents()
    for number, name in enumerate(("films", "meals")):
        for split, step in {"train": 3, "dev": 11, "test": 13}.items():
            write(texts[number::step], root / "data" / name / f"{split}.jsonl")
    copied = deepcopy(recipe_values)
    copied["data"] |= {"corpora": [{"path": "films"}, {"path": "meals"}]}
    copied["training"] |= SHORT
    (root / "recipe.yaml").write_text(yaml.safe_dump(copied), "utf-8")
    train(load_recipe(root / "recipe.yaml", ["data.corpora.1.train=null"]), output=root / "start", data=root / "data")
    return root


@pytest.fixture
def bench(command: Callable, place: Path, tmp_path: Path) -> Callable:
    """Runs a protocol into the folder `out` of a test."""

    def run(protocol: str, *arguments: object) -> Any:
        folders = ("--data", place / "data", "--output", tmp_path / "out")
        return command("bench", protocol, place / "recipe.yaml", *folders, *arguments)

    return run


def results_of(tmp_path: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    return results


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_help_shows_an_example(command: Callable, protocol: str) -> None:
    outcome = command("bench", protocol, "--help")
    assert outcome.code == 0
    assert f"Example: onoma bench {protocol} recipes/" in outcome.out
    assert protocol in command("bench", "--help").out


def test_joint_prints_json_or_a_table(bench: Callable, tmp_path: Path) -> None:
    outcome = bench("joint", "--json", "--set", "seed=4")
    assert outcome.code == 0
    assert "step 2 of 2" in outcome.err
    results = json.loads(outcome.out)  # nothing else goes to standard output
    assert results == results_of(tmp_path)
    assert (results["protocol"], results["corpora"], results["seeds"]) == ("joint", ["films", "meals"], [4])
    assert results["version"] == __version__
    assert shlex.split(results["command"])[:3] == ["onoma", "bench", "joint"]
    assert {(one["corpus"], one["split"]) for one in results["values"]} == {
        (corpus, split) for corpus in ("films", "meals") for split in ("dev", "test")
    }
    again = bench("joint", "--set", "seed=4")  # the run is finished: only its results are printed
    assert "step" not in again.err
    films = next(line for line in again.out.splitlines() if "films" in line)
    assert all(f"{one['f1']:.2f}" in films for one in results["values"] if one["corpus"] == "films")
    assert "mean" in again.out
    assert again.out.splitlines()[-1] == f"written to {tmp_path / 'out' / 'results.json'}"


def test_zero_shot_shows_the_corpora_that_were_left_out(bench: Callable, tmp_path: Path) -> None:
    outcome = bench("zero-shot", "--left-out", "meals")
    assert outcome.code == 0
    assert "meals" in outcome.out
    assert "films" not in outcome.out
    assert [one["corpus"] for one in results_of(tmp_path)["values"]] == ["meals"]
    assert load_recipe(tmp_path / "out" / "recipe.yaml").data.corpora[1].train is None


def test_a_curve_uses_the_runs_of_few_shot(bench: Callable, place: Path, tmp_path: Path) -> None:
    asked = ("--start", place / "start", "--corpus", "meals", *FEW)
    outcome = bench("few-shot", *asked, "--sentences", 5, "--json")
    assert outcome.code == 0
    results = json.loads(outcome.out)
    (value,) = results["values"]
    assert (value["sentences"], len(value["samples"]), results["seeds"]) == (5, 2, [0, 1])
    assert value["spread"] is not None
    assert "meals: 5 sentences, sample 2 of 2" in outcome.err

    plot = tmp_path / "curve.svg"
    outcome = bench("curve", *asked, "--sizes", "5, 20", "--plot", plot)
    assert outcome.code == 0
    values = {one["sentences"]: one for one in results_of(tmp_path)["values"]}
    assert set(values) == {5, 20}
    assert values[5] == value  # these runs were finished, so nothing was trained between these lines:
    done = "".join(f"meals: 5 sentences, sample {sample} of 2\n" for sample in (1, 2))
    assert outcome.err.startswith(f"{done}meals: 20 sentences, sample 1 of 2\n")
    assert sum("meals" in line for line in outcome.out.splitlines()) == 2
    assert all(f">{word}<" in plot.read_text("utf-8") for word in ("meals", "5", "20"))


@pytest.mark.parametrize(
    ("protocol", "arguments", "message"),
    [
        ("joint", ("--set", "training.epoch=3"), "training.epoch"),
        ("zero-shot", (), "--left-out"),
        ("zero-shot", ("--left-out", "news"), "it has: films, meals"),
        ("zero-shot", ("--left-out", "films", "--left-out", "meals"), "nothing to train on"),
        ("few-shot", ("--corpus", "films"), "--start"),
        ("few-shot", ("--corpus", "films", "--start", "nowhere"), "there is no model folder"),
        ("few-shot", ("--corpus", "films", "--start", ".", "--samples", "0"), "--samples"),
        ("few-shot", ("--corpus", "films", "--start", ".", "--set", "training.max_steps=3"), "--steps"),
        ("curve", ("--corpus", "films", "--start", ".", "--sizes", "20,many"), "--sizes"),
        ("curve", ("--corpus", "films", "--start", ".", "--sizes", "0"), "--sizes"),
        ("curve", ("--corpus", "films", "--start", ".", "--plot", "curve.doc"), ".svg"),
    ],
)
def test_wrong_input_ends_with_code_2(
    bench: Callable, protocol: str, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    outcome = bench(protocol, *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""
    assert not (tmp_path / "out").exists()


def test_another_recipe_in_the_same_folder_is_refused(bench: Callable) -> None:
    assert bench("joint").code == 0
    outcome = bench("zero-shot", "--left-out", "meals")
    assert outcome.code == 2
    assert "another recipe" in outcome.err


def test_without_torch_the_error_names_the_extra(place: Path, tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["torch"] = None
sys.argv = ["onoma", "bench", "joint", {str(place / "recipe.yaml")!r}, "--output", {str(tmp_path / "out")!r}]
from onoma.cli import main
main()
"""
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert outcome.returncode == 2
    assert 'pip install "onoma[train]"' in outcome.stderr
