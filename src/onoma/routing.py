"""A model folder that holds several models, each for texts in some scripts.

    config.json     {"format": 1, "system": "routed", "options": {"routes": [
                        {"folder": "zh", "scripts": ["Han"]}, {"folder": "en", "scripts": []}]}}
    zh/             a model as any other
    en/             another; as the last one, it takes all texts that no route before it takes

A text goes to the first route whose scripts make up a third of its letters (`options.share` says another part).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from onoma.asking import Threshold, limits
from onoma.backends import Backend
from onoma.chunks import Line, Proposed
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.extractor import ROUTED, Ask, Extractor
from onoma.hub import find_model

SHARE = 0.3333
SCRIPTS = {  # ranges of code points that hold all letters in use; historical blocks are left out
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f",
    "Devanagari": "\u0900-\u097f\ua8e0-\ua8ff",
    "Greek": "\u0370-\u03e1\u03f0-\u03ff\u1f00-\u1fff",
    "Han": "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Latin": "A-Za-zªº\u00c0-\u02b8\u1d00-\u1d25\u1d6b-\u1d77\u1d79-\u1dbe\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff"
    "\uab30-\uab64\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
}


class Route:
    """A model for texts in some scripts, loaded when the first such text comes. Threads may share it."""

    def __init__(self, folder: Path, scripts: Sequence[str], load: Callable[[Path], Extractor]) -> None:
        self.folder, self.scripts = folder, scripts
        self._load, self._lock = load, Lock()
        self._extractor: Extractor | None = None
        self._letters = re.compile(f"[{''.join(SCRIPTS[one] for one in scripts)}]") if scripts else None

    def takes(self, letters: Counter[str], share: float) -> bool:
        """Whether enough of a text's letters are of the scripts of this route; without scripts, it takes all."""
        if self._letters is None:
            return True
        own = sum(letters[one] for one in self._letters.findall("".join(letters)))
        return own > 0 and own >= share * letters.total()

    def extractor(self) -> Extractor:
        """The model of this route."""
        with self._lock:
            if self._extractor is None:
                extractor = self._load(self.folder)
                if isinstance(extractor, RoutedExtractor):
                    raise OnomaError(f"{self.folder} holds several models itself; a route leads to a single one")
                self._extractor = extractor
            return self._extractor

    @property
    def loaded(self) -> Extractor | None:
        """The model, if it has been needed so far."""
        return self._extractor

    @property
    def config(self) -> ModelConfig:
        """What the model says of itself; it is not loaded for that."""
        return self._extractor.config if self._extractor else ModelConfig.load(find_model(self.folder))

    @property
    def styles(self) -> tuple[str, ...]:
        """The corpora as which the model can be told to annotate."""
        return tuple(self.config.options.get("datasets", ()))

    def in_style(self, corpus: str) -> Route:
        """The same route, told to annotate as in a corpus if it knows that one."""
        if corpus not in self.styles:
            return self
        return Route(self.folder, self.scripts, lambda folder: self.extractor().in_style(corpus))


class RoutedExtractor(Extractor):
    """Several models that are used like one. Each of them is loaded when the first text for it comes.

    `config` and `backend` are those of the last route.
    """

    def __init__(self, folder: str | os.PathLike[str], config: ModelConfig, load: Callable[[Path], Extractor]) -> None:
        self.folder = Path(folder)
        self._share = _read_share(config, self.folder)
        self._routes = tuple(Route(*route, load) for route in read_routes(config, self.folder))

    @property
    def backend(self) -> Backend:
        """What runs the model of the last route."""
        return self._routes[-1].extractor().backend

    @property
    def config(self) -> ModelConfig:
        """What the model of the last route says of itself."""
        return self._routes[-1].config

    @property
    def styles(self) -> tuple[str, ...]:
        """The corpora as which any of the models can be told to annotate."""
        return tuple(dict.fromkeys(style for route in self._routes for style in route.styles))

    def _styled(self, corpus: str) -> Extractor:
        styled = copy(self)
        styled._routes = tuple(route.in_style(corpus) for route in self._routes)
        return styled

    def _asking(self, types: Sequence[EntityType], threshold: Threshold | None, batch_size: int) -> Ask:
        limits(types, threshold, ModelConfig(ROUTED))  # complains at once, though no model is loaded yet
        asks: dict[int, Ask] = {}

        def ask(texts: Sequence[str]) -> Proposed:
            parts = []
            for number, places in self._places(texts).items():
                if number not in asks:
                    asks[number] = self._routes[number].extractor()._asking(types, threshold, batch_size)
                parts.append((places, asks[number]([texts[place] for place in places])))
            return merge(texts, parts)

        return ask

    def _places(self, texts: Sequence[str]) -> dict[int, list[int]]:
        """The texts that go to each route."""
        places: dict[int, list[int]] = {}
        for place, text in enumerate(texts):
            letters = Counter(filter(str.isalpha, text))
            number = next(number for number, route in enumerate(self._routes) if route.takes(letters, self._share))
            places.setdefault(number, []).append(place)
        return places

    def _save_config(self, folder: Path) -> None:
        for extractor in (route.loaded for route in self._routes):
            if extractor is not None:
                extractor.config.save(folder / extractor.folder.relative_to(self.folder))


