"""PUnifiedNER's batches: prompts with texts and the answers to them, and texts cut in two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onoma.entities import EntityType
from onoma.inputs.batches import pad_rows
from onoma.systems.punifiedner.model import IGNORED
from onoma.systems.punifiedner.options import PUnifiedNerOptions
from onoma.systems.punifiedner.prompts import Ids, Integers, PromptTokenizer, Source
from onoma.training.collation import Arrays, batch_generator
from onoma.training.examples import Example


class PrefixCollator:
    """Prefix language modelling: a text is cut between two words, and the second part is the answer to the first."""

    def __init__(self, prompts: PromptTokenizer, *, seed: int = 0) -> None:
        self.prompts, self.seed = prompts, seed

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator, end = batch_generator(examples, self.seed), self.prompts.end
        inputs, labels = [], []
        for source in _sources(examples, self.prompts):
            words = len(source.edges) - 1
            cut = source.edges[generator.integers(1, words) if words > 1 else words]
            inputs.append([*source.ids[:cut].tolist(), end])
            labels.append([*source.ids[cut:].tolist(), end])
        return _arrays(inputs, labels, self.prompts.pad)


class PromptCollator:
    """Prompts, texts and answers; an example asks for types that are annotated in it, in the order of their names."""

    def __init__(
        self, types: Sequence[EntityType], prompts: PromptTokenizer, options: PUnifiedNerOptions, *, seed: int = 0
    ) -> None:
        self.prompts, self.options, self.seed = prompts, options, seed
        self.type_ids = prompts.type_ids([one.name for one in types])
        self.rank = np.empty(len(types), np.int64)
        self.rank[sorted(range(len(types)), key=lambda number: types[number].name)] = np.arange(len(types))

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator = batch_generator(examples, self.seed)
        inputs, labels = [], []
        for example, source in zip(examples, _sources(examples, self.prompts), strict=True):
            types = self.choose_types(example, generator)
            prompt = self.prompts.prompt([self.type_ids[number] for number in types])
            mentions = [(self.type_ids[number], distinct_mentions(example, source, number)) for number in types]
            inputs.append([*prompt, *source.ids.tolist(), self.prompts.end])
            empty = sum(len(kind) + 3 for kind, _ in mentions)
            labels.append(self.prompts.answer(mentions, empty + self.options.max_answer_tokens))
        return _arrays(inputs, labels, self.prompts.pad)

    def choose_types(self, example: Example, generator: np.random.Generator) -> list[int]:
        """The types that an example asks for: annotated ones, at most `max_types`, in the order of their names."""
        known, present = example.known, np.unique(example.gold[:, 2])
        setup = generator.choice(self.options.prompts.split("+"))
        if setup == "exact" and len(present):
            chosen = present
        elif setup == "dataset":
            chosen = known
        else:
            chosen = generator.choice(known, generator.integers(1, len(known) + 1), replace=False)
        if len(chosen) > self.options.max_types:
            chosen = self._limit(chosen, present, generator)
        return sorted(chosen.tolist(), key=lambda number: int(self.rank[number]))

    def _limit(self, chosen: Integers, present: Integers, generator: np.random.Generator) -> Integers:
        """As many types as a prompt may have; those with a mention come first."""
        shuffled = generator.permutation(chosen)
        absent = ~np.isin(shuffled, present)
        return shuffled[np.argsort(absent, kind="stable")][: self.options.max_types]


def distinct_mentions(example: Example, source: Source, number: int) -> list[Ids]:
    """The mentions of a type as tokens, in the order of the text; of several with the same string the first one."""
    gold = example.gold[example.gold[:, 2] == number]
    strings: dict[str, Ids] = {}
    for first, last, _ in gold[np.lexsort((gold[:, 1], gold[:, 0]))].tolist():
        text = example.text[example.words[first, 0] : example.words[last, 1]]
        strings.setdefault(text, source.words(first, last))
    return list(strings.values())


def _sources(examples: Sequence[Example], prompts: PromptTokenizer) -> list[Source]:
    return prompts.read([one.text for one in examples], [one.words for one in examples])


def _arrays(inputs: Sequence[Sequence[int]], labels: Sequence[Sequence[int]], pad: int) -> Arrays:
    ids, mask = pad_rows(inputs, pad)
    return {"ids": ids, "mask": mask, "labels": pad_rows(labels, IGNORED)[0]}
