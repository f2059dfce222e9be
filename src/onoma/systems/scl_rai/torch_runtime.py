"""SCL-RAI run by PyTorch."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import RuntimeSettings, margin_of, scores_of
from onoma.systems.blocks.closed_types import ClosedTypes
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.scl_rai.model import SclRai, Spans, WordStates
from onoma.systems.scl_rai.options import DATASTORE_FILE
from onoma.systems.scl_rai.retrieval import DataStore, margins


class TorchSclRai(ClosedTypes, TorchRuntime):
    """A trained SCL-RAI on a device."""

    model: SclRai

    def __init__(
        self,
        model: SclRai,
        config: ModelConfig,
        tokenizer: WordTokenizer,
        cache: TypeCache | None = None,
        store: DataStore | None = None,
    ) -> None:
        super().__init__(model, config, tokenizer, cache)
        self.labels, self.store = frozenset(config.types), store

    @classmethod
    def load(cls, folder: ModelFolder, settings: RuntimeSettings) -> Self:
        """Load a model folder."""
        runtime = super().load(folder, settings)
        runtime.store = DataStore.load(folder)
        return runtime

    def artifacts(self) -> dict[str, bytes]:
        """The data store, if there is one."""
        return {} if self.store is None else {DATASTORE_FILE: self.store.to_bytes()}

    @torch.inference_mode()
    def propose(self, batch: Batch, query: NDArray[np.float32], floor: float) -> Proposals:
        """The spans whose score for a type reaches `floor`."""
        self.eval()
        ids, mask, first, last = self.copy((batch.ids, batch.mask, batch.first, batch.last))
        with self.autocast():
            states = self.model.word_states(ids, mask, first, last)
        scores = self._scores(states)
        words, widths = scores.shape[1:3]
        inside = np.arange(words)[:, None] + np.arange(widths) < batch.words[:, None, None]
        window, start, extent = np.nonzero(inside)
        logits, similarity = np.split(scores[inside], 2, axis=-1)
        margin = margins(logits, similarity, self.store, self.model.options)[:, query[:, 0].astype(np.int64)]
        row, kind = np.nonzero(margin >= margin_of(floor, self.config))
        score = scores_of(margin[row, kind], self.config)
        return Proposals(window[row], start[row], start[row] + extent[row], kind, score)

    @torch.inference_mode()
    def span_vectors(
        self, batch: Batch, window: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """r of some spans of a batch, as unit vectors, which is what the retrieval compares."""
        self.eval()
        *inputs, rows, starts, ends = self.copy((batch.ids, batch.mask, batch.first, batch.last, window, first, last))
        with self.autocast():
            vectors = self.model.span_vectors(self.model.word_states(*inputs), Spans(rows, starts, ends))
        return np.asarray(F.normalize(vectors.float(), dim=-1).cpu().numpy(), np.float32)

    def _scores(self, states: WordStates) -> NDArray[np.float32]:
        """Logits and similarities to centres, width by width: (windows, words, widths, 2 · labels)."""
        model, words = self.model, states.first.shape[1]
        centres = None if self.store is None else torch.as_tensor(self.store.centres, device=self.device)
        parts = []
        for width in range(1, min(model.options.max_width, words) + 1):
            with self.autocast():
                vectors = model.vectors_of_width(states, width)
                logits = model.label_scores(vectors).float()
            unit = F.normalize(vectors.float(), dim=-1)
            similarity = torch.zeros_like(logits) if centres is None else unit @ centres.T
            parts.append(F.pad(torch.cat([logits, similarity], dim=-1), (0, 0, 0, width - 1)))
        return np.asarray(torch.stack(parts, dim=2).cpu().numpy(), np.float32)
