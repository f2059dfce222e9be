"""Checkpoints: which one an interrupted run continues from."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from safetensors import SafetensorError
from safetensors.torch import load_file

logger = logging.getLogger("onoma")

STATE = "trainer_state.json"  # written last
FILES = (STATE, "model.safetensors", "optimizer.pt", "scheduler.pt")


def find_checkpoint(folder: Path, more: Callable[[int], Sequence[str]], *, repair: bool) -> Path | None:
    """The newest complete checkpoint of a folder.

    Args:
        more: the files that the checkpoint of a step has beyond those of the Trainer.
        repair: remove checkpoints that are not complete, so that they are written anew, and say so.
    """
    found = [(path.name.partition("-")[2], path) for path in folder.glob("checkpoint-*")]
    for step, path in sorted(((int(step), path) for step, path in found if step.isdecimal()), reverse=True):
        problem = find_damage(path, more(step))
        if problem is None:
            return path
        if repair:
            logger.warning("%s is not a complete checkpoint (%s); an older one is used if there is one", path, problem)
            shutil.rmtree(path, ignore_errors=True)
    return None


def is_last(checkpoint: Path) -> bool:
    """Whether training ended with a checkpoint, because its steps were done or the score did not improve."""
    state = json.loads((checkpoint / STATE).read_text("utf-8"))
    stopped: bool = state["stateful_callbacks"]["TrainerControl"]["args"]["should_training_stop"]
    return stopped or state["global_step"] >= state["max_steps"]


def find_damage(checkpoint: Path, more: Sequence[str] = ()) -> str | None:
    """What is wrong with a checkpoint; None if all of its files can be read."""
    for name in (*FILES, *more):
        if not (checkpoint / name).is_file():
            return f"{name} is missing"
    for path in sorted(checkpoint.iterdir()):
        try:
            _read(path)
        except (OSError, ValueError, KeyError, TypeError, BadZipFile, SafetensorError) as error:
            return f"{path.name} is damaged: {error}"
    return None


def _read(path: Path) -> None:
    """Read a file to its end; raises an error if it is damaged."""
    if path.name == STATE:
        step = json.loads(path.read_text("utf-8"))["global_step"]
        if path.parent.name != f"checkpoint-{step}":
            raise ValueError(f"it is of step {step}")
    elif path.suffix == ".json":
        json.loads(path.read_text("utf-8"))
    elif path.suffix == ".safetensors":
        load_file(path)
    elif path.suffix in (".pt", ".pth", ".bin"):  # PyTorch's files are ZIP archives with checksums
        with ZipFile(path) as archive:
            broken = archive.testzip()
        if broken is not None:
            raise ValueError(f"the checksum of {broken} is wrong")
