from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pytest

import onoma
from onoma import Extractor, OnomaError
from onoma.models.hub import find_model


def test_without_an_embedded_model_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.models.hub.EMBEDDED", tmp_path / "default")
    with pytest.raises(OnomaError, match=r"no embedded model.*Fix: name a model"):
        onoma.load()


def test_without_a_name_the_embedded_model_is_loaded(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.models.hub.EMBEDDED", tiny_model)
    assert onoma.load().extract("Tom flew to Paris .", ["person"])[0].text == "Tom"


@pytest.mark.parametrize("name", ["model", "./runs/model", "/no/such/model", "a/b/c", "..", "../model"])
def test_a_missing_folder_is_not_looked_for_on_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda _: pytest.fail("asked the hub"))
    with pytest.raises(OnomaError):
        onoma.load(name)


def test_hub_names_are_downloaded(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", {"somebody/tiny": str(tiny_model)}.__getitem__)
    assert find_model("somebody/tiny") == tiny_model


def test_a_hub_that_cannot_be_reached_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str) -> str:
        raise ConnectionError("no route to host\nand many lines more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(OnomaError, match=r"somebody/tiny.*\(no route to host\).*Fix: check the name and the network"):
        onoma.load("somebody/tiny")


def test_a_model_is_uploaded_with_all_of_its_files(
    ner: Extractor, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded = {}
    monkeypatch.setattr(huggingface_hub, "create_repo", lambda name, **_: f"https://hub.example/{name}")
    monkeypatch.setattr(huggingface_hub, "upload_folder", lambda **given: uploaded.update(given))
    assert ner.push_to_hub("somebody/tiny") == "https://hub.example/somebody/tiny"
    assert uploaded == {"repo_id": "somebody/tiny", "folder_path": tiny_model}


def test_the_folder_of_a_training_run_stands_for_its_model(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert find_model(tmp_path) == tmp_path
    (tmp_path / "model" / "config.json").write_text("{}")
    assert find_model(tmp_path) == tmp_path / "model"
