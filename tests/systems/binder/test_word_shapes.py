"""Word shapes: a model on an encoder that reads lower-case letters only tells "Rose" from "rose"."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, normalizers
from transformers import DistilBertConfig, DistilBertModel

import onoma
from onoma import Corpus, Extractor, OnomaError
from onoma.data import write
from onoma.inputs.tokenizer import SHAPE_BITS, TOKEN_MASK, WORD_SHAPES, WordTokenizer
from onoma.models.export import export
from onoma.systems.binder.collator import BinderCollator
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.encoders import add_word_shapes
from onoma.training.examples import make_examples
from onoma.training.run import train
from systems.binder.test_restore import assert_close
from tiny import TYPES, corpus, document, train_tokenizer
from tiny_training import changed_recipe, save_encoder, small_recipe

torch.set_num_threads(1)

PERSON = TYPES[-1]
NAMES = ("Rose", "Will", "Grace", "Mark", "Violet", "Frank")
PATTERNS = ("We saw {} today .", "Nobody likes {} here .", "Then {} came back .", "Give me {} , please .")
MARKED = [
    pattern.format(word)
    for pattern, name in product(PATTERNS, NAMES)
    for word in (f"[person|{name}]", name.lower(), f"[person|{name.upper()}]")
]


def lower_case(encoder: str | Path) -> Any:
    """The folder of an encoder whose tokenizer reads lower-case letters only."""
    path = str(Path(encoder) / "tokenizer.json")
    tokenizer = Tokenizer.from_file(path)
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.save(path)
    return encoder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A model with word shapes, and one without."""
    root = tmp_path_factory.mktemp("names")
    documents = [document(one) for one in MARKED]
    write(documents, root / "data" / "names" / "train.jsonl")
    write(documents[::4], root / "data" / "names" / "dev.jsonl")
    values = small_recipe(lower_case(save_encoder(root / "bert", documents)))
    values["data"] |= {"corpora": [{"path": "names", "test": None}], "drop_empty_windows": False}
    values["training"] |= {"max_steps": 150, "eval_steps": 75, "checkpoints": False, "threshold_from": "dev"}
    recipes = {shapes: changed_recipe(values, options={"word_shapes": shapes}) for shapes in (True, False)}
    return {shapes: train(one, output=root / f"run-{shapes}", data=root / "data") for shapes, one in recipes.items()}


@pytest.fixture(scope="module")
def exported(trained: dict[bool, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The model with word shapes as ONNX, in int8 or not."""
    return {int8: export(trained[True], tmp_path_factory.mktemp("onnx") / "model", int8) for int8 in (True, False)}


def names(ner: Extractor, text: str) -> list[str]:
    return [one.text for one in ner.extract(text, ["person"])]


def assert_tells_names(ner: Extractor) -> None:
    assert names(ner, "Nobody likes Rose here . We saw rose today .") == ["Rose"]
    assert names(ner, "Then GRACE came back . Then grace came back .") == ["GRACE"]


def test_a_model_with_shapes_tells_names_from_words(trained: dict[bool, Path]) -> None:
    assert_tells_names(onoma.load(trained[True], device="cpu"))
    without = onoma.load(trained[False], device="cpu")
    texts = ("We saw Rose today .", "We saw rose today .")
    upper, lower = ([one.score for one in without.extract(text, ["person"], threshold=0.0)] for text in texts)
    assert upper == lower


@pytest.mark.parametrize("int8", [True, False])
def test_an_exported_model_tells_them_as_well(exported: dict[bool, Path], int8: bool) -> None:
    assert_tells_names(onoma.load(exported[int8]))


def test_a_restored_model_has_the_shapes(exported: dict[bool, Path]) -> None:
    assert_close(exported[False], corpus(), 1e-3)


def test_an_exported_model_is_trained_further(exported: dict[bool, Path], tmp_path: Path) -> None:
    write([document(one) for one in MARKED], tmp_path / "data" / "names" / "train.jsonl")
    write([document(one) for one in MARKED[::4]], tmp_path / "data" / "names" / "dev.jsonl")
    values: dict[str, Any] = {
        "start": str(exported[True]),
        "data": {"corpora": [{"path": "names", "test": None}], "drop_empty_windows": False},
        "training": {"max_steps": 5, "eval_steps": 5, "checkpoints": False, "threshold_from": "dev"},
    }
    assert_tells_names(onoma.load(train(changed_recipe(values), output=tmp_path / "run", data=tmp_path / "data")))


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        *(("rose", "lower"), ("Rose", "capitalised"), ("I", "capitalised"), ("NATO", "upper"), ("iPhone", "mixed")),
        *(("McDonald", "mixed"), ("3", "lower"), ("B2B", "upper"), ("中", "lower"), ("Ünal", "capitalised")),
    ],
)
def test_shapes_of_words(word: str, shape: str) -> None:
    tokenizer = train_tokenizer(["rose Rose"])
    with_shapes, without = (WordTokenizer(tokenizer, shapes).tokenize([word, "x"]) for shapes in (True, False))
    assert (with_shapes.ids & TOKEN_MASK).tolist() == without.ids.tolist()
    numbers = np.repeat([WORD_SHAPES.index(shape), 0], with_shapes.counts)
    assert (with_shapes.ids >> SHAPE_BITS).tolist() == numbers.tolist()


def test_some_windows_are_shown_without_shapes() -> None:
    documents = [document(one) for one in MARKED]
    tokenizer = WordTokenizer(train_tokenizer([one.text for one in documents]), word_shapes=True)
    names = Corpus("names", documents, [PERSON])
    examples, _ = make_examples([names], {"person": 0}, tokenizer, max_tokens=64, overlap=8, drop_empty=False)
    seen = []
    for rate in (0.0, 0.5, 1.0):
        options = BinderOptions(word_shapes=True, shape_dropout=rate)
        ids = BinderCollator([PERSON], tokenizer, options)(examples)["ids"]
        seen.append(int((ids >> SHAPE_BITS).any(axis=1).sum()))
    assert seen[0] == len(MARKED)  # each begins with a capital
    assert 0 < seen[1] < len(MARKED)
    assert seen[2] == 0


def test_encoders_of_unknown_families_are_refused() -> None:
    encoder = DistilBertModel(DistilBertConfig(vocab_size=30, dim=16, n_layers=1, n_heads=2, hidden_dim=32))
    with pytest.raises(OnomaError, match="cannot read word shapes"):
        add_word_shapes(encoder)
