"""The systems that BINDER's speed is compared with: their maths against trying out everything."""

from __future__ import annotations

import sys
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from baselines import BertCrf, Biaffine, LinearChain, bio_tags, tagged_rows
from onoma.inputs.batches import Batch

TAGS = 3
WORDS = (4, 1, 3)


@pytest.fixture
def chain() -> LinearChain:
    torch.manual_seed(0)
    chain = LinearChain(TAGS)
    for weight in chain.parameters():
        nn.init.normal_(weight)
    return chain


@pytest.fixture
def emissions() -> Tensor:
    return torch.randn(len(WORDS), max(WORDS), TAGS, generator=torch.Generator().manual_seed(1))


def slow_score(chain: LinearChain, emissions: Tensor, tags: tuple[int, ...]) -> float:
    total = chain.start[tags[0]] + chain.end[tags[-1]]
    total = total + sum(emissions[place, tag] for place, tag in enumerate(tags))
    return (total + sum(chain.transitions[a, b] for a, b in pairwise(tags))).item()


def all_scores(chain: LinearChain, emissions: Tensor, words: int) -> dict[tuple[int, ...], float]:
    return {tags: slow_score(chain, emissions, tags) for tags in product(range(TAGS), repeat=words)}


def test_the_partition_sums_over_all_tags(chain: LinearChain, emissions: Tensor) -> None:
    found = chain.log_partition(emissions, torch.tensor(WORDS))
    expected = [
        np.logaddexp.reduce(list(all_scores(chain, one, words).values()))
        for one, words in zip(emissions, WORDS, strict=True)
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-4)


def test_viterbi_finds_the_best_of_all_tags(chain: LinearChain, emissions: Tensor) -> None:
    found = chain.viterbi(emissions, torch.tensor(WORDS))
    for row, one, words in zip(found, emissions, WORDS, strict=True):
        scores = all_scores(chain, one, words)
        assert tuple(row[:words].tolist()) == max(scores, key=scores.__getitem__)
        assert not row[words:].any()


def test_the_score_leaves_padding_out(chain: LinearChain, emissions: Tensor) -> None:
    tags = torch.tensor([[0, 2, 1, 1], [2, 1, 1, 0], [1, 0, 2, 2]])
    found = chain.score(emissions, tags, torch.tensor(WORDS))
    expected = [
        slow_score(chain, one, tuple(row[:words].tolist()))
        for one, row, words in zip(emissions, tags, WORDS, strict=True)
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-4)


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 2)), max_size=4), max_size=3))
def test_tags_hold_what_they_were_made_from(windows: list[list[tuple[int, int, int]]]) -> None:
    rows = []
    for window, mentions in enumerate(windows):
        place = 0
        for gap, width, kind in mentions:
            rows.append((window, place + gap, place + gap + width - 1, kind))
            place += gap + width
    gold = np.array(rows, np.int64).reshape(-1, 4)
    assert tagged_rows(bio_tags(gold, len(windows), 20)).tolist() == gold.tolist()


def test_a_mention_may_begin_without_its_first_tag() -> None:
    tags = np.array([[2, 2, 4, 0, 4, 3]])  # inside A, inside A, inside B, outside, inside B, first of B
    assert tagged_rows(tags).tolist() == [[0, 0, 1, 0], [0, 2, 2, 1], [0, 4, 4, 1], [0, 5, 5, 1]]


class Lookup(nn.Module):
    """Stands for an encoder: a vector for every token, whatever is around it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.table(input_ids))


@pytest.mark.parametrize("system", [BertCrf, Biaffine])
def test_a_system_finds_what_it_has_learned(system: type[BertCrf | Biaffine]) -> None:
    torch.manual_seed(0)
    ids = np.array([[1, 10, 11, 12, 2], [1, 12, 10, 2, 0]])
    first = np.array([[1, 2, 3], [1, 2, 0]])
    batch = Batch(
        ids, (ids > 0).astype(np.int64), first, first, np.array([3, 2]), [""] * 2, [np.zeros((0, 2), np.int32)] * 2
    )
    gold = np.array([[0, 0, 0, 1], [0, 1, 2, 0], [1, 1, 1, 1]])
    arrays = {name: getattr(batch, name) for name in ("ids", "mask", "first", "words")}
    inputs = {name: torch.from_numpy(x) for name, x in {**arrays, "gold": gold, "tags": bio_tags(gold, 2, 3)}.items()}
    model = system(Lookup(), 16, 2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.03)
    for _ in range(60):
        optimiser.zero_grad()
        model(**inputs).backward()
        optimiser.step()
    assert model.eval().extract(batch).tolist() == gold.tolist()
