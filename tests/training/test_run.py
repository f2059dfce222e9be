"""Whole training runs with a tiny encoder on sentences of our own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerControl, TrainerState, TrainingArguments

import onoma
from onoma import Corpus, Document, EntityType, OnomaError
from onoma.backends import load_backend
from onoma.batches import Batch
from onoma.config import ModelConfig
from onoma.data import load_corpus, write
from onoma.decoding import Proposals
from onoma.subwords import Subwords
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.training.development import DevelopmentSet
from onoma.training.loading import partly_known
from onoma.training.progress import ProgressBar
from onoma.training.recipe import load_recipe
from onoma.training.run import train
from onoma.training.sampling import BucketedBatches
from tiny import TYPES, document, documents

torch.set_num_threads(1)
STEPS, EVERY, KILLED_AT = 60, 20, 33  # killed, and resumed at 20, in the middle of an epoch


@pytest.fixture(scope="module")
def finished(values: dict[str, Any], data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nobody interrupted."""
    output = tmp_path_factory.mktemp("runs") / "finished"
    assert train(load_recipe(values), output=output, data=data) == output / "model"
    return output


def metrics_of(run: Path) -> dict[str, Any]:
    """What was measured, without what time it took."""
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    times = ("seconds", "train_seconds", "train_words_per_second")
    return {name: value for name, value in metrics.items() if name not in times}


def short(values: dict[str, Any], **changes: Any) -> Any:
    """A recipe of a few steps."""
    copied = deepcopy(values)
    copied["training"] |= {"max_steps": 4, "evaluate_every": 2, "checkpoints": False}
    for part, change in changes.items():
        copied[part] = {**copied[part], **change} if isinstance(change, dict) else change
    return load_recipe(copied)


def test_a_small_corpus_is_learned(finished: Path) -> None:
    metrics = metrics_of(finished)
    assert metrics["dev"]["small"]["f1"] > 80
    assert metrics["test"]["small"]["f1"] > 80
    assert metrics["best_dev_f1"] >= metrics["dev"]["small"]["f1"] - 1e-6
    assert metrics["steps"] == STEPS
    assert metrics["best_step"] in range(EVERY, STEPS + 1, EVERY)
    assert metrics["examples"]["cut_mentions"] == 0


