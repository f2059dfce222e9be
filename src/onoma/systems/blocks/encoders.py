"""Pretrained encoders from a hub name or a folder, and their place in a model folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from onoma.errors import OnomaError
from onoma.files import require_storage
from onoma.inputs.tokenizer import WORD_SHAPES as SHAPE_NAMES
from onoma.inputs.tokenizer import normalize_unknown_signs
from onoma.models.hub import looks_like_hub_name
from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.blocks.families import FAMILIES, layer_names
from onoma.systems.blocks.inference import InferenceTransformer
from onoma.systems.blocks.transformer import WORD_SHAPES, Transformer

ENCODER_FOLDER = "encoder"
GET_AN_ENCODER = "give a folder with config.json, the weights and the tokenizer of an encoder"
T5_FAMILY = ("t5", "mt5", "umt5")

# cuDNN plans its attention for about 60 ms for each new shape, in each thread; the other kernels are as fast (H200)
torch.backends.cuda.enable_cudnn_sdp(False)

_NO_CODE = {"trust_remote_code": False}
"""For everything that transformers loads: without it, it asks on stdin whether to run Python files of the folder."""


def load_encoder(name: str | os.PathLike[str]) -> nn.Module:
    """The pretrained encoder of a hub name or folder, without its pooling layer."""
    with _loading_errors(name), quiet_loading():
        encoder = AutoModel.from_pretrained(name, dtype=torch.float32, **_NO_CODE)
        if encoder.config.is_encoder_decoder:
            raise OnomaError(
                f"{str(name)!r} is an encoder with a decoder, which only the system punifiedner uses. "
                f"Fix: {GET_AN_ENCODER}"
            )
        return _without_pooler(encoder)


def load_t5(name: str | os.PathLike[str]) -> nn.Module:
    """The pretrained T5 of a hub name or folder, with its decoder."""
    with _loading_errors(name), quiet_loading():
        config = AutoConfig.from_pretrained(name, **_NO_CODE)
        if config.model_type not in T5_FAMILY:
            raise OnomaError(
                f"{str(name)!r} is of the type {config.model_type!r}, but punifiedner needs an encoder with a decoder. "
                "Fix: give a T5, such as google/flan-t5-small"
            )
        t5: nn.Module = AutoModelForSeq2SeqLM.from_pretrained(name, dtype=torch.float32, **_NO_CODE)
        return t5


def empty_encoder(folder: str | os.PathLike[str]) -> nn.Module:
    """An untrained encoder of the architecture that a model folder describes."""
    return _without_pooler(_empty(folder, AutoModel))


def empty_t5(folder: str | os.PathLike[str]) -> nn.Module:
    """An untrained T5 of the architecture that a model folder describes."""
    t5: nn.Module = _empty(folder, AutoModelForSeq2SeqLM)
    return t5


def _empty(folder: str | os.PathLike[str], kind: Any) -> Any:
    path = Path(folder) / ENCODER_FOLDER
    with _loading_errors(path, "save or download the model again"), quiet_loading():
        require_storage(path / "config.json")
        return kind.from_config(AutoConfig.from_pretrained(path, **_NO_CODE), **_NO_CODE)


def save_tokenizer(encoder_name: str, folder: str | os.PathLike[str]) -> None:
    """Write the encoder's tokenizer.json into a model folder, with normalisation of signs that it does not know."""
    with _loading_errors(encoder_name):
        tokenizer = AutoTokenizer.from_pretrained(encoder_name, **_NO_CODE)
    tokenizer.save_pretrained(folder)
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise OnomaError(f"the tokenizer of {encoder_name!r} has no fast version, which Onoma needs")
    fast = Tokenizer.from_file(str(path))
    if normalize_unknown_signs(fast):
        fast.save(str(path))


