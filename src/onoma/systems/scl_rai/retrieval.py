"""Retrieval-augmented inference (equations 11 to 16), in numpy, for both backends.

The data store holds one centre per label, the mean vector of its training spans; non-entity is label 0.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.errors import DataError
from onoma.models.folder import ModelFolder
from onoma.structured import read_json
from onoma.systems.scl_rai.options import DATASTORE_FILE, SclRaiOptions

Floats = NDArray[np.float32]
NON_ENTITY = 0
"""The label of spans that are no mention; type k has the label k + 1."""

_SMALLEST = np.float32(1e-30)  # keeps logarithms finite


class DataStore(NamedTuple):
    """The centres of labels (equations 11 and 12)."""

    centres: Floats  # r_l, scaled to length 1 (labels, vector size)
    counts: NDArray[np.int64]  # training spans of each label; a label without spans has no centre

    def to_bytes(self) -> bytes:
        """The content of the artifact."""
        return json.dumps({"centres": self.centres.tolist(), "counts": self.counts.tolist()}).encode()

    @classmethod
    def load(cls, folder: ModelFolder) -> DataStore | None:
        """The data store of a model folder; None for a model without retrieval."""
        if not folder.has(DATASTORE_FILE):
            return None
        path, fix = folder.path / DATASTORE_FILE, "save or download the model again"
        stored = read_json(path, fix)
        try:
            store = cls(np.array(stored["centres"], np.float32), np.array(stored["counts"], np.int64))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"this is not a data store ({error!r:.80})", path=path, fix=fix) from error
        labels = len(folder.config.types) + 1
        if store.centres.ndim != 2 or len(store.centres) != labels or store.counts.shape != (labels,):
            raise DataError(f"config.json has {labels} labels, the data store another number", path=path, fix=fix)
        return store


def margins(logits: Floats, similarity: Floats, store: DataStore | None, options: SclRaiOptions) -> Floats:
    """log p_l - log p_non-entity of the final distribution, for each span and type: (spans, types).

    Args:
        logits: V r of spans (spans, labels).
        similarity: cosine similarity of r to the centre of each label (spans, labels); not read without a data store.
    """
    probability = _softmax(logits)
    weight = np.float32(options.retrieval_weight)
    if store is not None and weight > 0:
        retrieved = retrieve(similarity, store.counts > 0, options.retrieval_temperature)
        probability = (1 - weight) * probability + weight * retrieved  # equation 16
    logarithm = np.log(np.maximum(probability, _SMALLEST))
    return np.asarray(logarithm[:, 1:] - logarithm[:, :1], np.float32)


def retrieve(similarity: Floats, has_centre: NDArray[np.bool_], temperature: float) -> Floats:
    """o_RA: the distribution over labels by similarity to their centres, 0 for non-entity (equations 14 and 15)."""
    distribution = _softmax(np.where(has_centre, similarity / np.float32(temperature), -np.inf))
    distribution[:, NON_ENTITY] = 0.0
    return distribution


def _softmax(values: Floats) -> Floats:
    exponent = np.exp(values - values.max(axis=1, keepdims=True, initial=-np.finfo(np.float32).max))
    return np.asarray(exponent / exponent.sum(axis=1, keepdims=True), np.float32)
