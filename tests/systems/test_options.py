"""Options of systems are read strictly."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from onoma import OnomaError
from onoma.systems.binder import options as binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.options import parse_options
from onoma.systems.registry import SYSTEMS, get_system
from onoma.systems.suner import options as suner
from onoma.systems.suner.options import SunerOptions

RENAMED = [("binder", old, new) for old, new in binder.RENAMED.items()]
RENAMED += [("suner", old, new) for old, new in suner.RENAMED.items()]


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_values_all_options_have_defaults(system: str) -> None:
    options = get_system(system).parse_options({})
    assert options == type(options)()
    assert get_system(system).parse_options(asdict(options)) == options


def test_values_are_converted_to_the_types_of_options() -> None:
    options = parse_options(BinderOptions, {"temperature": 1, "loss_weights": [1, 0.5, 2], "max_train_width": None})
    assert (options.temperature, options.loss_weights, options.max_train_width) == (1.0, (1.0, 0.5, 2.0), None)
    assert type(options.temperature) is float
    assert parse_options(BinderOptions, {"max_train_width": 12}).max_train_width == 12


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (BinderOptions, "colour", 1, "unknown option 'colour'; known: vector_size, width_size"),
        (BinderOptions, "datasets", ["a"], "unknown option 'datasets'"),
        (BinderOptions, "vector_size", "128", "'vector_size' must be an integer, got '128'"),
        (BinderOptions, "vector_size", 1.5, "'vector_size' must be an integer, got 1.5"),
        (BinderOptions, "vector_size", True, "'vector_size' must be an integer, got True"),
        (BinderOptions, "vector_size", None, "'vector_size' must be an integer, got None"),
        (BinderOptions, "temperature", "hot", "'temperature' must be a number, got 'hot'"),
        (BinderOptions, "temperature", float("nan"), "'temperature' must be a number, got nan"),
        (BinderOptions, "temperature", float("inf"), "'temperature' must be a number, got inf"),
        (BinderOptions, "temperature", False, "'temperature' must be a number, got False"),
        (BinderOptions, "shared_encoder", 1, "'shared_encoder' must be true or false, got 1"),
        (BinderOptions, "shared_encoder", "yes", "'shared_encoder' must be true or false, got 'yes'"),
        (BinderOptions, "max_train_width", "all", "'max_train_width' must be an integer, got 'all'"),
        (BinderOptions, "loss_weights", 0.5, "'loss_weights' must be a list of 3 values, got 0.5"),
        (BinderOptions, "loss_weights", [1, 2], "'loss_weights' must be a list of 3 values"),
        (BinderOptions, "loss_weights", [1, 2, "x"], "'loss_weights' must be a number, got 'x'"),
        (BinderOptions, "types", "keywords", "'types' must be one of description, name, atomic, prototype"),
        (SunerOptions, "form", "three-stage", "'form' must be one of two-stage, one-stage, fused, got 'three-stage'"),
        (SunerOptions, "candidates", ["any"], "'candidates' must be one of flat, nested, any"),
    ],
)
def test_unknown_options_and_wrong_values_are_refused(kind: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises(OnomaError) as caught:
        parse_options(kind, {name: value})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (BinderOptions, "temperature", -1.0, "greater than 0"),
        (BinderOptions, "temperature", 0, "greater than 0"),
        (BinderOptions, "max_width", 0, "at least 1"),
        (BinderOptions, "max_train_width", 0, "at least 1"),
        (BinderOptions, "vector_size", -3, "at least 1"),
        (BinderOptions, "width_size", 0, "at least 1"),
        (BinderOptions, "gamma", -0.5, "at least 0"),
        (BinderOptions, "narrow_type_weight", -1, "at least 0"),
        (BinderOptions, "beta", 1.5, "between 0 and 1"),
        (BinderOptions, "loss_weights", [0, 0, 0], "at least 0, not all 0"),
        (BinderOptions, "loss_weights", [1, -1, 0], "at least 0, not all 0"),
        (SunerOptions, "temperature", -1, "greater than 0"),
        (SunerOptions, "max_width", 0, "at least 1"),
        (SunerOptions, "max_candidates", 0, "at least 1"),
        (SunerOptions, "detector_size", 0, "at least 1"),
        (SunerOptions, "matcher_size", 0, "at least 1"),
        (SunerOptions, "vector_size", 0, "at least 1"),
        (SunerOptions, "boundary_weight", 2, "between 0 and 1"),
        (SunerOptions, "detection_threshold", -0.1, "between 0 and 1"),
        (SunerOptions, "negatives_per_mention", -1, "at least 0"),
        (SunerOptions, "detection_weight", -1, "at least 0"),
    ],
)
def test_values_that_can_never_work_are_refused(kind: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises(OnomaError, match=f"option '{name}' must be .*{message}, got"):
        parse_options(kind, {name: value})


def test_the_two_ways_to_prefer_narrow_types_exclude_each_other() -> None:
    with pytest.raises(OnomaError, match=r"'breadth_head' and 'narrow_type_weight' exclude each other.*Fix: "):
        parse_options(BinderOptions, {"breadth_head": True, "narrow_type_weight": 0.5})
    assert parse_options(BinderOptions, {"breadth_head": True, "narrow_type_weight": 0}).breadth_head


@pytest.mark.parametrize(("system", "old", "new"), RENAMED)
def test_former_names_are_refused_with_the_present_one(system: str, old: str, new: str) -> None:
    with pytest.raises(OnomaError, match=f"unknown option '{old}'; it is called '{new}' now"):
        get_system(system).parse_options({old: 1})
    assert new in asdict(get_system(system).parse_options({}))
