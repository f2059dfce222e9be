"""Prepared weights: the states of the encoder's own layers, whatever the lengths, the batch and the precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from onoma.systems.blocks.encoders import encoder_function
from onoma.systems.blocks.inference import InferenceTransformer, kernel_works
from onoma.systems.blocks.packed_attention import PackedAttention, PackedTokens, padded_attention
from onoma.systems.blocks.transformer import Transformer
from tiny_encoders import HIDDEN, PADS, VOCABULARY, tiny_encoder

torch.set_num_threads(1)
FAMILIES = sorted(PADS)
LENGTHS = (9, 4, 1, 20, 7)
ADDED = {0: [0, 5, 2], 1: [3, 3], 3: [19] * 40, 4: [6]}  # positions of tokens that are added to some texts
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def texts(family: str, lengths: tuple[int, ...] = LENGTHS) -> tuple[Tensor, Tensor]:
    """Token ids of texts, and their mask."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return ids.masked_fill(mask == 0, PADS[family]), mask


def prepared(family: str, dtype: torch.dtype = torch.float32) -> tuple[Transformer, InferenceTransformer]:
    transformer = Transformer(tiny_encoder(family))
    return transformer, InferenceTransformer(transformer, dtype)


def packed(added: dict[int, list[int]]) -> PackedTokens:
    counts = torch.tensor([len(own) for own in added.values()])
    positions = torch.tensor([place for own in added.values() for place in own])
    return PackedTokens(positions, torch.tensor(list(added)), torch.cat([counts.new_zeros(1), counts.cumsum(0)]), 40)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lengths", [LENGTHS, (1,), (16, 16), (33, 2)])
@torch.inference_mode()
def test_states_are_those_of_the_layers(family: str, lengths: tuple[int, ...]) -> None:
    transformer, ready = prepared(family)
    ids, mask = texts(family, lengths)
    states = ready.encode(ids, mask)
    torch.testing.assert_close(states[mask > 0], transformer.encode(ids, mask)[mask > 0], **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_bfloat16_is_close(family: str) -> None:
    transformer, ready = prepared(family, torch.bfloat16)
    ids, mask = texts(family)
    states, expected = ready.encode(ids, mask), transformer.encode(ids, mask)
    assert states.dtype == torch.bfloat16
    difference = (states.float() - expected)[mask > 0]
    assert float(difference.norm() / expected[mask > 0].norm()) < 0.03


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_texts_have_no_influence_on_each_other(family: str) -> None:
    _, ready = prepared(family)
    ids, mask = texts(family)
    together = ready.encode(ids, mask)
    for row, length in enumerate(LENGTHS):
        alone = ready.encode(ids[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, **CLOSE)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_packed_tokens_are_as_in_one_pass_over_texts_and_tokens(family: str) -> None:
    transformer, ready = prepared(family)
    ids, mask = texts(family)
    tokens, vectors = packed(ADDED), torch.randn(sum(map(len, ADDED.values())), HIDDEN)
    encoded = ready.encode_texts(ids, mask)
    states = ready.run_packed(ready.embed(vectors, tokens.positions), tokens, encoded)
    assert states.shape == vectors.shape
    for (text, positions), begin, end in zip(ADDED.items(), tokens.edges, tokens.edges[1:], strict=False):
        length = LENGTHS[text]
        every = torch.cat([torch.arange(length), torch.tensor(positions)])[None]
        visible = torch.ones(1, len(every[0]), len(every[0]), dtype=torch.bool)
        visible[:, :length, length:] = False  # the text does not attend to the added tokens
        own = torch.cat([transformer.token_vectors(ids[text, :length]), vectors[begin:end]])[None]
        x = transformer.embed(own, every)
        whole = transformer.run(x, transformer.attention_bias(every, every, visible))[0]
        torch.testing.assert_close(states[begin:end], whole[length:], **CLOSE)
        torch.testing.assert_close(encoded.states[text, :length], whole[:length], **CLOSE)


def test_prepared_weights_are_used_without_gradients_only() -> None:
    run, (ids, mask) = encoder_function(tiny_encoder("bert")), texts("bert")
    expected = run(ids, mask)[mask > 0].detach()
    run.prepare(torch.bfloat16)
    assert torch.equal(run(ids, mask)[mask > 0], expected)
    with torch.inference_mode():
        rounded = run(ids, mask)[mask > 0]
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, expected)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):  # which then has no part in it
        assert torch.equal(run(ids, mask)[mask > 0], rounded)
    assert float((rounded - expected).norm() / expected.norm()) < 0.03


# --- the kernel for GPUs


def random_attention(
    device: str, size: int, dtype: torch.dtype = torch.float32
) -> tuple[PackedTokens, Tensor, Tensor, Tensor, Tensor]:
    """Packed tokens, the mask of texts, queries, keys and values of texts and tokens, and the bias of distances."""
    torch.manual_seed(0)
    _, mask = texts("mpnet", (9, 4, 1, 150, 70))
    tokens = packed(ADDED)
    cached, own = torch.randn(*mask.shape, 3, 2, size), torch.randn(len(tokens.positions), 3, 2, size)
    distances = torch.randn(2, 2 * 160 - 1)
    moved = [one.to(device) for one in tokens[:3]]
    floats = (one.to(device, dtype) for one in (cached, own, distances))
    return PackedTokens(moved[0], moved[1], moved[2], tokens.most), mask.to(device), *floats


def compare(attention: PackedAttention, expected: PackedAttention, cached: Tensor, own: Tensor, error: float) -> None:
    found, right = attention(cached, own).float(), expected(cached, own).float()
    assert float((found - right).norm() / right.norm()) < error


def check_kernel(device: str, dtype: torch.dtype, error: float) -> None:
    from onoma.systems.blocks.packed_attention_kernel import kernel_attention

    tokens, mask, cached, own, distances = random_attention(device, 32, dtype)

    def bias(queries: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        distance = distances[:, keys[:, None] - queries[..., None] + 159].transpose(0, 1)
        return distance.masked_fill(~visible[:, None], -1e4)

    def no_bias(queries: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        return torch.zeros_like(visible, dtype=dtype).masked_fill(~visible, -1e4)[:, None]

    compare(kernel_attention(tokens, mask, distances), padded_attention(tokens, mask, bias), cached, own, error)
    compare(kernel_attention(tokens, mask, None), padded_attention(tokens, mask, no_bias), cached, own, error)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_is_right_on_a_gpu() -> None:
    assert kernel_works(torch.device("cuda"), torch.bfloat16, 64)
    for dtype, error in ((torch.bfloat16, 2e-2), (torch.float16, 2e-3)):
        check_kernel("cuda", dtype, error)


def test_without_a_gpu_the_kernel_is_not_used() -> None:
    assert not kernel_works(torch.device("cpu"), torch.float32, 64)
