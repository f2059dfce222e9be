"""What is particular about our stage of training: rates, batches and epochs, stopping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments

from onoma.subwords import Subwords
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.encoders import load_encoder
from onoma.training.collating import BinderCollator
from onoma.training.examples import make_examples
from onoma.training.recipe import TrainingRecipe
from onoma.training.sampling import BucketedBatches
from onoma.training.trainer import Clock, FollowEpochs, KeepBest, RunningAverage, StageTrainer, training_arguments
from tiny import TYPES, corpus


@pytest.fixture
def trainer(encoder_folder: Path, subwords: Subwords, tmp_path: Path) -> StageTrainer:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    examples, _ = make_examples([corpus()], numbers, subwords, max_tokens=130, overlap=8, drop_empty=True)
    options = BinderOptions(size=8, width_size=8)
    model = Binder(load_encoder(encoder_folder), load_encoder(encoder_folder), options, 130)
    recipe = TrainingRecipe(rate=1e-5, head_rate=1e-3, weight_decay=0.1, batch_size=16, workers=0)
    batches = BucketedBatches(examples, recipe.batch_size, seed=0)
    arguments = training_arguments(recipe, tmp_path, 0)
    collator = BinderCollator(TYPES, subwords, options)
    return StageTrainer(model, arguments, examples, batches, collator, lambda: {"f1": 1.0}, recipe, [])


def test_pretrained_weights_and_new_ones_have_their_own_rates(trainer: StageTrainer) -> None:
    optimiser = trainer.create_optimizer()
    of: dict[int, Any] = {id(weight): group for group in optimiser.param_groups for weight in group["params"]}
    names = dict(trainer.network.named_parameters())
    assert len(of) == len(names)
    for name, weight in names.items():
        pretrained = name.startswith(("text_encoder", "own_type_encoder"))
        assert of[id(weight)]["lr"] == (1e-5 if pretrained else 1e-3)
        exempt = name.endswith("bias") or "LayerNorm" in name or name == "log_scale"
        assert of[id(weight)]["weight_decay"] == (0.0 if exempt else 0.1)


def test_the_loader_gives_our_batches(trainer: StageTrainer) -> None:
    loader = trainer.get_train_dataloader()
    sizes = [len(batch["words"]) for batch in loader]
    assert sizes == [len(batch) for batch in trainer.batches]
    assert sum(sizes) == len(corpus()) - 1  # one sentence has no mention


def test_only_one_gpu_is_driven_by_a_process(trainer: StageTrainer) -> None:
    assert trainer.args.n_gpu <= 1


def test_batches_follow_the_epochs_also_when_resumed_inside_of_one(trainer: StageTrainer) -> None:
    follow = FollowEpochs(trainer.batches)
    for epoch, expected in ((None, 0), (0, 0), (1.0, 1), (6.5, 6)):
        follow.on_epoch_begin(trainer.args, TrainerState(epoch=epoch), TrainerControl())
        assert trainer.batches.epoch == expected


class OnGpu(Tensor):
    """A tensor that says it lies on a GPU."""

    is_cuda = True


def test_a_step_whose_gradients_are_no_numbers_is_left_out(
    trainer: StageTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip: Any = Trainer._clip_grad_norm
    monkeypatch.setattr(Trainer, "_clip_grad_norm", lambda self, model: clip(self, model).as_subclass(OnGpu))
    weights = [weight for weight in trainer.network.parameters() if weight.requires_grad]
    trainer.optimizer = torch.optim.AdamW(weights, lr=0.1, fused=True)  # as on GPUs
    changed = []
    for gradient in (1.0, float("nan"), float("inf"), 1.0):
        before = [weight.detach().clone() for weight in weights]
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        weights[0].grad = torch.full_like(weights[0], gradient)
        trainer._clip_grad_norm(trainer.network)
        trainer.optimizer.step()
        changed.append([not torch.equal(old, new) for old, new in zip(before, weights, strict=True)])
    assert [all(one) for one in changed] == [True, False, False, True]
    assert [any(one) for one in changed] == [True, False, False, True]


@pytest.mark.parametrize("on_disk", [True, False])
def test_the_best_is_kept_and_patience_ends(trainer: StageTrainer, tmp_path: Path, on_disk: bool) -> None:
    model = nn.Linear(1, 1)
    best = KeepBest(model, 200, tmp_path / "best" / "best.safetensors" if on_disk else None)
    state, control = TrainerState(), TrainerControl()
    stopped = []
    for step, f1 in ((100, 0.0), (200, 50.0), (300, 50.0), (400, 49.0)):
        nn.init.constant_(model.weight, step)
        state.global_step = step
        best.on_evaluate(trainer.args, state, control, {"eval_f1": f1})
        stopped.append(control.should_training_stop)
    assert stopped == [False, False, False, True]
    assert (state.best_metric, state.best_global_step) == (50.0, 200)
    best.restore()
    assert float(model.weight.detach()) == 200.0


def test_of_several_processes_only_the_first_writes(trainer: StageTrainer, tmp_path: Path) -> None:
    best = KeepBest(nn.Linear(1, 1), 10, tmp_path / "best.safetensors")
    state = TrainerState(is_world_process_zero=False)
    best.on_evaluate(trainer.args, state, TrainerControl(), {"eval_f1": 1.0})
    assert state.best_metric == 1.0
    assert not (tmp_path / "best.safetensors").exists()


def test_the_running_average_is_what_is_evaluated_and_goes_on_after_a_break(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    average = RunningAverage(model, 0.5)
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    state, control, seen = TrainerState(), TrainerControl(), []
    for step in range(1, 41):
        with torch.no_grad():
            model.weight.fill_(float(step))
        state.global_step = step
        average.on_step_end(arguments, state, control)
        if step % RunningAverage.EVERY == 0:
            seen.append(float(step))
    expected = seen[0]
    for updates, value in enumerate(seen, start=1):
        decay = min(0.5**RunningAverage.EVERY, updates / (updates + 9))
        expected = decay * expected + (1 - decay) * value
    with average.in_place():
        assert model.weight.detach()[0, 0].item() == pytest.approx(expected)
    assert model.weight.detach()[0, 0].item() == 40.0
    (tmp_path / "checkpoint-40").mkdir()
    average.on_save(arguments, state, control)
    resumed = RunningAverage(model, 0.5)
    resumed.load(str(tmp_path / "checkpoint-40"))
    assert resumed.updates == average.updates
    assert all(torch.equal(a, b) for a, b in zip(resumed.means, average.means, strict=True))


def test_the_clock_ends_a_run_and_the_rate_falls_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("onoma.training.trainer.time.monotonic", lambda: now[0])
    clock, control = Clock(60, 1000, 0.1), TrainerControl()
    rates = []
    for second, step in (0, 0), (3, 1), (6, 2), (33, 20), (33, 775), (59, 780), (61, 790):
        now[0] = 100.0 + second
        clock.on_step_end(TrainingArguments(), TrainerState(), control)
        assert control.should_training_stop == (second > 60)
        rates.append(clock.rate(step))
    assert rates == pytest.approx([0, 0.5, 1, 0.5, 0.25, 1 / 54, 0])


def test_a_run_of_some_seconds_has_a_clock_and_others_have_none(trainer: StageTrainer) -> None:
    optimiser = trainer.create_optimizer()
    trainer.recipe = trainer.recipe.model_copy(update={"minutes": 1e-3})
    scheduler = trainer.create_scheduler(10**6, optimiser)
    assert isinstance(scheduler, torch.optim.lr_scheduler.LambdaLR)
    assert any(isinstance(one, Clock) for one in trainer.callback_handler.callbacks)
    trainer.train()
    assert 0 < trainer.state.global_step < 10**4