def merge(texts: Sequence[str], parts: Sequence[tuple[Sequence[int], Proposed]]) -> Proposed:
    """What is proposed for texts, out of what was proposed for parts of them, each given with its places among them.

    Proposals keep the numbers that their windows have in their part.
    """
    if len(parts) == 1:
        return parts[0][1]
    words = [np.zeros((0, 2), np.int32)] * len(texts)
    for places, part in parts:
        for number, place in enumerate(places):
            words[place] = part.line.words_of(number)
    line = Line.of(texts, words)
    moved = []
    for places, part in parts:
        own = part.line.document(part.proposals.first)
        shift = line.begins[np.array(places)[own]] - part.line.begins[own]
        proposals = part.proposals
        moved.append(proposals._replace(first=proposals.first + shift, last=proposals.last + shift))
    return Proposed(line, Proposals(*(np.concatenate(column) for column in zip(*moved, strict=True))))


def require_single(folder: str | os.PathLike[str], doing: str) -> None:
    """Refuse a folder with several models, for what is done to one at a time."""
    config = ModelConfig.load(folder)
    if config.system == ROUTED:
        models = ", ".join(str(path) for path, _ in read_routes(config, Path(folder)))
        raise OnomaError(f"{folder} holds several models. Fix: {doing} them one by one: {models}")


def read_routes(config: ModelConfig, folder: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """The folder and the scripts of each route."""
    values = config.options.get("routes")
    if not isinstance(values, list) or not values:
        raise _error(folder, 'has no routes; write {"routes": [{"folder": "en", "scripts": []}]} into its options')
    routes = [_read_route(value, folder) for value in values]
    for path, scripts in routes[:-1]:
        if not scripts:
            raise _error(folder, f"has a route {path.name!r} without scripts, which would take all texts; put it last")
    if routes[-1][1]:
        raise _error(folder, "has no route for all other texts; let the last one have no scripts")
    return routes


def _read_route(value: Any, folder: Path) -> tuple[Path, tuple[str, ...]]:
    if not isinstance(value, dict) or not isinstance(value.get("folder"), str):
        raise _error(folder, f'has a route {value!r:.80}; a route is {{"folder": "zh", "scripts": ["Han"]}}')
    name, scripts = value["folder"], value.get("scripts", [])
    if not isinstance(scripts, list) or not all(one in SCRIPTS for one in scripts):
        raise _error(folder, f"has a route with the scripts {scripts!r:.80}; the scripts are {', '.join(SCRIPTS)}")
    if name in ("", ".", "..") or Path(name).name != name or not (folder / name).is_dir():
        raise _error(folder, f"has a route to {name!r}, and no folder of this name")
    return folder / name, tuple(scripts)


def _read_share(config: ModelConfig, folder: Path) -> float:
    share = config.options.get("share", SHARE)
    if not isinstance(share, (int, float)) or not 0.0 <= share <= 1.0:
        raise _error(folder, f"has the share {share!r}; it is a number between 0 and 1")
    return float(share)


def _error(folder: Path, message: str) -> OnomaError:
    return OnomaError(f"{folder / 'config.json'} {message}")
