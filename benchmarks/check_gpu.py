"""Check on a GPU what tests without one cannot: CUDA graphs for inference and the kernel for packed attention.

    timeout 600 python benchmarks/check_gpu.py [--output FILE]

Needs PyTorch, transformers and numpy only. Models have random weights: tiny ones of all options, and one of the size of
an encoder that is in use. For each, proposals with CUDA graphs are compared with those without: in bfloat16, a few
candidates near the detection threshold may differ, because batches are padded to other shapes. Then the times of the
bare encoder, the fused and the two-stage form, by threads, with and without graphs; all batches have as many candidates
as --candidates says. The last line of the output is a JSON object; the exit status is 1 if a check failed. Without a
GPU there are no graphs, and only the script itself is checked.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

from onoma.decoding.proposals import Proposals
from onoma.inputs.batches import Batch, collate
from onoma.models.config import ModelConfig
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.blocks.inference import kernel_works
from onoma.systems.blocks.inference_graphs import InferenceGraphs
from onoma.systems.blocks.packed_attention import PackedTokens
from onoma.systems.suner.model import NO_SPAN, Suner
from onoma.systems.suner.options import SunerOptions
from onoma.systems.suner.single_pass import Budget, SinglePass, read_result
from onoma.systems.suner.torch_runtime import TorchSuner
from profiling import Measured, bare_encoder, event_ms, profile_calls, without_graphs

TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
TINY_SHAPES = ((9, 20), (3, 12), (17, 33))  # windows, tokens of the longest
SHAPES = ((252, 133), (512, 62), (512, 45), (512, 34), (70, 20))  # of GENIA in batches of 512
VOCABULARY, POSITIONS = 5000, 512
SPECIAL = SimpleNamespace(pad=0, cls=1, sep=2)
MAKERS: dict[str, tuple[Any, Any]] = {"bert": (BertConfig, BertModel), "mpnet": (MPNetConfig, MPNetModel)}
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"family": "mpnet"},
    {"candidates": "any"},
    {"candidates": "flat", "detection_weight": 0.7},
    {"max_candidates": 2, "marker_identity": "numbered"},
    {"marker_identity": "paired", "spans": "markers"},
    {"rejection": "cosine", "match_threshold": 0.1},
    {"form": "two-stage"},
    {"form": "two-stage", "family": "mpnet", "markers": False},
)
LEAST_SHARED = 0.9  # of the proposals
MOST_DIFFERENCE = 0.02  # of scores, on average; a candidate more or less changes the scores of its whole window
ROUNDS = 5  # until every shape has a graph

Found = dict[tuple[int, ...], float]


def random_encoder(family: str, size: dict[str, int]) -> Any:
    """An encoder whose weights are so large that every part changes the result.

    With many layers, they are smaller: else all words of a window have nearly the same state, and a few windows have
    all candidates.
    """
    make_config, make_model = MAKERS[family]
    spread = 0.08 if size["num_hidden_layers"] <= 2 else 0.02
    config = make_config(vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, initializer_range=spread, **size)
    return make_model(config, add_pooling_layer=False)


def random_suner(size: dict[str, int], device: str, *, family: str = "bert", **options: Any) -> TorchSuner:
    """A prepared SUNER; the fused form by default."""
    torch.manual_seed(0)
    chosen = SunerOptions(**({"form": "fused"} | options))
    detection_encoder = random_encoder(family, size) if chosen.form == "two-stage" else None
    model = Suner(random_encoder(family, size), detection_encoder, chosen)
    for weight in (model.detector.bilinear, model.markers, model.span_vectors.bilinear):
        torch.nn.init.normal_(weight, std=0.5)
    config = ModelConfig("suner", max_tokens=POSITIONS, options=asdict(chosen))
    tokenizer: Any = SPECIAL
    runtime = TorchSuner(model.to(device).eval(), config, tokenizer)
    runtime.prepare()
    return runtime


def random_binder(size: dict[str, int], device: str) -> TorchBinder:
    """A prepared BINDER."""
    torch.manual_seed(0)
    options = BinderOptions(shared_encoder=True, vector_size=64, width_size=16)
    model = Binder(random_encoder("bert", size), None, options, POSITIONS, 0).to(device).eval()
    tokenizer: Any = SPECIAL
    runtime = TorchBinder(model, ModelConfig("binder", max_tokens=POSITIONS), tokenizer)
    runtime.prepare()
    return runtime


def random_batch(windows: int, tokens: int, seed: int = 0) -> Batch:
    """Windows of words of one or two tokens, the longest of which has about so many tokens."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(max(1, 3 * tokens // 4), tokens - 1, windows)
    lengths[0] = tokens - 2
    counts = []
    for length in lengths.tolist():
        own = generator.integers(1, 3, length)
        counts.append(own[own.cumsum() <= length])
    words = np.array([len(own) for own in counts])
    edges = np.concatenate([[0], np.concatenate(counts).cumsum()])
    ids = generator.integers(5, VOCABULARY, int(edges[-1])).astype(np.int32)
    end = words.cumsum()
    tokenizer: Any = SPECIAL
    return collate(ids, edges, end - words, end, tokenizer, [""] * windows, [np.zeros((0, 2), np.int64)] * windows)


