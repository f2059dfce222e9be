from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onoma import EntityType, OnomaError
from onoma.labels.parsing import (
    Threshold,
    check_known,
    parse_labels,
    parse_threshold,
    read_types,
    resolve_thresholds,
    split_labels,
)


def test_types_are_sorted_by_name_and_each_comes_once() -> None:
    drug = EntityType("drug", "a medicine")
    assert parse_labels(["person", drug, "city", drug, "person"]) == (EntityType("city"), drug, EntityType("person"))
    assert parse_labels({"drug": "a medicine"}) == (drug,)


def test_a_label_with_two_descriptions_is_refused() -> None:
    with pytest.raises(OnomaError, match=r"'drug' is given twice.*Fix"):
        parse_labels(["drug", EntityType("drug", "a medicine")])


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (None, [0.6, 0.3, 0.9]),  # the default, the tuned one, the type's own
        (0.2, [0.2, 0.2, 0.2]),
        (1, [1.0, 1.0, 1.0]),
        ({"person": 0.1}, [0.6, 0.3, 0.1]),
        ({"drug": 0.5, "city": 0.4}, [0.4, 0.5, 0.9]),
    ],
)
def test_the_most_specific_threshold_is_used(threshold: object, expected: list[float]) -> None:
    types = parse_labels(["drug", "city", EntityType("person", threshold=0.9)])
    resolved = resolve_thresholds(types, threshold, 0.6, {"drug": 0.3})  # type: ignore[arg-type]
    assert resolved == pytest.approx(np.array(expected, np.float32))


def test_a_types_own_threshold_ranks_before_the_tuned_one() -> None:
    own = EntityType("drug", threshold=0.8)
    assert resolve_thresholds([own], None, 0.6, {"drug": 0.3}) == pytest.approx(np.array([0.8], np.float32))


def test_a_threshold_of_0_is_above_the_score_of_impossible_spans() -> None:
    assert 0.0 < resolve_thresholds([EntityType("drug")], 0, 0.6, {})[0] < 1e-30


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        ("balanced", [0.6, 0.3, 0.6]),  # city, drug, person
        ("precise", [0.8, 0.3 * 8 / 3 / (0.7 + 0.3 * 8 / 3), 0.8]),  # odds of 1.5 and 4: a factor of 8 / 3
        ("complete", [0.5, 0.3 * 2 / 3 / (0.7 + 0.3 * 2 / 3), 0.5]),
        ({"city": "precise"}, [0.8, 0.3, 0.5]),
        (None, [0.6, 0.3, 0.5]),
    ],
)
def test_words_stand_for_thresholds_of_the_model(threshold: Threshold | None, expected: list[float]) -> None:
    types = parse_labels(["drug", "city", EntityType("person", threshold="complete")])
    resolved = resolve_thresholds(types, threshold, 0.6, {"drug": 0.3}, {"precise": 0.8, "complete": 0.5})
    assert resolved.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("threshold", ["strict", "Precise", {"drug": "high"}])
def test_other_words_are_refused_with_those_that_exist(threshold: object) -> None:
    with pytest.raises(OnomaError, match="between 0 and 1, or precise, balanced, complete; got"):
        resolve_thresholds(parse_labels(["drug"]), threshold, 0.6, {})  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", [-0.1, 1.01, float("nan"), "0.5", {"drug": 2}, {"drug": None}])
def test_thresholds_lie_between_0_and_1(threshold: object) -> None:
    with pytest.raises(OnomaError, match="between 0 and 1"):
        resolve_thresholds(parse_labels(["drug"]), threshold, 0.6, {})  # type: ignore[arg-type]


def test_a_threshold_for_another_label_is_refused() -> None:
    with pytest.raises(OnomaError, match="drg, which is not among the labels"):
        resolve_thresholds(parse_labels(["drug"]), {"drg": 0.5}, 0.6, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("0.4", 0.4),
        (" Precise", "precise"),
        ("drug=balanced, city=0.2", {"drug": "balanced", "city": 0.2}),
        ("drug=0.4,side effect=0.6", {"drug": 0.4, "side effect": 0.6}),
        (" a=b = 1 ", {"a=b": 1.0}),
        ("人名=0.4，地名=0.6", {"人名": 0.4, "地名": 0.6}),
    ],
)
def test_thresholds_of_the_command_line(text: str | None, expected: object) -> None:
    assert parse_threshold(text) == expected


