"""Tiny encoders of several families with random weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel, RobertaConfig, RobertaModel

VOCABULARY, POSITIONS, HIDDEN = 60, 64, 16
MAKERS: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertModel),
    "roberta": (RobertaConfig, RobertaModel),
    "mpnet": (MPNetConfig, MPNetModel),
}
PADS = {"bert": 0, "roberta": 1, "mpnet": 1}


def tiny_encoder(family: str, **settings: Any) -> nn.Module:
    """An encoder without a pooling layer, with weights so large that every part changes the result."""
    make_config, make_model = MAKERS[family]
    usual = {
        "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "pad_token_id": PADS[family],
        "initializer_range": 0.2,
    }
    config = make_config(**(usual | settings))
    torch.manual_seed(0)
    model: nn.Module = make_model(config, add_pooling_layer=False)
    for name, weight in model.named_parameters():
        if name.endswith("bias") or "relative_attention_bias" in name:
            nn.init.normal_(weight, std=0.3)
    return model.eval()
