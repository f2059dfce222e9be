"""The script that makes a T5 of a BERT: a folder that transformers loads and that PUnifiedNER trains on."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedTokenizerFast, T5ForConditionalGeneration

import onoma
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.blocks.encoders import load_encoder
from onoma.training.run import train
from tiny import documents, train_tokenizer
from tiny_t5 import punifiedner_recipe, save_t5
from tiny_training import SHORT

SCRIPT = Path(__file__).parents[2] / "recipes" / "punifiedner" / "chinese_t5.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chinese_t5", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bert_folder(encoder_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT with a vocabulary that has enough unused tokens."""
    folder = tmp_path_factory.mktemp("bert")
    model: Any = load_encoder(encoder_folder)
    tokenizer = train_tokenizer([one.text for one in documents()])
    tokenizer.add_special_tokens([f"[unused{number}]" for number in range(1, 6)])
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    model.resize_token_embeddings(tokenizer.get_vocab_size())
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("own_layers", [False, True], ids=["of the BERT", "of a T5"])
def test_the_folder_loads_and_is_trained_on(
    own_layers: bool,
    script: ModuleType,
    bert_folder: Path,
    recipe_values: dict[str, Any],
    data_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = argparse.Namespace(
        t5=str(save_t5(tmp_path / "english")) if own_layers else None,
        decoder_layers=1,
        steps=30,
        denoising_steps=5,
        denoising_rate=1e-2,
        batch_size=16,
        seed=0,
    )
    script.make(str(bert_folder), tmp_path / "t5", [one.text for one in documents()], settings)
    printed = capsys.readouterr().out
    if own_layers:
        assert int(printed.split(" shared tokens")[0].split()[-1]) > 20
    else:
        before, after = (float(line.split()[-1]) for line in printed.splitlines() if "cosine" in line)
        assert after > before
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "t5")
    assert isinstance(model, T5ForConditionalGeneration)
    tokenizer = WordTokenizer.load(tmp_path / "t5")
    assert (model.config.eos_token_id, model.config.decoder_start_token_id) == (tokenizer.sep, tokenizer.cls)
    assert len(AutoTokenizer.from_pretrained(tmp_path / "t5")) == model.config.vocab_size
    recipe = punifiedner_recipe(
        recipe_values, tmp_path / "t5", options={"max_answer_tokens": 8, "stages": "joint"}, training=SHORT
    )
    folder = train(recipe, output=tmp_path / "run", data=data_folder)
    assert onoma.load(folder, device="cpu").runtime.counts()["answers"] == 0
