"""Smaller copies of encoders: what is kept is unchanged, and the result is an encoder like any other."""

from __future__ import annotations

import importlib.util
import json
import string
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.processors import BertProcessing, TemplateProcessing
from torch import nn
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast

import onoma
from onoma import Document
from onoma.data import write
from onoma.errors import OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.models.export import export
from onoma.models.weights import save_model
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.encoders import load_encoder
from tiny import OPTIONS
from tiny_encoders import tiny_encoder

SCRIPT = Path(__file__).parents[2] / "recipes" / "embedded" / "shrink.py"
_spec = importlib.util.spec_from_file_location("shrink", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
_module = sys.modules["shrink"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
Vocabulary, shrink, texts_of = _module.Vocabulary, _module.shrink, _module.texts_of

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
IDEOGRAPHS = "我们明天去北京看朋友"
WORDS = ["Tom", "Paris", "fle", "##w", "##le", "zebra", "##bra", "to", "sings", "##友", "я"]
# as in real vocabularies, special tokens do not come first, and there are unused tokens between others
TOKENS = dict.fromkeys(
    ["zebra", "[unused1]", "[unused2]", "[unused3]", *SPECIAL, *string.punctuation, *string.digits]
    + [f"{prefix}{letter}" for letter in string.ascii_letters for prefix in ("", "##")]
    + [f"##{digit}" for digit in string.digits]
    + [*IDEOGRAPHS, "。", "，", *WORDS]
)
TEXTS = ["Tom flew to Paris.", "Tom flew to Paris, 3 times", "我们明天去北京。", "zebra"]
LAYERS, NEURONS = 4, 32


def word_piece(**settings: Any) -> Tokenizer:
    """A tokenizer with the vocabulary above."""
    numbers = {token: number for number, token in enumerate(TOKENS)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", **settings))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    edges = [(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=edges)
    return tokenizer


def save_encoder(folder: Path, tokenizer: Tokenizer, encoder: Any = None) -> Path:
    size = tokenizer.get_vocab_size()
    pad = tokenizer.token_to_id("[PAD]")
    encoder = encoder or tiny_encoder("bert", vocab_size=size, num_hidden_layers=LAYERS, pad_token_id=pad)
    encoder.save_pretrained(folder)
    special = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of four layers."""
    return save_encoder(tmp_path_factory.mktemp("encoders") / "large", word_piece())


@pytest.fixture(scope="module")
def small(large: Path) -> Path:
    """The first and last layer of it, with the tokens that occur twice in the texts."""
    shrink(large, large.parent / "small", layers=[0, 3], vocabulary=Vocabulary(TEXTS), inner=20)
    return large.parent / "small"


@torch.inference_mode()
def states(encoder: Any, folder: Path, text: str = "Tom flew to Paris . 我们去北京") -> torch.Tensor:
    ids = torch.tensor([Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids])
    return encoder.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state


def vocabulary(folder: Path) -> dict[str, int]:
    return Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()


def test_kept_tokens_have_the_same_embeddings(large: Path, small: Path) -> None:
    before, after = vocabulary(large), vocabulary(small)
    assert sorted(after.values()) == list(range(len(after)))
    rows, kept = (load_encoder(folder).embeddings.word_embeddings.weight for folder in (large, small))
    for token, number in after.items():
        assert torch.equal(kept[number], rows[before[token]]), token
    for text in TEXTS[:3]:
        tokenizers = [AutoTokenizer.from_pretrained(folder) for folder in (large, small)]
        assert tokenizers[0].tokenize(text) == tokenizers[1].tokenize(text)


def test_used_and_special_tokens_and_single_characters_are_kept(small: Path) -> None:
    kept = set(vocabulary(small))
    assert {*SPECIAL, "[unused1]", "[unused2]", "Tom", "fle", "##w", "Paris", "to"} < kept
    assert {"友", "Q", "##Q", "7", "##7", "。", "~"} < kept  # although they do not occur in the texts
    assert kept.isdisjoint({"sings", "##bra", "[unused3]", "я"})
    assert "zebra" not in kept  # it occurs only once
    assert "##友" not in kept  # it never follows another character in a word


def test_special_tokens_are_renumbered_everywhere(large: Path, small: Path) -> None:
    pretrained, tokenizer = AutoTokenizer.from_pretrained(small), WordTokenizer.load(small)
    numbers = vocabulary(small)
    assert pretrained("Tom").input_ids == [numbers[token] for token in ("[CLS]", "Tom", "[SEP]")]
    assert [tokenizer.cls, tokenizer.sep, tokenizer.pad] == [numbers[token] for token in ("[CLS]", "[SEP]", "[PAD]")]
    assert pretrained.pad_token_id == AutoModel.from_pretrained(small).config.pad_token_id == tokenizer.pad
    assert pretrained.mask_token_id == numbers["[MASK]"] != vocabulary(large)["[MASK]"]


def test_padding_and_other_processors_are_renumbered(tmp_path: Path) -> None:
    tokenizer = word_piece()
    tokenizer.post_processor = BertProcessing(*((t, tokenizer.token_to_id(t)) for t in ("[SEP]", "[CLS]")))
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id("[PAD]"), length=5)
    save_encoder(tmp_path / "large", tokenizer)
    shrink(tmp_path / "large", tmp_path / "small", layers=[0], vocabulary=Vocabulary(TEXTS))
    stored = json.loads((tmp_path / "small" / "tokenizer.json").read_text("utf-8"))
    assert stored["padding"]["pad_id"] == vocabulary(tmp_path / "small")["[PAD]"]
    encoded = Tokenizer.from_file(str(tmp_path / "small" / "tokenizer.json")).encode("Tom")
    assert encoded.ids[:3] == [vocabulary(tmp_path / "small")[token] for token in ("[CLS]", "Tom", "[SEP]")]


def test_with_everything_kept_nothing_changes(large: Path, tmp_path: Path) -> None:
    report = shrink(large, tmp_path / "same", layers=range(LAYERS), inner=NEURONS)
    assert report.before == report.after
    assert report.unknown_after is None
    torch.testing.assert_close(states(load_encoder(tmp_path / "same"), large), states(load_encoder(large), large))
    assert vocabulary(tmp_path / "same") == vocabulary(large)


def test_without_tokens_that_are_never_made_every_text_has_the_same_tokens(large: Path, tmp_path: Path) -> None:
    shrink(large, tmp_path / "small", layers=[0], vocabulary=Vocabulary(min_count=0))
    before, after = (Tokenizer.from_file(str(folder / "tokenizer.json")) for folder in (large, tmp_path / "small"))
    assert before.get_vocab().keys() - after.get_vocab().keys() == {"##友"}
    for text in [*TEXTS, "flewble zebrabra 朋友a1 ?!", "я 友友"]:
        assert before.encode(text).tokens == after.encode(text).tokens


@pytest.mark.parametrize("layers", [[0], [0, 3], [2, 1]])
def test_layers_are_kept_in_the_given_order(large: Path, tmp_path: Path, layers: list[int]) -> None:
    shrink(large, tmp_path / "out", layers=layers, vocabulary=Vocabulary(TEXTS, min_count=1))
    by_hand: Any = load_encoder(large)
    by_hand.encoder.layer = nn.ModuleList([by_hand.encoder.layer[number] for number in layers])
    out = tmp_path / "out"
    torch.testing.assert_close(states(AutoModel.from_pretrained(out), out), states(by_hand, large))


@pytest.mark.parametrize("texts", [None, Vocabulary(TEXTS)])
def test_neurons_without_output_are_removed(tmp_path: Path, texts: Any) -> None:
    encoder: Any = tiny_encoder("bert", vocab_size=len(TOKENS), num_hidden_layers=2)
    with torch.no_grad():
        for layer in encoder.encoder.layer:
            layer.intermediate.dense.bias[::4] = -1000  # never active, whatever their weights
            layer.intermediate.dense.weight[::4] *= 10
            layer.output.dense.weight[:, 1::4] = 0
    save_encoder(tmp_path / "large", word_piece(), encoder)
    report = shrink(tmp_path / "large", tmp_path / "small", layers=[0, 1], vocabulary=texts, inner=NEURONS // 2)
    assert (report.before.inner, report.after.inner) == (NEURONS, NEURONS // 2)
    small: Any = load_encoder(tmp_path / "small")
    assert small.encoder.layer[0].intermediate.dense.weight.shape[0] == NEURONS // 2
    torch.testing.assert_close(states(small, tmp_path / "small"), states(encoder, tmp_path / "large"))


KEPT = string.ascii_letters + string.digits + string.punctuation + IDEOGRAPHS + "。， \n"


@given(st.text(KEPT, max_size=90).filter(lambda text: not any(token in text for token in SPECIAL)))
def test_kept_characters_never_become_unknown(small: Path, text: str) -> None:
    tokenizer = Tokenizer.from_file(str(small / "tokenizer.json"))
    assert "[UNK]" not in tokenizer.encode(text).tokens
    assert "".join(token.removeprefix("##") for token in tokenizer.encode(text).tokens[1:-1]) == "".join(text.split())


def test_the_report_has_sizes_and_shares_of_unknown_tokens(large: Path, tmp_path: Path) -> None:
    texts = ["Tom я", "Tom ы"]  # the first is known but too rare to be kept, the second is unknown
    report = shrink(large, tmp_path / "out", layers=[1, 2], vocabulary=Vocabulary(texts), inner=20)
    assert (report.unknown_before, report.unknown_after) == (0.25, 0.5)
    encoder = load_encoder(tmp_path / "out")
    sizes = {name: weight.numel() for name, weight in encoder.named_parameters()}
    assert report.after.parameters == sum(sizes.values()) < report.before.parameters
    whole = [name for name in sizes if any(part in name for part in ("bias", "LayerNorm", "position", "token_type"))]
    assert report.after.int8_bytes == sum(size * (4 if name in whole else 1) for name, size in sizes.items())
    assert (report.after.layers, report.after.tokens) == (2, len(vocabulary(tmp_path / "out")))


def test_a_binder_on_a_small_encoder_can_be_exported(small: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Binder(load_encoder(small), None, BinderOptions(**OPTIONS), 64)
    config = ModelConfig("binder", encoder="small", max_tokens=64, overlap=8, options=OPTIONS)
    save_model(model, config, small, tmp_path / "m")
    export(tmp_path / "m", tmp_path / "onnx")
    export(tmp_path / "m", tmp_path / "int8", int8=True)
    found = [
        onoma.load(tmp_path / name, backend=backend).extract(TEXTS[0], ["person"], threshold=0.01, overlap="any")
        for name, backend in (("m", "torch"), ("onnx", "onnx"))
    ]
    assert found[0]
    assert [(one.start, one.end) for one in found[0]] == [(one.start, one.end) for one in found[1]]
    assert [one.score for one in found[1]] == pytest.approx([one.score for one in found[0]], abs=1e-4)
    onoma.load(tmp_path / "int8", backend="onnx").extract(TEXTS[2], ["城市"])


def test_texts_come_from_corpora_and_files(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        write([Document(f"a text to {split}")], tmp_path / "corpus" / f"{split}.jsonl")
    (tmp_path / "corpus" / "meta.json").write_text('{"types": ["PER"], "type_names": {"PER": "person"}}', "utf-8")
    (tmp_path / "corpus" / "types.jsonl").write_text('{"name": "PER", "description": "a human"}\n', "utf-8")
    (tmp_path / "plain.txt").write_text("one\ntwo\n", "utf-8")
    corpus = str(tmp_path / "corpus")
    types = ["person", "a human"]
    assert list(texts_of([corpus])) == ["a text to train", "a text to dev", *types]
    assert list(texts_of([f"{corpus}:test"])) == ["a text to test", *types]
    assert list(texts_of([f"{corpus}/dev.jsonl", str(tmp_path / "plain.txt")])) == [
        "a text to dev",
        *types,
        "one",
        "two",
    ]
    with pytest.raises(OnomaError, match="no such file"):
        list(texts_of([str(tmp_path / "missing")]))


@pytest.mark.parametrize(
    ("layers", "inner", "message"),
    [
        ([0, 4], None, "different numbers from 0 to 3, got '0,4'"),
        ([1, 1], None, "different numbers from 0 to 3, got '1,1'"),
        ([], None, "different numbers from 0 to 3"),
        ([0], 33, "keep 1 to 32, not 33"),
        ([0], 0, "keep 1 to 32, not 0"),
    ],
)
def test_wrong_sizes_are_refused(
    large: Path, tmp_path: Path, layers: Sequence[int], inner: int | None, message: str
) -> None:
    with pytest.raises(OnomaError, match=message):
        shrink(large, tmp_path / "out", layers=layers, inner=inner)
    assert not list(tmp_path.iterdir())  # no partial folder is left


def test_other_encoders_and_tokenizers_are_refused(large: Path, tmp_path: Path) -> None:
    with pytest.raises(OnomaError, match="there is no encoder folder"):
        shrink(tmp_path / "missing", tmp_path / "out", layers=[0])
    with pytest.raises(OnomaError, match="exists already"):
        shrink(large, large, layers=[0])
    with pytest.raises(OnomaError, match="there is no word in the texts"):
        shrink(large, tmp_path / "out", layers=[0], vocabulary=Vocabulary([" "]))
    save_encoder(tmp_path / "roberta", word_piece(), tiny_encoder("roberta", vocab_size=len(TOKENS)))
    with pytest.raises(OnomaError, match="type 'roberta'; only BERT"):
        shrink(tmp_path / "roberta", tmp_path / "out", layers=[0])
    other = word_piece()
    other.model = models.WordLevel({token: number for number, token in enumerate(TOKENS)}, unk_token="[UNK]")
    save_encoder(tmp_path / "words", other)
    with pytest.raises(OnomaError, match="not a WordPiece model"):
        shrink(tmp_path / "words", tmp_path / "out", layers=[0], vocabulary=Vocabulary(TEXTS))
