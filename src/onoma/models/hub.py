"""Where models are found: in a folder, in this package (the embedded model), or on the Hugging Face hub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from onoma.errors import OnomaError
from onoma.models.config import CONFIG_FILE, RoutedConfig, load_config

EMBEDDED = Path(__file__).parent / "default"
EMBEDDED_NAME = "embedded"
"""Names the embedded model wherever a model is named; embedded/en is one of its models."""
MODEL_FILES = ("*.json", "*.onnx", "*.onnx.data", "*.safetensors")
"""Files that are removed on the hub if a new version of a model has none of that name: old weights would be loaded."""
_EMBEDDED_NAMES = re.compile(rf"{EMBEDDED_NAME}(?:[/\\](?P<model>.+))?")
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")  # owner/name, or owner/name@revision


def find_model(name: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a model: a path, a hub name that is downloaded, or None or `embedded` for the embedded model.

    A hub name is `owner/name`, or `owner/name@revision` with a branch, a tag or a commit. `embedded/en` is one of the
    models of the embedded one. A model folder of such a name comes first.
    """
    if name is None or is_embedded_name(name):
        return _embedded_folder(name)
    if os.path.isdir(name):  # unlike Path.is_dir, it accepts a name of any length
        return _inner_folder(Path(name))
    if not looks_like_hub_name(str(name)):
        raise OnomaError(
            f"there is no model folder {str(name)!r}. Fix: check the path; a hub name looks like owner/name"
        )
    return _download(str(name))


def is_embedded_name(name: str | os.PathLike[str]) -> bool:
    """Whether a name is that of the embedded model or of one of its models, and not that of a model folder here."""
    if _EMBEDDED_NAMES.fullmatch(os.fspath(name)) is None:
        return False
    return not (os.path.isdir(name) and (_inner_folder(Path(name)) / CONFIG_FILE).is_file())


def _inner_folder(folder: Path) -> Path:
    """The folder of the model: the output folder of a training run contains it."""
    run = folder / "model"
    return run if (run / CONFIG_FILE).is_file() and not (folder / CONFIG_FILE).is_file() else folder


def _embedded_folder(name: str | os.PathLike[str] | None) -> Path:
    if not (EMBEDDED / CONFIG_FILE).is_file():
        raise OnomaError(
            "this installation has no embedded model. Fix: name a model (a folder or a hub name such as "
            "owner/name), or install a release of onoma, which contains it"
        )
    asked = _EMBEDDED_NAMES.fullmatch(os.fspath(name or EMBEDDED_NAME))
    model = asked["model"] if asked else None
    if model is None:
        return EMBEDDED
    config = load_config(EMBEDDED)
    models = [route.folder for route in config.routes] if isinstance(config, RoutedConfig) else []
    if model not in models:
        names = ", ".join(f"{EMBEDDED_NAME}/{one}" for one in sorted(models))
        raise OnomaError(
            f"there is no embedded model {os.fspath(name or '')!r}. Fix: use {EMBEDDED_NAME}, or one of: {names}"
        )
    return EMBEDDED / model


def looks_like_hub_name(name: str) -> bool:
    """Whether a name has the form owner/name or owner/name@revision, and does not start like a path."""
    return _HUB_NAME.fullmatch(name) is not None and not name.startswith(".")


def _download(name: str) -> Path:
    repository, _, revision = name.partition("@")
    described = _snapshot(repository, revision, CONFIG_FILE)
    try:  # before weights of somebody else's format are downloaded
        load_config(described)
    except OnomaError as error:
        raise OnomaError(f"{name} on the hub is not a model of Onoma: {error}") from error
    return _snapshot(repository, revision)


def _snapshot(name: str, revision: str, files: str | None = None) -> Path:
    hub = _hub()
    try:
        return Path(hub.snapshot_download(name, revision=revision or None, allow_patterns=files))
    except Exception as error:  # the client raises dozens of types, its own and those of httpx
        raise OnomaError(
            f"there is no folder {name!r}, and it cannot be downloaded from the hub ({_reason(error)}). Fix: check the "
            "name and the network; without a network, download the model elsewhere and give its folder"
        ) from error


def upload(
    folder: Path,
    name: str,
    *,
    private: bool = False,
    revision: str | None = None,
    commit_message: str | None = None,
    token: str | None = None,
) -> str:
    """Upload a model folder to the hub and return its address there."""
    hub = _hub()
    try:
        address = hub.create_repo(name, private=private, exist_ok=True, token=token)
        if revision is not None:
            hub.create_branch(name, branch=revision, exist_ok=True, token=token)
        hub.upload_folder(
            repo_id=name,
            folder_path=folder,
            revision=revision,
            commit_message=commit_message or "Upload a model of Onoma",
            delete_patterns=list(MODEL_FILES),
            token=token,
        )
    except Exception as error:
        raise OnomaError(
            f"cannot upload to {name!r} on the hub ({_reason(error)}). Fix: `hf auth login`, check the name"
        ) from error
    return str(address)


def _reason(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


def _hub() -> Any:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise OnomaError("the hub needs `pip install huggingface_hub`") from error
    return huggingface_hub