def random_types(number: int, size: int) -> np.ndarray:
    """Vectors of length 1."""
    rows = np.random.default_rng(1).normal(size=(number, size))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@torch.inference_mode()
def set_candidates(runtime: TorchSuner, batches: Sequence[Batch], wanted: float) -> None:
    """Change the detector's bias so that a window has about so many candidates on average."""
    prepared, logits = runtime.prepared, []
    assert prepared is not None
    for batch in batches:
        ids, mask, first, last, words = runtime.copy((batch.ids, batch.mask, batch.first, batch.last, batch.words))
        found = prepared.detect(prepared.encode(ids, mask).states, first, last, words).float()
        logits.append(found[found > NO_SPAN / 2].cpu())
    number = int(wanted * sum(len(batch.ids) for batch in batches))
    lowest = torch.cat(logits).sort(descending=True).values[number : number + 2].mean()  # between two spans
    runtime.model.detector.start_linear.bias.data -= lowest.to(runtime.device)
    runtime.prepare()


def proposed(found: Proposals) -> Found:
    """Scores by window, first word, last word and type."""
    keys = zip(*(column.tolist() for column in found[:4]), strict=True)
    return dict(zip(keys, found.score.tolist(), strict=True))


def compare(found: Sequence[Found], expected: Sequence[Found]) -> dict[str, float]:
    """How many proposals are in both, and how much their scores differ."""
    both = [(own[key], right[key]) for own, right in zip(found, expected, strict=True) for key in own.keys() & right]
    most = max(sum(map(len, found)), sum(map(len, expected)))
    return {
        "proposals": most,
        "shared": len(both) / max(1, most),
        "difference": statistics.fmean(abs(own - right) for own, right in both) if both else 1.0,
        "largest_difference": max((abs(own - right) for own, right in both), default=1.0),
    }


