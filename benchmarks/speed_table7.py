"""Training and inference speed of BINDER, BERT-CRF and a biaffine classifier (BINDER's table 7).

    python benchmarks/speed_table7.py --encoder FOLDER --data ROOT

All three run the same encoder by the same function, with the same attention and the same precision (bfloat16 on GPUs,
without CUDA graphs), and read the same batches, which are tokenised before. A training step is forward pass, loss,
backward pass and AdamW; inference is from a batch on the CPU to decoded mentions on the CPU; BINDER's types are encoded
before. The systems alternate in every repeat, so that slow moments of the machine affect all of them; the median over
repeats is recorded. Inference is measured after the training steps, because an untrained system would propose far more
spans, and decode longer, than a trained one. The F1 in the printed table shows how far training went; it is not a
result. About two minutes on a GPU.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from baselines import Biaffine, Rows, flat_rows, precision
from onoma.data import join_documents, load_splits
from onoma.entities import Corpus, EntityType
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.binder.collator import BinderCollator
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.torch_runtime import TorchBinder
from onoma.systems.blocks.encoders import load_encoder
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.nerco.model import NerCo
from onoma.systems.nerco.options import NerCoOptions
from onoma.systems.nerco.torch_runtime import TorchNerCo
from onoma.training.collation import collate_examples
from onoma.training.examples import Example, make_examples
from onoma.training.samplers import BucketedSampler
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

OVERLAP = 16  # words that neighbouring windows share
RATE, HEAD_RATE = 5e-5, 5e-4
WARM_UP = 10  # training steps
SYSTEMS = ("binder", "bert-crf", "biaffine")

Inputs = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class System:
    """A model, its loss, its inference and its optimiser."""

    model: nn.Module
    loss: Callable[..., Tensor]
    extract: Callable[[Batch], Rows]
    optimiser: torch.optim.Optimizer


@dataclass(frozen=True, slots=True)
class Data:
    """What all systems read."""

    steps: list[Inputs]
    batches: list[Batch]
    gold: list[Rows]  # of each batch


def prepare(
    corpora: dict[str, Corpus], tokenizer: WordTokenizer, arguments: argparse.Namespace, options: BinderOptions
) -> Data:
    """Training steps and inference batches of windows across sentences."""
    types = corpora["train"].types
    numbers = {one.name: number for number, one in enumerate(types)}
    examples = {
        split: make_examples(
            [join_documents(corpus)],
            numbers,
            tokenizer,
            max_tokens=arguments.max_tokens,
            overlap=OVERLAP,
            drop_empty=split == "train",
        )[0][: arguments.windows]
        for split, corpus in corpora.items()
    }
    collator = BinderCollator(types, tokenizer, options)
    wanted = WARM_UP + arguments.repeats * arguments.steps
    scheme = TagScheme(len(types), "bio")
    epochs = islice(_epochs(examples["train"], arguments), wanted)
    steps = [_training_inputs(chosen, collator, scheme) for chosen in epochs]
    tested = examples["test"]
    order = bucket_by_length([len(one.tokens.ids) for one in tested], arguments.batch_size)
    batches = [collate_examples([tested[i] for i in rows], tokenizer) for rows in order]
    return Data(steps, batches, [_gold([tested[i] for i in rows]) for rows in order])


def _epochs(examples: list[Example], arguments: argparse.Namespace) -> Iterator[list[Example]]:
    batches, epoch = BucketedSampler(examples, arguments.batch_size, seed=0), 0
    while True:
        batches.set_epoch(epoch)
        yield from ([examples[i] for i in rows] for rows in batches)
        epoch += 1


def _training_inputs(examples: list[Example], collator: BinderCollator, scheme: TagScheme) -> Inputs:
    arrays = collator(examples)
    tags = scheme.encode(_gold(examples), arrays["words"].astype(np.int64), arrays["first"].shape[1])
    return {name: torch.from_numpy(array) for name, array in (arrays | {"tags": tags}).items()}


def _gold(examples: Sequence[Example]) -> Rows:
    parts = [np.insert(one.gold, 0, window, axis=1) for window, one in enumerate(examples)]
    return np.concatenate(parts)


def make_systems(
    arguments: argparse.Namespace, types: Sequence[EntityType], options: BinderOptions, device: torch.device
) -> dict[str, System]:
    """The three systems on a device, untrained but for their encoders."""
    torch.manual_seed(0)
    folder = arguments.encoder
    binder = Binder(load_encoder(folder), load_encoder(folder), options, arguments.max_tokens, len(types)).to(device)
    hidden = next(binder.text_heads.parameters()).shape[1]
    tokenizer = WordTokenizer.load(folder)
    crf = NerCo(load_encoder(folder), NerCoOptions(lattice=False, contrast="none"), len(types)).to(device)
    biaffine = Biaffine(load_encoder(folder), hidden, len(types)).to(device)
    by_name = {one.name: one.description for one in types}
    matching = TorchBinder(binder, ModelConfig("binder", max_tokens=arguments.max_tokens), tokenizer)
    tagging = TorchNerCo(crf, ModelConfig("nerco", threshold=0.0, types=by_name), tokenizer)
    return {
        "binder": System(binder, _loss_of(binder), Inference(matching, types), _optimiser(binder)),
        "bert-crf": System(crf, _loss_of(crf), Inference(tagging, types), _optimiser(crf)),
        "biaffine": System(biaffine, biaffine, biaffine.extract, _optimiser(biaffine)),
    }


def _loss_of(model: nn.Module) -> Callable[..., Tensor]:
    """The loss of a model of ours, which gets the inputs that it names."""
    names = signature(model.forward).parameters

    def loss(**inputs: Tensor) -> Tensor:
        found: Tensor = model(**{name: value for name, value in inputs.items() if name in names})["loss"]
        return found

    return loss


class Inference:
    """Proposals and flat decoding; the types are encoded once, at the first batch."""

    def __init__(self, runtime: TorchRuntime, types: Sequence[EntityType]) -> None:
        self.runtime, self.types = runtime, types
        self.query: np.ndarray | None = None

    def __call__(self, batch: Batch) -> Rows:
        if self.query is None:
            self.query = self.runtime.ask(self.types)
        return flat_rows(self.runtime.propose(batch, self.query, self.runtime.config.threshold))


def _optimiser(model: nn.Module) -> torch.optim.Optimizer:
    encoder = [weight for name, weight in model.named_parameters() if "encoder." in name]
    heads = [weight for name, weight in model.named_parameters() if "encoder." not in name]
    groups = [{"params": encoder, "lr": RATE}, {"params": heads, "lr": HEAD_RATE}]
    return torch.optim.AdamW(groups, fused=encoder[0].is_cuda)


def train(system: System, steps: Sequence[Inputs], device: torch.device) -> float:
    """Take some training steps; returns words per second."""
    system.model.train()
    begin = _now(device)
    for step in steps:
        inputs = {name: tensor.to(device) for name, tensor in step.items()}
        with precision(device):
            loss = system.loss(**inputs)
        torch.autograd.backward(loss)
        system.optimiser.step()
        system.optimiser.zero_grad(set_to_none=True)
    seconds = _now(device) - begin
    return sum(int(step["words"].sum()) for step in steps) / seconds


def infer(system: System, batches: Sequence[Batch], device: torch.device) -> float:
    """Read all batches; returns words per second."""
    begin = _now(device)
    for batch in batches:
        system.extract(batch)
    seconds = _now(device) - begin
    return sum(int(batch.words.sum()) for batch in batches) / seconds


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measure(
    systems: dict[str, System], data: Data, arguments: argparse.Namespace, device: torch.device
) -> tuple[dict[str, list[float]], dict[str, list[float]], dict[str, float]]:
    """Words per second of each repeat, in training and in inference, and the F1 after training."""
    training: dict[str, list[float]] = {name: [] for name in systems}
    inference: dict[str, list[float]] = {name: [] for name in systems}
    for system in systems.values():
        train(system, data.steps[:WARM_UP], device)
    for start in range(WARM_UP, len(data.steps), arguments.steps):
        for name, system in systems.items():
            training[name].append(train(system, data.steps[start : start + arguments.steps], device))
    for system in systems.values():
        system.model.eval()
    reached = {name: f1(system, data) for name, system in systems.items()}  # also a warm-up
    for _ in range(arguments.repeats):
        for name, system in systems.items():
            inference[name].append(infer(system, data.batches, device))
    return training, inference, reached


def f1(system: System, data: Data) -> float:
    """Strict F1 over the mentions that lie in a window, in percent."""
    right = found = gold = 0
    for batch, wanted in zip(data.batches, data.gold, strict=True):
        rows, true = set(map(tuple, system.extract(batch).tolist())), set(map(tuple, wanted.tolist()))
        right, found, gold = right + len(rows & true), found + len(rows), gold + len(true)
    return 200 * right / max(found + gold, 1)


def report(
    training: dict[str, list[float]],
    inference: dict[str, list[float]],
    reached: dict[str, float],
    arguments: argparse.Namespace,
    device: torch.device,
) -> None:
    """Print the table and write the records."""
    encoder, corpus = Path(arguments.encoder).name, Path(arguments.corpus).name
    data = f"{corpus}, batches of {arguments.batch_size} windows of at most {arguments.max_tokens} tokens"
    records = []
    print(f"{'words per second':16} {'training':>20} {'(paper)':>8} {'inference':>20} {'(paper)':>8} {'F1':>6}")
    for name in SYSTEMS:
        cells = []
        for setting, speeds in (("training", training), ("inference", inference)):
            value, spread = statistics.median(speeds[name]), statistics.stdev(speeds[name])
            metric = f"{name}/speed-{setting}/{corpus}/{encoder}/words_per_s"
            paper = published_figure(metric)  # on CoNLL-2003
            cells.append(f"{value:12,.0f} ± {spread:5,.0f} {'' if paper is None else f'{paper:,.0f}':>8}")
            records.append(
                Record(metric, round(value), command(without=["--output"]), data, paper, encoder, (0,), round(spread))
            )
        print(f"{name:16} {' '.join(cells)} {reached[name]:6.1f}")
    accelerator = torch.cuda.get_device_name() if device.type == "cuda" else ""
    write_records(arguments.output, records, accelerator=accelerator)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the speed of BINDER, BERT-CRF and a biaffine classifier.")
    parser.add_argument("--encoder", required=True, help="the folder of a pretrained encoder")
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the corpus")
    parser.add_argument("--corpus", default="en/conll2003", help="a flat corpus with the splits train and test")
    parser.add_argument("--output", type=Path, default=RESULTS / "speed_table7.json")
    parser.add_argument("--batch-size", type=int, default=32, help="windows in a batch")
    parser.add_argument("--max-tokens", type=int, default=256, help="of a window")
    parser.add_argument("--repeats", type=int, default=3, help="at least 2, for a spread")
    parser.add_argument("--steps", type=int, default=40, help="training steps of each repeat")
    parser.add_argument("--windows", type=int, help="windows of each split; by default all")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options = BinderOptions()
    corpora = load_splits(arguments.data / arguments.corpus, splits=["train", "test"], natural_names=True)
    types = corpora["train"].types
    data = prepare(corpora, WordTokenizer.load(arguments.encoder), arguments, options)
    systems = make_systems(arguments, types, options, device)
    training, inference, reached = measure(systems, data, arguments, device)
    report(training, inference, reached, arguments, device)


if __name__ == "__main__":
    main_with_errors(main)
