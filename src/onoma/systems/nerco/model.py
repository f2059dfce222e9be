"""NerCo: contrast by semantic class, then tagging with a CRF (Zhang et al., IJCAI 2023), in PyTorch.

Symbols are the paper's. A word (in Chinese text: a character) is represented by the encoder's state at its first token,
then by FLAT over the lattice of characters and lexicon words. Its semantic class is the type of the mention that it
belongs to, whatever its place in it, or "non-entity".
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from onoma.systems.blocks.crf import Crf
from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.blocks.encoders import encoder_function
from onoma.systems.blocks.gathering import gather_instances
from onoma.systems.blocks.losses import supervised_contrastive_loss
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.nerco.flat import Flat, Nodes
from onoma.systems.nerco.options import NerCoOptions

MAX_CONTRASTED = 4096  # words of a batch in the contrastive loss, whose cost grows with their square


class NerCo(nn.Module):
    """Encoder, lattice, tag scores and CRF."""

    kinds: Tensor

    def __init__(self, encoder: nn.Module, options: NerCoOptions, types: int) -> None:
        super().__init__()
        self.options, self.scheme, self.stage = options, TagScheme(types, options.scheme), "tag"
        self.text_encoder = encoder
        self.encode = encoder_function(encoder)
        config: Any = encoder.config
        hidden = int(config.hidden_size)
        self.lattice = Flat(hidden, options) if options.lattice else None
        size = options.heads * options.head_size if options.lattice else hidden
        self.tag_scores = nn.Linear(size, self.scheme.tags)  # W_o and b_o of equation 2
        self.encoder_scores = (
            nn.Linear(hidden, self.scheme.tags, bias=False) if options.lattice and options.encoder_scores else None
        )
        self.crf = Crf(self.scheme)
        self.dropout = nn.Dropout(options.output_dropout)
        self.register_buffer("kinds", torch.from_numpy(self.scheme.kinds), persistent=False)

    @property
    def graphed_functions(self) -> list[GraphedFunction]:
        """The functions that training may run as CUDA graphs."""
        return [self.encode]

    def select_stage(self, stage: str) -> None:
        """Choose the loss and the weights that are trained: "contrast", "head", "lattice" or "tag"."""
        self.stage = stage
        encoder = stage == "tag" or (stage == "contrast" and not self.options.freeze_encoder)
        self.text_encoder.requires_grad_(encoder)
        if self.lattice is not None:
            self.lattice.requires_grad_(stage != "head")
            self.lattice.word_vectors.requires_grad_(stage != "head" and self.options.tune_word_vectors)
        for part in (self.tag_scores, self.encoder_scores, self.crf):
            if part is not None:
                part.requires_grad_(stage != "contrast")

    @property
    def encoder_is_frozen(self) -> bool:
        """Whether no weight of the encoder is trained in this stage."""
        return not any(one.requires_grad for one in self.text_encoder.parameters())

    def train(self, mode: bool = True) -> Self:
        """A frozen encoder has no dropout: its states are features."""
        super().train(mode)
        if self.encoder_is_frozen:
            self.text_encoder.eval()
        return self

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        first: Tensor,
        words: Tensor,
        tags: Tensor,
        possible: Tensor | None = None,
        **nodes: Tensor,
    ) -> dict[str, Tensor]:
        """The loss of a training batch, as `NerCoCollator` builds it.

        Args:
            tags: gold tags (windows, words).
            possible: tags that may be right, if the annotation is incomplete (windows, words, tags).
            nodes: the arguments of the lattice, see `LatticeInputs.arrays`.
        """
        encoded = self.encoder_states(ids, mask, first)
        states = self.word_states(encoded, words, nodes)
        if self.stage == "contrast":
            return {"loss": self.contrast(states, words, tags, possible)}
        emissions = self.emissions(encoded, states)
        loss = self.crf.loss(emissions, tags, words, possible).mean()  # equation 4, as a mean
        if self.options.contrast == "joint":
            loss = loss + self.contrast(states, words, tags, possible)
        return {"loss": loss}

    def encoder_states(self, ids: Tensor, mask: Tensor, first: Tensor) -> Tensor:
        """The encoder's states at the first token of each word: (windows, words, hidden)."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.encoder_is_frozen):
            states = self.encode(ids, mask)
        return states.gather(1, first.unsqueeze(-1).expand(-1, -1, states.shape[-1]))

    def word_states(self, encoded: Tensor, words: Tensor, nodes: dict[str, Tensor]) -> Tensor:
        """h of each word: the states of the lattice, or of the encoder without one (windows, words, size)."""
        if self.lattice is None:
            return encoded
        names = ("node_first", "node_last", "node_rows", "nodes")
        states: Tensor = self.lattice(encoded, words, Nodes(*(nodes[name] for name in names)))
        return states

    def emissions(self, encoded: Tensor, states: Tensor) -> Tensor:
        """O of equation 2: (windows, words, tags)."""
        scores: Tensor = self.tag_scores(self.dropout(states)).float()
        if self.encoder_scores is not None:
            scores = scores + self.encoder_scores(self.dropout(encoded)).float()
        return scores

    def contrast(self, states: Tensor, words: Tensor, tags: Tensor, possible: Tensor | None) -> Tensor:
        """Equation 1 for all pairs of words of a class: the mean over the pairs of each class, summed over classes."""
        chosen = torch.arange(tags.shape[1], device=tags.device) < words[:, None]
        if possible is not None:
            chosen = chosen & (possible.sum(-1) == 1)  # of other words the class is not known
        vectors, classes = states[chosen].float(), self.kinds[tags[chosen]]
        if len(classes) > MAX_CONTRASTED:
            order = torch.argsort((classes < 0).long() + torch.rand(len(classes), device=classes.device) * 0.5)
            vectors, classes = vectors[order[:MAX_CONTRASTED]], classes[order[:MAX_CONTRASTED]]
        if self.options.gather_negatives and self.training:
            vectors, classes = gather_instances(vectors, classes)
        with torch.autocast(states.device.type, enabled=False):
            return supervised_contrastive_loss(
                vectors,
                classes,
                self.options.temperature,
                anchors=None if self.options.contrast_non_entities else classes >= 0,
                by_class=True,
            )
