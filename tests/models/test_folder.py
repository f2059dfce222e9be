from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from onoma import OnomaError
from onoma.models.config import Route, RoutedConfig
from onoma.models.folder import ModelFolder, RoutedFolder, open_folder, open_single


@pytest.fixture
def routed(tiny_model: Path, tmp_path: Path) -> Path:
    for name in ("zh", "en"):
        shutil.copytree(tiny_model, tmp_path / "routed" / name)
    RoutedConfig((Route("zh", ("Han",)), Route("en"))).save(tmp_path / "routed")
    return tmp_path / "routed"


def test_a_folder_holds_one_model_or_several(tiny_model: Path, routed: Path) -> None:
    assert isinstance(open_folder(tiny_model), ModelFolder)
    several = open_folder(routed)
    assert isinstance(several, RoutedFolder)
    assert [one.path for one in several.models()] == [routed / "zh", routed / "en"]


def test_actions_on_one_model_name_the_models_of_a_folder_with_several(routed: Path) -> None:
    with pytest.raises(OnomaError, match=r"holds several models\. Fix: export one of them: .*zh, .*en"):
        open_single(routed, "export")
    assert open_single(routed / "en", "export").path == routed / "en"


def test_routes_lead_to_single_models(routed: Path, tmp_path: Path) -> None:
    RoutedConfig((Route("routed"),)).save(tmp_path)
    folder = open_folder(tmp_path)
    assert isinstance(folder, RoutedFolder)
    with pytest.raises(OnomaError, match="holds several models"):
        folder.models()


def test_the_digest_identifies_everything_that_encoded_types_depend_on(tiny_model: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_model, tmp_path / "copy")
    original = open_single(tiny_model, "use")
    expected = original.digest("torch")
    assert original.digest("onnx") != expected
    for name in ("config.json", "README.md", "labels.json"):
        (copy / name).write_text((copy / name).read_text() + "\n" if (copy / name).exists() else "# Card\n")
    assert open_single(copy, "use").digest("torch") == expected
    for name in ("model.safetensors", "tokenizer.json", "prototypes.json"):
        changed = shutil.copytree(copy, tmp_path / name)
        with (changed / name).open("ab") as file:
            file.write(b" ")
        assert open_single(changed, "use").digest("torch") != expected
