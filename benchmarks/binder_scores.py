"""Scores of a trained BINDER beyond its F1: rules for thresholds, counts for tests, error kinds, similarities.

A threshold is chosen by one of three rules, the same for all models:

    learned    what training learned, as in the paper: the margin over [CLS] or over the learned threshold is positive
    common     one threshold of the score for all types, tuned on dev
    per_type   a threshold for each type, tuned on dev
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onoma.entities import Corpus, Entity, EntityType
from onoma.evaluation.bootstrap import mention_counts
from onoma.evaluation.candidates import Candidates, EvaluationSet, as_percent, best_threshold
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.report import evaluate
from onoma.evaluation.tuning import tune_types
from onoma.models.folder import open_single
from onoma.systems.base import RuntimeSettings, margin_of
from onoma.systems.binder.model import Similarities, TypeVectors
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.training.collation import collate_examples
from onoma.training.corpora import join_for_windows, load_part
from onoma.training.development import development_examples
from onoma.training.examples import Example
from onoma.training.recipe import Recipe, load_recipe

RULES = ("learned", "common", "per_type")
GRID = [round(0.01 * step, 2) for step in range(1, 100)]
"""Thresholds of calibrated scores that are tried on dev."""
ERROR_KINDS = ("modifier_added", "modifier_missing", "end", "overlap", "type", "spurious")
BINS = 400
"""Of similarities, over all that are possible."""
WINDOWS_AT_ONCE = 16
LONGEST_MENTION = 2000
"""Characters."""

Thresholds = NDArray[np.float32]


def score_run(
    model: Path, data: Path, *, inferences: Sequence[str] = ("span",), similarities: bool = False
) -> dict[str, Any]:
    """The scores of a run's model by inference, part and rule, and the distributions of similarities on dev."""
    recipe, folder = load_recipe(model.parent / "recipe.yaml"), open_single(model, "evaluate")
    found: dict[str, Any] = {}
    for inference in inferences:
        config = replace(folder.config, options=folder.config.options | {"inference": inference})
        runtime = TorchBinder.load(replace(folder, config=config), RuntimeSettings("torch"))
        sets = {part: _prepare(recipe, data, part, runtime) for part in ("dev", "test")}
        found[inference] = score_rules(runtime, {part: one for part, one in sets.items() if one is not None})
    if similarities:
        _, dev = _required(sets["dev"])
        found["similarities"] = similarity_histograms(runtime, dev, tuned_thresholds(runtime, dev)["per_type"])
    return found


Prepared = tuple[Corpus, EvaluationSet]
"""A corpus of sentences, and the same as it is cut into windows."""


def _prepare(recipe: Recipe, data: Path, part: str, runtime: TorchBinder) -> Prepared | None:
    corpora = load_part(recipe.data, data, part)
    if not corpora:
        return None
    (corpus,) = corpora
    return corpus, EvaluationSet(join_for_windows(corpus, recipe.data), runtime)


def _required(prepared: Prepared | None) -> Prepared:
    if prepared is None:
        raise ValueError("BINDER is scored with thresholds from dev, which is missing")
    return prepared


def score_rules(runtime: TorchBinder, parts: Mapping[str, Prepared]) -> dict[str, dict[str, Any]]:
    """The scores of each part by rule; thresholds are tuned on dev."""
    rules = tuned_thresholds(runtime, parts["dev"][1])
    found: dict[str, dict[str, Any]] = {}
    for part, (corpus, tested) in parts.items():
        candidates = tested.candidates(runtime, _floor(runtime))
        found[part] = {name: _scores(candidates, one, corpus, tested) for name, one in rules.items()}
    return found


def tuned_thresholds(runtime: TorchBinder, dev: EvaluationSet) -> dict[str, Thresholds]:
    """The thresholds of all types by rule; a model that learned none has no rule `learned`."""
    candidates = dev.candidates(runtime, _floor(runtime))
    grid = sorted({*GRID, runtime.config.threshold})
    common = np.full(len(dev.labels), best_threshold([candidates], grid), np.float32)
    rules = {"common": common, "per_type": tune_types(candidates, common, grid)}
    if runtime.options.thresholds == "tuned":
        return rules
    return {"learned": np.full(len(dev.labels), runtime.config.threshold, np.float32), **rules}


def _floor(runtime: TorchBinder) -> float:
    return min(GRID[0], runtime.config.threshold)


def _scores(candidates: Candidates, thresholds: Thresholds, corpus: Corpus, tested: EvaluationSet) -> dict[str, Any]:
    predicted = predictions(candidates, thresholds, tested)
    comparison = Comparison.between(tested.corpus, predicted)
    report = evaluate(tested.corpus, predicted).to_dict()
    return {
        **as_percent(candidates.scores(thresholds)),
        "thresholds": [round(float(one), 4) for one in thresholds],
        "counts": mention_counts(comparison, corpus).tolist(),
        "errors": error_kinds(comparison),
        "report": {name: report[name] for name in ("strict", "start_only", "end_only", "loose", "slices")},
    }


def predictions(candidates: Candidates, thresholds: Thresholds, tested: EvaluationSet) -> list[list[Entity]]:
    """The entities of each document that are reported at thresholds."""
    found: list[list[Entity]] = [[] for _ in tested.corpus]
    words, proposals = tested.texts.packed.words, candidates.proposals
    for row in candidates.reported(thresholds).tolist():
        document = tested.corpus.documents[candidates.document[row]]
        start, end = int(words[proposals.first[row], 0]), int(words[proposals.last[row], 1])
        label = candidates.labels[proposals.type[row]]
        found[candidates.document[row]].append(Entity(start, end, document.text[start:end], label))
    return found


