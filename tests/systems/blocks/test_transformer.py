"""An encoder's layers as functions: the same states as its own `forward`, and what that cannot do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel

from onoma import OnomaError
from onoma.systems.blocks.encoders import encoder_function
from onoma.systems.blocks.transformer import Transformer
from tiny_encoders import HIDDEN, PADS, POSITIONS, VOCABULARY, tiny_encoder

torch.set_num_threads(1)
FAMILIES = sorted(PADS)
LENGTHS = (9, 4, 1, 7)


def texts(family: str) -> tuple[Tensor, Tensor]:
    """Token ids of texts of several lengths, and their mask."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    return ids.masked_fill(mask == 0, PADS[family]), mask


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_states_are_those_of_the_encoder(family: str) -> None:
    encoder = tiny_encoder(family)
    ids, mask = texts(family)
    expected = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    states = Transformer(encoder).encode(ids, mask)
    torch.testing.assert_close(states[mask > 0], expected[mask > 0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(encoder_function(encoder)(ids, mask), states)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_bias_of_distances_is_that_of_attention(family: str) -> None:
    transformer = Transformer(tiny_encoder(family))
    distances, most = transformer.distance_bias(), transformer.max_positions
    if family != "mpnet":
        assert distances is None
        return
    assert distances is not None
    place = torch.arange(most)[None]
    bias = transformer.attention_bias(place, place, torch.ones(1, 1, most, dtype=torch.bool))[0]
    for query, key in ((0, 0), (0, most - 1), (most - 1, 0), (3, 20), (20, 3)):
        torch.testing.assert_close(distances[:, key - query + most - 1], bias[:, query, key])


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_texts_may_be_as_long_as_there_are_positions(family: str) -> None:
    encoder = tiny_encoder(family)
    transformer = Transformer(encoder)
    ids = torch.arange(transformer.max_positions)[None] % 50 + 5
    expected = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    torch.testing.assert_close(transformer.encode(ids, torch.ones_like(ids)), expected, atol=1e-5, rtol=1e-4)
    assert transformer.max_positions == POSITIONS - (0 if family == "bert" else PADS[family] + 1)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_only_positions_determine_the_order_of_tokens(family: str) -> None:
    transformer = Transformer(tiny_encoder(family))
    ids = texts(family)[0][:1]
    order = torch.tensor([4, 0, 8, 2, 1, 7, 3, 6, 5])
    visible = torch.ones(1, 1, len(order), dtype=torch.bool)

    def run(tokens: Tensor, positions: Tensor) -> Tensor:
        x = transformer.embed(transformer.token_vectors(tokens), positions)
        return transformer.run(x, transformer.attention_bias(positions, positions, visible))

    plain = run(ids, torch.arange(len(order))[None])
    torch.testing.assert_close(run(ids[:, order], order[None]), plain[:, order], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(run(ids, order[None]), plain, atol=1e-2)


@torch.no_grad()
def test_dropout_is_the_encoders_and_only_in_training() -> None:
    encoder = tiny_encoder("bert", hidden_dropout_prob=0.5)
    ids, mask = texts("bert")
    transformer = Transformer(encoder)
    assert torch.equal(transformer.encode(ids, mask), transformer.encode(ids, mask))
    encoder.train()
    assert not torch.allclose(transformer.encode(ids, mask), transformer.encode(ids, mask))


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_the_encoder(family: str) -> None:
    """Of all weights, among them MPNet's bias by distance, which all layers share."""
    encoder = tiny_encoder(family)
    ids, mask = texts(family)
    weight = torch.randn(*ids.shape, HIDDEN, generator=torch.Generator().manual_seed(2)) * mask[..., None]

    def gradients(states: Tensor) -> dict[str, Tensor]:
        encoder.zero_grad()
        (states.sin() * weight).sum().backward()  # type: ignore[no-untyped-call]
        return {name: one.grad.clone() for name, one in encoder.named_parameters() if one.grad is not None}

    expected = gradients(encoder(input_ids=ids, attention_mask=mask).last_hidden_state)
    found = gradients(Transformer(encoder).encode(ids, mask))
    assert found.keys() == expected.keys() == dict(encoder.named_parameters()).keys()
    for name in found:
        torch.testing.assert_close(found[name], expected[name], atol=1e-4, rtol=1e-3, msg=name)
    if family == "mpnet":
        assert found["encoder.relative_attention_bias.weight"].any()


def unknown_encoders() -> dict[str, nn.Module]:
    size: dict[str, Any] = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    return {
        "distilbert": DistilBertModel(DistilBertConfig(vocab_size=20, dim=8, n_layers=1, n_heads=2, hidden_dim=8)),
        "relu": BertModel(BertConfig(**size, intermediate_size=8, hidden_act="relu")),  # type: ignore[no-untyped-call]
    }


@pytest.mark.parametrize("kind", ["distilbert", "relu"])
def test_unknown_encoders_are_refused_with_a_list_of_known_ones(kind: str) -> None:
    with pytest.raises(OnomaError, match=r"'gelu'.*bert, roberta, xlm-roberta, camembert, mpnet"):
        Transformer(unknown_encoders()[kind])


@torch.no_grad()
def test_unknown_encoders_can_still_encode_texts() -> None:
    encoder = unknown_encoders()["distilbert"].eval()
    ids = torch.arange(6)[None] + 3
    expected = encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    torch.testing.assert_close(encoder_function(encoder)(ids, torch.ones_like(ids)), expected)
