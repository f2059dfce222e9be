"""NerCo's losses against loops, and which weights each stage trains."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from onoma import OnomaError
from onoma.systems.nerco.model import NerCo
from onoma.systems.nerco.options import NerCoOptions
from onoma.systems.options import parse_options

torch.set_num_threads(1)
TAGS = torch.tensor([[0, 1, 2, 0, 3], [1, 0, 3, 4, 0]])  # of two types in BIO
WORDS = torch.tensor([5, 4])


def make_model(**options: Any) -> NerCo:
    torch.manual_seed(0)
    shape = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    encoder = BertModel(BertConfig(vocab_size=40, max_position_embeddings=32, **shape), add_pooling_layer=False)
    sizes: dict[str, Any] = {"heads": 2, "head_size": 4, "inner_size": 10, "vector_rows": 4, "vector_size": 6}
    return NerCo(encoder, NerCoOptions(**sizes | options), 2)


def slow_contrast(states: torch.Tensor, classes: list[int], temperature: float, anchors: list[int]) -> float:
    """Equation 1: the mean over the pairs of each class, summed over classes."""
    unit = (states / states.norm(dim=1, keepdim=True)).tolist()

    def exponent(i: int, j: int) -> float:
        return math.exp(sum(a * b for a, b in zip(unit[i], unit[j], strict=True)) / temperature)

    total = 0.0
    for kind in sorted(set(anchors)):
        terms = []
        for i, own in enumerate(classes):
            for j, other in enumerate(classes):
                if own == other == kind and i != j:
                    negatives = sum(exponent(i, n) for n, label in enumerate(classes) if label != kind)
                    terms.append(-math.log(exponent(i, j) / (exponent(i, j) + negatives)))
        total += sum(terms) / max(len(terms), 1)
    return total


@pytest.mark.parametrize("non_entities", [False, True])
def test_contrast_is_equation_1(non_entities: bool) -> None:
    model = make_model(contrast_non_entities=non_entities, temperature=0.3)
    states = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
    words = torch.cat([states[0], states[1, :4]])
    classes = [-1, 0, 0, -1, 1, 0, -1, 1, 1]
    expected = slow_contrast(words, classes, 0.3, [0, 1, -1] if non_entities else [0, 1])
    assert model.contrast(states, WORDS, TAGS, None).item() == pytest.approx(expected, rel=1e-5)


def test_words_of_unknown_class_take_no_part_in_contrast() -> None:
    model, states = make_model(), torch.randn(2, 5, 8)
    possible = torch.nn.functional.one_hot(TAGS, 5).bool()
    possible[0, 0] = True  # may be anything
    other = states.clone()
    other[0, 0] = torch.randn(8)
    found = [model.contrast(one, WORDS, TAGS, possible).item() for one in (states, other)]
    assert found[0] == pytest.approx(found[1])
    assert model.contrast(states, WORDS, TAGS, None).item() != pytest.approx(found[0])


@pytest.mark.parametrize(
    ("stage", "trained"),
    [
        ("contrast", {"lattice"}),
        ("head", {"tag_scores", "crf"}),
        ("lattice", {"lattice", "tag_scores", "crf"}),
        ("tag", {"text_encoder", "lattice", "tag_scores", "crf"}),
    ],
)
def test_a_stage_trains_its_own_weights(stage: str, trained: set[str]) -> None:
    model = make_model()
    model.select_stage(stage)
    names = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert {name.split(".")[0] for name in names} == trained
    assert "lattice.word_vectors.weight" not in names  # only with tune_word_vectors
    model.train()
    assert model.text_encoder.training == (stage == "tag")  # frozen states have no dropout


def test_the_encoder_can_be_trained_in_the_contrastive_stage() -> None:
    model = make_model(freeze_encoder=False, tune_word_vectors=True)
    model.select_stage("contrast")
    names = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert any(name.startswith("text_encoder") for name in names)
    assert "lattice.word_vectors.weight" in names


def test_stages_follow_from_the_options() -> None:
    assert NerCoOptions().stage_names() == ("contrast", "tag")
    assert NerCoOptions(contrast="none", warm_start="gradual").stage_names() == ("head", "lattice", "tag")
    assert NerCoOptions(contrast="joint", warm_start="head").stage_names() == ("head", "tag")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lattice": False}, "nothing to train but the encoder"),
        ({"scheme": "iob"}, "must be one of bio, bmes"),
        ({"temperature": 0.0}, "'temperature' must be greater than 0"),
        ({"output_dropout": 1.5}, "between 0 and 1"),
        ({"tau": 0.1}, "unknown option 'tau'"),
    ],
)
def test_options_are_checked(values: dict[str, Any], message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        parse_options(NerCoOptions, values)
