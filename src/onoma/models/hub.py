"""Where models are found: in a folder, in this package (the embedded model), or on the Hugging Face hub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from onoma.errors import OnomaError

EMBEDDED = Path(__file__).parent / "default"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def find_model(name: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a model: a path, a hub name (`owner/name`) that is downloaded, or None for the embedded model."""
    if name is None:
        if not (EMBEDDED / "config.json").is_file():
            raise OnomaError(
                "this installation has no embedded model. Fix: name a model (a folder or a hub name such as "
                "owner/name), or install a release of onoma, which contains it"
            )
        return EMBEDDED
    folder = Path(name)
    if os.path.isdir(folder):  # unlike Path.is_dir, it accepts a name of any length
        run = folder / "model"  # the output folder of a training run contains the model
        return run if (run / "config.json").is_file() and not (folder / "config.json").is_file() else folder
    if not looks_like_hub_name(str(name)):
        raise OnomaError(
            f"there is no model folder {str(name)!r}. Fix: check the path; a hub name looks like owner/name"
        )
    return _download(str(name))


def looks_like_hub_name(name: str) -> bool:
    """Whether a name has the form owner/name, and does not start like a path."""
    return _HUB_NAME.fullmatch(name) is not None and not name.startswith(".")


def _download(name: str) -> Path:
    hub = _hub()
    try:
        return Path(hub.snapshot_download(name))
    except Exception as error:  # the client raises dozens of types, its own and those of httpx
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise OnomaError(
            f"there is no folder {name!r}, and it cannot be downloaded from the hub ({reason}). Fix: check the name "
            "and the network; without a network, download the model elsewhere and give its folder"
        ) from error


def upload(folder: Path, name: str, *, private: bool = False) -> str:
    """Upload a model folder to the hub and return its address there."""
    hub = _hub()
    try:
        address = hub.create_repo(name, private=private, exist_ok=True)
        hub.upload_folder(repo_id=name, folder_path=folder)
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise OnomaError(
            f"cannot upload to {name!r} on the hub ({reason}). Fix: `hf auth login`, check the name"
        ) from error
    return str(address)


def _hub() -> Any:
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise OnomaError("the hub needs `pip install huggingface_hub`") from error
    return huggingface_hub
