"""The card of a model on the hub: README.md of its folder, with the fields that the hub reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onoma.errors import DataError
from onoma.files import atomic_write
from onoma.models.folder import CARD_FILE
from onoma.models.info import ModelInfo, describe_model
from onoma.structured import parse_yaml

PLACE = "path/to/this/folder"
"""What the card of a trained model has where the name of the model belongs."""
FIELDS = {"library_name": "onoma", "pipeline_tag": "token-classification"}
TAGS = ("named-entity-recognition",)

_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)^---\s*\n", re.MULTILINE | re.DOTALL)


def write_hub_card(folder: Path, name: str, fields: Mapping[str, Any] | None = None) -> None:
    """Complete the card of a folder for the hub, or write one: `name` in place of a path, and the fields of the hub.

    Args:
        name: the name of the model on the hub, owner/name.
        fields: such as license, language or datasets; they replace those of the card.
    """
    path = folder / CARD_FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else _new_card(describe_model(folder), name)
    known, body = _parse(text, path)
    merged = FIELDS | known | dict(fields or {})
    merged["tags"] = list(dict.fromkeys([*(merged.get("tags") or ()), *TAGS]))
    with atomic_write(path) as file:
        file.write(f"---\n{_dump(merged)}---\n{body.replace(PLACE, name)}")


def _parse(text: str, path: Path) -> tuple[dict[str, Any], str]:
    """The fields of a card, and the text below them."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return {}, text
    fields = parse_yaml(found.group(1), path) or {}
    if not isinstance(fields, dict):
        raise DataError("the head of the card has no fields", path=path, fix="write lines such as 'license: mit'")
    return fields, text[found.end() :]


def _dump(fields: dict[str, Any]) -> str:
    import yaml

    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)
    return text


def _new_card(models: list[ModelInfo], name: str) -> str:
    """A card that says what is known from the folder alone."""
    rows = "\n".join(
        f"| {one.system} | {one.encoder or 'unknown'} | {one.language or 'not specified'} | {one.threshold:.2f} |"
        for one in models
    )
    types = [label for one in models for label in one.types]
    shown = types[:3] or ["person", "city"]
    trained = f"It was trained on these types: {', '.join(types)}." if types else "Types are given in words."
    languages = sorted({one.language for one in models if one.language})
    head = f"---\nlanguage: [{', '.join(languages)}]\n---\n" if languages else ""
    return f"""{head}# {name.rpartition("/")[2]}

Finds mentions of entity types in text. {trained}

```python
import onoma
model = onoma.load("{name}")
model.extract("...", {shown})
```

| system | encoder | language | default threshold |
|---|---|---|---|
{rows}
"""
