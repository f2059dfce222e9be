"""Two common approaches on any encoder, to compare the speed of BINDER with: BERT-CRF and a biaffine classifier.

Both read the same batches as BINDER and return rows (window, first word, last word, type). The vector of a word is the
state of its first token. On GPUs encoder and layers run in bfloat16; scores are summed and compared in float32.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from onoma.decoding import Proposals, resolve_overlaps
from onoma.inputs.batches import Batch

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]
"""Decoded mentions: window, first word, last word (inclusive), type."""

NO_SPAN = -100  # class of pairs of words that are no span, which have no loss


def precision(device: torch.device) -> torch.autocast:
    """bfloat16 on GPUs, float32 elsewhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def flat_rows(proposals: Proposals) -> Rows:
    """The proposals that remain when overlaps are resolved."""
    window, first, last, kind, score = proposals
    kept = resolve_overlaps(first, last + 1, kind, score, overlap="flat", group=window)
    return np.stack([window, first, last, kind], axis=1)[kept]


class WordEncoder(nn.Module):
    """A pretrained encoder with one vector per word."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(0.1)

    def forward(self, ids: Tensor, mask: Tensor, first: Tensor) -> Tensor:
        """The states at the first token of each word (windows, words, hidden)."""
        states = self.dropout(self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state)
        return torch.gather(states, 1, first.unsqueeze(-1).expand(-1, -1, states.shape[-1]))

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vectors of a batch, and the numbers of words of its windows, on the device."""
        device = next(self.parameters()).device
        arrays = (batch.ids, batch.mask, batch.first, batch.words)
        ids, mask, first, words = (torch.as_tensor(array, device=device) for array in arrays)
        return self(ids, mask, first), words


