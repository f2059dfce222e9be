"""NerCo run by PyTorch."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import RuntimeSettings
from onoma.systems.blocks.closed_types import ClosedTypes
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.nerco.decoding import propose_tagged
from onoma.systems.nerco.inputs import LatticeInputs
from onoma.systems.nerco.model import NerCo


class TorchNerCo(ClosedTypes, TorchRuntime):
    """A trained NerCo on a device."""

    model: NerCo

    def __init__(
        self,
        model: NerCo,
        config: ModelConfig,
        tokenizer: WordTokenizer,
        cache: TypeCache | None = None,
        inputs: LatticeInputs | None = None,
    ) -> None:
        super().__init__(model, config, tokenizer, cache)
        self.labels, self.inputs = frozenset(config.types), inputs

    @classmethod
    def load(cls, folder: ModelFolder, settings: RuntimeSettings) -> Self:
        """Load a model folder."""
        runtime = super().load(folder, settings)
        options = runtime.model.options
        if options.lattice:
            runtime.inputs = LatticeInputs.load(folder, options.max_nodes, options.vector_rows)
        return runtime

    def artifacts(self) -> dict[str, bytes]:
        """The lexicon, if there is one."""
        return {} if self.inputs is None else self.inputs.to_artifacts()

    def propose(self, batch: Batch, query: NDArray[np.float32], floor: float) -> Proposals:
        """The mentions of the best tags whose score reaches `floor`."""
        if not batch.words.any():
            return Proposals.concatenate([])
        transitions = self.model.crf.transition_scores()
        return propose_tagged(
            self.emissions(batch), batch.words, transitions, self.model.scheme, self.config, query, floor
        )

    @torch.inference_mode()
    def emissions(self, batch: Batch) -> NDArray[np.float32]:
        """The tag scores of a batch: (windows, words, tags)."""
        encoded, states = self._states(batch)
        with self.autocast():
            return np.asarray(self.model.emissions(encoded, states).cpu().numpy(), np.float32)

    @torch.inference_mode()
    def word_states(self, batch: Batch) -> NDArray[np.float32]:
        """The states h of the words of a batch (windows, words, size), for plots."""
        return np.asarray(self._states(batch)[1].float().cpu().numpy(), np.float32)

    def span_vectors(
        self, batch: Batch, window: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The mean state of the words of each span."""
        total = np.cumsum(np.pad(self.word_states(batch), ((0, 0), (1, 0), (0, 0))), axis=1, dtype=np.float64)
        sums = total[window, last + 1] - total[window, first]
        return np.asarray(sums / (last - first + 1)[:, None], np.float32)

    def _states(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        self.eval()
        nodes = {} if self.inputs is None else self.inputs.arrays(batch)
        ids, mask, first, words, *rest = self.copy((batch.ids, batch.mask, batch.first, batch.words, *nodes.values()))
        with self.autocast():
            encoded = self.model.encoder_states(ids, mask, first)
            return encoded, self.model.word_states(encoded, words, dict(zip(nodes, rest, strict=True)))
