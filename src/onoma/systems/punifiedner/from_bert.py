"""A T5 made of a BERT, for languages without a T5 at hand: its vocabulary, and weights that compute about the same.

BERT normalises behind each part k of a layer (attention, then feed-forward):

    y_k = x_{k-1} + f_k(x_{k-1}),    x_k = γ_k y_k / σ_k + β_k

where σ_k is the standard deviation of y_k. T5 normalises before it, u_k = u_{k-1} + g_k(u_{k-1} / rms(u_{k-1})), and
has no biases. If the σ_k of a token are near their means s_k, and the mean of y_k is near 0, then

    u_k = y_k / D_k,    D_1 = 1,    D_{k+1} = D_k γ_k / s_k

is such a sum: u_{k+1} = u_k + (f_{k+1}(x_k) + β_k) / D_{k+1}, and x_k is u_k / rms(u_k) times weights of T5's norm.
Biases come from a channel that is 1 in every embedding: after the norm, it is a constant again. The constants that a
part adds to the sum come from a feed-forward unit that is always on; those of an attention from the feed-forward part
(or the embeddings) before it, and the biases of the attention subtract them from its input.

What T5 has no place for is the position of a token: it adds a learned bias by distance to the logits of attention,
which starts at 0. `distil` trains the encoder to give the states of BERT with its positions.

The decoder has the converted lower layers of BERT, and attention to the encoder with random weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration

SPARE = 32
"""Channels and feed-forward units beside those of BERT, of which one each is used for constants."""
_ON = 6.0  # input of the unit that is always on; its GELU is the same number
_BATCH = 32

Batches = Callable[[], Iterator[tuple[Tensor, Tensor]]]
"""Texts as token ids and masks."""


class _Part(NamedTuple):
    """One part of a layer of BERT, with the norm behind it."""

    scale: Tensor  # γ
    shift: Tensor  # β
    output: nn.Linear


def t5_from_bert(
    bert: Any, ids: Tensor, mask: Tensor, *, decoder_layers: int, end: int, start: int
) -> T5ForConditionalGeneration:
    """A T5 with the vocabulary of a BERT, whose encoder gives about the states that BERT has without positions.

    Args:
        ids, mask: some texts, by which the sizes of states are measured.
        decoder_layers: layers of the decoder, at most those of BERT.
        end, start: the tokens at the end of an answer and before its first token.
    """
    with _without_positions(bert):
        sums = _sums(bert, ids, mask)
    model = T5ForConditionalGeneration(_config(bert.config, decoder_layers, end, start))
    with torch.no_grad():
        converted = _Conversion(bert, sums, model.config.d_model)
        converted.fill_embeddings(model)
        for layer, block in enumerate(model.encoder.block):
            converted.fill_layer(layer, block.layer[0], block.layer[1])
        for layer, block in enumerate(model.decoder.block):
            converted.fill_layer(layer, block.layer[0], block.layer[2])
        for stack in (model.encoder, model.decoder):
            converted.fill_last_norm(2 * len(stack.block), stack.final_layer_norm)
            nn.init.zeros_(stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight)
    return model.eval()


def _config(bert: Any, decoder_layers: int, end: int, start: int) -> T5Config:
    return T5Config(
        vocab_size=bert.vocab_size,
        d_model=bert.hidden_size + SPARE,
        d_kv=bert.hidden_size // bert.num_attention_heads,
        d_ff=bert.intermediate_size + SPARE,
        num_layers=bert.num_hidden_layers,
        num_decoder_layers=decoder_layers,
        num_heads=bert.num_attention_heads,
        feed_forward_proj="gelu",
        tie_word_embeddings=True,
        pad_token_id=bert.pad_token_id,
        eos_token_id=end,
        decoder_start_token_id=start,
    )


class _Conversion:
    """Weights of T5 computed from those of BERT; see the top of this file."""

    def __init__(self, bert: Any, sums: Sequence[Tensor], size: int) -> None:
        self.bert, self.size, self.width = bert, size, int(bert.config.hidden_size)
        self.parts = [part for layer in bert.encoder.layer for part in _parts(layer)]
        ones, zeros = torch.ones(self.width), torch.zeros(self.width)
        self.scales = [ones, *(part.scale for part in self.parts)]  # γ_k, β_k of x_k; x_0 is the embedding itself
        self.shifts = [zeros, *(part.shift for part in self.parts)]
        spread = [1.0, *(float(one.std(-1, correction=0).median()) for one in sums[1:])]  # s_k
        self.divisors = [ones, ones]  # D_k; D_0 is that of the embedding
        for k in range(1, len(self.parts)):
            self.divisors.append(self.divisors[k] * self.scales[k] / spread[k])
        # what part k + 1 adds to the sum whatever the text is
        self.constants = [
            (self.shifts[k] + part.output.bias) / self.divisors[k + 1] for k, part in enumerate(self.parts)
        ]
        self.early = [self.constants[k] if k % 2 == 0 and k < len(self.parts) else zeros for k in range(len(sums))]
        self.rms = [self._rms(one / self.divisors[k] + self.early[k]) for k, one in enumerate(sums)]
        self.factors = [self.scales[k] * self.divisors[k] * self.rms[k] / spread[k] for k in range(len(sums))]

    def _rms(self, sums: Tensor) -> float:
        """The mean over tokens of what T5 divides by, with the constant channel."""
        return float(((sums.square().sum(-1) + 1) / self.size).sqrt().median())

    def fill_embeddings(self, model: T5ForConditionalGeneration) -> None:
        """Each word with the mean position, the first segment and the norm of BERT; 1 in the constant channel."""
        own = self.bert.embeddings
        rows = own.word_embeddings.weight + own.position_embeddings.weight.mean(0) + own.token_type_embeddings.weight[0]
        model.shared.weight.zero_()
        model.shared.weight[:, : self.width] = own.LayerNorm(rows) + self.early[0]
        model.shared.weight[:, self.width] = 1.0

    def fill_layer(self, layer: int, attention: Any, feed_forward: Any) -> None:
        """Self-attention and feed-forward of one layer."""
        own, k = self.bert.encoder.layer[layer], 2 * layer
        attended = own.attention.self
        scale = attended.attention_head_size**-0.5  # T5 does not scale the logits of attention
        self._fill_norm(k, attention.layer_norm)
        weights, to = attention.SelfAttention, self._inputs
        weights.q.weight.copy_(to(k, attended.query.weight * scale, attended.query.bias * scale))
        weights.k.weight.copy_(to(k, attended.key.weight, attended.key.bias))
        weights.v.weight.copy_(to(k, attended.value.weight, attended.value.bias))
        weights.o.weight.copy_(self._outputs(k, self.parts[k].output.weight))
        self._fill_norm(k + 1, feed_forward.layer_norm)
        dense, inner, outer = feed_forward.DenseReluDense, own.intermediate.dense, self.parts[k + 1].output
        dense.wi.weight.zero_()
        dense.wi.weight[: len(inner.bias)] = to(k + 1, inner.weight, inner.bias)
        dense.wi.weight[len(inner.bias), self.width] = _ON
        dense.wo.weight.zero_()
        dense.wo.weight[:, : len(inner.bias)] = self._outputs(k + 1, outer.weight)
        constant = self.constants[k + 1] + self.early[k + 2] - self.early[k]
        dense.wo.weight[: self.width, len(inner.bias)] = constant / _ON

    def fill_last_norm(self, k: int, norm: Any) -> None:
        """The norm behind the last layer."""
        self._fill_norm(k, norm)

    def _fill_norm(self, k: int, norm: Any) -> None:
        norm.weight.zero_()
        norm.weight[: self.width] = self.factors[k]
        norm.weight[self.width] = self.rms[k]

    def _inputs(self, k: int, weight: Tensor, bias: Tensor) -> Tensor:
        """A linear map of x_k: (outputs, channels)."""
        full = F.pad(weight, (0, self.size - self.width))
        early = self.early[k] * self.factors[k] / self.rms[k]
        full[:, self.width] = bias + weight @ (self.shifts[k] - early)
        return full

    def _outputs(self, k: int, weight: Tensor) -> Tensor:
        """What part k + 1 adds to the sum: (channels, inputs)."""
        return F.pad(weight / self.divisors[k + 1][:, None], (0, 0, 0, self.size - self.width))


def _parts(layer: Any) -> tuple[_Part, _Part]:
    pairs = ((one.LayerNorm, one.dense) for one in (layer.attention.output, layer.output))
    first, second = (_Part(norm.weight, norm.bias, dense) for norm, dense in pairs)
    return first, second


@torch.no_grad()
def _sums(bert: Any, ids: Tensor, mask: Tensor) -> list[Tensor]:
    """x_0 and all y_k of texts: (tokens, hidden) each, without padding."""
    found: list[Tensor] = []
    norms = [part for layer in bert.encoder.layer for part in (layer.attention.output.LayerNorm, layer.output.LayerNorm)]
    hooks = [norm.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][mask.bool()])) for norm in norms]
    try:
        bert.eval()(input_ids=ids, attention_mask=mask)
    finally:
        for hook in hooks:
            hook.remove()
    return [bert.embeddings(input_ids=ids)[mask.bool()], *found]


@contextmanager
def _without_positions(bert: Any) -> Iterator[None]:
    """Every position has the mean embedding inside the block."""
    weight = bert.embeddings.position_embeddings.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight.copy_(before.mean(0).expand_as(before))
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(before)


def states(model: Any, bert: Any, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The last states of both encoders without padding, those of BERT without the shift of its last norm."""
    own = model.encoder(input_ids=ids, attention_mask=mask).last_hidden_state[..., : bert.config.hidden_size]
    last = bert.encoder.layer[-1].output.LayerNorm
    wanted = bert(input_ids=ids, attention_mask=mask).last_hidden_state - last.bias
    return own[mask.bool()], wanted[mask.bool()]


@torch.no_grad()
def agreement(model: Any, bert: Any, ids: Tensor, mask: Tensor) -> float:
    """The mean cosine between the states of both encoders."""
    return float(F.cosine_similarity(*states(model, bert, ids, mask), dim=-1).mean())


def distil(
    model: Any,
    bert: Any,
    batches: Iterator[tuple[Tensor, Tensor]],
    steps: int,
    *,
    rate: float = 3e-4,
    on_step: Callable[[int, float], None] = lambda step, loss: None,
) -> None:
    """Train the encoder to give the states of BERT, by their mean square difference."""
    bert.eval()
    model.encoder.train()
    weights = [one for one in model.encoder.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    device = next(model.parameters()).device
    for step, (ids, mask) in zip(range(steps), batches, strict=False):
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            own, wanted = states(model, bert, ids.to(device), mask.to(device))
        loss = F.mse_loss(own.float(), wanted.detach().float())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        schedule.step()
        on_step(step + 1, float(loss.detach()) if step % 50 == 49 else float("nan"))
    model.encoder.eval()