class LinearChain(nn.Module):
    """A linear-chain conditional random field, computed for a whole batch at once, word by word.

    The score of tags y is start[y_1] + Σ emission[t, y_t] + Σ transition[y_(t-1), y_t] + end[y_n].
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start, self.end = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.zeros(tags))
        self.transitions = nn.Parameter(torch.zeros(tags, tags))

    def score(self, emissions: Tensor, tags: Tensor, words: Tensor) -> Tensor:
        """The score of the given tags (windows,); emissions are (windows, words, tags)."""
        exists = torch.arange(tags.shape[1], device=tags.device) < words[:, None]
        emitted = emissions.gather(2, tags.unsqueeze(-1)).squeeze(-1) * exists
        passed = self.transitions[tags[:, :-1], tags[:, 1:]] * exists[:, 1:]
        last = tags.gather(1, words[:, None] - 1).squeeze(1)
        return self.start[tags[:, 0]] + emitted.sum(1) + passed.sum(1) + self.end[last]

    def log_partition(self, emissions: Tensor, words: Tensor) -> Tensor:
        """The logarithm of the sum over all tags of exp(score), by the forward algorithm (windows,)."""
        alpha = self.start + emissions[:, 0]
        for potential, exists in self._steps(emissions, words):
            alpha = torch.where(exists, torch.logsumexp(alpha.unsqueeze(2) + potential, dim=1), alpha)
        return torch.logsumexp(alpha + self.end, dim=1)

    def viterbi(self, emissions: Tensor, words: Tensor) -> Integers:
        """The tags with the highest score (windows, words); 0 behind the end of a window."""
        alpha, pointers = self.start + emissions[:, 0], []
        for potential, exists in self._steps(emissions, words):
            best, pointer = (alpha.unsqueeze(2) + potential).max(dim=1)
            alpha = torch.where(exists, best, alpha)
            pointers.append(pointer)
        last = (alpha + self.end).argmax(1, keepdim=True)
        stacked = torch.stack([*pointers, last.expand_as(alpha)]).to(torch.int16)  # one copy to the CPU for all
        return _trace_back(stacked.cpu().numpy(), words.cpu().numpy())

    def _steps(self, emissions: Tensor, words: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """For each word but the first: transition + emission (windows, from, to), and if it exists (windows, 1)."""
        potentials = emissions[:, 1:].unsqueeze(2) + self.transitions
        exists = torch.arange(1, emissions.shape[1], device=words.device) < words[:, None]
        return zip(potentials.unbind(1), exists.unsqueeze(-1).unbind(1), strict=True)


def _trace_back(stacked: NDArray[np.int16], words: Integers) -> Integers:
    """Follow the pointers of each word but the first (words - 1, windows, tags) from the last tags, the final row."""
    pointers, tag = stacked[:-1], stacked[-1, :, 0].astype(np.int64)
    length, window = len(stacked), np.arange(len(words))
    beyond = np.arange(length)[:, None] >= words  # (words, windows)
    pointers = np.where(beyond[1:, :, None], np.arange(stacked.shape[2]), pointers)  # stay until the last word
    tags = np.empty((length, len(words)), np.int64)
    for place in range(length - 1, 0, -1):
        tags[place] = tag
        tag = pointers[place - 1][window, tag]
    tags[0] = tag
    tags[beyond] = 0
    return tags.T


def bio_tags(gold: Integers, windows: int, length: int) -> Integers:
    """Mentions (window, first, last, type) that do not overlap, as tags.

    Words outside mentions have 0, the first word of a mention 1 + 2 · type, its other words 2 + 2 · type.
    """
    tags = np.zeros((windows, length), np.int64)
    for window, first, last, kind in gold.tolist():
        tags[window, first : last + 1] = 2 + 2 * kind
        tags[window, first] -= 1
    return tags


def tagged_rows(tags: Integers) -> Rows:
    """The mentions of tags (windows, words); a mention may lack its first tag."""
    kind = (tags - 1) // 2  # -1 outside
    before = np.pad(kind, ((0, 0), (1, 0)), constant_values=-1)[:, :-1]
    begins = (kind >= 0) & ((tags % 2 == 1) | (kind != before))
    goes_on = (kind >= 0) & ~begins
    ends = (kind >= 0) & ~np.pad(goes_on, ((0, 0), (0, 1)))[:, 1:]
    window, first = np.nonzero(begins)
    return np.stack([window, first, np.nonzero(ends)[1], kind[window, first]], axis=1)


class BertCrf(nn.Module):
    """An encoder, a linear layer to BIO tags, and a linear-chain CRF."""

    def __init__(self, encoder: nn.Module, hidden: int, types: int) -> None:
        super().__init__()
        self.words = WordEncoder(encoder)
        self.head = nn.Linear(hidden, 1 + 2 * types)
        self.chain = LinearChain(1 + 2 * types)

    def forward(self, ids: Tensor, mask: Tensor, first: Tensor, words: Tensor, tags: Tensor, **_: Any) -> Tensor:
        """The negative log-likelihood of the gold tags, for each word."""
        emissions = self.head(self.words(ids, mask, first)).float()
        likelihood = self.chain.score(emissions, tags, words) - self.chain.log_partition(emissions, words)
        return -likelihood.sum() / words.sum()

    @torch.inference_mode()
    def extract(self, batch: Batch) -> Rows:
        """The mentions of the best tags."""
        with precision(self.head.weight.device):
            states, words = self.words.read(batch)
            emissions = self.head(states).float()
        return tagged_rows(self.chain.viterbi(emissions, words))


class Biaffine(nn.Module):
    """An encoder and a biaffine classifier of all pairs of words (Yu et al., ACL 2020).

    With h^s and h^e, two small networks on the states of the words, each with a constant 1 appended, the scores of the
    span from word x to word y are h^s_x U h^e_y: one for "no mention", one for each type.
    """

    def __init__(self, encoder: nn.Module, hidden: int, types: int, size: int = 150) -> None:
        super().__init__()
        self.words = WordEncoder(encoder)
        self.start, self.end = (nn.Sequential(nn.Linear(hidden, size), nn.ReLU(), nn.Dropout(0.2)) for _ in range(2))
        self.weight = nn.Parameter(torch.randn(1 + types, size + 1, size + 1) / size**0.5)  # U

    def scores(self, states: Tensor) -> Tensor:
        """The scores of all spans (windows, 1 + types, words, words)."""
        start, end = (functional.pad(part(states), (0, 1), value=1.0) for part in (self.start, self.end))
        return torch.einsum("bxi,kij,byj->bkxy", start, self.weight, end).float()

    def forward(self, ids: Tensor, mask: Tensor, first: Tensor, words: Tensor, gold: Tensor, **_: Any) -> Tensor:
        """The mean cross-entropy over all spans."""
        scores = self.scores(self.words(ids, mask, first))
        window, start, end, kind = gold.T
        target = torch.where(_spans(words, first.shape[1]), 0, NO_SPAN)
        target[window, start, end] = 1 + kind
        return functional.cross_entropy(scores, target, ignore_index=NO_SPAN)

    @torch.inference_mode()
    def extract(self, batch: Batch) -> Rows:
        """Every span whose best class is a type, by falling score, unless it overlaps with a better one."""
        with precision(self.weight.device):
            states, words = self.words.read(batch)
            best, kind = self.scores(states).max(dim=1)  # (windows, words, words)
        found = torch.nonzero((kind > 0) & _spans(words, best.shape[1]))
        places = found.unbind(1)
        score, kinds = best[places].cpu().numpy(), kind[places].cpu().numpy() - 1
        window, first, last = found.cpu().numpy().T
        return flat_rows(Proposals(window, first, last, kinds, score))


def _spans(words: Tensor, length: int) -> Tensor:
    """Which pairs of words are spans of their window: (windows, words, words)."""
    place = torch.arange(length, device=words.device)
    return (place[:, None] <= place) & (place < words[:, None, None])
