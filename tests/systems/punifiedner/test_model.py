"""PUnifiedNER's loss: that of T5's own forward, with padding of any kind, and as CUDA graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import T5Config, T5ForConditionalGeneration

from onoma.systems.blocks.cuda_graphs import CAPTURE_AFTER, _pad
from onoma.systems.punifiedner.model import IGNORED, PUnifiedNer
from onoma.systems.punifiedner.options import PUnifiedNerOptions

torch.set_num_threads(1)


def tiny_model(*, own_output: bool = False) -> PUnifiedNer:
    torch.manual_seed(0)
    make_config: Any = T5Config
    sizes = {"vocab_size": 50, "d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = make_config(
        **sizes, dropout_rate=0.0, decoder_start_token_id=0, pad_token_id=0, tie_word_embeddings=not own_output
    )
    return PUnifiedNer(T5ForConditionalGeneration(config), PUnifiedNerOptions())


def batch(rows: int = 3, tokens: int = 9, answer: int = 7) -> dict[str, Tensor]:
    ids, labels = torch.randint(1, 50, (rows, tokens)), torch.randint(1, 50, (rows, answer))
    mask = torch.ones_like(ids)
    mask[0, tokens // 2 :] = 0
    labels[1, answer // 2 :] = IGNORED
    return {"ids": ids, "mask": mask, "labels": labels}


def gradients(model: PUnifiedNer, loss: Tensor) -> list[Tensor]:
    model.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    return [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]


@pytest.mark.parametrize("own_output", [False, True])
def test_the_loss_and_its_gradients_are_those_of_t5(own_output: bool) -> None:
    model = tiny_model(own_output=own_output)
    given = batch()
    own = model(**given)["loss"]
    theirs = model.text_encoder(input_ids=given["ids"], attention_mask=given["mask"], labels=given["labels"]).loss
    torch.testing.assert_close(own, theirs)
    for one, other in zip(gradients(model, own), gradients(model, theirs), strict=True):
        torch.testing.assert_close(one, other)


def test_rows_and_columns_of_padding_change_nothing() -> None:
    """As a CUDA graph of a larger shape does it."""
    model = tiny_model()
    given = batch()
    inputs = model._inputs(given["labels"])

    def states(rows: int, tokens: int, answer: int) -> Tensor:
        mask = _pad(given["mask"], rows, tokens)
        encoded = model._encode(_pad(given["ids"], rows, tokens), mask)
        return model._decode(_pad(inputs, rows, answer), encoded, mask)[:3, :7]

    plain, padded = states(3, 9, 7), states(8, 16, 12)
    torch.testing.assert_close(padded, plain)
    for one, other in zip(
        gradients(model, padded.sin().sum()), gradients(model, states(3, 9, 7).sin().sum()), strict=True
    ):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_captured_steps_have_the_same_loss_and_gradients() -> None:
    model = tiny_model().cuda().train()
    for _ in range(CAPTURE_AFTER + 2):
        given = {name: one.cuda() for name, one in batch().items()}
        found = []
        for enabled in (True, False):
            for function in model.graphed_functions:
                function.enabled = enabled
            loss = model(**given)["loss"]
            found.append((loss.detach(), gradients(model, loss)))
            for function in model.graphed_functions:
                function.capture()
        torch.testing.assert_close(found[0][0], found[1][0], atol=1e-4, rtol=1e-3)
        for one, other in zip(found[0][1], found[1][1], strict=True):
            torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    assert all(function.graphs for function in model.graphed_functions)
