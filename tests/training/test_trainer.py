"""One stage of training: learning rates, batches and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.binder.collator import BinderCollator
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.encoders import load_encoder
from onoma.training.callbacks import ClockSchedule
from onoma.training.examples import make_examples
from onoma.training.recipe import TrainingRecipe
from onoma.training.samplers import BucketedSampler
from onoma.training.stages import Stage
from onoma.training.trainer import StageTrainer, training_arguments
from tiny import TYPES, corpus

torch.set_num_threads(1)


@pytest.fixture
def trainer(encoder_folder: Path, tokenizer: WordTokenizer, tmp_path: Path) -> StageTrainer:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    examples, _ = make_examples([corpus()], numbers, tokenizer, max_tokens=130, overlap=8, drop_empty=True)
    options = BinderOptions(vector_size=8, width_size=8)
    model = Binder(load_encoder(encoder_folder), load_encoder(encoder_folder), options, 130)
    recipe = TrainingRecipe(
        learning_rate=1e-5, head_learning_rate=1e-3, weight_decay=0.1, batch_size=16, dataloader_workers=0
    )
    stage = Stage("binder", examples, BinderCollator(TYPES, tokenizer, options), lambda: {"f1": 1.0})
    sampler = BucketedSampler(examples, recipe.batch_size, seed=0)
    return StageTrainer(model, training_arguments(recipe, tmp_path, 0), stage, sampler, recipe, [])


def test_pretrained_and_new_weights_have_their_own_learning_rates(trainer: StageTrainer) -> None:
    optimizer = trainer.create_optimizer()
    groups: dict[int, Any] = {id(weight): group for group in optimizer.param_groups for weight in group["params"]}
    names = dict(trainer.network.named_parameters())
    assert len(groups) == len(names)
    for name, weight in names.items():
        pretrained = name.startswith(("text_encoder", "own_type_encoder"))
        assert groups[id(weight)]["lr"] == (1e-5 if pretrained else 1e-3)
        exempt = name.endswith("bias") or "LayerNorm" in name or name == "log_scale"
        assert groups[id(weight)]["weight_decay"] == (0.0 if exempt else 0.1)


def test_the_loader_yields_the_batches_of_the_sampler(trainer: StageTrainer) -> None:
    sizes = [len(batch["words"]) for batch in trainer.get_train_dataloader()]
    assert sizes == [len(batch) for batch in trainer.sampler]
    assert sum(sizes) == len(corpus()) - 1  # one sentence has no mention


def test_a_process_uses_at_most_one_gpu(trainer: StageTrainer) -> None:
    assert trainer.args.n_gpu <= 1


@pytest.mark.parametrize(("monitor", "greater"), [("f1", True), ("loss", False)])
def test_the_monitored_score_is_that_of_the_stage(monitor: Any, greater: bool, tmp_path: Path) -> None:
    arguments = training_arguments(TrainingRecipe(), tmp_path, 0, monitor)
    assert (arguments.metric_for_best_model, arguments.greater_is_better) == (monitor, greater)


def test_training_with_a_time_limit_follows_the_clock(trainer: StageTrainer) -> None:
    optimizer = trainer.create_optimizer()
    trainer.recipe = trainer.recipe.model_copy(update={"max_minutes": 1e-3})
    scheduler = trainer.create_scheduler(10**6, optimizer)
    assert isinstance(scheduler, torch.optim.lr_scheduler.LambdaLR)
    assert any(isinstance(one, ClockSchedule) for one in trainer.callback_handler.callbacks)
    trainer.train()
    assert 0 < trainer.state.global_step < 10**4


def test_training_without_a_time_limit_has_no_clock(trainer: StageTrainer) -> None:
    trainer.create_scheduler(100, trainer.create_optimizer())
    assert not any(isinstance(one, ClockSchedule) for one in trainer.callback_handler.callbacks)
