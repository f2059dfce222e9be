"""A small encoder out of a larger pretrained one, for a student to start from: fewer layers, tokens and neurons.

What is kept is copied, not trained: the small encoder is worth little before it has been trained further.

>>> texts = Vocabulary(texts_of(["data/drugs:train"]), least=2)                            # doctest: +SKIP
>>> shrink("bert-base-chinese", "small", layers=[0, 6, 11], vocabulary=texts, inner=2048)  # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from torch import Tensor, nn

from onoma.data.corpora import find_splits, read_info
from onoma.data.files import atomic_folder, plain_suffix
from onoma.data.formats import read
from onoma.data.texts import read_texts
from onoma.errors import OnomaError
from onoma.systems.blocks.encoders import load_encoder, save_tokenizer
from onoma.systems.blocks.families import FAMILIES
from onoma.text.words import segment

NAMES = FAMILIES["bert"]
CHARACTERS = (
    ("\u0021", "\u007e"),  # ASCII
    ("\u00a1", "\u00bf"),  # signs such as the middle dot of names
    ("\u2010", "\u205e"),  # dashes, quotation marks, ellipsis
    ("\u3001", "\u303f"),  # punctuation of Chinese and Japanese
    ("\u3400", "\u4dbf"),  # ideographs, less frequent
    ("\u4e00", "\u9fff"),  # ideographs
    ("\uff01", "\uff65"),  # full-width forms
    ("\uffe0", "\uffe6"),
)
"""Single characters that stay in every vocabulary, so that texts that were never seen can be read."""
MARKERS = ("[unused1]", "[unused2]")
"""Tokens without a meaning of their own that systems put around mentions."""
_BATCH = 10_000  # words that are tokenised at once


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which tokens are kept: those that occur in texts at least so many times, special ones and `CHARACTERS`."""

    texts: Iterable[str]
    least: int = 2


@dataclass(frozen=True, slots=True)
class Size:
    """How large an encoder is, without its pooling layer."""

    layers: int
    inner: int  # neurons between the two matrices of a layer's feed-forward part
    tokens: int
    parameters: int
    int8_bytes: int  # as `onoma export --int8` writes it, estimated


@dataclass(frozen=True, slots=True)
class Report:
    """What became smaller; and the share of the texts' tokens that are unknown, None without texts."""

    before: Size
    after: Size
    unknown_before: float | None = None
    unknown_after: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For a program to read."""
        return asdict(self)


def shrink(
    encoder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    layers: Sequence[int],
    vocabulary: Vocabulary | None = None,
    inner: int | None = None,
) -> Report:
    """Write a smaller copy of a pretrained encoder into a new folder, which `encoder:` of a recipe may name.

    `layers` are kept in the given order, counted from 0. Without a `vocabulary`, all tokens are kept. Of each
    feed-forward part, the `inner` neurons with the greatest weights stay.
    """
    with atomic_folder(output) as folder:
        model: Any = load_encoder(encoder)
        if model.config.model_type != "bert":
            kind = model.config.model_type
            raise OnomaError(
                f"{encoder!s} is an encoder of the kind {kind!r}; only those like BERT can be made smaller"
            )
        before = _size(model)
        _keep_layers(model, layers)
        if inner is not None:
            _keep_neurons(model, inner)
        save_tokenizer(str(encoder), folder)
        unknown = _cut_vocabulary(model, folder / "tokenizer.json", vocabulary) if vocabulary else (None, None)
        model.save_pretrained(folder)
    return Report(before, _size(model), *unknown)


def texts_of(sources: Iterable[str]) -> Iterator[str]:
    """The texts of corpora, with the names and descriptions of their types, and of plain text files (.txt), by line.

    Of a corpus folder all splits are read but those for tests; FOLDER:SPLIT is one split.
    """
    for source in sources:
        if os.path.isfile(source) and plain_suffix(source) == ".txt":
            yield from (document.text for document in read_texts(source, by_line=True))
        else:
            yield from _corpus_texts(source)


def _corpus_texts(source: str) -> Iterator[str]:
    splits, info = find_splits(source), read_info(source)
    whole = os.path.isdir(source)
    for name, path in splits.items():
        if not (whole and name.startswith("test")):
            yield from (document.text for document in read(path))
    yield from (info.natural_name(label) for label in info.types)
    yield from info.descriptions.values()


def _keep_layers(model: Any, layers: Sequence[int]) -> None:
    count = len(model.encoder.layer)
    if not layers or len(set(layers)) < len(layers) or not all(0 <= number < count for number in layers):
        message = f"layers must be different numbers from 0 to {count - 1}, got {','.join(map(str, layers))!r}"
        raise OnomaError(message)
    model.encoder.layer = nn.ModuleList([model.encoder.layer[number] for number in layers])
    model.config.num_hidden_layers = len(layers)


@torch.no_grad()
def _keep_neurons(model: Any, inner: int) -> None:
    """A neuron counts as much as it can change the state: by the lengths of what it reads and writes with."""
    size = model.config.intermediate_size
    if not 1 <= inner <= size:
        raise OnomaError(f"the encoder has {size} neurons in each feed-forward part; keep 1 to {size}, not {inner}")
    for layer in model.encoder.layer:
        reading, writing = layer.get_submodule(NAMES.inner), layer.get_submodule(NAMES.outer)
        importance = reading.weight.norm(dim=1) * writing.weight.norm(dim=0)
        kept = importance.topk(inner).indices.sort().values
        reading.weight, reading.bias = _parameter(reading.weight[kept]), _parameter(reading.bias[kept])
        writing.weight = _parameter(writing.weight[:, kept])
        reading.out_features = writing.in_features = inner
    model.config.intermediate_size = inner


def _cut_vocabulary(model: Any, path: Path, vocabulary: Vocabulary) -> tuple[float, float]:
    """Cut the tokenizer and the table of words; returns the share of unknown tokens before and after."""
    words = _count_words(vocabulary.texts)
    whole = Tokenizer.from_file(str(path))
    if not isinstance(whole.model, WordPiece):
        raise OnomaError("the tokenizer of the encoder is no WordPiece model; the vocabulary of others cannot be cut")
    tokens = _count_tokens(whole, words)
    _keep_tokens(model, _renumber(path, _kept_tokens(whole, tokens, vocabulary.least)))
    unknown, cut = whole.model.unk_token, _count_tokens(Tokenizer.from_file(str(path)), words)
    return tokens[unknown] / max(tokens.total(), 1), cut[unknown] / max(cut.total(), 1)


def _keep_tokens(model: Any, numbers: Mapping[int, int]) -> None:
    """Cut the table of words to the tokens that have a new number; the configuration names special ones by theirs."""
    config, words = model.config, model.embeddings.word_embeddings
    for name, value in config.to_dict().items():
        if name.endswith("_token_id") and value is not None:
            setattr(config, name, numbers.get(value))
    rows = nn.Embedding(len(numbers), words.embedding_dim, config.pad_token_id)
    rows.weight = _parameter(words.weight[list(numbers)])
    model.embeddings.word_embeddings = rows
    config.vocab_size = len(numbers)


def _parameter(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.detach().clone())


def _count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs: there are far fewer different words than words, so each is tokenised once."""
    words: Counter[str] = Counter()
    for text in texts:
        words.update(text[start:end] for start, end in segment(text).tolist())
    return words