class Checks:
    """Results of checks, and what failed."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}
        self.failures: list[str] = []

    def add(self, name: str, result: dict[str, Any], *, passed: bool) -> None:
        """Note the result of a check."""
        self.results[name] = result
        if not passed:
            self.failures.append(name)
        print(f"{'ok    ' if passed else 'FAILED'} {name}: {json.dumps(result)}", file=sys.stderr, flush=True)

    def run(self, name: str, check: Callable[[], tuple[dict[str, Any], bool]]) -> None:
        """Run a check; an error is a failure, and the others are still run."""
        try:
            result, passed = check()
        except Exception as error:
            result, passed = {"error": f"{type(error).__name__}: {error}"}, False
        self.add(name, result, passed=passed)


def check_graphs(
    runtime: Any, batches: Sequence[Batch], query: np.ndarray, threads: int
) -> tuple[dict[str, Any], bool]:
    """Proposals with graphs, read one by one and by threads, against those without."""

    def read(batch: Batch) -> Found:
        return proposed(runtime.propose(batch, query, 0.3))

    with without_graphs([runtime]):
        expected = [read(batch) for batch in batches]
    for _ in range(ROUNDS):
        found = [read(batch) for batch in batches]
    with ThreadPoolExecutor(threads) as pool:
        together = list(pool.map(read, list(batches) * ROUNDS))
    result: dict[str, Any] = compare(found, expected)
    result["graphs"] = len(runtime.graphs.graphs)
    result["threads_differ"] = sum(one != found[place % len(found)] for place, one in enumerate(together))
    graphs_work = result["graphs"] > 0 or runtime.device.type != "cuda"
    close = result["shared"] >= LEAST_SHARED and result["difference"] <= MOST_DIFFERENCE
    return result, close and graphs_work and not result["threads_differ"] and result["proposals"] > 0


@torch.inference_mode()
def check_replay(runtime: TorchSuner, batch: Batch, types: np.ndarray) -> tuple[dict[str, Any], bool]:
    """A graph against the same function on the same padded inputs, called directly; and a budget that is too small."""
    prepared = runtime.prepared
    assert prepared is not None
    shapes = runtime.rounded_shapes(prepared, batch)
    arrays = batch.ids, batch.mask, batch.first, batch.last, batch.words
    tensors = (torch.from_numpy(types).to(runtime.device),)
    budget = runtime.budgets[shapes].with_room()
    results = {}
    for one in (budget, Budget(budget.spans, 1), Budget(1, budget.candidates)):
        run = SinglePass(prepared, one)
        padded = [
            np.pad(array, [(0, n - m) for n, m in zip(shape, array.shape, strict=True)])
            for array, shape in zip(arrays, shapes, strict=True)
        ]
        direct = run(*runtime.copy(padded), *tensors)[0].cpu().numpy()
        for _ in range(ROUNDS):
            fetched = runtime.run_captured(f"check {one}", run, arrays, shapes, tensors)
        replayed = direct if fetched is None else fetched()[0]
        results[one] = read_result(direct, one, len(types)), read_result(replayed, one, len(types))
    (direct_result, replayed_result), *others = results.values()
    assert direct_result is not None
    assert replayed_result is not None
    same = all(map(np.array_equal, direct_result[0].spans, replayed_result[0].spans))
    result = {
        "candidates": len(direct_result[0].logit),
        "budget": list(budget),
        "same_candidates": same,
        "margin_difference": float(np.abs(direct_result[1] - replayed_result[1]).max(initial=0)) if same else None,
        "small_budgets_refused": all(one is None for pair in others for one in pair),
    }
    return result, same and (result["margin_difference"] or 0.0) < 1e-2 and result["small_budgets_refused"]


def check_failing_capture(device: torch.device) -> tuple[dict[str, Any], bool]:
    """A function that cannot be captured: one warning, no graphs, and the GPU still works."""
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("onoma.systems.blocks.inference_graphs")
    logger.addHandler(handler)

    def waits(x: Tensor) -> tuple[Tensor]:
        return (x * float(x.sum()),)

    graphs, packed = InferenceGraphs(device), torch.ones(4, dtype=torch.int64)
    outputs = [graphs.run("waits", None, waits, packed, [(4,)]) for _ in range(2)] if graphs.enabled else []
    logger.removeHandler(handler)
    works = float(torch.ones(3, device=device).sum()) == 3.0
    expected = int(device.type == "cuda")
    result = {"warnings": len(warnings), "enabled": graphs.enabled, "gpu_works": works}
    return result, works and not graphs.enabled and len(warnings) == expected and all(one is None for one in outputs)


def kernel_times(device: torch.device, heads: int, size: int) -> tuple[dict[str, Any], bool]:
    """Whether the kernel works, and its time for 512 texts with 6 tokens each, by warps; and that of padding."""
    if device.type != "cuda":
        return {"works": False}, True
    result: dict[str, Any] = {"works": kernel_works(device, torch.bfloat16, size)}
    if not result["works"]:
        return result, False
    from onoma.systems.blocks import packed_attention_kernel
    from onoma.systems.blocks.packed_attention import padded_attention

    texts, length, own = 512, 62, 6
    cached = torch.randn(texts, length, 3, heads, size, device=device, dtype=torch.bfloat16)
    tokens = torch.randn(texts * own, 3, heads, size, device=device, dtype=torch.bfloat16)
    mask = torch.ones(texts, length, device=device, dtype=torch.int64)
    positions = torch.arange(texts * own, device=device) % length
    edges = torch.arange(texts + 1, device=device) * own
    packed = PackedTokens(positions, torch.arange(texts, device=device), edges, own)
    usual = packed_attention_kernel._WARPS
    try:
        for warps in (1, 2, 4, 8):
            packed_attention_kernel._WARPS = warps
            attend = packed_attention_kernel.kernel_attention(packed, mask, None)
            event_ms(lambda attend=attend: attend(cached, tokens), 3)
            result[f"ms_{warps}_warps"] = event_ms(lambda attend=attend: attend(cached, tokens), 50)
    finally:
        packed_attention_kernel._WARPS = usual

    def bias(queries: Tensor, keys: Tensor, visible: Tensor) -> Tensor:
        return torch.zeros_like(visible, dtype=torch.bfloat16).masked_fill(~visible, -1e4)[:, None]

    padded = padded_attention(packed, mask, bias)
    right = padded(cached, tokens).float()
    result["ms_padded"] = event_ms(lambda: padded(cached, tokens), 50)
    result["error"] = float((attend(cached, tokens).float() - right).norm() / right.norm())
    return result, result["error"] < 2e-2


def time_systems(
    systems: dict[str, Measured], runtimes: Sequence[Any], threads: Sequence[int]
) -> dict[str, dict[str, Any]]:
    """Milliseconds per batch: wall-clock time by threads, time on the GPU, launches, with and without graphs."""
    found: dict[str, dict[str, Any]] = {}

    def add(kind: str) -> None:
        for one in systems.values():
            for _ in range(ROUNDS):  # then all shapes have their graphs
                one.run(max(threads))
        for number in threads:
            times: dict[str, list[float]] = {name: [] for name in systems}
            for _ in range(max(one.repeats for one in systems.values())):
                for name, one in systems.items():  # they alternate
                    times[name].append(one.batch_ms(one.run(number)))
            for name in systems:
                found.setdefault(name, {})[f"{kind}_{number}_threads_ms"] = statistics.median(times[name])
        for name, one in systems.items():
            counts, _ = profile_calls(one.read, one.batches)
            found[name] |= {f"{kind}_{key}": counts[key] for key in ("gpu_ms", "operators", "launches", "waits")}

    add("graphs")
    with without_graphs(runtimes):
        add("eager")
    return found


def ratios(times: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Fused against the bare encoder (time), and against two-stage (speed)."""
    fused, encoder, two = times["fused"], times["encoder"], times["two-stage"]
    kinds = [kind for kind in fused if kind.endswith("_ms")]
    return {
        **{f"{kind} / encoder": fused[kind] / encoder[kind] for kind in kinds if encoder[kind]},
        **{f"two-stage / {kind}": two[kind] / fused[kind] for kind in kinds if fused[kind]},
    }


