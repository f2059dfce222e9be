"""Our ONNX writer beside `torch.onnx` and the optimiser and quantiser of onnxruntime, on the same encoder.

    python benchmarks/onnx_export.py --encoder FOLDER --data CORPORA

The graphs of a pretrained encoder are written in float32 and int8: by Onoma; by `torch.onnx`, optimised with the
fusions of `onnxruntime.transformers` for BERT, and quantised dynamically (per channel, with and without reduced
range). All run the tokens of the same sentences, in the same small batches, with the same threads and in turns; the
best turn counts. The error is that of the states of tokens against PyTorch in float32: the mean absolute difference
divided by the mean absolute value.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.optimizer import optimize_model

from onoma.data import load_corpus
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.inputs.tokenizer import WordTokenizer
from onoma.onnx.encoder import IDS, MASK, TOKENS, encoder_states
from onoma.onnx.runtime import MAX_BATCH_TOKENS
from onoma.onnx.session import OnnxSession, WorkerThreads
from onoma.onnx.writer import GraphWriter
from onoma.systems.blocks.encoders import load_encoder
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

TURNS = 5
Run = Callable[[Batch], np.ndarray]


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", required=True, help="folder of a pretrained BERT")
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--corpus", default="en/conll2003:dev")
    parser.add_argument("--limit", type=int, default=400, help="sentences")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS / "onnx_export.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    corpus = load_corpus(f"{arguments.data}/{arguments.corpus}")
    texts = [one.text for one in corpus.documents[: arguments.limit]]
    tokenizer, encoder = WordTokenizer.load(arguments.encoder), load_encoder(arguments.encoder).eval()
    batches = make_batches(texts, tokenizer, arguments.threads)
    workers = WorkerThreads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_graphs(encoder, Path(folder))
        runs = {name: session(path, ours=name.startswith("onoma")) for name, path in paths.items()}
        seconds = take_turns(runs, batches, workers)
        errors = {name: relative_error(run, encoder, batches[:20]) for name, run in runs.items()}
        sizes = {name: path.stat().st_size / 1e6 for name, path in paths.items()}
    name = Path(arguments.encoder).name
    data = f"{corpus.name}, {len(texts)} sentences, {arguments.threads} threads, onnxruntime {onnxruntime.__version__}"
    records = []
    for form, taken in seconds.items():
        print(f"{form:28} {len(texts) / taken:8.1f} sentences/s  {sizes[form]:7.1f} MB  error {errors[form]:.5f}")
        values = {"sentences_per_s": len(texts) / taken, "megabytes": sizes[form], "relative_error": errors[form]}
        for measure, value in values.items():
            metric = f"{form}/onnx-export/{corpus.name}/{name}/{measure}"
            records.append(Record(metric, round(value, 5), command(without=["--output"]), data, encoder=name))
    write_records(arguments.output, records)


def make_batches(texts: list[str], tokenizer: WordTokenizer, workers: int) -> list[Batch]:
    """Small batches of similar length."""
    windowed = WindowedTexts.cut(PackedTexts.pack(texts), tokenizer, 256, 16)
    rows = bucket_by_length(windowed.lengths(), len(texts), MAX_BATCH_TOKENS, workers=workers)
    return [windowed.batch(part, tokenizer) for part in rows]


def write_graphs(encoder: Any, folder: Path) -> dict[str, Path]:
    """All graphs of the encoder."""
    paths = {}
    for name, int8 in (("onoma", False), ("onoma-int8", True)):
        graph = GraphWriter(int8=int8)
        paths[name] = folder / f"{name}.onnx"
        graph.save(paths[name], TOKENS, {"states": encoder_states(graph, encoder)})
    traced = folder / "traced.onnx"
    ids = torch.ones((2, 16), dtype=torch.int64)
    mask = torch.tensor([[1] * 16, [1] * 14 + [0] * 2])  # a mask without padding would be dropped in tracing
    sizes = {0: "texts", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            LastStates(encoder).eval(),
            (ids, mask),
            traced,
            input_names=[IDS, MASK],
            output_names=["states"],
            dynamic_axes={IDS: sizes, MASK: sizes, "states": sizes},
            opset_version=17,
            dynamo=False,
        )
    config = encoder.config
    optimised = optimize_model(
        str(traced), "bert", num_heads=config.num_attention_heads, hidden_size=config.hidden_size, opt_level=1
    )
    paths["torch-onnx"] = traced
    paths["torch-onnx-optimised"] = folder / "optimised.onnx"
    optimised.save_model_to_file(str(paths["torch-onnx-optimised"]))
    for name, reduced in (("torch-onnx-int8", False), ("torch-onnx-int8-reduced", True)):
        paths[name] = folder / f"{name}.onnx"
        quantize_dynamic(
            paths["torch-onnx-optimised"],
            paths[name],
            per_channel=True,
            reduce_range=reduced,
            weight_type=QuantType.QInt8,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
    return paths


class LastStates(torch.nn.Module):
    """An encoder as a module from token ids and mask to states."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return states


def session(path: Path, *, ours: bool) -> Run:
    """A graph as a function; graphs of others get all optimisations of onnxruntime."""
    if ours:
        graph = OnnxSession(path)
        return lambda batch: graph.run(["states"], ids=batch.ids, mask=batch.mask)[0]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    other = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda batch: other.run(["states"], {"ids": batch.ids, "mask": batch.mask})[0]


def take_turns(runs: dict[str, Run], batches: list[Batch], workers: WorkerThreads) -> dict[str, float]:
    """Seconds of each graph for all batches, the best turn."""
    seconds = dict.fromkeys(runs, float("inf"))
    for turn in range(TURNS + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            list(workers.map(run, batches))
            if turn:  # the first one is a warm-up
                seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


@torch.inference_mode()
def relative_error(run: Run, encoder: Any, batches: list[Batch]) -> float:
    """The mean absolute difference from PyTorch, divided by the mean absolute value."""
    difference = total = 0.0
    for batch in batches:
        inputs = torch.as_tensor(batch.ids), torch.as_tensor(batch.mask)
        exact = encoder(input_ids=inputs[0], attention_mask=inputs[1]).last_hidden_state.numpy()
        exists = batch.mask > 0
        difference += float(np.abs(run(batch) - exact)[exists].sum())
        total += float(np.abs(exact)[exists].sum())
    return difference / total


if __name__ == "__main__":
    main_with_errors(main)
