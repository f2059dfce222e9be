"""A biaffine classifier on any encoder, to compare the speed of BINDER with.

It reads the same batches as BINDER and returns rows (window, first word, last word, type). The vector of a word is the
state of its first token. On GPUs encoder and layers run in bfloat16; scores are summed and compared in float32.
BERT-CRF, the other baseline, is `onoma.systems.nerco` without lattice and contrast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from onoma.decoding import Proposals, resolve_overlaps
from onoma.inputs.batches import Batch
from onoma.systems.blocks.encoders import encoder_function

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
        self.encode = encoder_function(encoder)  # the same attention as in all systems
        self.dropout = nn.Dropout(0.1)

    def forward(self, ids: Tensor, mask: Tensor, first: Tensor) -> Tensor:
        """The states at the first token of each word (windows, words, hidden)."""
        states = self.dropout(self.encode(ids, mask))
        return torch.gather(states, 1, first.unsqueeze(-1).expand(-1, -1, states.shape[-1]))

    def read(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vectors of a batch, and the numbers of words of its windows, on the device."""
        device = next(self.parameters()).device
        arrays = (batch.ids, batch.mask, batch.first, batch.words)
        ids, mask, first, words = (torch.as_tensor(array, device=device) for array in arrays)
        return self(ids, mask, first), words


class Biaffine(nn.Module):
    """An encoder and a biaffine classifier of all pairs of words (Yu et al., ACL 2020).

    With h^s and h^e, two small networks on the states of the words, each with a constant 1 appended, the scores of the
    span from word x to word y are h^s_x U h^e_y: one for "no mention", one for each type.
    """

    def __init__(self, encoder: nn.Module, hidden: int, types: int, size: int = 150) -> None:
        super().__init__()
        self.word_encoder = WordEncoder(encoder)
        self.start, self.end = (nn.Sequential(nn.Linear(hidden, size), nn.ReLU(), nn.Dropout(0.2)) for _ in range(2))
        self.weight = nn.Parameter(torch.randn(1 + types, size + 1, size + 1) / size**0.5)  # U

    def scores(self, states: Tensor) -> Tensor:
        """The scores of all spans (windows, 1 + types, words, words)."""
        start, end = (functional.pad(part(states), (0, 1), value=1.0) for part in (self.start, self.end))
        return torch.einsum("bxi,kij,byj->bkxy", start, self.weight, end).float()

    def forward(self, ids: Tensor, mask: Tensor, first: Tensor, words: Tensor, gold: Tensor, **_: Any) -> Tensor:
        """The mean cross-entropy over all spans."""
        scores = self.scores(self.word_encoder(ids, mask, first))
        window, start, end, kind = gold.T
        target = torch.where(_spans(words, first.shape[1]), 0, NO_SPAN)
        target[window, start, end] = 1 + kind
        return functional.cross_entropy(scores, target, ignore_index=NO_SPAN)

    @torch.inference_mode()
    def extract(self, batch: Batch) -> Rows:
        """Every span whose best class is a type, by falling score, unless it overlaps with a better one."""
        with precision(self.weight.device):
            states, words = self.word_encoder.read(batch)
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