def options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=384)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--shapes", nargs="+", help="of timed batches, e.g. 512x62: windows and tokens")
    parser.add_argument("--types", type=int, default=5)
    parser.add_argument("--candidates", type=float, default=3.1, help="of a window")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--rounds", type=int, default=4, help="times that a repeat reads all batches")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a file for the JSON object")
    return parser.parse_args()


def check_tiny(checks: Checks, arguments: argparse.Namespace) -> None:
    """All options, on tiny models."""
    batches = [random_batch(*shape) for shape in TINY_SHAPES]
    threads = max(arguments.threads)
    for variant in VARIANTS:

        def check(variant: dict[str, Any] = variant) -> tuple[dict[str, Any], bool]:
            runtime = random_suner(TINY, arguments.device, **variant)
            set_candidates(runtime, batches, arguments.candidates)
            types = random_types(arguments.types, runtime.model.options.vector_size)
            return check_graphs(runtime, batches, types, threads)

        checks.run(f"tiny suner {variant}", check)

    def check_binder() -> tuple[dict[str, Any], bool]:
        runtime = random_binder(TINY, arguments.device)
        rows = np.concatenate([random_types(arguments.types, 3 * 64), np.zeros((arguments.types, 2))], axis=1)
        return check_graphs(runtime, batches, rows.astype(np.float32), threads)

    checks.run("tiny binder", check_binder)


