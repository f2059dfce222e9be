from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import pytest

import onoma
from fake_hub import FakeHub
from onoma import Extractor, OnomaError
from onoma.models.hub import EMBEDDED, find_model


def test_without_an_embedded_model_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.models.hub.EMBEDDED", tmp_path / "default")
    with pytest.raises(OnomaError, match=r"no embedded model.*Fix: name a model"):
        onoma.load()


def test_without_a_name_the_embedded_model_is_loaded(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.models.hub.EMBEDDED", tiny_model)
    assert onoma.load().extract("Tom flew to Paris .", ["person"])[0].text == "Tom"


@pytest.mark.parametrize(
    ("name", "inner"), [("embedded", ""), ("embedded/en", "en"), ("embedded/zh", "zh"), (Path("embedded/zh"), "zh")]
)
def test_the_embedded_model_has_a_name(
    name: str | Path, inner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "embedded/en").mkdir(parents=True)  # not a model folder
    assert find_model(name) == EMBEDDED / inner
    assert onoma.load(name).folder == EMBEDDED / inner


def test_another_embedded_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(
        OnomaError, match=r"no embedded model 'embedded/fr'\. Fix: use embedded, or one of: embedded/en"
    ):
        onoma.load("embedded/fr")


def test_a_model_folder_called_embedded_comes_first(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_model, "embedded/model")  # of a training run
    assert find_model("embedded") == Path("embedded/model")
    assert find_model("embedded/model") == Path("embedded/model")
    assert find_model("embedded/en") == EMBEDDED / "en"


@pytest.mark.parametrize(
    "name", ["model", "./embedded", "embedded/", "./runs/model", "/no/such/model", "a/b/c", "..", "../model"]
)
def test_a_missing_folder_is_not_looked_for_on_the_hub(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(OnomaError):
        onoma.load(name)


def test_a_hub_that_cannot_be_reached_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(name: str, **_: object) -> str:
        raise ConnectionError("no route to host\nand many lines more")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(OnomaError, match=r"somebody/tiny.*\(no route to host\).*Fix: check the name and the network"):
        onoma.load("somebody/tiny")


SCRIPT = """
import sys
from pathlib import Path
import onoma
from onoma import OnomaError

source, cache = map(Path, sys.argv[1:])
text = "Tom flew to Paris ."
ner = onoma.load(source, device="cpu").teach({"city": ["We eat soup in [[Lima]] every day ."]})
print(ner.push_to_hub("somebody/tiny", card={"license": "mit"}))
loaded = onoma.load("somebody/tiny", device="cpu")
assert cache in loaded.folder.parents
assert loaded.extract(text, ["person"]) == ner.extract(text, ["person"]) != []
assert loaded.examples == ner.examples

def card(model):
    return (model.folder / "README.md").read_text("utf-8")

assert 'onoma.load("somebody/tiny")' in card(loaded), card(loaded)
assert all(line in card(loaded) for line in ("library_name: onoma", "license: mit", "- named-entity-recognition"))

old = onoma.load(source, device="cpu")
old.push_to_hub("somebody/tiny", revision="plain", commit_message="Without examples")
plain = onoma.load("somebody/tiny@plain", device="cpu")
assert not plain.examples.documents
assert onoma.load("somebody/tiny", device="cpu").examples == ner.examples  # the main branch is as it was
old.push_to_hub("somebody/tiny")
again = onoma.load("somebody/tiny", device="cpu")
assert not (again.folder / "examples.json").exists()  # files of the former version are removed

for name, message in {
    "somebody/missing": "cannot be downloaded from the hub",
    "somebody/tiny@v9": "cannot be downloaded from the hub",
    "somebody/other": "somebody/other on the hub is not a model of Onoma",
}.items():
    try:
        onoma.load(name)
        raise SystemExit(f"{name} was loaded")
    except OnomaError as error:
        assert message in str(error), error
"""


@pytest.mark.slow
def test_a_model_is_pushed_and_loaded_again(tiny_model: Path, tmp_path: Path) -> None:
    with FakeHub() as hub:
        hub.files["somebody/other"] = {"main": {"config.json": b'{"model_type": "bert"}', "weights.bin": b"0" * 1000}}
        environment = os.environ | {
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(tmp_path),
            "HF_TOKEN": "hf_test",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        command = [sys.executable, "-c", SCRIPT, str(tiny_model), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{hub.address}/somebody/tiny\n"
        assert hub.messages == ["Upload a model of Onoma", "Without examples", "Upload a model of Onoma"]
        assert "weights.bin" not in hub.downloaded  # it is refused before its weights are downloaded


def test_a_refused_upload_is_explained(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("401 Unauthorized\nand many lines more")

    monkeypatch.setattr(huggingface_hub, "create_repo", refuse)
    with pytest.raises(
        OnomaError, match=r"cannot upload to 'somebody/tiny'.*\(401 Unauthorized\)\. Fix: `hf auth login`"
    ):
        ner.push_to_hub("somebody/tiny")


def test_the_folder_of_a_training_run_stands_for_its_model(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert find_model(tmp_path) == tmp_path
    (tmp_path / "model" / "config.json").write_text("{}")
    assert find_model(tmp_path) == tmp_path / "model"
