"""One peer of `benchmarks/peers.py`, in a process and an environment of its own.

    python benchmarks/peer_worker.py PEER '{"encoder": FOLDER, "threads": 2, "folder": FOLDER}'

Reads questions as JSON lines from standard input ({"texts": [...], "labels": [...], "batch_size": 8}) and answers each
with {"seconds": ..., "cpu_seconds": ..., "found": ...}. The first line that it prints says what it runs: model,
encoder, precision, runtime and threads. GLiNER, GLiNER2 and SpanMarker have the encoder of the folder that is given and
untrained heads, spaCy an untrained network of its own: nothing of their speed depends on training, except that at their
thresholds they find next to nothing, which saves them the decoding of entities. UIE and Onoma are trained models.
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
Runs = dict[str, Any]
"""What a peer runs: `model`, `encoder`, `precision`, `runtime` and `threads`."""


def gliner(options: dict[str, Any]) -> tuple[Read, Runs]:
    """GLiNER with PyTorch; what its configuration leaves out is as in its published small model."""
    import gliner

    torch = set_torch(options)
    model = gliner.GLiNER.from_config(gliner.GLiNERConfig(model_name=options["encoder"])).eval()

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        with torch.inference_mode():
            return count(model.inference(texts, labels, threshold=HIGH_THRESHOLD, batch_size=batch_size))

    return read, runs(options, "GLiNER", "float32", "gliner", "torch")


def gliner_int8(options: dict[str, Any]) -> tuple[Read, Runs]:
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

    return read, runs(options, "GLiNER, its own export to ONNX", "int8", "gliner", "onnxruntime")


def gliner2(options: dict[str, Any]) -> tuple[Read, Runs]:
    """GLiNER2 with PyTorch, in its span architecture."""
    from gliner2 import ExtractorConfig, GLiNER2

    torch = set_torch(options)
    model = GLiNER2(ExtractorConfig(model_name=options["encoder"])).eval()

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        with torch.inference_mode():
            found = model.batch_extract_entities(texts, labels, batch_size=batch_size, threshold=HIGH_THRESHOLD)
        return sum(len(spans) for one in found for spans in one["entities"].values())

    return read, runs(options, "GLiNER2", "float32", "gliner2", "torch")


def span_marker(options: dict[str, Any]) -> tuple[Read, Runs]:
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

    return read, runs(options, "SpanMarker with a closed set of labels", "float32", "span_marker", "torch")


def spacy(options: dict[str, Any]) -> tuple[Read, Runs]:
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

    model = "untrained EntityRecognizer with a closed set of labels, 4 convolutions of width 96"
    return read, {
        "model": model,
        "encoder": "spacy-hashembedcnn",
        "precision": "float32",
        "runtime": versions("spacy", "thinc"),
        "threads": 1,
    }


def uie(options: dict[str, Any]) -> tuple[Read, Runs]:
    """UIE as an ONNX graph, which reads each text once per label."""
    from uie import UIE

    path = Path(options["uie"])
    model = UIE(path, options["threads"])

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        return count(model.extract(texts, labels, batch_size, HIGH_THRESHOLD))

    return read, {
        "model": path.name,
        "encoder": path.name,
        "precision": "float32",
        "runtime": versions("onnxruntime"),
        "threads": options["threads"],
    }


def onoma(options: dict[str, Any]) -> tuple[Read, Runs]:
    """Onoma at its own threshold, with onnxruntime."""
    import onoma
    from onoma.models.folder import ONNX_FILE

    model = onoma.load(options["model"], "onnx", threads=options["threads"])
    own = model.model_for("English text")

    def read(texts: list[str], labels: list[str], batch_size: int) -> int:
        return count(model.extract(texts, labels))

    return read, {
        "model": Path(options["model"]).name if options["model"] else "the embedded model",
        "encoder": Path(own.folder.config.encoder or "none").name,
        "precision": precision_of(own.folder.path / ONNX_FILE),
        "runtime": f"onoma {onoma.__version__}, {versions('onnxruntime')}",
        "threads": own.runtime.workers,
    }


def precision_of(graph: Path) -> str:
    """int8 if the matrices of a graph are multiplied as integers."""
    operators = (b"MatMulInteger", b"QLinearMatMul", b"DynamicQuantizeMatMul")
    return "int8" if any(name in graph.read_bytes() for name in operators) else "float32"


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


def runs(options: dict[str, Any], model: str, precision: str, *packages: str) -> Runs:
    """What a peer with the given encoder runs."""
    return {
        "model": f"{model}, untrained heads",
        "encoder": Path(options["encoder"]).name,
        "precision": precision,
        "runtime": versions(*packages),
        "threads": options["threads"],
    }


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
    read, description = PEERS[name](options)
    print(json.dumps({"runs": description}), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        wall, cpu = time.perf_counter(), time.process_time()
        found = read(question["texts"], question["labels"], question["batch_size"])
        seconds = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        answer = seconds | {"found": found}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