def check_large(checks: Checks, arguments: argparse.Namespace) -> dict[str, Any]:
    """Checks and times of models of a usual size."""
    size = {
        "hidden_size": arguments.hidden,
        "num_hidden_layers": arguments.layers,
        "num_attention_heads": arguments.heads,
        "intermediate_size": 4 * arguments.hidden,
    }
    shapes = [tuple(map(int, one.split("x"))) for one in arguments.shapes] if arguments.shapes else SHAPES
    batches = [random_batch(*shape) for shape in shapes]
    types = random_types(arguments.types, SunerOptions().vector_size)
    forms = {form: random_suner(size, arguments.device, form=form) for form in ("fused", "two-stage")}
    systems: dict[str, Measured] = {}
    for form, runtime in forms.items():
        set_candidates(runtime, batches, arguments.candidates)
        checks.run(
            f"large {form}", lambda runtime=runtime: check_graphs(runtime, batches, types, max(arguments.threads))
        )

        def read(batch: Batch, runtime: TorchSuner = runtime) -> Proposals:
            return runtime.propose(batch, types, 0.5)

        if form == "fused":
            systems["encoder"] = Measured(bare_encoder(runtime), batches, arguments.rounds, arguments.repeats)
        systems[form] = Measured(read, batches, arguments.rounds, arguments.repeats)
    checks.run("large replay", lambda: check_replay(forms["fused"], batches[0], types))
    times = time_systems(systems, list(forms.values()), arguments.threads)
    budgets = {
        f"{rows}x{tokens}": [*most, *most.with_room()] for ((rows, tokens), *_), most in forms["fused"].budgets.items()
    }
    return {"times": times, "ratios": ratios(times), "budgets": budgets, "candidates": _candidates(forms, batches)}


def _candidates(forms: dict[str, TorchSuner], batches: Sequence[Batch]) -> dict[str, float]:
    """Candidates per window."""
    windows = sum(len(batch.ids) for batch in batches)
    return {
        form: sum(len(one.detect(batch, one.model.options.detection_threshold).logit) for batch in batches) / windows
        for form, one in forms.items()
    }


def main() -> int:
    """Run all checks and print the report."""
    arguments, start = options(), time.perf_counter()
    device, checks = torch.device(arguments.device), Checks()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU"
    report: dict[str, Any] = {"torch": torch.__version__, "device": name, "cores": os.cpu_count()}
    size = arguments.hidden // arguments.heads
    checks.run("kernel", lambda: kernel_times(device, arguments.heads, size))
    check_tiny(checks, arguments)
    report |= check_large(checks, arguments)
    checks.run("failing capture", lambda: check_failing_capture(device))
    report |= {"checks": checks.results, "failures": checks.failures, "seconds": time.perf_counter() - start}
    text = json.dumps(report)
    if arguments.output is not None:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
