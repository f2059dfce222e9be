"""config.json of model folders, which is read strictly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import onoma
from onoma import OnomaError
from onoma.models.config import FORMAT, ModelConfig, Route, RoutedConfig, is_model_folder, load_config

HAN, OTHERS = {"folder": "zh", "scripts": ["Han"]}, {"folder": "en", "scripts": []}


def write(folder: Path, **values: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"format": FORMAT, "system": "binder", **values}), "utf-8")
    return path


def test_a_saved_configuration_is_read_back(tmp_path: Path) -> None:
    config = ModelConfig(
        "binder",
        encoder="人/bert",
        language="zh",
        max_tokens=64,
        threshold=0.4,
        thresholds={"人名": 0.3},
        presets={"precise": 0.6, "complete": 0.1},
        scale=1.5,
        bias=-0.5,
        breadth_weight=2.0,
        calibration_error=0.01,
        types={"人名": "人的名字"},
        catch_all=("misc", "其他"),
        datasets=("news",),
        options={"max_width": 8},
    )
    config.save(tmp_path)
    assert load_config(tmp_path) == config
    assert is_model_folder(tmp_path)


def test_everything_but_format_and_system_has_a_default(tmp_path: Path) -> None:
    write(tmp_path)
    assert load_config(tmp_path) == ModelConfig("binder")


def error_of(folder: Path) -> str:
    """The message of the one error for a bad configuration, which names the file."""
    with pytest.raises(OnomaError) as caught:
        onoma.load(folder)
    message = str(caught.value)
    assert str(folder / "config.json") in message
    return message


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    write(tmp_path, treshold=0.4)
    message = error_of(tmp_path)
    assert "unknown key 'treshold'" in message
    assert "threshold" in message.partition("the keys are")[2]  # the known ones are listed
    assert "Fix: " in message


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("encoder", 3, "a string"),
        ("language", "fr", "one of en, zh"),
        ("max_tokens", "256", "an integer"),
        ("max_tokens", 256.0, "an integer"),
        ("max_tokens", True, "an integer"),
        ("max_tokens", 2, "at least 3"),
        ("overlap", -1, "at least 0"),
        ("threshold", 1.5, "between 0 and 1"),
        ("threshold", True, "between 0 and 1"),
        ("threshold", None, "between 0 and 1"),
        ("threshold", float("nan"), "between 0 and 1"),
        ("presets", {"precise": 2}, "numbers between 0 and 1 for precise and complete"),
        ("presets", {"balanced": 0.5}, "numbers between 0 and 1 for precise and complete"),
        ("thresholds", [0.5], "numbers between 0 and 1 by type"),
        ("thresholds", {"drug": 2}, "numbers between 0 and 1 by type"),
        ("scale", 0, "above 0"),
        ("scale", float("inf"), "above 0"),
        ("bias", "0", "a number"),
        ("breadth_weight", -1, "at least 0"),
        ("breadth_weight", None, "at least 0"),
        ("calibration_error", "small", "a number or null"),
        ("types", ["drug"], "descriptions by type"),
        ("types", {"drug": None}, "descriptions by type"),
        ("catch_all", "misc", "a list of labels"),
        ("datasets", [1], "a list of names"),
        ("options", [], "an object"),
    ],
)
def test_values_of_a_wrong_type_are_refused(tmp_path: Path, key: str, value: object, wanted: str) -> None:
    write(tmp_path, **{key: value})
    message = error_of(tmp_path)
    assert f"{key!r} must be " in message
    assert wanted in message


@pytest.mark.parametrize("version", [1, 99, "2", None])
def test_other_formats_are_refused(tmp_path: Path, version: object) -> None:
    write(tmp_path, format=version, backbone="of another version")
    message = error_of(tmp_path)
    assert f"has format {version!r}, this version of Onoma reads format {FORMAT}" in message
    assert "Fix: " in message


@pytest.mark.parametrize("content", ["{", "", "[" * 100_000, '{"format": 2, "system": "b'])
def test_a_damaged_file_is_explained(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    message = error_of(tmp_path)
    assert message.startswith(str(tmp_path / "config.json"))
    assert "Fix: save or download the model again" in message
    assert not is_model_folder(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"model_type": "bert"}', '{"format": 2, "system": 3}'])
def test_other_json_is_not_a_model_of_onoma(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    assert "does not describe an Onoma model" in error_of(tmp_path)


def test_a_folder_without_the_file_is_not_a_model_folder(tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match=r"is not a model folder: it has no config\.json"):
        onoma.load(tmp_path)
    assert not is_model_folder(tmp_path)


def test_an_unknown_system_is_explained(tmp_path: Path) -> None:
    write(tmp_path, system="blinder")
    with pytest.raises(OnomaError, match=r"there is no system 'blinder'; the systems are: .*binder"):
        onoma.load(tmp_path)


@pytest.fixture
def routed(tmp_path: Path) -> Path:
    for name in ("zh", "en"):
        (tmp_path / "routed" / name).mkdir(parents=True)
    return tmp_path / "routed"


def test_saved_routes_are_read_back(routed: Path) -> None:
    config = RoutedConfig((Route("zh", ("Han",)), Route("en")), share=0.25)
    config.save(routed)
    assert load_config(routed) == config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "there are no routes"),
        ({"routes": []}, "there are no routes"),
        ({"routes": [{"scripts": []}]}, "a route is"),
        ({"routes": ["en"]}, "a route is"),
        ({"routes": [{**OTHERS, "share": 0.5}]}, "a route is"),
        ({"routes": [{"folder": "nl", "scripts": []}]}, "'nl', but no folder"),
        ({"routes": [{"folder": "../routed", "scripts": []}]}, "no folder"),
        ({"routes": [{"folder": ".", "scripts": []}]}, "no folder"),
        ({"routes": [{"folder": "", "scripts": []}]}, "no folder"),
        ({"routes": [{"folder": "en", "scripts": "Han"}]}, "the known scripts are Arabic, Cyrillic"),
        ({"routes": [{"folder": "zh", "scripts": ["Klingon"]}, OTHERS]}, "Klingon"),
        ({"routes": [HAN]}, "the last route must have no scripts"),
        ({"routes": [OTHERS, HAN]}, "the route 'en' has no scripts"),
        ({"routes": [HAN, OTHERS], "share": 33}, "'share' must be a number between 0 and 1, got 33"),
        ({"routes": [HAN, OTHERS], "share": "a third"}, "got 'a third'"),
        ({"routes": [HAN, OTHERS], "threshold": 0.5}, "unknown key 'threshold'"),
    ],
)
def test_bad_routes_are_explained(routed: Path, values: dict[str, Any], message: str) -> None:
    write(routed, system="routed", **values)
    assert message in error_of(routed)
