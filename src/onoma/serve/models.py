"""The models that are served, by name, and the label sets that they were asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from onoma import __version__
from onoma.entities import Preset
from onoma.extractor import Extractor
from onoma.labels.presets import preset_threshold
from onoma.reading import Reader
from onoma.serve.batching import estimate_tokens
from onoma.serve.errors import ApiError
from onoma.serve.metrics import Metrics
from onoma.serve.schema import ExtractRequest
from onoma.serve.settings import ONNX_BATCH_TOKENS, TORCH_BATCH_TOKENS

MAX_KEPT_LABELS = 20_000
"""Labels of the label sets that are kept ready; the least recently used are dropped first."""
SECTION_TOKENS = 1_024
"""Tokens of a long text that are read before others have their turn."""

_PRESETS: tuple[Preset, ...] = ("precise", "balanced", "complete")


class Asked(NamedTuple):
    """A model with the types of a request."""

    model: str
    reader: Reader
    new_tokens: int  # of types that must be encoded first, estimated


class Models:
    """Extractors by name. The first one is the default. Label sets are shared by all requests."""

    def __init__(self, extractors: Mapping[str, Extractor], metrics: Metrics) -> None:
        self.extractors, self.metrics = dict(extractors), metrics
        self.names = list(self.extractors)
        self._readers: OrderedDict[Hashable, Reader] = OrderedDict()
        self._kept_labels = 0
        self._counted = {"hit": 0, "miss": 0}

    @property
    def batch_tokens(self) -> int:
        """Tokens that a thread reads at once."""
        backends = {one.runtime.backend for one in self.extractors.values()}
        return TORCH_BATCH_TOKENS if "torch" in backends else ONNX_BATCH_TOKENS

    @property
    def threads(self) -> int:
        """Threads that read batches; with PyTorch, one prepares a batch while the other one runs."""
        return max(2 if one.runtime.backend == "torch" else one.runtime.workers for one in self.extractors.values())

    def find(self, name: str | None) -> str:
        """The name of a model that is served."""
        if name is None:
            return self.names[0]
        if name not in self.extractors:
            known = ", ".join(self.names)
            raise ApiError(404, "unknown_model", f"there is no model of this name. Fix: use one of: {known}")
        return name

    def ask(self, request: ExtractRequest) -> Asked:
        """The model of a request with its types, from the cache or prepared; an OnomaError if they are not valid."""
        name = self.find(request.model)
        labels, threshold = request.parsed_labels(), request.parsed_threshold()
        key = (
            name,
            tuple(labels.items()) if isinstance(labels, Mapping) else tuple(labels),
            frozenset(threshold.items()) if isinstance(threshold, Mapping) else threshold,
            request.overlap,
        )
        reader = self._readers.get(key)
        if reader is not None:
            self._readers.move_to_end(key)
            self.metrics.label_sets.labels("hit").inc()
            return Asked(name, reader, 0)
        self.metrics.label_sets.labels("miss").inc()
        reader = self.extractors[name].prepare(
            labels, threshold=threshold, overlap=request.overlap, section_tokens=SECTION_TOKENS, parallel=False
        )
        reader = self._share(name, reader, key)
        return Asked(name, reader, sum(estimate_tokens(one.as_text()) for one in reader.types))

    def _share(self, name: str, reader: Reader, key: Hashable) -> Reader:
        """Keep a reader; label sets that are equal after parsing have the same one."""
        threshold = reader.threshold
        common = (
            name,
            "parsed",
            tuple(reader.types),
            frozenset(threshold.items()) if isinstance(threshold, Mapping) else threshold,
            reader.options.overlap,
        )
        known = self._readers.get(common)
        for one in (common, key):
            self._kept_labels += 0 if one in self._readers else len(reader.types)
            self._readers[one] = known or reader
            self._readers.move_to_end(one)
        while self._kept_labels > MAX_KEPT_LABELS and len(self._readers) > 2:
            self._kept_labels -= len(self._readers.popitem(last=False)[1].types)
        return known or reader

    def count_types(self) -> None:
        """Add to the metrics what the caches of encoded types have counted since the last call."""
        hits, misses = map(sum, zip(*(one.type_cache_counts() for one in self.extractors.values()), strict=True))
        for result, count in (("hit", hits), ("miss", misses)):
            self.metrics.type_cache.labels(result).inc(max(0, count - self._counted[result]))
            self._counted[result] = count

    def describe(self, name: str | None) -> dict[str, Any]:
        """What `GET /v1/model` answers, without limits."""
        found = self.find(name)
        extractor = self.extractors[found]
        config, labels = extractor.config, extractor.labels
        return {
            "name": found,
            "models": self.names,
            "system": config.system,
            "labels": None if labels is None else sorted(labels),
            "threshold": config.threshold,
            "presets": {one: preset_threshold(one, None, config.threshold, config.presets) for one in _PRESETS},
            "version": __version__,
        }
