"""PUnifiedNER run by PyTorch: prompts, generation, and the way back from answers to spans of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessorList
from transformers.modeling_outputs import BaseModelOutput

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.inputs.batches import Batch, pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.labels.parsing import Labels, parse_labels
from onoma.locks import ForkSafeLock
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import RuntimeSettings, refuse_examples, scores_of
from onoma.systems.blocks.torch_runtime import LoadedTorchModel
from onoma.systems.punifiedner.answers import COUNTED, Run, WindowText, outermost, parse
from onoma.systems.punifiedner.constraint import AnswerConstraint, ConstrainedLogits
from onoma.systems.punifiedner.model import PUnifiedNer
from onoma.systems.punifiedner.prompts import Ids, PromptTokenizer, Source
from onoma.text.words import segment

MAX_BATCH_TOKENS = 32_768
"""Tokens of a batch, padding included; prompts and beams count."""
_MAX_LOGITS = 2**28  # that are held at once when answers are scored
_LARGEST_MARGIN = 12.0  # of a mention that is certain; that of an impossible one is as large


@dataclass(frozen=True, slots=True)
class Prompt:
    """Types that are asked for together. Types with the same tokens share a slot."""

    ids: list[int]
    slots: Mapping[Ids, int]  # tokens of a type -> its place in the prompt
    types: Sequence[Sequence[int]]  # numbers of the types of each slot


class Question(NamedTuple):
    """A query: prompts, and the model that answers them."""

    prompts: Sequence[Prompt]
    t5: Any


class TorchPUnifiedNer(LoadedTorchModel):
    """A trained PUnifiedNER on a device.

    On GPUs it generates with weights in bfloat16. In training, weights change, so that every question copies them.
    """

    model: PUnifiedNer

    def __init__(self, model: PUnifiedNer, config: ModelConfig, tokenizer: WordTokenizer) -> None:
        super().__init__(model, config, tokenizer)
        self.prompts, self.options = PromptTokenizer(tokenizer), model.options
        self._counts: Counter[str] = Counter()
        self._lock = ForkSafeLock()
        self._t5: Any = None

    @classmethod
    def load(cls, folder: ModelFolder, settings: RuntimeSettings) -> Self:
        """Load a model folder."""
        runtime = super().load(folder, settings)
        if runtime.device.type == "cuda":
            runtime.model.to(torch.bfloat16)
        runtime._t5 = runtime.model.text_encoder
        return runtime

    def with_style(self, corpus: str | None) -> Self:
        """PUnifiedNER has no styles: the same model."""
        return self

    def counts(self) -> dict[str, int]:
        """What was counted when answers were read; see `COUNTED`."""
        with self._lock:
            return {name: self._counts[name] for name in COUNTED}

    def ask(self, types: Sequence[EntityType], examples: Sequence[Sequence[MarkedText]] = ()) -> Question:
        """Prompts for types in the order of their names, as many as are needed, and the model in evaluation mode."""
        refuse_examples(examples, self.config)
        self.eval()
        return Question(list(self._split(types)), self._t5 if self._t5 is not None else self._copy())

    def _copy(self) -> Any:
        """The model for generation with the present weights: a copy in bfloat16 on GPUs."""
        t5 = self.model.text_encoder
        return deepcopy(t5).to(torch.bfloat16) if self.device.type == "cuda" else t5

    def _split(self, types: Sequence[EntityType]) -> Iterator[Prompt]:
        """Prompts that do not exceed the limits."""
        by_ids: dict[Ids, list[int]] = {}
        tokens = self.prompts.type_ids([one.name for one in types])
        for number in sorted(range(len(types)), key=lambda number: types[number].name):
            by_ids.setdefault(tokens[number], []).append(number)
        group: list[Ids] = []
        room = self.options.max_prompt_tokens
        for ids in by_ids:
            used = sum(len(one) + 1 for one in group)
            if group and (len(group) == self.options.max_types or used + len(ids) + 1 > room):
                yield self._prompt(group, by_ids)
                group = []
            group.append(ids)
        if group:
            yield self._prompt(group, by_ids)

    def _prompt(self, group: Sequence[Ids], by_ids: Mapping[Ids, list[int]]) -> Prompt:
        slots = {ids: slot for slot, ids in enumerate(group)}
        return Prompt(self.prompts.prompt(group), slots, [by_ids[ids] for ids in group])

    def max_batch_tokens(self, query: Question) -> int:
        """How many tokens of texts a batch should have at most."""
        return max(1, MAX_BATCH_TOKENS // self.options.beams)

    @torch.inference_mode()
    def propose(self, batch: Batch, query: Question, floor: float) -> Proposals:
        """The spans of the mentions in the answers whose score reaches `floor`."""
        sources = self.prompts.read(batch.texts, batch.offsets)
        windows = [WindowText(*one) for one in zip(batch.texts, batch.offsets, sources, strict=True)]
        counts: Counter[str] = Counter()
        rows: list[tuple[int, int, int, int, float]] = []
        for prompt in query.prompts:
            answers, log_probabilities = self.answer(sources, prompt, query.t5)
            rows += self._rows(windows, prompt, answers, log_probabilities, counts)
        with self._lock:
            self._counts += counts
        table = np.array(rows, np.float64).reshape(-1, 5)
        score = scores_of(table[:, 4].astype(np.float32), self.config)
        window, first, last, kind = table[:, :4].astype(np.int64).T
        return Proposals(window, first, last, kind, score).above(floor)

    def _rows(
        self,
        windows: Sequence[WindowText],
        prompt: Prompt,
        answers: Sequence[Sequence[int]],
        log_probabilities: Sequence[Sequence[float]],
        counts: Counter[str],
    ) -> Iterator[tuple[int, int, int, int, float]]:
        """The spans of answers: window, first word, last word, type, margin."""
        pairs = [
            (row, pair) for row, ids in enumerate(answers) for pair in parse(ids, prompt.slots, self.prompts, counts)
        ]
        mentions = [tuple(answers[row][pair.start : pair.end]) for row, pair in pairs]
        spans: list[list[Run]] = []
        others: list[set[Run]] = [set() for _ in windows]
        for (row, _), ids, text in zip(pairs, mentions, self.prompts.strings(mentions), strict=True):
            runs, occurs = windows[row].find(text, ids, self.prompts.unk)
            counts["mentions" if runs else "unaligned" if occurs else "invented"] += 1
            spans.append(runs)
            others[row].update(runs)
        best: dict[tuple[int, int, int, int], float] = {}
        for (row, pair), runs in zip(pairs, spans, strict=True):
            margin = _margin(log_probabilities[row], pair.type_start, pair.start, pair.end)
            for (first, last), number in product(outermost(runs, others[row]), prompt.types[pair.slot]):
                place = (row, first, last, number)
                best[place] = max(margin, best.get(place, -float("inf")))
        return ((*place, margin) for place, margin in best.items())

    @torch.inference_mode()
    def write(self, texts: Sequence[str], labels: Labels) -> list[str]:
        """The answers for texts in words, as the paper writes them: "((city):(Rome),(person):(NULL))".

        A text is read as one window. With more types than a prompt may have, there are several answers, one after the
        other.
        """
        query = self.ask(parse_labels(labels))
        sources = self.prompts.read(texts, [segment(text) for text in texts])
        parts = [self.answer(sources, prompt, query.t5)[0] for prompt in query.prompts]
        return [" ".join(map(self.prompts.show, answers)) for answers in zip(*parts, strict=True)]

    def answer(self, sources: Sequence[Source], prompt: Prompt, t5: Any) -> tuple[list[list[int]], list[list[float]]]:
        """The answers to a prompt for windows, and the log-probability of each of their tokens."""
        rows = [[*prompt.ids, *one.ids.tolist(), self.prompts.end] for one in sources]
        ids, mask = self.copy(pad_rows(rows, self.prompts.pad))
        states = t5.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        beams, processors = self.options.beams, LogitsProcessorList()
        if self.options.constrained:
            vocabulary = t5.config.vocab_size
            constraint = AnswerConstraint(
                sources, list(prompt.slots), self.prompts.symbols, self.prompts.end, vocabulary, self.device, beams
            )
            processors.append(ConstrainedLogits(constraint, beams))
        settings = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=sum(len(one) + 3 for one in prompt.slots) + self.options.max_answer_tokens,
            num_beams=beams,
            do_sample=False,
            eos_token_id=self.prompts.end,
            pad_token_id=self.prompts.pad,
            decoder_start_token_id=t5.config.decoder_start_token_id,
        )
        generated = t5.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=states),
            attention_mask=mask,
            generation_config=settings,
            logits_processor=processors,
        )
        log_probabilities = self._log_probabilities(t5, states, mask, generated)
        return generated[:, 1:].tolist(), log_probabilities.tolist()

    @staticmethod
    def _log_probabilities(t5: Any, states: Any, mask: Tensor, generated: Tensor) -> Tensor:
        """The log-probability of each generated token given those before it: (windows, tokens)."""
        answers, parts = generated[:, 1:], []
        size = max(1, _MAX_LOGITS // (answers.shape[1] * t5.config.vocab_size))
        for first in range(0, len(answers), size):
            rows = slice(first, first + size)
            logits = t5(
                encoder_outputs=BaseModelOutput(last_hidden_state=states[rows]),
                attention_mask=mask[rows],
                decoder_input_ids=generated[rows, :-1],
                use_cache=False,
            ).logits.float()
            chosen = logits.gather(-1, answers[rows, :, None])[..., 0]
            parts.append(chosen - logits.logsumexp(-1))
        return torch.cat(parts)


def _margin(log_probabilities: Sequence[float], type_start: int, start: int, end: int) -> float:
    """The logit of a mention's probability: that of its type here, times the geometric mean over its tokens.

    The token behind the mention, which ends it, counts as one of them.
    """
    mention = log_probabilities[start : end + 1]
    logarithm = sum(log_probabilities[type_start:start]) + sum(mention) / len(mention)
    margin = logarithm - np.log(-np.expm1(min(logarithm, -1e-7)))
    return float(np.clip(margin, -_LARGEST_MARGIN, _LARGEST_MARGIN))
