from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onoma import EntityType, OnomaError
from onoma.asking import asked_types, limits, parse_threshold, read_types
from onoma.config import ModelConfig

CONFIG = ModelConfig("binder", threshold=0.6, thresholds={"drug": 0.3})


def test_types_are_in_the_order_of_their_names_and_each_once() -> None:
    drug = EntityType("drug", "a medicine")
    assert asked_types(["person", drug, "city", drug, "person"]) == (EntityType("city"), drug, EntityType("person"))
    assert asked_types({"drug": "a medicine"}) == (drug,)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (None, [0.6, 0.3, 0.9]),  # the model's, the tuned one, the type's own
        (0.2, [0.2, 0.2, 0.2]),
        (1, [1.0, 1.0, 1.0]),
        ({"person": 0.1}, [0.6, 0.3, 0.1]),
        ({"drug": 0.5, "city": 0.4}, [0.4, 0.5, 0.9]),
    ],
)
def test_the_nearest_threshold_counts(threshold: object, expected: list[float]) -> None:
    types = asked_types(["drug", "city", EntityType("person", threshold=0.9)])
    assert limits(types, threshold, CONFIG) == pytest.approx(np.array(expected, np.float32))  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [-0.1, 1.01, float("nan"), "0.5", {"drug": 2}, {"drug": None}])
def test_thresholds_lie_between_0_and_1(threshold: object) -> None:
    with pytest.raises(OnomaError, match="between 0 and 1"):
        limits(asked_types(["drug"]), threshold, CONFIG)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("0.4", 0.4),
        ("drug=0.4,side effect=0.6", {"drug": 0.4, "side effect": 0.6}),
        (" a=b = 1 ", {"a=b": 1.0}),
        ("人名=0.4，地名=0.6", {"人名": 0.4, "地名": 0.6}),
    ],
)
def test_thresholds_of_the_command_line(text: str | None, expected: object) -> None:
    assert parse_threshold(text) == expected


@pytest.mark.parametrize("text", ["", "high", "drug=", "drug=0.4,0.6"])
def test_bad_thresholds_of_the_command_line(text: str) -> None:
    with pytest.raises(OnomaError, match="a threshold is"):
        parse_threshold(text)


def test_types_from_names_and_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text("drug: a medicine\nno: a refusal\n1984:\n", "utf-8")
    assert read_types(path) == [EntityType("drug", "a medicine"), EntityType("no", "a refusal"), EntityType("1984")]


def test_types_from_a_list(tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text(
        "- name: drug\n  description: a medicine\n  examples: [aspirin, heparin]\n  threshold: 0.4\n- person\n", "utf-8"
    )
    assert read_types(path) == [EntityType("drug", "a medicine", ("aspirin", "heparin"), 0.4), EntityType("person")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no types"),
        ("just a text", "no types"),
        ("drug: [a, b]", "description"),
        ("- {name: drug, colour: red}", "colour"),
        ("- {description: a medicine}", "needs a name"),
        ("- {name: drug, threshold: high}", "high"),
        ("- {name: drug, threshold: 7}", "between 0 and 1"),
        ("- {name: drug, examples: aspirin}", "list of strings"),
        ("drug: [", "not valid YAML"),
    ],
)
def test_a_bad_file_of_types_is_explained(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text(content, "utf-8")
    with pytest.raises(OnomaError, match=f"types.yaml.*{message}.*Fix"):
        read_types(path)