def error_kinds(comparison: Comparison) -> dict[str, int]:
    """The numbers of wrong predictions by kind (table 9), and of gold mentions that nothing of their type overlaps.

    `modifier_added` and `modifier_missing`: the end of a gold mention of the type, but an earlier or later start;
    `end`: its start, but another end; `overlap`: any other overlap; `type`: the span of a gold mention of another type;
    `spurious`: none of these.
    """
    gold = list(zip(*(column.tolist() for column in _columns(comparison.gold)), strict=True))
    predicted = list(zip(*(column.tolist() for column in _columns(comparison.predicted)), strict=True))
    by_label: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start, end, label in gold:
        by_label[label].append((start, end))
    spans = {(start, end) for start, end, _ in gold}
    kinds = Counter(dict.fromkeys(ERROR_KINDS, 0))
    kinds.update(
        _error_kind(start, end, by_label[label], spans)
        for (start, end, label), right in zip(predicted, comparison.correct.tolist(), strict=True)
        if not right
    )
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start, end, label in predicted:
        found[label].append((start, end))
    kinds["missed"] = sum(not _overlapping(start, end, found[label]) for start, end, label in gold)
    return dict(kinds)


def _columns(mentions: Any) -> tuple[NDArray[np.int64], ...]:
    return mentions.start, mentions.end, mentions.label


def _error_kind(start: int, end: int, own: list[tuple[int, int]], spans: set[tuple[int, int]]) -> str:
    near = _overlapping(start, end, own)
    same_end = [one for one in near if one[1] == end]
    if same_end:
        return "modifier_added" if start < min(same_end)[0] else "modifier_missing"
    if any(one[0] == start for one in near):
        return "end"
    if near:
        return "overlap"
    return "type" if (start, end) in spans else "spurious"


def _overlapping(start: int, end: int, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans that share a character; `spans` are sorted, and none is longer than LONGEST_MENTION."""
    near = spans[bisect_left(spans, (start - LONGEST_MENTION, 0)) : bisect_left(spans, (end, 0))]
    return [one for one in near if one[1] > start]


# --- similarities (figures 2 and 3)


@torch.inference_mode()
def similarity_histograms(runtime: TorchBinder, dev: EvaluationSet, thresholds: Thresholds) -> dict[str, Any]:
    """Histograms of sim(s_ij, e_k) by type: of mentions, of all other spans, and of thresholds.

    `thresholds` are those of models that learned none, as scores, in the order of the labels of `dev`.
    """
    model, types = runtime.model, [EntityType(name, text) for name, text in runtime.config.types.items()]
    runtime.eval()
    largest = float(model.similarity_scales()[2])
    edges = np.linspace(-largest, largest, BINS + 1)
    tuned = {name: margin_of(float(one), runtime.config) for name, one in zip(dev.labels, thresholds, strict=True)}
    counts = {one.name: {kind: np.zeros(BINS) for kind in ("entity", "non-entity", "threshold")} for one in types}
    for examples, sims in _similarities(runtime, dev, types):
        is_gold, is_span = _span_flags(examples, sims.span)
        for number, one in enumerate(types):
            span = sims.span[:, number]
            limit = sims.span_anchor[:, number]
            if runtime.options.thresholds == "tuned":
                limit = torch.full_like(limit, tuned[one.name])
            values = {
                "entity": span[is_gold[:, number]],
                "non-entity": span[is_span & ~is_gold[:, number]],
                "threshold": limit,
            }
            for kind, found in values.items():
                counts[one.name][kind] += np.histogram(found.float().cpu().numpy(), edges)[0]
    return {
        "largest": largest,
        "types": {name: {kind: one.tolist() for kind, one in kinds.items()} for name, kinds in counts.items()},
    }


def _similarities(
    runtime: TorchBinder, dev: EvaluationSet, types: Sequence[EntityType]
) -> Iterator[tuple[list[Example], Similarities]]:
    """Similarities of all spans of the windows of dev, some windows at a time."""
    model, device = runtime.model, runtime.device
    rows, size = runtime.encode_types(types), 3 * model.options.vector_size
    vectors = TypeVectors(*torch.as_tensor(rows[:, :size], device=device).chunk(3, dim=-1))
    numbers = torch.arange(len(types), device=device)
    examples = development_examples([dev], runtime)
    for start in range(0, len(examples), WINDOWS_AT_ONCE):
        chosen = examples[start : start + WINDOWS_AT_ONCE]
        batch = collate_examples(chosen, runtime.tokenizer)
        inputs = runtime.copy((batch.ids, batch.mask, batch.first, batch.last))
        with runtime.autocast():
            text = model.encode_text(*inputs)
        yield chosen, model.similarities(text, vectors, model.options.max_width, numbers)


def _span_flags(examples: Sequence[Example], span: Tensor) -> tuple[Tensor, Tensor]:
    """Which spans are mentions of each type (windows, types, words, widths), and which exist, for all types alike."""
    _, _, length, widths = span.shape
    words = torch.tensor([len(one.tokens.counts) for one in examples], device=span.device)
    place = torch.arange(length, device=span.device)
    exists = (place[:, None] + place[:widths]) < words[:, None, None]
    gold = torch.zeros(span.shape, dtype=torch.bool)
    for window, example in enumerate(examples):
        first, last, kind = (torch.from_numpy(column.astype(np.int64)) for column in example.gold.T)
        narrow = last - first < widths
        gold[window, kind[narrow], first[narrow], (last - first)[narrow]] = True
    return gold.to(span.device), exists
