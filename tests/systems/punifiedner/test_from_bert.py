"""A T5 made of a BERT: its weights are those of the BERT, and its states come closer to it by training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from onoma import OnomaError
from onoma.systems.blocks.encoders import load_t5
from onoma.systems.punifiedner.from_bert import agreement, denoise, distil, t5_from_bert, t5_with_embeddings
from tiny_encoders import VOCABULARY, tiny_encoder
from tiny_t5 import save_t5

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
    denoise(t5, (texts(32, seed) for seed in range(300)), 300, mask_token=1, rate=0.1)
    assert correct() > before + 0.05


@pytest.mark.parametrize("own_output", [True, False])
def test_a_t5_gets_the_vocabulary_of_a_bert(tmp_path: Path, own_output: bool) -> None:
    t5: Any = load_t5(save_t5(tmp_path / "t5", own_output=own_output))
    before, layer = t5.shared.weight.detach().clone(), t5.decoder.block[0].layer[0].SelfAttention.q.weight
    shared = {token: (3 * token) % len(before) for token in range(4, 24)}
    converted: Any = t5_with_embeddings(t5, tiny_encoder("bert"), shared, end=3, start=2)
    rows = converted.shared.weight.detach()
    assert rows.shape == (VOCABULARY, before.shape[1])
    assert torch.equal(rows[torch.tensor(list(shared))], before[torch.tensor(list(shared.values()))])
    assert converted.decoder.block[0].layer[0].SelfAttention.q.weight is layer
    others = rows[30:] - before[torch.tensor(list(shared.values()))].mean(0)
    assert float(others.norm(dim=1).std()) == pytest.approx(0.0, abs=1e-3)
    assert torch.equal(converted.lm_head.weight.detach(), rows) is not own_output
    assert (converted.config.vocab_size, converted.config.eos_token_id) == (VOCABULARY, 3)
    ids, mask = texts(4, 0)
    loss = converted(input_ids=ids, attention_mask=mask, labels=ids).loss
    converted.save_pretrained(tmp_path / "converted")
    again: Any = load_t5(tmp_path / "converted")
    assert float(again(input_ids=ids, attention_mask=mask, labels=ids).loss) == pytest.approx(float(loss))


def test_embeddings_are_mapped_by_the_map_that_fits_shared_tokens(tmp_path: Path) -> None:
    """If the embeddings of the T5 are a rotation of those of the BERT, other tokens get theirs by the same rotation."""
    bert, t5 = tiny_encoder("bert"), load_t5(save_t5(tmp_path / "t5"))
    own: Any = bert.get_submodule("embeddings.word_embeddings")
    torch.manual_seed(0)
    torch.nn.init.normal_(own.weight)
    rotation = torch.linalg.qr(torch.randn(own.weight.shape[1], t5.get_submodule("shared").weight.shape[1]).T)[0].T
    rotated = (own.weight @ rotation).detach()
    converted: Any
    shared = {token: token for token in range(40)}
    table: Any = t5.get_submodule("shared").weight
    with torch.no_grad():
        table[:40] = rotated[:40]
    converted = t5_with_embeddings(t5, bert, shared, end=3, start=2)
    cosine = torch.nn.functional.cosine_similarity(converted.shared.weight[40:], rotated[40:])
    assert cosine.mean() > 0.6


def test_other_encoders_are_refused() -> None:
    with pytest.raises(OnomaError, match="Fix: give a BERT"):
        t5_from_bert(tiny_encoder("roberta"), decoder_layers=1, end=3, start=2)
    with pytest.raises(OnomaError, match="3 decoder layers"):
        t5_from_bert(tiny_encoder("bert"), decoder_layers=3, end=3, start=2)
