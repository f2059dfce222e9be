"""The prepared SUNER against the model that is trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from onoma.systems.blocks.packed_attention import PackedTokens
from onoma.systems.suner.inference import SunerInference
from onoma.systems.suner.marking import Candidates, mark, pack_markers, pair_numbers
from onoma.systems.suner.model import NO_SPAN, Marks, at_words
from tiny_suner import random_batch, tiny_suner

torch.set_num_threads(1)
FAMILIES = ["bert", "roberta", "mpnet"]
COUNTS = ([1, 2, 1, 3, 1, 1], [2, 1], [1] * 12, [1, 1, 1, 2])  # tokens of each word of four windows
SPANS = {
    "few": [(0, 0, 2), (0, 1, 1), (0, 3, 5), (1, 0, 1), (1, 1, 1), (3, 2, 3)],  # window, first word, last word
    "one": [(2, 4, 6)],
    "all": [(2, first, last) for first in range(12) for last in range(first, 12)],
}


def tensors(*arrays: np.ndarray) -> list[Tensor]:
    return [torch.from_numpy(array) for array in arrays]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("spans", SPANS)
@pytest.mark.parametrize("identity", ["shared", "numbered", "paired"])
@torch.inference_mode()
def test_markers_alone_have_the_states_of_the_full_pass(family: str, spans: str, identity: str) -> None:
    model = tiny_suner(family, form="fused", marker_identity=identity, max_candidates=78)
    batch, candidates = random_batch(COUNTS, family), Candidates(*np.array(SPANS[spans], np.int64).T)
    marked = mark(batch, candidates, numbers=pair_numbers(candidates, model.options))
    first, last = candidates.tokens(batch)
    full = model.marked_states(*tensors(marked.ids, marked.positions, marked.roles))
    prepared = SunerInference(model, torch.float32)
    texts = prepared.encode(*tensors(batch.ids, batch.mask))
    markers = pack_markers(candidates, first, last, model.options)
    positions, windows, edges, roles = tensors(*markers)
    states = prepared.mark(texts, PackedTokens(positions, windows, edges, int(edges.diff().max())), roles)
    window, opening, closing = tensors(candidates.window, marked.opening, marked.closing)
    torch.testing.assert_close(states[0::2], full[window, opening], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(states[1::2], full[window, closing], atol=1e-5, rtol=1e-4)

    types = torch.nn.functional.normalize(torch.randn(3, 8), dim=-1)
    begin, end = texts.states[window, torch.from_numpy(first)], texts.states[window, torch.from_numpy(last)]
    found = model.match_markers(states[0::2], states[1::2], begin, end, types)
    expected = model.match(full, Marks(window, opening, closing, *tensors(first, last)), types)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_markers_and_text_in_one_pass_have_the_states_of_the_model(family: str) -> None:
    model, batch = tiny_suner(family), random_batch(COUNTS, family)
    marked = mark(batch, Candidates(*np.array(SPANS["few"], np.int64).T))
    ids, positions, roles = tensors(marked.ids, marked.positions, marked.roles)
    states = SunerInference(model, torch.float32).encode_marked(ids, positions, roles)
    expected = model.marked_states(ids, positions, roles)
    torch.testing.assert_close(states[roles > 0], expected[roles > 0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("form", ["two-stage", "fused"])
@pytest.mark.parametrize("size", [1, 8, 12])
@torch.inference_mode()
def test_logits_are_those_of_the_detector_for_spans_that_are_not_too_wide(form: str, size: int) -> None:
    model, batch = tiny_suner(form=form, detector_size=size), random_batch(COUNTS)
    ids, mask, first, last, words = tensors(batch.ids, batch.mask, batch.first, batch.last, batch.words)
    prepared = SunerInference(model, torch.float32)
    logits = prepared.detect(prepared.encode(ids, mask).states, first, last, words).view(len(ids), 12, 12)
    expected = model.detector(*at_words(model.encode_for_detection(ids, mask), first, last), words)
    width = torch.arange(12) - torch.arange(12)[:, None]
    torch.testing.assert_close(logits, expected.masked_fill(width >= 5, NO_SPAN), atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_bfloat16_logits_are_close() -> None:
    model, batch = tiny_suner("mpnet", form="fused"), random_batch(COUNTS, "mpnet")
    inputs = tensors(batch.ids, batch.mask, batch.first, batch.last, batch.words)
    exact, rounded = (
        one.detect(one.encode(*inputs[:2]).states, *inputs[2:]).float()
        for one in (SunerInference(model, dtype) for dtype in (torch.float32, torch.bfloat16))
    )
    spans = exact > NO_SPAN
    assert torch.equal(spans, rounded > NO_SPAN / 2)
    assert float((exact - rounded)[spans].norm() / exact[spans].norm()) < 0.05