@pytest.mark.parametrize("text", ["", "high", "drug=", "drug=0.4,0.6", "=0.5"])
def test_bad_thresholds_of_the_command_line(text: str) -> None:
    with pytest.raises(OnomaError, match="a threshold is"):
        parse_threshold(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("person, city", ["person", "city"]),
        ("人名、地名，公司", ["人名", "地名", "公司"]),
        ('"city, town", person', ["city, town", "person"]),
        ('person,"a、b，c"', ["person", "a、b，c"]),
        (' "person" ', ["person"]),
        ("person,", ["person", ""]),
        ("", [""]),
    ],
)
def test_labels_are_split_at_commas_outside_double_quotes(text: str, expected: list[str]) -> None:
    assert split_labels(text) == expected


@pytest.mark.parametrize("text", ['"city, town', 'city"', '"city" town', 'a "b, c"'])
def test_a_misplaced_quote_is_refused(text: str) -> None:
    with pytest.raises(OnomaError, match="a double quote is not closed, or not followed by a comma"):
        split_labels(text)


def test_a_closed_label_set_refuses_other_labels() -> None:
    check_known(parse_labels(["anything"]), None)
    check_known(parse_labels(["city"]), frozenset({"city", "person"}))
    with pytest.raises(OnomaError, match=r"does not know the type drug, song\. Fix: .*: city, person"):
        check_known(parse_labels(["song", "city", "drug"]), frozenset({"person", "city"}))


def test_types_from_names_and_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text("drug: a medicine\nno: a refusal\n1984:\n", "utf-8")
    assert read_types(path) == [EntityType("drug", "a medicine"), EntityType("no", "a refusal"), EntityType("1984")]


@pytest.mark.parametrize(
    "label",
    [
        "\ud800",
        "per\udfffson",
        "\0",
        "a\0b",
        "\u200b",
        "person\u200b",
        "\ufeffperson",
        "\u2060",
        "\x1b[31mred",
        "a\tb",
        "\x9b",
    ],
)
def test_labels_with_characters_that_nobody_sees_are_refused(label: str) -> None:
    for labels in ([label], {label: "a human being"}, [EntityType(label)]):
        with pytest.raises(OnomaError, match=r"is not a visible character\. Fix: write the label without it") as caught:
            parse_labels(labels)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("label", ["\u200c", "\u200d \u200c"])
def test_labels_of_nothing_but_joiners_are_refused(label: str) -> None:
    with pytest.raises(OnomaError, match="has no visible character"):
        parse_labels([label])


@pytest.mark.parametrize("label", ["می\u200cخواهم", "क्\u200dष", "人名", "C++", "e-mail 📧", "[CLS]", "naïve", "N/A"])
def test_labels_in_any_script_are_accepted(label: str) -> None:
    assert parse_labels([label])[0].name == label


def test_types_from_a_list(tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text(
        "- name: drug\n  description: a medicine\n  examples: [aspirin, heparin]\n  threshold: 0.4\n- person\n"
        "- {name: city, threshold: complete}\n",
        "utf-8",
    )
    assert read_types(path) == [
        EntityType("drug", "a medicine", ("aspirin", "heparin"), 0.4),
        EntityType("person"),
        EntityType("city", threshold="complete"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no types"),
        ("just a text", "no types"),
        ("drug: [a, b]", "description"),
        ("- {name: drug, colour: red}", "colour"),
        ("- {description: a medicine}", "needs a name"),
        ("- {name: drug, threshold: high}", "or precise, balanced, complete; got 'high'"),
        ("- {name: drug, threshold: 7}", "between 0 and 1"),
        ("- {name: drug, examples: aspirin}", "list of strings"),
        ("drug: [", "not valid YAML"),
        ("drug: a medicine\ndrug: an active substance", "line 2: the key 'drug' is given twice"),
        ("[" * 40_000, "nested more than 64 levels"),
        ("- " * 40_000, "nested more than 64 levels"),
        ("? " * 40_000, "nested more than 64 levels"),
    ],
)
def test_a_bad_file_of_types_is_explained(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_text(content, "utf-8")
    with pytest.raises(OnomaError, match=f"types.yaml.*{message}.*Fix"):
        read_types(path)