def test_the_run_folder_has_what_it_promises(finished: Path, values: dict[str, Any]) -> None:
    assert load_recipe(finished / "recipe.yaml") == load_recipe(values)
    rows = [json.loads(line) for line in (finished / "curve.jsonl").read_text("utf-8").splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [20, 40, 60]
    assert {row["step"] for row in rows if "eval_f1" in row} == {20, 40, 60}
    assert list((finished / "logs").glob("events.*"))
    model = finished / "model"
    files = {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "encoder/config.json", "README.md"} <= files
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pth", ".pkl", ".partial"))]
    card = (model / "README.md").read_text("utf-8")
    assert f"| test | small | {metrics_of(finished)['test']['small']['precision']:.1f} |" in card
    config = ModelConfig.load(model)
    assert config.types == {one.name: one.description for one in TYPES}
    assert config.encoder == "tiny-bert"


def test_the_saved_model_scores_as_in_training(finished: Path, data: Path) -> None:
    metrics = metrics_of(finished)
    backend = load_backend(finished / "model", "torch", device="cpu")
    for split in ("dev", "test"):
        again = DevelopmentSet(load_corpus(data / "small", split), backend).evaluate(backend)
        assert again == pytest.approx(metrics[split]["small"])
    report = onoma.evaluate(finished / "model", data / "small")
    assert 100 * report.strict.micro.f1 == pytest.approx(metrics["test"]["small"]["f1"])


def test_a_killed_run_goes_on_to_the_same_end(
    finished: Path, values: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(ProgressBar):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            if state.global_step == KILLED_AT:
                raise KeyboardInterrupt

    output = tmp_path / "resumed"
    with monkeypatch.context() as patch:
        patch.setattr("onoma.training.run.ProgressBar", Killed)
        with pytest.raises(KeyboardInterrupt):
            train(load_recipe(values), output=output, data=data)
    assert not (output / "metrics.json").exists()
    half_written = output / "checkpoints" / "checkpoint-30"  # the kill came while it was written
    half_written.mkdir()
    shutil.copy(output / "checkpoints" / "checkpoint-20" / "model.safetensors", half_written)

    steps = []

    class Watched(ProgressBar):
        def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
            steps.append(state.global_step)

    monkeypatch.setattr("onoma.training.run.ProgressBar", Watched)
    train(load_recipe(values), output=output, data=data)
    assert steps == list(range(EVERY + 1, STEPS + 1))  # it did go on, and did not begin anew
    assert metrics_of(output) == metrics_of(finished)
    assert ModelConfig.load(output / "model") == ModelConfig.load(finished / "model")
    weights, expected = (load_file(run / "model" / "model.safetensors") for run in (output, finished))
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)
    curves = [[json.loads(line) for line in (run / "curve.jsonl").open(encoding="utf-8")] for run in (output, finished)]
    losses = [[(row["step"], row["loss"]) for row in curve if "loss" in row] for curve in curves]
    assert losses[0] == losses[1]


def test_a_finished_run_is_left_as_it_is(finished: Path, values: dict[str, Any], data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()}
    assert train(load_recipe(values), output=finished, data=data) == finished / "model"
    assert {path: path.stat().st_mtime_ns for path in (finished / "model").iterdir()} == before


def test_the_folder_of_another_recipe_is_refused(finished: Path, values: dict[str, Any], data: Path) -> None:
    with pytest.raises(OnomaError, match="another recipe"):
        train(load_recipe(values, ["seed=1"]), output=finished, data=data)
    assert load_recipe(finished / "recipe.yaml").seed == 0


def test_a_recipe_that_failed_before_training_may_be_mended(values: dict[str, Any], data: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    for wrong, message in (
        ("encoder=/no/such/encoder", "encoder"),
        ("data.corpora.0.path=nowhere", "nowhere"),
        ("data.corpora.0.dev=null", "dev"),
        ("data.corpora.0.train=null", "train"),
        ("data.corpora.0.train=everything", "everything"),
    ):
        with pytest.raises(OnomaError, match=message):
            train(load_recipe(values, [wrong]), output=output, data=data)
    assert train(short(values), output=output, data=data).is_dir()


def test_a_corpus_without_mentions_cannot_be_learned(values: dict[str, Any], tmp_path: Path) -> None:
    for split in ("train", "dev"):
        write([Document("Nobody came .")] * 10, tmp_path / "small" / f"{split}.jsonl")
    with pytest.raises(OnomaError, match="no mention"):
        train(short(values), output=tmp_path / "run", data=tmp_path)


VARIANTS: list[dict[str, Any]] = [
    {"options": {"shared_encoder": False, "shared_linear": True, "inference": "joint"}},
    {"options": {"thresholds": "global", "types": "atomic"}},
    {"options": {"thresholds": "tuned", "types": "name"}, "data": {"most_types": 2}},
    {"options": {"types": "prototype", "positions": False}},
    {"data": {"windows": "across", "drop_empty": False, "sampling": "uniform", "draws": 40}},
    {"training": {"accumulation": 2, "head_rate": 1e-2, "threshold_on": "dev", "checkpoints": True}},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_every_kind_of_model_can_be_trained_and_loaded(
    changes: dict[str, Any], values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    changes = deepcopy(changes)
    changes["training"] = {"max_steps": 4, "evaluate_every": 2, "checkpoints": False} | changes.get("training", {})
    folder = train(short(values, **changes), output=tmp_path / "run", data=data)
    backend = load_backend(folder, "torch", device="cpu")
    dev = load_corpus(data / "small", "dev")
    assert DevelopmentSet(dev, backend).evaluate(backend) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])


def test_models_with_thresholds_to_be_tuned_are_compared_at_their_best(
    values: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    train(load_recipe(values, ["options.thresholds=tuned"]), output=tmp_path / "run", data=data)
    metrics = metrics_of(tmp_path / "run")
    assert metrics["best_dev_f1"] > 80
    assert metrics["dev"]["small"]["f1"] == pytest.approx(metrics["best_dev_f1"], abs=5)


def test_training_stops_when_nothing_gets_better(values: dict[str, Any], data: Path, tmp_path: Path) -> None:
    slow = {"max_steps": 50, "evaluate_every": 2, "patience": 2, "rate": 1e-12, "checkpoints": False}
    train(short(values, training=slow), output=tmp_path / "run", data=data)
    assert metrics_of(tmp_path / "run")["steps"] == 6
    assert metrics_of(tmp_path / "run")["best_step"] == 2


def test_the_best_weights_are_kept_and_not_the_last(
    values: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    f1: Iterator[float]
    seen: list[torch.Tensor]

    def invented(_: object, backend: TorchBinder) -> dict[str, float]:
        seen.append(backend.model.width.weight.detach().clone())
        return {"precision": 0.0, "recall": 0.0, "f1": next(f1)}

    monkeypatch.setattr("onoma.training.binder.mean_scores", invented)
    for name, checkpoints in {"in memory": False, "on disk": True}.items():
        f1, seen = iter([10.0, 90.0, 20.0, 30.0, 30.0]), []
        changes = {"max_steps": 8, "evaluate_every": 2, "checkpoints": checkpoints}
        folder = train(short(values, training=changes), output=tmp_path / name, data=data)
        assert metrics_of(tmp_path / name)["best_step"] == 4
        kept = load_file(folder / "model.safetensors")["width.weight"]
        assert [torch.equal(kept, weights) for weights in seen[:4]] == [False, True, False, False]


def test_two_corpora_with_types_of_their_own(
    values: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watched(BucketedBatches):
        def __len__(self) -> int:
            shares.append(self.probabilities[0])
            return super().__len__()

    shares: list[float] = []
    monkeypatch.setattr("onoma.training.run.BucketedBatches", Watched)
    shutil.copytree(data / "small", tmp_path / "small")
    people = [Document(one.text, tuple(e for e in one.entities if e.label == "person")) for one in documents()[:10]]
    write(people, tmp_path / "people" / "train.jsonl")
    corpora = [{"path": "people", "dev_share": 0.2, "share": 2.0}, {"path": "small", "limit": 20, "dev_limit": 5}]
    recipe = short(values, data={"corpora": corpora})
    train(recipe, output=tmp_path / "run", data=tmp_path)
    metrics = metrics_of(tmp_path / "run")
    assert set(metrics["dev"]) == {"people", "small"}  # dev of people was cut from its train
    assert set(metrics["test"]) == {"small"}
    assert metrics["examples"]["windows"] + metrics["examples"]["dropped_windows"] == 8 + 20
    assert shares[0] == pytest.approx(2 * 8 / (2 * 8 + metrics["examples"]["windows"] - 8))
    assert set(ModelConfig.load(tmp_path / "run" / "model").types) == {one.name for one in TYPES}


def test_the_sigmoid_objective_learns_too(values: dict[str, Any], data: Path, tmp_path: Path) -> None:
    changed = deepcopy(values)
    changed["options"] |= {"objective": "sigmoid"}
    changed["training"] |= {"checkpoints": False, "max_steps": 160, "evaluate_every": 40}
    train(load_recipe(changed), output=tmp_path / "run", data=data)
    assert metrics_of(tmp_path / "run")["test"]["small"]["f1"] > 80


def test_documents_tell_only_of_types_that_go_with_their_own(values: dict[str, Any], tmp_path: Path) -> None:
    films = [document("[film|Alien] by [director|Scott] ."), document("[film|Jaws] in Oslo .")]
    trips = [
        document("To [city|Rome] on [day|Monday] ."),
        document("On [day|Friday] with [film|Jaws] ."),
        document("Hi ."),
    ]
    corpus = partly_known(Corpus("talk", [*films, *trips]))
    found = [set(one.annotated or ()) for one in corpus]
    assert found == [{"film", "director"}, {"film", "director", "day"}, {"city", "day"}, {"film", "day"}, set()]


def test_development_scores_leave_unknown_types_out(subwords: Subwords) -> None:
    known = Document.from_spans("Tom left Oslo .", [(0, 3, "person")], annotated=["person"])
    backend = FoundEverywhere(subwords)
    dev = DevelopmentSet(Corpus("c", [known], TYPES), backend)
    assert dev.evaluate(backend) == {"precision": 100.0, "recall": 100.0, "f1": pytest.approx(100.0)}
    nothing = dev.propose(backend, 0.95)
    assert dev.scores(nothing, 0.95) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


class FoundEverywhere:
    """Not a model: "Tom" is a person and "Oslo" a city with a score of 0.9, whatever the text."""

    name = "none"
    batches_together = 1
    config = ModelConfig("none", max_tokens=64)

    def __init__(self, subwords: Subwords) -> None:
        self.subwords = subwords

    def style(self, corpus: str | None) -> FoundEverywhere:
        return self

    def type_key(self, entity_type: EntityType) -> str:
        return entity_type.name

    def encode_types(self, types: Sequence[EntityType]) -> Any:
        self.kinds = [one.name for one in types]
        return np.zeros((len(types), 1), np.float32)

    def propose(self, batch: Batch, types: Any, floor: float) -> Proposals:
        rows = np.array([(0, 0, 0, self.kinds.index("person")), (0, 2, 2, self.kinds.index("city"))])
        return Proposals(*rows.T, np.full(2, 0.9, np.float32))
