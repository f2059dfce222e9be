"""One peer of `benchmarks/peers.py`, in a process and an environment of its own.

    python benchmarks/peer_worker.py PEER '{"encoder": FOLDER, "threads": 2, "folder": FOLDER}'

Reads questions as JSON lines from standard input ({"texts": [...], "labels": [...], "batch_size": 8}) and answers each
with {"seconds": ..., "found": ...}. The first line that it prints says what it runs. Models have the encoder of the
folder that is given and untrained heads: nothing of their speed depends on training, except that at their thresholds
they find next to nothing, which saves them the decoding of entities.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HIGH_THRESHOLD = 0.9  # untrained heads reach it nowhere

Read = Callable[[list[str], list[str], int], int]
"""Reads texts with labels and a batch size; the number of entities that were found."""


def gliner(options: dict[str, Any]) -> tuple[Read, str]:
    """GLiNER with PyTorch; what its configuration leaves out is as in its published small model."""
    import gliner

    torch = set_torch(options)
    model = gliner.GLiNER.from_config(gliner.GLiNERConfig(model_name=options["encoder"])).eval()

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        with torch.inference_mode():
            return count(model.inference(texts, labels, threshold=HIGH_THRESHOLD, batch_size=batch_size))

    return read, f"float32, {versions('gliner', 'torch')}"


def gliner_int8(options: dict[str, Any]) -> tuple[Read, str]:
    """GLiNER's own export to ONNX, quantised to int8 by itself."""
    import gliner
    import onnxruntime

    torch = set_torch(options)
    folder = Path(options["folder"]) / "gliner-onnx"
    model = gliner.GLiNER.from_config(gliner.GLiNERConfig(model_name=options["encoder"])).eval()
    exported = model.export_to_onnx(folder, quantize=True)
    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads = options["threads"]
    model = gliner.GLiNER.from_pretrained(
        str(folder),
        runtime="onnxruntime",
        onnx_model_file=Path(exported["quantized_path"]).name,
        local_files_only=True,
        session_options=session,
    )

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        with torch.inference_mode():
            return count(model.inference(texts, labels, threshold=HIGH_THRESHOLD, batch_size=batch_size))

    return read, f"int8, {versions('gliner', 'onnxruntime')}"


def gliner2(options: dict[str, Any]) -> tuple[Read, str]:
    """GLiNER2 with PyTorch, in its span architecture."""
    from gliner2 import ExtractorConfig, GLiNER2

    torch = set_torch(options)
    model = GLiNER2(ExtractorConfig(model_name=options["encoder"])).eval()

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        with torch.inference_mode():
            found = model.batch_extract_entities(texts, labels, batch_size=batch_size, threshold=HIGH_THRESHOLD)
        return sum(len(spans) for one in found for spans in one["entities"].values())

    return read, f"float32, {versions('gliner2', 'torch')}"


def span_marker(options: dict[str, Any]) -> tuple[Read, str]:
    """SpanMarker: a closed set of labels, so there is a model for each number of them."""
    from span_marker import SpanMarkerModel

    torch = set_torch(options)
    models: dict[int, Any] = {}

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        if len(labels) not in models:
            sizes = {"model_max_length": 256, "entity_max_length": 8}
            models[len(labels)] = SpanMarkerModel.from_pretrained(
                options["encoder"], labels=["O", *labels], **sizes
            ).eval()
        with torch.inference_mode():
            return count(models[len(labels)].predict(texts, batch_size=batch_size))

    return read, f"float32, closed set of labels, {versions('span_marker', 'torch')}"


def spacy(options: dict[str, Any]) -> tuple[Read, str]:
    """spaCy's own NER without a transformer: a small convolutional network and a closed set of labels."""
    import spacy

    models: dict[int, Any] = {}

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        if len(labels) not in models:
            model = spacy.blank("en")
            ner = model.add_pipe("ner")
            for label in labels:
                ner.add_label(label)
            model.initialize()
            models[len(labels)] = model
        return sum(len(one.ents) for one in models[len(labels)].pipe(texts, batch_size=batch_size))

    return read, f"float32, one thread, 4 convolutions of width 96 instead of the encoder, {versions('spacy')}"


def uie(options: dict[str, Any]) -> tuple[Read, str]:
    """UIE as an ONNX graph, which reads each text once per label."""
    from uie import UIE

    path = Path(options["uie"])
    model = UIE(path, options["threads"])

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        return count(model.extract(texts, labels, batch_size, HIGH_THRESHOLD))

    return read, f"float32, {path.name} (an encoder of its own), {versions('onnxruntime')}"


def onoma(options: dict[str, Any]) -> tuple[Read, str]:
    """Onoma at its own threshold, in int8 with onnxruntime."""
    import onoma

    model = onoma.load(options["model"], "onnx", threads=options["threads"])

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        return count(model.extract(texts, labels))

    return read, f"onoma {onoma.__version__}, {versions('onnxruntime')}"


PEERS = {
    "onoma": onoma,
    "gliner": gliner,
    "gliner-onnx-int8": gliner_int8,
    "gliner2": gliner2,
    "span-marker": span_marker,
    "spacy": spacy,
    "uie": uie,
}


def set_torch(options: dict[str, Any]) -> Any:
    """PyTorch with a fixed seed and number of threads."""
    import torch

    torch.set_num_threads(options["threads"])
    torch.manual_seed(0)
    return torch


def count(found: list[list[Any]]) -> int:
    """Entities of all texts."""
    return sum(map(len, found))


def versions(*packages: str) -> str:
    """Packages with their versions."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def main() -> None:
    """Answer questions until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    name, options = sys.argv[1], json.loads(sys.argv[2])
    read, runs = PEERS[name](options)
    print(json.dumps({"runs": runs}), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        started = time.perf_counter()
        found = read(question["texts"], question["labels"], question["batch_size"])
        answer = {"seconds": time.perf_counter() - started, "found": found}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
