"""SCL-RAI's model: span vectors as the paper writes them, which spans are negatives, and the loss against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import BertConfig, BertModel

from onoma import OnomaError
from onoma.systems.options import parse_options
from onoma.systems.scl_rai.model import SclRai, Spans, WordStates
from onoma.systems.scl_rai.options import SclRaiOptions

torch.set_num_threads(1)
HIDDEN, SIZE, TYPES = 12, 8, 3
WORDS = torch.tensor([7, 1, 5])


def make_model(**options: Any) -> SclRai:
    torch.manual_seed(0)
    shape = {"hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    encoder = BertModel(BertConfig(vocab_size=40, max_position_embeddings=32, **shape), add_pooling_layer=False)
    return SclRai(encoder, SclRaiOptions(vector_size=SIZE, **options), TYPES).eval()


def random_states(model: SclRai, seed: int = 0) -> WordStates:
    generator = torch.Generator().manual_seed(seed)
    begin, end = (torch.randn(len(WORDS), int(WORDS.max()), HIDDEN, generator=generator) for _ in range(2))
    return WordStates(begin, end, model.left(begin), model.right(end))


def random_chances(seed: int, widths: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2**31, (len(WORDS), int(WORDS.max()), widths), generator=generator)


GOLD = torch.tensor([[0, 1, 2, 0], [0, 4, 4, 1], [2, 0, 4, 2]])  # window, first word, last word, type


def test_span_vectors_are_those_of_equations_2_and_3() -> None:
    model = make_model()
    states = random_states(model)
    window, first, last = 0, 2, 4
    begin, end = states.first[window, first], states.last[window, last]
    # the blocks of W for h_i, h_j, h_i - h_j and h_i * h_j; any split of A and B gives the same vectors
    difference = torch.randn(SIZE, HIDDEN, generator=torch.Generator().manual_seed(1))
    w = torch.cat(
        [model.left.weight - difference, model.right.weight + difference, difference, model.product.weight], dim=1
    )
    expected = torch.tanh(w @ torch.cat([begin, end, begin - end, begin * end]) + model.left.bias)
    spans = Spans(torch.tensor([window]), torch.tensor([first]), torch.tensor([last]))
    torch.testing.assert_close(model.span_vectors(states, spans)[0], expected)
    torch.testing.assert_close(model.vectors_of_width(states, last - first + 1)[window, first], expected)


def all_spans() -> set[tuple[int, int, int]]:
    return {
        (window, first, last)
        for window, n in enumerate(WORDS.tolist())
        for first in range(n)
        for last in range(first, n)
    }


def drawn(spans: Spans) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in spans), strict=True))


def test_without_sampling_all_unlabelled_spans_are_negatives() -> None:
    model = make_model(negative_sampling="none")
    found = drawn(model.sample_negatives(random_states(model), WORDS, GOLD, random_chances(0)))
    assert len(found) == len(set(found))
    assert set(found) == all_spans() - {tuple(row[:3]) for row in GOLD.tolist()}


def test_masked_spans_are_no_negatives() -> None:
    model, masked = make_model(negative_sampling="none"), torch.tensor([[0, 3, 5], [2, 1, 1]])
    found = drawn(model.sample_negatives(random_states(model), WORDS, GOLD, random_chances(0), masked))
    assert set(found) == all_spans() - {tuple(row[:3]) for row in [*GOLD.tolist(), *masked.tolist()]}


def test_the_width_of_negatives_can_be_limited() -> None:
    model = make_model(negative_sampling="none")
    found = drawn(model.sample_negatives(random_states(model), WORDS, GOLD, random_chances(0, widths=2)))
    assert set(found) == {one for one in all_spans() if one[2] - one[1] < 2} - {tuple(row[:3]) for row in GOLD.tolist()}


@given(st.integers(0, 10_000), st.sampled_from(["uniform", "weighted"]), st.sampled_from([0.0, 0.35, 0.7, 9.0]))
def test_sampled_negatives_are_unlabelled_spans_in_the_right_number(seed: int, sampling: str, rate: float) -> None:
    model = make_model(negative_sampling=sampling, negative_rate=rate)
    found = drawn(model.sample_negatives(random_states(model, seed), WORDS, GOLD, random_chances(seed)))
    unlabelled = all_spans() - {tuple(row[:3]) for row in GOLD.tolist()}
    assert len(found) == len(set(found))
    assert set(found) <= unlabelled
    for window, n in enumerate(WORDS.tolist()):
        room = sum(one[0] == window for one in unlabelled)
        assert sum(one[0] == window for one in found) == min(int(rate * n) + 1, room)


def test_uniform_sampling_is_uniform() -> None:
    model = make_model(negative_rate=0.35)
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(400):
        for one in drawn(model.sample_negatives(random_states(model), WORDS, GOLD, random_chances(seed))):
            counts[one] = counts.get(one, 0) + 1
    first = np.array([count for span, count in counts.items() if span[0] == 0])
    assert len(first) == 28 - 2  # all unlabelled spans of 7 words were drawn
    assert first.sum() == 400 * 3
    assert abs(first - first.mean()).max() < 5 * first.mean() ** 0.5


def test_weighted_sampling_prefers_sure_non_entities() -> None:
    model = make_model(negative_sampling="weighted", negative_rate=0.35)
    torch.nn.init.normal_(model.label_scores.weight, std=2.0)
    states = random_states(model)

    def non_entity_probability(temperature: float) -> float:
        model.sampling_temperature = temperature
        values = []
        for seed in range(60):
            spans = model.sample_negatives(states, WORDS, GOLD, random_chances(seed))
            p = torch.softmax(model.label_scores(model.span_vectors(states, spans)), dim=-1)
            values.append(p[:, 0].mean().item())
        return float(np.mean(values))

    assert non_entity_probability(0.1) > non_entity_probability(1.0) + 0.02 > non_entity_probability(100.0) + 0.02


def test_a_sharp_temperature_still_draws_the_right_number() -> None:
    model = make_model(negative_sampling="weighted", negative_rate=0.35)
    torch.nn.init.normal_(model.label_scores.weight, std=9.0)
    model.sampling_temperature = 0.01  # all weights but a few are 0 in float32
    found = drawn(model.sample_negatives(random_states(model), WORDS, GOLD, random_chances(3)))
    assert [sum(one[0] == window for one in found) for window in range(3)] == [3, 1, 2]


def training_batch(known: Tensor) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)
    words = int(WORDS.max())
    ids = torch.randint(1, 40, (len(WORDS), words + 2), generator=generator)
    mask = (torch.arange(words + 2) < WORDS[:, None] + 2).long()
    place = (torch.arange(words) + 1).expand(len(WORDS), -1)
    return {
        "ids": ids,
        "mask": mask,
        "first": place,
        "last": place,
        "words": WORDS,
        "gold": GOLD,
        "known": known,
        "chances": random_chances(0),
    }


@torch.no_grad()
def slow_loss(model: SclRai, batch: dict[str, Tensor]) -> float:
    """Equations 6 to 10 with loops, for a model without negative sampling."""
    options = model.options
    states = model.word_states(*(batch[name] for name in ("ids", "mask", "first", "last")))
    labels = {tuple(row[:3]): row[3] + 1 for row in batch["gold"].tolist()}
    spans = sorted(all_spans())
    vectors = [model.span_vectors(states, Spans(*torch.tensor([one]).T))[0] for one in spans]
    entropy = []
    for span, vector in zip(spans, vectors, strict=True):
        logits = model.label_scores(vector)
        allowed = [0, *(kind + 1 for kind in range(TYPES) if batch["known"][span[0], kind])]
        entropy.append(float(torch.logsumexp(logits[allowed], 0) - logits[labels.get(span, 0)]))
    terms = []
    for i, vector in enumerate(vectors):
        own = labels.get(spans[i], 0)
        similarity = [float(F.cosine_similarity(vector, other, 0)) / options.temperature for other in vectors]
        others = [j for j in range(len(spans)) if j != i and labels.get(spans[j], 0) == own]
        against = sum(np.exp(similarity[n]) for n in range(len(spans)) if labels.get(spans[n], 0) != own)
        if others and (own or options.contrast_non_entities):
            terms.append(np.mean([-np.log(np.exp(similarity[j]) / against) for j in others]))
    weight = options.contrast_weight
    return float((1 - weight) * np.mean(entropy) + weight * (np.mean(terms) if terms else 0.0))


@pytest.mark.parametrize("non_entities", [True, False])
@pytest.mark.parametrize("known", [[[True] * 3] * 3, [[True, True, False], [False] * 3, [True] * 3]])
def test_the_loss_is_that_of_the_paper(non_entities: bool, known: list[list[bool]]) -> None:
    model = make_model(negative_sampling="none", contrast_weight=0.3, contrast_non_entities=non_entities, dropout=0.0)
    batch = training_batch(torch.tensor(known))
    batch["gold"] = torch.tensor([[0, 1, 2, 0], [0, 4, 4, 0], [2, 0, 4, 2]])  # two mentions of one type
    assert model(**batch)["loss"].item() == pytest.approx(slow_loss(model, batch), rel=1e-4)


def test_all_parts_of_the_loss_have_gradients() -> None:
    model = make_model(contrast_weight=0.9999, negative_sampling="none", dropout=0.0)
    batch = training_batch(torch.ones(3, 3, dtype=torch.bool))
    model(**batch)["loss"].backward()
    for part in (model.left, model.right, model.product):
        assert part.weight.grad is not None
        assert float(part.weight.grad.norm()) > 1e-3
    embeddings = model.text_encoder.get_input_embeddings().weight.grad  # type: ignore[operator]
    assert float(embeddings.norm()) > 1e-3


def test_sentences_without_mentions_have_a_loss() -> None:
    model = make_model()
    batch = training_batch(torch.ones(3, 3, dtype=torch.bool)) | {"gold": torch.empty((0, 4), dtype=torch.long)}
    assert np.isfinite(model(**batch)["loss"].item())


@pytest.mark.parametrize(
    ("name", "value"),
    [("contrast_weight", 1.0), ("retrieval_weight", 1.5), ("temperature", 0), ("negative_rate", -1), ("dropout", 1.0)],
)
def test_wrong_options_are_named(name: str, value: float) -> None:
    with pytest.raises(OnomaError, match=name):
        parse_options(SclRaiOptions, {name: value})
