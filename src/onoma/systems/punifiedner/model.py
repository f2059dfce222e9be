"""PUnifiedNER (Lu et al., AAAI 2023) in PyTorch: a T5 that answers prompts."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.punifiedner.options import PUnifiedNerOptions

IGNORED = -100
"""Label of padding."""


class PUnifiedNer(nn.Module):
    """An encoder-decoder and its loss.

    The embeddings that encoder and decoder share are saved once.
    """

    def __init__(self, t5: nn.Module, options: PUnifiedNerOptions) -> None:
        super().__init__()
        self.text_encoder: Any = t5
        self.options = options
        self.encode = GraphedFunction(cast(Any, t5).encoder, self._encode)
        self.decode = GraphedFunction(cast(Any, t5).decoder, self._decode)
        module = cast(Any, self)
        module.register_state_dict_post_hook(_leave_out_copies)
        module.register_load_state_dict_pre_hook(_put_in_copies)

    @property
    def graphed_functions(self) -> list[GraphedFunction]:
        """The functions that training may run as CUDA graphs."""
        return [self.encode, self.decode]

    def forward(self, ids: Tensor, mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The cross-entropy of the answers: (windows, tokens), (windows, tokens), (windows, answer tokens).

        The output layer, which is large, reads only tokens that are not padding.
        """
        states = self.decode(self._inputs(labels), self.encode(ids, mask), mask)  # (windows, answer tokens, hidden)
        exists = labels != IGNORED
        return {"loss": F.cross_entropy(self._logits(states[exists]), labels[exists])}

    def _inputs(self, labels: Tensor) -> Tensor:
        """What the decoder reads: the start, then the answers without their last tokens."""
        config = self.text_encoder.config
        start = torch.full_like(labels[:, :1], config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1].where(labels[:, :-1] != IGNORED, config.pad_token_id)], dim=1)

    def _encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.text_encoder.encoder(input_ids=ids, attention_mask=_never_empty(mask)).last_hidden_state
        return states

    def _decode(self, inputs: Tensor, encoded: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.text_encoder.decoder(
            input_ids=inputs,
            encoder_hidden_states=encoded,
            encoder_attention_mask=_never_empty(mask),
            use_cache=False,
        ).last_hidden_state
        return states

    def _logits(self, states: Tensor) -> Tensor:
        config = self.text_encoder.config
        scaled = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
        logits: Tensor = self.text_encoder.lm_head(states * config.d_model**-0.5 if scaled else states)
        return logits

    def copies(self) -> dict[str, str]:
        """Names of weights that are the same tensor as an earlier one, and the name of that one."""
        first: dict[Any, str] = {}
        copies = {}
        for name, weight in self.named_parameters(remove_duplicate=False):
            if first.setdefault(weight, name) != name:
                copies[name] = first[weight]
        return copies


def _never_empty(mask: Tensor) -> Tensor:
    """The mask with at least one token per row: attention to nothing would give NaN in rows of padding."""
    return torch.cat([torch.ones_like(mask[:, :1]), mask[:, 1:]], dim=1)


def _leave_out_copies(model: Any, state: dict[str, Tensor], prefix: str, _: Any) -> None:
    for name in model.copies():
        del state[prefix + name]


def _put_in_copies(model: Any, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    for name, source in model.copies().items():
        if prefix + name in state:  # newly built, T5 shares its output layer; many pretrained ones have their own
            place, _, attribute = name.rpartition(".")
            module = model.get_submodule(place)
            setattr(module, attribute, nn.Parameter(getattr(module, attribute).detach().clone()))
        elif prefix + source in state:
            state[prefix + name] = state[prefix + source]