def _count_tokens(tokenizer: Tokenizer, words: Mapping[str, int]) -> Counter[str]:
    tokens: Counter[str] = Counter()
    remaining = iter(words.items())
    while part := list(islice(remaining, _BATCH)):
        encodings = tokenizer.encode_batch([[word] for word, _ in part], is_pretokenized=True, add_special_tokens=False)
        for encoding, (_, count) in zip(encodings, part, strict=True):
            for token in encoding.tokens:
                tokens[token] += count
    return tokens


def _kept_tokens(tokenizer: Tokenizer, tokens: Mapping[str, int], least: int) -> set[str]:
    """The tokens that occur often enough, special ones, and all characters that must stay."""
    model, vocabulary = tokenizer.model, tokenizer.get_vocab()
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    special |= {*tokenizer.encode("").tokens, model.unk_token, *MARKERS}
    used = {token for token, count in tokens.items() if count >= least}
    characters = {token for token in vocabulary if _is_kept_character(token)}
    inside = {
        model.continuing_subword_prefix + character for character in characters if _may_be_inside(tokenizer, character)
    }
    return (special | used | characters | inside).intersection(vocabulary)


def _is_kept_character(token: str) -> bool:
    return len(token) == 1 and any(first <= token <= last for first, last in CHARACTERS)


def _may_be_inside(tokenizer: Tokenizer, character: str) -> bool:
    """Whether a character can stand inside of a word: without its continuation piece, such words would be unknown."""
    text = character * 2
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    return tokenizer.pre_tokenizer is None or len(tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1


def _renumber(path: Path, kept: Collection[str]) -> dict[int, int]:
    """Write the tokenizer with the kept tokens alone; returns their new numbers by the old ones, in order."""
    stored = json.loads(path.read_text("utf-8"))
    model, added = stored["model"], stored["added_tokens"]
    everything = model["vocab"] | {token["content"]: token["id"] for token in added}
    numbers = {old: new for new, old in enumerate(sorted(everything[token] for token in kept))}
    model["vocab"] = {token: numbers[old] for token, old in model["vocab"].items() if old in numbers}
    for token in added:
        token["id"] = numbers[token["id"]]
    if stored["padding"]:
        stored["padding"]["pad_id"] = numbers[stored["padding"]["pad_id"]]
    _renumber_edges(stored["post_processor"] or {}, numbers)
    path.write_text(json.dumps(stored, ensure_ascii=False, indent=2), "utf-8")
    return numbers


def _renumber_edges(processor: dict[str, Any], numbers: Mapping[int, int]) -> None:
    """The tokens at both ends of a text; processors of either kind name them with their numbers."""
    for token in processor.get("special_tokens", {}).values():
        token["ids"] = [numbers[old] for old in token["ids"]]
    for edge in ("sep", "cls"):
        if edge in processor:
            name, old = processor[edge]
            processor[edge] = [name, numbers[old]]


def _size(model: Any) -> Size:
    weights = dict(model.named_parameters())
    matrices = sum(weight.numel() for name, weight in weights.items() if _is_rounded(name, weight))
    parameters = sum(weight.numel() for weight in weights.values())
    config = model.config
    return Size(
        layers=config.num_hidden_layers,
        inner=config.intermediate_size,
        tokens=config.vocab_size,
        parameters=parameters,
        int8_bytes=matrices + 4 * (parameters - matrices),
    )


def _is_rounded(name: str, weight: Tensor) -> bool:
    """Whether the weight is kept in 8 bits: the matrices of layers and the table of words are."""
    return weight.dim() == 2 and (name.startswith("encoder.") or "word_embeddings" in name)
