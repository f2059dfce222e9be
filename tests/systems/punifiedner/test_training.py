"""PUnifiedNER trained, saved and used: answers, offsets, scores, counts, and clear refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import GenerationConfig

import onoma
from onoma import Entity, OnomaError
from onoma.data import load_corpus
from onoma.evaluation.candidates import EvaluationSet
from onoma.evaluation.runs import run as evaluate_run
from onoma.models.export import export
from onoma.models.folder import open_single
from onoma.systems.base import RuntimeSettings
from onoma.systems.punifiedner import SYSTEM
from onoma.systems.punifiedner.answers import COUNTED
from onoma.systems.punifiedner.torch_runtime import TorchPUnifiedNer
from onoma.text.words import segment
from onoma.training.run import train
from tiny import TYPES, documents
from tiny_t5 import punifiedner_recipe, save_t5
from tiny_training import SHORT, changed_recipe, curve_of, metrics_of

torch.set_num_threads(1)
TEXTS = [one.text for one in documents()[::9]]
NAMES = [one.name for one in TYPES]


@pytest.fixture(scope="module")
def t5_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny T5 with random weights."""
    return save_t5(tmp_path_factory.mktemp("encoders") / "tiny-t5")


@pytest.fixture(scope="module")
def run(
    recipe_values: dict[str, Any], t5_folder: Path, data_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A finished run of both stages."""
    output = tmp_path_factory.mktemp("runs") / "punifiedner"
    recipe = punifiedner_recipe(
        recipe_values,
        t5_folder,
        options={"prompts": "dataset+random", "max_answer_tokens": 40},
        training={"max_steps": 150, "eval_steps": 75, "learning_rate": 5e-3, "checkpoints": False},
        stages={"adapt": {"max_steps": 20, "eval_steps": 10}},
    )
    train(recipe, output=output, data=data_folder)
    return output


def with_options(run: Path, **options: Any) -> TorchPUnifiedNer:
    """The trained model with other options."""
    folder = open_single(run / "model", "use")
    changed = replace(folder, config=replace(folder.config, options=folder.config.options | options))
    runtime = SYSTEM.runtime(changed, RuntimeSettings("torch", "cpu"))
    assert isinstance(runtime, TorchPUnifiedNer)
    return runtime


@pytest.fixture(scope="module")
def runtime(run: Path) -> TorchPUnifiedNer:
    return with_options(run)


@pytest.fixture(scope="module")
def dev(runtime: TorchPUnifiedNer, data_folder: Path) -> EvaluationSet:
    return EvaluationSet(load_corpus(data_folder / "small", "dev"), runtime)


def spans(found: list[list[Entity]]) -> list[list[tuple[int, int, str]]]:
    return [[(one.start, one.end, one.label) for one in entities] for entities in found]


def test_both_stages_learn(run: Path) -> None:
    metrics = metrics_of(run)
    assert metrics["test"]["small"]["f1"] > 90
    losses = [row["eval_loss"] for row in curve_of(run, "curve-adapt") if "eval_loss" in row]
    assert losses[-1] == metrics["stages"]["adapt"]["best_dev_loss"] < losses[0]


def test_a_saved_model_finds_the_same_and_any_order_of_labels_gives_the_same(run: Path, tmp_path: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    found = model.extract(TEXTS, NAMES, overlap="nested")
    assert found == model.extract(TEXTS, NAMES[::-1], overlap="nested")
    gold = [[(one.start, one.end, one.label) for one in document.entities] for document in documents()[::9]]
    missed = [one for own, wanted in zip(spans(found), gold, strict=True) for one in set(wanted) ^ set(own)]
    assert len(missed) < 0.1 * sum(map(len, gold))
    model.save_pretrained(tmp_path / "copy")
    assert onoma.load(tmp_path / "copy", device="cpu").extract(TEXTS, NAMES, overlap="nested") == found


def test_shared_embeddings_are_saved_once(run: Path) -> None:
    with safe_open(run / "model" / "model.safetensors", "pt") as file:
        names = [name for name in file.keys() if "embed_tokens" in name or "shared" in name or "lm_head" in name]  # noqa: SIM118
    assert len(names) == 1  # of this T5, whose output layer is shared, too


def test_asking_for_some_types_gives_their_mentions(run: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    every = spans(model.extract(TEXTS, NAMES, overlap="nested"))
    differing = 0
    for name in NAMES:
        alone = spans(model.extract(TEXTS, [name], overlap="nested"))
        assert all(label == name for found in alone for *_, label in found)
        wanted = [{one for one in found if one[2] == name} for found in every]
        differing += sum(len(set(own) ^ one) for own, one in zip(alone, wanted, strict=True))
    assert differing < 0.2 * sum(map(len, every))


def test_scores_are_probabilities_of_what_was_generated(runtime: TorchPUnifiedNer) -> None:
    source = runtime.prompts.read(TEXTS, [segment(text) for text in TEXTS])
    (prompt,) = runtime.ask(TYPES).prompts
    with torch.inference_mode():
        answers, found = runtime.answer(source, prompt, runtime.model.text_encoder)
    for one, answer, values in zip(source, answers, found, strict=True):
        ids = [*prompt.ids, *one.ids.tolist(), runtime.prompts.end]
        before = [0, *answer[:-1]]
        with torch.inference_mode():  # alone, and without padding
            logits = runtime.model.text_encoder(
                input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([before])
            ).logits[0]
        end = answer.index(runtime.prompts.end) + 1
        expected = logits.log_softmax(-1)[torch.arange(end), answer[:end]]
        assert values[:end] == pytest.approx(expected.tolist(), abs=1e-3)


@pytest.mark.parametrize("beams", [1, 3])
def test_unconstrained_answers_are_those_of_transformers(run: Path, beams: int) -> None:
    runtime = with_options(run, constrained=False, beams=beams)
    texts = ["Tom flew to Paris .", "xyz (Rome)", "We eat bread ."]
    sources = runtime.prompts.read(texts, [segment(text) for text in texts])
    (prompt,) = runtime.ask(TYPES).prompts
    with torch.inference_mode():
        answers, _ = runtime.answer(sources, prompt, runtime.model.text_encoder)
    for source, answer in zip(sources, answers, strict=True):
        ids = torch.tensor([[*prompt.ids, *source.ids.tolist(), runtime.prompts.end]])
        limit = sum(len(one) + 3 for one in prompt.slots) + runtime.options.max_answer_tokens
        settings = GenerationConfig(
            max_new_tokens=limit, num_beams=beams, eos_token_id=1, pad_token_id=0, decoder_start_token_id=0
        )
        expected = runtime.model.text_encoder.generate(ids, generation_config=settings)[0, 1:].tolist()
        assert answer[: len(expected)] == expected


@pytest.mark.parametrize("options", [{"beams": 3}, {"constrained": False}, {"beams": 3, "constrained": False}], ids=str)
def test_other_ways_of_generation_find_about_the_same(
    run: Path, dev: EvaluationSet, runtime: TorchPUnifiedNer, options: dict[str, Any]
) -> None:
    assert dev.evaluate(with_options(run, **options))["f1"] > dev.evaluate(runtime)["f1"] - 5


def test_a_constraint_prevents_all_that_is_wrong_with_answers(t5_folder: Path, run: Path) -> None:
    """Even if the weights are random."""
    counts = {}
    for constrained in (True, False):
        runtime = with_options(run, constrained=constrained, max_answer_tokens=20)
        torch.manual_seed(1)
        for weight in runtime.model.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        query = runtime.ask(TYPES)
        data = EvaluationSet(onoma.Corpus("texts", [onoma.Document(text) for text in TEXTS], TYPES), runtime)
        data.candidates(runtime, 0.0)
        counts[constrained] = runtime.counts()
        assert len(query.prompts) == 1
    assert counts[True]["mentions"] > 0
    assert all(counts[True][name] == 0 for name in ("damaged", "unasked", "invented", "unaligned"))
    assert sum(counts[False][name] for name in ("truncated", "damaged", "invented", "unaligned")) > 0


def test_many_types_are_asked_for_in_several_passes(run: Path) -> None:
    runtime = with_options(run, max_types=2)
    types = [onoma.EntityType(f"type {number}") for number in range(5)]
    prompts = runtime.ask([*types, *TYPES]).prompts
    assert [len(one.slots) for one in prompts] == [2, 2, 2, 2]
    assert sorted(number for one in prompts for slot in one.types for number in slot) == list(range(8))
    limited = with_options(run, max_prompt_tokens=6).ask([*types, *TYPES]).prompts
    assert all(len(one.ids) - 1 <= 6 or len(one.slots) == 1 for one in limited)
    assert sum(len(one.slots) for one in limited) == 8


def test_types_with_the_same_tokens_are_asked_for_once(run: Path) -> None:
    model = onoma.load(run / "model", device="cpu")
    (prompt,) = model.runtime.ask([onoma.EntityType("{"), onoma.EntityType("}"), onoma.EntityType("city")]).prompts
    assert [sorted(one) for one in prompt.types] == [[2], [0, 1]]
    found = model.extract("Tom flew to Paris .", ["{", "}", "city"], overlap="any")
    assert all(one.text in "Tom flew to Paris ." for one in found)


def test_answers_can_be_read_in_words(run: Path, runtime: TorchPUnifiedNer) -> None:
    texts = ["Tom flew to Paris .", ""]
    assert runtime.write(texts, ["person", "city"]) == [
        "((city):(Paris),(person):(Tom))",
        "((city):(NULL),(person):(NULL))",
    ]
    assert with_options(run, max_types=1).write(texts[1:2], ["person", "city"]) == ["((city):(NULL)) ((person):(NULL))"]


def test_counts_are_reported_by_evaluation(run: Path, data_folder: Path, command: Any) -> None:
    model = onoma.load(run / "model", device="cpu")
    corpus = load_corpus(data_folder / "small", "dev")
    assert model.counts() == dict.fromkeys(COUNTED, 0)
    first, second = evaluate_run(model, corpus), evaluate_run(model, corpus)
    assert first.counts == second.counts
    assert first.counts["answers"] == len(corpus)
    outcome = command("evaluate", data_folder / "small", "--model", run / "model", "--device", "cpu")
    assert "counted by the model: answers" in outcome.out.replace("\n", " ")


@pytest.mark.parametrize("text", ["", " ", "{}", "\u0000", "中国", " ".join(TEXTS * 5), "a" * 3000])
def test_any_text_can_be_read(run: Path, text: str) -> None:
    model = onoma.load(run / "model", device="cpu")
    for one in model.extract(text, ["city", "person"]):
        assert text[one.start : one.end] == one.text
        assert 0 <= one.score <= 1


@pytest.mark.parametrize(
    "options",
    [{"stages": "adapt"}, {"stages": "joint", "prompts": "random+exact", "beams": 2, "constrained": False}],
    ids=str,
)
def test_all_options_can_be_trained_and_loaded(
    options: dict[str, Any], recipe_values: dict[str, Any], t5_folder: Path, data_folder: Path, tmp_path: Path
) -> None:
    recipe = punifiedner_recipe(
        recipe_values,
        t5_folder,
        options={"max_answer_tokens": 8, **options},
        training=SHORT | {"threshold_from": "dev"},
    )
    folder = train(recipe, output=tmp_path / "run", data=data_folder)
    loaded = onoma.load(folder, device="cpu").runtime
    dev = EvaluationSet(load_corpus(data_folder / "small", "dev"), loaded)
    assert dev.evaluate(loaded) == pytest.approx(metrics_of(tmp_path / "run")["dev"]["small"])


def test_a_t5_with_an_output_layer_of_its_own_is_saved_with_it(
    recipe_values: dict[str, Any], data_folder: Path, tmp_path: Path
) -> None:
    encoder = save_t5(tmp_path / "encoder", own_output=True)
    options = {"stages": "joint", "max_answer_tokens": 8}
    recipe = punifiedner_recipe(recipe_values, encoder, options=options, training=SHORT)
    folder = train(recipe, output=tmp_path / "run", data=data_folder)
    t5 = onoma.load(folder, device="cpu").runtime.model.text_encoder
    assert t5.shared.weight is t5.encoder.embed_tokens.weight is t5.decoder.embed_tokens.weight
    assert not torch.equal(t5.lm_head.weight, t5.shared.weight)
    assert not t5.config.scale_decoder_outputs
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert torch.equal(file.get_tensor("text_encoder.lm_head.weight"), t5.lm_head.weight)
        assert torch.equal(file.get_tensor("text_encoder.shared.weight"), t5.shared.weight)


@pytest.mark.slow
def test_training_continues_from_a_trained_model_and_from_a_checkpoint(
    run: Path, recipe_values: dict[str, Any], t5_folder: Path, data_folder: Path, tmp_path: Path
) -> None:
    training = SHORT | {"learning_rate": 1e-6, "checkpoints": True}
    values = {**recipe_values, "start": str(run / "model"), "options": {"stages": "joint"}, "system": "punifiedner"}
    recipe = changed_recipe(
        {key: value for key, value in values.items() if key not in ("encoder", "max_tokens")}, training=training
    )
    train(recipe, output=tmp_path / "run", data=data_folder)
    assert metrics_of(tmp_path / "run")["test"]["small"]["f1"] > 90
    (tmp_path / "run" / "metrics.json").unlink()
    train(recipe, output=tmp_path / "run", data=data_folder)  # from its last checkpoint
    assert metrics_of(tmp_path / "run")["test"]["small"]["f1"] > 90


def test_onnx_and_wrong_encoders_are_refused(
    run: Path, recipe_values: dict[str, Any], t5_folder: Path, data_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(OnomaError, match="Fix: use the model folder as it is"):
        export(run / "model", tmp_path / "onnx")
    with pytest.raises(OnomaError, match="Fix: use the backend torch"):
        onoma.load(run / "model", backend="onnx")
    bert = punifiedner_recipe(recipe_values, Path(recipe_values["encoder"]), training=SHORT)
    with pytest.raises(OnomaError, match="Fix: give a T5, such as google"):
        train(bert, output=tmp_path / "bert", data=data_folder)
    binder = changed_recipe({**recipe_values, "encoder": str(t5_folder)}, training=SHORT)
    with pytest.raises(OnomaError, match="only the system punifiedner uses"):
        train(binder, output=tmp_path / "binder", data=data_folder)


def test_the_score_of_a_mention_grows_with_the_probability_of_its_tokens(runtime: TorchPUnifiedNer) -> None:
    from onoma.systems.punifiedner.torch_runtime import _margin

    certain, likely, unlikely = (_margin([0.0, 0.0, value, value, 0.0], 0, 2, 3) for value in (0.0, -0.1, -3.0))
    assert certain > likely > unlikely
    assert likely == pytest.approx(np.log(np.exp(-0.1) / (1 - np.exp(-0.1))))
    assert _margin([-2.0, 0.0, -0.1, -0.1], 0, 2, 3) < likely  # a type that hardly has another mention


def test_masked_words_are_refused(
    recipe_values: dict[str, Any], t5_folder: Path, data_folder: Path, tmp_path: Path
) -> None:
    recipe = punifiedner_recipe(recipe_values, t5_folder, training=SHORT, data={"mask_repeated": True})
    with pytest.raises(OnomaError, match=r"remove 'data\.mask_repeated'"):
        train(recipe, output=tmp_path, data=data_folder)
