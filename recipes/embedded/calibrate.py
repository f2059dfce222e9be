"""Scores and thresholds of an exported half of the embedded model, fitted on the development data of its recipe:

    python recipes/embedded/calibrate.py MODEL RECIPE --data CORPORA --language en

Fitted is what is used later: weights in int8, labels as extraction reads them, catch-all labels behind all others. The
configuration of MODEL gets scores whose default threshold is 0.5, thresholds for "precise" and "complete", the weight
of breadths, and a higher threshold for catch-all labels if that raises the mean F1 of the corpora that have one.
Nothing but the development corpora is read: those of the recipe and, for the weight of breadths, which few of them
depend on, `corpora/broad_and_narrow` as well, where broad and narrow labels are asked for together.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import onoma
from onoma.data import load_corpus
from onoma.data.inventory import Language
from onoma.entities import Corpus
from onoma.errors import OnomaError
from onoma.evaluation.candidates import BREADTH_WEIGHTS, Candidates, EvaluationSet
from onoma.labels.parsing import parse_labels
from onoma.labels.translation import LabelTranslator
from onoma.models.config import CATCH_ALL_LABELS, ModelConfig
from onoma.models.export import write_translations
from onoma.models.folder import open_single
from onoma.training.calibration import calibrate, shift_scores
from onoma.training.corpora import load_part
from onoma.training.recipe import load_recipe
from onoma.training.start import uncalibrated

DEFAULT_SCORE = 0.5
"""The default threshold after scores are shifted."""
BROAD_AND_NARROW = Path(__file__).parents[2] / "corpora" / "broad_and_narrow"


def main() -> None:
    """Fit, save the configuration, print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of an exported model; its config.json is changed")
    parser.add_argument("recipe", type=Path, help="recipe that names the development corpora")
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument("--language", choices=["en", "zh"], required=True, help="language that the model reads")
    arguments = parser.parse_args()
    print(json.dumps(fit(arguments.model, arguments.recipe, arguments.data, arguments.language), indent=2))


def fit(model: Path, recipe: Path, data: Path, language: Language) -> dict[str, Any]:
    """Fit the scores of a model in place; returns the threshold before the shift, and F1 on each corpus."""
    folder = open_single(model, "calibrate")
    config = replace(uncalibrated(folder.config), types={}, catch_all=CATCH_ALL_LABELS, breadth_weight=0.0)
    write_translations(model, language, config)  # of labels; it also saves the configuration
    runtime: Any = onoma.load(model).runtime
    translator = LabelTranslator(model, language)
    sets = [
        EvaluationSet(corpus, runtime, types=translator.translate(parse_labels(corpus.types)))
        for corpus in load_part(load_recipe(recipe).data, data, "dev")
    ]
    calibrate(runtime, sets, choose_threshold=True)
    threshold = runtime.config.threshold
    runtime.config = shift_scores(runtime.config, DEFAULT_SCORE)
    together = [EvaluationSet(one, runtime) for one in label_choice_corpora(language)]
    runtime.config = with_breadth_weight(runtime, sets, together)
    found = [one.candidates(runtime, min(runtime.config.presets.get("complete", 0.1), 0.1)) for one in sets]
    runtime.config = with_catch_all_thresholds(runtime.config, found)
    runtime.config.save(model)
    scores = {one.corpus.name: 100 * f1(each, runtime.config) for one, each in zip(sets, found, strict=True)}
    return {
        "probability": threshold,
        "mean_f1": fmean(scores.values()),
        "broad_and_narrow_mean_f1": fmean(one.evaluate(runtime)["f1"] for one in together),
        "f1": scores,
    }


def label_choice_corpora(language: Language) -> list[Corpus]:
    """The corpora in which broad and narrow labels are asked for together."""
    return [load_corpus(path, name=path.stem) for path in sorted((BROAD_AND_NARROW / language).glob("*.jsonl"))]


def with_breadth_weight(runtime: Any, *groups: Sequence[EvaluationSet]) -> ModelConfig:
    """The configuration with the best weight of breadths: by the mean over groups of corpora of their mean F1."""
    config: ModelConfig = runtime.config
    found = [[one.candidates(runtime, config.threshold) for one in group] for group in groups]
    if found[0][0].breadths is None:
        return config

    def mean_f1(weight: float) -> float:
        return fmean(fmean(f1(replace(one, breadth_weight=weight), config) for one in group) for group in found)

    return replace(config, breadth_weight=max(BREADTH_WEIGHTS, key=mean_f1))


def with_catch_all_thresholds(config: ModelConfig, candidates: Sequence[Candidates]) -> ModelConfig:
    """The configuration with the threshold for "precise" for catch-all labels, if corpora with one gain by it."""
    concerned = [one for one in candidates if any(map(is_catch_all, one.labels))]
    if not concerned or "precise" not in config.presets:
        return config
    changed = replace(config, thresholds=dict.fromkeys(CATCH_ALL_LABELS, config.presets["precise"]))
    before, after = (fmean(f1(one, each) for one in concerned) for each in (config, changed))
    return changed if after > before else config


def is_catch_all(label: str) -> bool:
    """Whether a label is for whatever is none of the other types."""
    return label.strip().casefold() in CATCH_ALL_LABELS


def f1(candidates: Candidates, config: ModelConfig) -> float:
    """The strict F1 at the thresholds of a configuration."""
    thresholds = [config.thresholds.get(label.strip().casefold(), config.threshold) for label in candidates.labels]
    return candidates.scores(np.array(thresholds, np.float32)).f1


if __name__ == "__main__":
    try:
        main()
    except OnomaError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
