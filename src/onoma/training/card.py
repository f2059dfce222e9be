"""The card of a trained model: what it is, its training data, its results and its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onoma.files import atomic_write
from onoma.models.config import ModelConfig
from onoma.models.folder import CARD_FILE
from onoma.training.recipe import Recipe


def write_card(folder: Path, recipe: Recipe, config: ModelConfig, metrics: dict[str, Any]) -> None:
    """Write README.md into a model folder."""
    rows = [
        f"| {part} | {name} | {scores['precision']:.1f} | {scores['recall']:.1f} | {scores['f1']:.1f} |"
        for part in ("dev", "test")
        for name, scores in metrics[part].items()
    ]
    corpora = ", ".join(one.path for one in recipe.data.corpora)
    text = f"""---
library_name: onoma
pipeline_tag: token-classification
tags: [named-entity-recognition, {config.system}]
---
# {config.system.upper()} on {config.encoder}

Recognises entities of types given in words. Trained with Onoma on: {corpora}.

```python
import onoma
model = onoma.load("path/to/this/folder")
model.extract("...", {list(config.types)[:3]})
```

## Results
Strict precision, recall and F1 by character offsets, in percent. The weights were chosen on dev.

| split | corpus | P | R | F1 |
|---|---|---|---|---|
{chr(10).join(rows)}

## Training
{metrics["steps"]} steps, best at step {metrics["best_step"]}; {metrics["examples"]["windows"]} windows with
{metrics["examples"]["mentions"]} mentions; seed {recipe.seed}; {metrics["train_seconds"]:.0f} s on {metrics["device"]}.
Scores are calibrated on dev (sigmoid with scale {config.scale:.3f} and bias {config.bias:.3f}); the default
threshold is {config.threshold:.3f}.

## Limits
Texts and types that differ from those of its training data are recognised less well. The licences of the corpora
named above may apply to the weights.
"""
    with atomic_write(folder / CARD_FILE) as file:
        file.write(text)
