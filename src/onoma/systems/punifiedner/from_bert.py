"""A T5 made of a BERT, for languages without a T5 at hand: the same vocabulary, and as much of its weights as fits.

Both have layers of attention and feed-forward. T5 differs in four ways: it normalises before each part instead of
behind it; its norms have no mean and its maps no biases; it does not scale the logits of attention, so that the queries
are scaled here; and instead of positions, it learns a bias by distance, which starts at 0. So a converted encoder does
not give the states of BERT. `distil` trains it to do so.

The decoder has the converted lower layers, and attention to the encoder with random weights. `denoise` teaches it to
copy: without that, a long training for answers finds mentions no better than by chance.

The other way round, `t5_with_embeddings` keeps all layers of a T5 of another language, which can copy, and takes only
the embeddings from the BERT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Adafactor, T5Config, T5ForConditionalGeneration

from onoma.errors import OnomaError


@torch.no_grad()
def t5_from_bert(bert: Any, *, decoder_layers: int, end: int, start: int) -> T5ForConditionalGeneration:
    """A T5 with the vocabulary and the shape of a BERT.

    Args:
        decoder_layers: layers of the decoder, at most those of BERT.
        end, start: the tokens at the end of an answer and before its first token.
    """
    own = bert.config
    if own.model_type != "bert" or own.hidden_act != "gelu" or decoder_layers > own.num_hidden_layers:
        raise OnomaError(
            f"a T5 with {decoder_layers} decoder layers cannot be made of this encoder ({own.model_type}, "
            f"{own.hidden_act}, {own.num_hidden_layers} layers). Fix: give a BERT with GELU and at least as many layers"
        )
    make_config: Any = T5Config
    config = make_config(
        vocab_size=own.vocab_size,
        d_model=own.hidden_size,
        d_kv=own.hidden_size // own.num_attention_heads,
        d_ff=own.intermediate_size,
        num_layers=own.num_hidden_layers,
        num_decoder_layers=decoder_layers,
        num_heads=own.num_attention_heads,
        feed_forward_proj="gelu",
        pad_token_id=own.pad_token_id,
        eos_token_id=end,
        decoder_start_token_id=start,
    )
    model: Any = T5ForConditionalGeneration(config)
    model.shared.weight.copy_(_embeddings(bert.embeddings))
    for stack in (model.encoder, model.decoder):
        norm = torch.ones(own.hidden_size)  # of the embeddings, which are normalised already
        for block, layer in zip(stack.block, bert.encoder.layer, strict=False):
            _fill_attention(block.layer[0], layer.attention, norm)
            _fill_feed_forward(block.layer[-1], layer)
            norm = layer.output.LayerNorm.weight
        stack.final_layer_norm.weight.copy_(norm)
        nn.init.zeros_(stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight)
    model.eval()
    converted: T5ForConditionalGeneration = model
    return converted


@torch.no_grad()
def t5_with_embeddings(
    t5: Any, bert: Any, shared: Mapping[int, int], *, end: int, start: int
) -> T5ForConditionalGeneration:
    """A T5 with its own layers and the vocabulary of a BERT.

    A token that both vocabularies have keeps the embedding of the T5. The others have the embedding of the BERT, mapped
    by the linear map that fits the shared tokens best (ridge regression), with the mean length of an embedding of the
    T5. The output layer is treated in the same way.

    Args:
        shared: token of the BERT -> the same token of the T5.
        end, start: as for `t5_from_bert`.
    """
    rows = bert.embeddings.word_embeddings.weight.detach()
    embedded = _map_rows(rows, t5.shared.weight.detach(), shared)
    tied = t5.lm_head.weight is t5.shared.weight
    output = embedded if tied else _map_rows(rows, t5.lm_head.weight.detach(), shared)
    t5.shared.weight = nn.Parameter(embedded)  # by hand: transformers ties the output layer when it resizes
    for stack in (t5.encoder, t5.decoder):
        stack.embed_tokens.weight = t5.shared.weight
    t5.lm_head.weight = t5.shared.weight if tied else nn.Parameter(output)
    t5.shared.num_embeddings = t5.lm_head.out_features = t5.config.vocab_size = len(rows)
    t5.config.pad_token_id, t5.config.eos_token_id = bert.config.pad_token_id, end
    t5.config.decoder_start_token_id = start
    t5.eval()
    converted: T5ForConditionalGeneration = t5
    return converted


def _map_rows(rows: Tensor, table: Tensor, shared: Mapping[int, int], ridge: float = 0.1) -> Tensor:
    """Rows of one table of embeddings in the space of another one, which has some of the tokens."""
    own, other = (torch.tensor(list(tokens)) for tokens in (shared.keys(), shared.values()))
    centred, wanted, mean = rows[own] - rows[own].mean(0), table[other], table[other].mean(0)
    square = centred.T @ centred
    penalty = ridge * square.trace() * torch.eye(len(square))
    mapped: Tensor = (rows - rows.mean(0)) @ torch.linalg.solve(square + penalty, centred.T @ (wanted - mean))
    length = (wanted - mean).norm(dim=1).mean()
    mapped = mapped / mapped.norm(dim=1, keepdim=True).clamp_min(1e-6) * length + mean
    mapped[own] = wanted
    return mapped


def _embeddings(own: Any) -> Tensor:
    """Each word with the mean position, the first segment and the norm of BERT."""
    rows: Tensor = own.LayerNorm(
        own.word_embeddings.weight + own.position_embeddings.weight.mean(0) + own.token_type_embeddings.weight[0]
    )
    return rows


def _fill_attention(part: Any, own: Any, norm: Tensor) -> None:
    attention, scale = part.SelfAttention, own.self.attention_head_size**-0.5
    part.layer_norm.weight.copy_(norm)
    attention.q.weight.copy_(own.self.query.weight * scale)
    attention.k.weight.copy_(own.self.key.weight)
    attention.v.weight.copy_(own.self.value.weight)
    attention.o.weight.copy_(own.output.dense.weight)


def _fill_feed_forward(part: Any, own: Any) -> None:
    part.layer_norm.weight.copy_(own.attention.output.LayerNorm.weight)
    part.DenseReluDense.wi.weight.copy_(own.intermediate.dense.weight)
    part.DenseReluDense.wo.weight.copy_(own.output.dense.weight)


def states(model: Any, bert: Any, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The last states of both encoders without padding, those of BERT without the bias of its last norm."""
    own = model.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    with torch.no_grad():
        wanted = bert(input_ids=ids, attention_mask=mask).last_hidden_state
        wanted = wanted - bert.encoder.layer[-1].output.LayerNorm.bias
    return own[mask.bool()], wanted[mask.bool()]


