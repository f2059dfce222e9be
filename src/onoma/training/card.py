"""The card of a trained model: what it is, its training data, its results and its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onoma.files import atomic_write
from onoma.models.card import PLACE
from onoma.models.config import ModelConfig
from onoma.models.folder import CARD_FILE
from onoma.training.recipe import Recipe


def write_card(folder: Path, recipe: Recipe, config: ModelConfig, metrics: dict[str, Any]) -> None:
    """Write README.md into a model folder."""
    rows = [
        f"| {part} | {name} | {scores['precision']:.1f} | {scores['recall']:.1f} | {scores['f1']:.1f} |"
        for part in ("check", "dev", "test")
        for name, scores in metrics.get(part, {}).items()
    ]
    corpora = ", ".join(one.path for one in recipe.data.corpora)
    labels = "".join(f"\n{sentence}" for sentence in _label_changes(metrics["examples"]))
    text = f"""---
library_name: onoma
pipeline_tag: token-classification
tags: [named-entity-recognition, {config.system}]
---
# {config.system.upper()} on {config.encoder}

Recognises entities of types given in words. Trained with Onoma on: {corpora}.

```python
import onoma
model = onoma.load("{PLACE}")
model.extract("...", {list(config.types)[:3]})
```

## Results
Strict precision, recall and F1 by character offsets, in percent. {_choice(metrics)}

| split | corpus | P | R | F1 |
|---|---|---|---|---|
{chr(10).join(rows)}

## Training
{metrics["steps"]} steps, best at step {metrics["best_step"]}; {metrics["examples"]["windows"]} windows with
{metrics["examples"]["mentions"]} mentions; seed {recipe.seed}; {metrics["train_seconds"]:.0f} s on {metrics["device"]}.
Scores are calibrated {_calibration(recipe)} (sigmoid with scale {config.scale:.3f} and bias {config.bias:.3f}); the
default threshold is {config.threshold:.3f}.{_breadths(config)}{labels}

## Limits
Texts and types that differ from those of its training data are recognised less well. The licences of the corpora
named above may apply to the weights.
"""
    with atomic_write(folder / CARD_FILE) as file:
        file.write(text)


def _breadths(config: ModelConfig) -> str:
    """A sentence on the choice between labels, if breadths have a part in it."""
    if not config.breadth_weight:
        return ""
    return f" Of the labels of one span, narrow ones are preferred (weight of breadths {config.breadth_weight:g})."


def _choice(metrics: dict[str, Any]) -> str:
    """How the weights were chosen."""
    if metrics["dev"]:
        return "The weights were chosen on dev."
    if "check" in metrics:
        return "The check is another model, trained on a part of the data and tested on the rest."
    return "The number of steps was fixed."


def _calibration(recipe: Recipe) -> str:
    source = f"as in {recipe.start}" if recipe.training.threshold_from == "start" else "on dev"
    return source if recipe.training.threshold_score is None else f"{source} and shifted"


def _label_changes(counts: dict[str, int]) -> list[str]:
    """Sentences about what was changed in the data before training."""
    sentences = []
    if counts["simulated_missing"]:
        sentences.append(f"{counts['simulated_missing']} mentions were dropped from train to simulate missing labels.")
    if counts["added_mentions"] or counts["removed_mentions"]:
        added, removed = counts["added_mentions"], counts["removed_mentions"]
        sentences.append(f"Before training, a model added {added} mentions to train and removed {removed}.")
    if counts["excluded_documents"]:
        sentences.append(f"{counts['excluded_documents']} documents of train that are evaluated as well were left out.")
    if counts["masked_spans"]:
        sentences.append(f"{counts['masked_spans']} unlabelled spans were masked: they are labelled elsewhere.")
    return sentences
