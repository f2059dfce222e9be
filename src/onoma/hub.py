"""Where models come from and go to: a folder, the model inside of this package, or the Hugging Face hub."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from onoma.errors import OnomaError

EMBEDDED = Path(__file__).parent / "models" / "default"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def find_model(name: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a model: given as such, fetched from the hub (`owner/name`), or the embedded one for None."""
    if name is None:
        if not (EMBEDDED / "config.json").is_file():
            raise OnomaError(
                "this installation has no embedded model. Fix: name one, a folder or a hub name (owner/name), "
                "or install a release of onoma, which has it inside"
            )
        return EMBEDDED
    folder = Path(name)
    if folder.is_dir():
        of_run = folder / "model"  # the folder of a training run holds its model
        return of_run if (of_run / "config.json").is_file() and not (folder / "config.json").is_file() else folder
    if not _HUB_NAME.fullmatch(str(name)) or str(name).startswith("."):
        raise OnomaError(
            f"there is no model folder {str(name)!r}. Fix: check the path; a hub name looks like owner/name"
        )
    return _download(str(name))


def _download(name: str) -> Path:
    hub = _hub()
    try:
        return Path(hub.snapshot_download(name))
    except Exception as error:  # the hub's client has dozens of kinds, from httpx's to its own
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise OnomaError(
            f"there is no folder {name!r}, and it cannot be fetched from the hub ({reason}). Fix: check the name "
            "and the network; where there is none, download the model elsewhere and give its folder"
        ) from error


def upload(folder: Path, name: str, *, private: bool = False) -> str:
    """Put a model folder on the hub, and return its address there."""
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
