"""The class with the methods of GLiNER."""

from __future__ import annotations

import copy
import inspect
import logging
from pathlib import Path
from typing import Any

import pytest

from onoma import Extractor, OnomaError
from onoma.integrations.gliner import GLiNER

TEXT = "Maria Silva flew to Paris ."
NESTED = "The Rome Players will sing for Maria Silva today ."
LABELS = ["person", "city", "band"]


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> GLiNER:
    return GLiNER.from_pretrained(tiny_model, map_location="cpu")


def pairs(entities: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["text"], one["label"]) for one in entities]


def test_entities_have_the_form_of_gliner(model: GLiNER) -> None:
    person, city = model.predict_entities(TEXT, ["person", "city"])
    assert list(person) == ["start", "end", "text", "label", "score"]
    assert (city["start"], city["end"], city["text"], city["label"]) == (20, 25, "Paris", "city")
    assert isinstance(city["score"], float)
    assert TEXT[city["start"] : city["end"]] == "Paris"


@pytest.mark.parametrize(
    ("method", "names"),  # of GLiNER 0.2.29, in its order
    [
        ("predict_entities", ["text", "labels", "flat_ner", "threshold", "multi_label"]),
        ("batch_predict_entities", ["texts", "labels", "flat_ner", "threshold", "multi_label"]),
        ("inference", ["texts", "labels", "flat_ner", "threshold", "multi_label", "batch_size"]),
        ("from_pretrained", ["model_id", "revision"]),
    ],
)
def test_arguments_have_the_names_and_the_order_of_gliner(method: str, names: list[str]) -> None:
    assert [name for name in inspect.signature(getattr(GLiNER, method)).parameters if name != "self"][
        : len(names)
    ] == names


def test_options_of_gliner(model: GLiNER) -> None:
    assert pairs(model.predict_entities(TEXT, ["person", "city"], threshold=1.0)) == []
    assert pairs(model.predict_entities(TEXT, ["person"], True, 0.1)) == [("Maria Silva", "person")]
    nested = [("The Rome Players", "band"), ("Rome", "city"), ("Maria Silva", "person")]
    assert pairs(model.predict_entities(NESTED, LABELS, flat_ner=False)) == nested
    assert len(model.predict_entities(NESTED, LABELS)) == 2
    several = model.predict_entities(TEXT, ["person", "city"], threshold=0.0, multi_label=True)
    assert {("Paris", "person"), ("Paris", "city")} <= set(pairs(several))


def test_several_texts(model: GLiNER) -> None:
    texts = [TEXT, "", "In Oslo it rains , says Tom ."]
    expected = [[("Maria Silva", "person")], [], [("Tom", "person")]]
    for found in (model.batch_predict_entities(texts, ["person"]), model.inference(texts, ["person"], batch_size=2)):
        assert list(map(pairs, found)) == expected
    assert list(map(pairs, model.inference(TEXT, ["person"]))) == expected[:1]  # a list of lists for a string, too
    assert model.inference([], ["person"]) == []


def test_labels_in_all_forms_of_gliner(model: GLiNER) -> None:
    assert pairs(model.predict_entities(TEXT, "city")) == [("Paris", "city")]
    assert pairs(model.predict_entities(TEXT, ["city", "city"])) == [("Paris", "city")]
    assert pairs(model.predict_entities(TEXT, {"city": "a large town"})) == [("Paris", "city")]
    per_text = [["city"], {"person": "a human being with a name"}, [], ["city"]]
    found = model.inference([TEXT] * 4, per_text)
    assert list(map(pairs, found)) == [[("Paris", "city")], [("Maria Silva", "person")], [], [("Paris", "city")]]
    with pytest.raises(OnomaError, match="each of the 2 texts"):
        model.inference([TEXT] * 2, [["city"]])


@pytest.mark.parametrize(
    "option",
    [{"return_class_probs": True}, {"return_vectors": True}, {"input_spans": [[{"start": 0, "end": 5}]]}],
)
def test_options_that_would_change_the_result_are_refused(model: GLiNER, option: dict[str, Any]) -> None:
    with pytest.raises(OnomaError, match=f"{next(iter(option))}.*no counterpart.*Fix: leave it out"):
        model.predict_entities(TEXT, ["city"], **option)
    assert model.predict_entities(TEXT, ["city"], **dict.fromkeys(option), packing_config=object()) != []


@pytest.mark.parametrize(
    ("name", "fix"),
    [("device", "map_location"), ("encode_labels", "labels are encoded once"), ("run", "Fix: use inference. It has")],
)
def test_what_gliner_has_beyond_this_class_is_explained(model: GLiNER, name: str, fix: str) -> None:
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=fix) as raised:
        getattr(model, name)
    assert "predict_entities" in str(raised.value)
    assert "docs/guides/integrations/gliner.md" in str(raised.value)


def test_other_names_are_missing_as_usual(model: GLiNER) -> None:
    with pytest.raises(AttributeError, match=r"'GLiNER' object has no attribute 'inferense'$"):
        model.inferense  # noqa: B018
    assert copy.copy(model).predict_entities(TEXT, ["city"])  # which asks for attributes before there are any


def test_options_of_loading_are_ignored_with_a_warning(tiny_model: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "onoma"):
        GLiNER.from_pretrained(tiny_model, map_location="cpu", quantize="int8", compile_torch_model=True)
    assert "have no effect in Onoma: compile_torch_model, quantize" in caplog.text


def test_weights_of_gliner_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "gliner_small-v2.1"
    folder.mkdir()
    (folder / "gliner_config.json").write_text("{}")
    with pytest.raises(OnomaError, match=r"weights of GLiNER cannot be loaded.*Fix: leave the name out"):
        GLiNER.from_pretrained(folder)


def test_the_usual_chain_of_calls_saving_and_repr(model: GLiNER, tmp_path: Path, ner: Extractor) -> None:
    assert model.to("cpu").eval() is model
    model.save_pretrained(tmp_path / "saved")
    again = GLiNER.from_pretrained(tmp_path / "saved", map_location="cpu")
    assert again.predict_entities(TEXT, ["city"]) == model.predict_entities(TEXT, ["city"])
    assert again.config == model.config
    assert repr(GLiNER(ner)) == f"GLiNER({ner!r})"
