"""PUnifiedNER (Lu et al., AAAI 2023) in PyTorch: a T5 that answers prompts."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.punifiedner.options import PUnifiedNerOptions

IGNORED = -100
"""Label of padding."""


class PUnifiedNer(nn.Module):
    """An encoder-decoder and its loss.

    The embeddings that encoder and decoder share are saved once.
    """

    graphed_functions: tuple[GraphedFunction, ...] = ()

    def __init__(self, t5: nn.Module, options: PUnifiedNerOptions) -> None:
        super().__init__()
        self.text_encoder: Any = t5
        self.options = options
        module = cast(Any, self)
        module.register_state_dict_post_hook(_leave_out_copies)
        module.register_load_state_dict_pre_hook(_put_in_copies)

    def forward(self, ids: Tensor, mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The cross-entropy of the answers: (windows, tokens), (windows, tokens), (windows, answer tokens)."""
        return {"loss": self.text_encoder(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss}

    def copies(self) -> dict[str, str]:
        """Names of weights that are the same tensor as an earlier one, and the name of that one."""
        first: dict[Any, str] = {}
        copies = {}
        for name, weight in self.named_parameters(remove_duplicate=False):
            if first.setdefault(weight, name) != name:
                copies[name] = first[weight]
        return copies


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
