"""Systems by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onoma import OnomaError
from onoma.systems.binder.training import BinderTraining
from onoma.systems.registry import SYSTEMS, get_system
from onoma.systems.suner.training import SunerTraining


def test_every_system_is_found_under_its_name() -> None:
    assert [get_system(name).name for name in SYSTEMS] == list(SYSTEMS)
    assert isinstance(get_system("binder").training(), BinderTraining)
    assert isinstance(get_system("suner").training(), SunerTraining)


def test_an_unknown_system_is_refused_with_a_list() -> None:
    with pytest.raises(OnomaError, match="there is no system 'oracle'; the systems are: binder, suner"):
        get_system("oracle")


def test_stages_depend_on_the_options() -> None:
    suner = get_system("suner")
    assert get_system("binder").stage_names(None) == ("binder",)
    assert suner.stage_names(suner.parse_options({})) == ("detection", "classification")
    assert suner.stage_names(suner.parse_options({"form": "fused"})) == ("fused",)


OWN = [name for name, place in SYSTEMS.items() if place.startswith("onoma.")]  # baselines of benchmarks may be added


@pytest.mark.parametrize("name", OWN)
def test_options_are_checked_without_pytorch(name: str) -> None:
    program = f"""
import sys
for module in ("torch", "transformers", "onnx", "onnxruntime"):
    sys.modules[module] = None
from onoma.systems.registry import get_system
system = get_system({name!r})
print(*system.stage_names(system.parse_options({{}})))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
