"""A T5 made of a BERT: its weights are those of the BERT, and its states come closer to it by training."""

from __future__ import annotations

import pytest
import torch

from onoma import OnomaError
from onoma.systems.punifiedner.from_bert import agreement, denoise, distil, t5_from_bert
from tiny_encoders import VOCABULARY, tiny_encoder

torch.set_num_threads(1)


def texts(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY, (rows, 12), generator=generator)
    mask = torch.ones_like(ids)
    mask[: rows // 2, 8:] = 0
    return ids, mask


def test_one_layer_computes_the_attention_of_bert() -> None:
    bert = tiny_encoder("bert", num_hidden_layers=1)
    for name, weight in bert.named_parameters():
        if name.endswith("bias") or "position" in name:
            torch.nn.init.zeros_(weight)
    t5 = t5_from_bert(bert, decoder_layers=1, end=3, start=2)
    ids, mask = texts(3, 0)
    with torch.inference_mode():
        embedded = bert.embeddings(input_ids=ids)
        assert t5.shared(ids) == pytest.approx(embedded, abs=1e-5)
        extended = (1.0 - mask[:, None, None].float()) * -1e9
        expected = bert.encoder.layer[0].attention.output.dense(
            bert.encoder.layer[0].attention.self(embedded, attention_mask=extended)[0]
        )
        # T5's norm is the identity here: LayerNorm has made the root mean square of every state 1
        found = t5.encoder.block[0].layer[0](embedded, attention_mask=extended)[0] - embedded
    assert found.numpy() == pytest.approx(expected.numpy(), abs=1e-4)


def test_training_brings_the_states_closer() -> None:
    bert = tiny_encoder("bert")
    torch.manual_seed(0)
    t5 = t5_from_bert(bert, decoder_layers=2, end=3, start=2)
    test, before = texts(8, 999), agreement(t5, bert, *texts(8, 999))
    losses: list[float] = []
    distil(
        t5,
        bert,
        (texts(16, seed) for seed in range(100)),
        100,
        rate=1e-2,
        on_step=lambda step, loss: losses.append(float(loss)),
    )
    assert agreement(t5, bert, *test) > before + 0.1
    assert losses[-1] < losses[0]
    assert len(losses) == 100


def test_denoising_teaches_to_copy() -> None:
    torch.manual_seed(0)
    t5 = t5_from_bert(tiny_encoder("bert"), decoder_layers=2, end=3, start=2)
    ids, mask = texts(16, 999)

    def correct() -> float:
        with torch.inference_mode():
            written = t5(input_ids=ids, attention_mask=mask, labels=ids[:, 1:].contiguous()).logits.argmax(-1)
        return float((written == ids[:, 1:])[mask[:, 1:].bool()].float().mean())

    before = correct()
    denoise(t5, (texts(32, seed) for seed in range(300)), 300, mask_token=1, rate=1e-2)
    assert correct() > before + 0.05


def test_other_encoders_are_refused() -> None:
    with pytest.raises(OnomaError, match="Fix: give a BERT"):
        t5_from_bert(tiny_encoder("roberta"), decoder_layers=1, end=3, start=2)
    with pytest.raises(OnomaError, match="3 decoder layers"):
        t5_from_bert(tiny_encoder("bert"), decoder_layers=3, end=3, start=2)