@torch.no_grad()
def agreement(model: Any, bert: Any, ids: Tensor, mask: Tensor) -> float:
    """The mean cosine between the states of both encoders."""
    return float(F.cosine_similarity(*states(model, bert, ids, mask), dim=-1).mean())


def distil(
    model: Any,
    bert: Any,
    batches: Iterable[tuple[Tensor, Tensor]],
    steps: int,
    *,
    rate: float = 1e-3,
    on_step: Callable[[int, Tensor], None] = lambda step, loss: None,
) -> None:
    """Train the encoder to give the states of BERT, by their mean square difference.

    `batches` are token ids and masks of texts, on the device of the models; at least as many as `steps`.
    """
    bert.eval()

    def loss_of(ids: Tensor, mask: Tensor) -> Tensor:
        own, wanted = states(model, bert, ids, mask)
        return F.mse_loss(own.float(), wanted.float())

    optimizer = torch.optim.AdamW(model.encoder.parameters(), lr=rate, weight_decay=0.0)
    _train(model.encoder, optimizer, loss_of, batches, steps, on_step)


def denoise(
    model: Any,
    batches: Iterable[tuple[Tensor, Tensor]],
    steps: int,
    *,
    mask_token: int,
    share: float = 0.15,
    rate: float = 5e-3,
    on_step: Callable[[int, Tensor], None] = lambda step, loss: None,
) -> None:
    """Train the whole model to write texts that it reads with a share of their tokens masked, as BART was trained.

    `batches` are as for `distil`; each text begins with the token before the first token of an answer. The optimiser is
    that of T5: embeddings can be hundreds of times as large as other weights, and its steps are relative to the size.
    """
    make_optimizer: Any = Adafactor
    optimizer = make_optimizer(
        model.parameters(), lr=rate, scale_parameter=True, relative_step=False, warmup_init=False
    )

    def loss_of(ids: Tensor, mask: Tensor) -> Tensor:
        return denoising_loss(model, ids, mask, mask_token=mask_token, share=share)

    _train(model, optimizer, loss_of, batches, steps, on_step)


def denoising_loss(model: Any, ids: Tensor, mask: Tensor, *, mask_token: int, share: float = 0.15) -> Tensor:
    """The cross-entropy of texts that the model reads with a share of their tokens masked."""
    masked = (torch.rand(ids.shape, device=ids.device) < share) & mask.bool()
    labels = ids[:, 1:].masked_fill(~mask[:, 1:].bool(), -100)
    loss: Tensor = model(input_ids=ids.masked_fill(masked, mask_token), attention_mask=mask, labels=labels).loss
    return loss


def _train(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    batches: Iterable[tuple[Tensor, Tensor]],
    steps: int,
    on_step: Callable[[int, Tensor], None],
) -> None:
    """Train a module for some steps, with a rate that rises and falls."""
    module.train()
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(10 * (step + 1), steps - step) / steps)
    for step, (ids, mask) in zip(range(1, steps + 1), batches, strict=False):
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.is_cuda):
            loss = loss_of(ids, mask)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        on_step(step, loss.detach())
    module.eval()