@contextmanager
def _loading_errors(name: str | os.PathLike[str], fix: str = GET_AN_ENCODER) -> Iterator[None]:
    if not os.path.isdir(name) and not (looks_like_hub_name(str(name)) or re.fullmatch(r"[\w.-]+", str(name))):
        raise OnomaError(f"there is no encoder folder {str(name)!r}. Fix: check the path, or give a hub name")
    try:
        yield
    except (OnomaError, ModuleNotFoundError):
        raise
    except Exception as error:  # damaged files make transformers raise almost anything
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        if "trust_remote_code" in str(error):
            reason = "it needs Python code that is stored with it, which Onoma never runs"
            fix = "use an encoder of a type that transformers knows"
        if os.path.isdir(name):
            raise OnomaError(f"cannot load the encoder {str(name)!r} ({reason}). Fix: {fix}") from error
        raise OnomaError(
            f"there is no folder {str(name)!r}, and no encoder of this name on the hub can be loaded ({reason}). "
            "Fix: check the path, or the hub name and the network"
        ) from error


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Hide the progress bars and load reports of transformers; its errors are still raised."""
    settings: Any = transformers_logging
    verbosity, has_bar = settings.get_verbosity(), settings.is_progress_bar_enabled()
    settings.set_verbosity_error()
    settings.disable_progress_bar()
    try:
        yield
    finally:
        settings.set_verbosity(verbosity)
        if has_bar:
            settings.enable_progress_bar()


def _without_pooler(encoder: Any) -> nn.Module:
    if hasattr(encoder, "pooler"):
        encoder.pooler = None
    module: nn.Module = encoder
    return module


def max_positions(encoder: nn.Module) -> int | None:
    """The most tokens that an encoder can read at once; None if its positions are not numbered."""
    for name, module in encoder.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1  # RoBERTa counts from there
            return module.num_embeddings - unused
    return None


def add_word_shapes(encoder: Any) -> None:
    """Add embeddings of word shapes to those of an encoder; they are 0 before training."""
    if layer_names(encoder.config) is None:
        raise OnomaError(
            f"an encoder of the type {encoder.config.model_type!r} cannot read word shapes. Fix: use one of "
            f"{', '.join(FAMILIES)}, or remove the option 'word_shapes'"
        )
    shapes: nn.Embedding = nn.utils.skip_init(nn.Embedding, len(SHAPE_NAMES), encoder.config.hidden_size)  # type: ignore[no-untyped-call]
    nn.init.zeros_(shapes.weight)
    encoder.embeddings.add_module(WORD_SHAPES, shapes)


def mean_pool(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of the states without padding: (batch, tokens, d) -> (batch, d)."""
    weight = mask.unsqueeze(-1).to(states.dtype)
    return (states * weight).sum(1) / weight.sum(1).clamp(min=1)


def by_length(function: Callable[[Tensor, Tensor], Tensor], ids: Tensor, mask: Tensor, rows: int = 128) -> Tensor:
    """A function of token ids and mask with one result per row, called for groups of rows of similar length."""
    lengths = mask.sum(1)
    order = lengths.argsort()
    results = []
    for group in torch.split(order, rows):
        longest = int(lengths[group[-1]])
        results.append(function(ids[group, :longest], mask[group, :longest]))
    return torch.cat(results)[order.argsort()]


def encoder_function(encoder: Any) -> GraphedFunction:
    """The function from token ids and mask to states (texts, tokens, hidden); training may run it as a CUDA graph."""
    return _EncoderFunction(encoder)


class _EncoderFunction(GraphedFunction):
    """See `encoder_function`."""

    def __init__(self, encoder: Any) -> None:
        self.transformer = None if layer_names(encoder.config) is None else Transformer(encoder)
        self.prepared: InferenceTransformer | None = None
        super().__init__(encoder, self._own if self.transformer is None else self.transformer.encode)

    def _own(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.module(input_ids=ids, attention_mask=mask).last_hidden_state
        return states

    def prepare(self, dtype: torch.dtype) -> None:
        """See `GraphedFunction.prepare`."""
        if self.transformer is not None:
            self.prepared = InferenceTransformer(self.transformer, dtype)

    def __call__(self, *tensors: Tensor) -> Tensor:
        if self.prepared is not None and not torch.is_grad_enabled():
            ids, mask = tensors
            with torch.autocast(ids.device.type, enabled=False):  # it would run layer norms in float32
                return self.prepared.encode(ids, mask).float()
        return super().__call__(*tensors)
