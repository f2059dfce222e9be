"""A smaller copy of a pretrained encoder: fewer layers, tokens and feed-forward neurons.

The weights that are kept are copied, not trained, so the small encoder is useful only after further training.

>>> texts = Vocabulary(texts_of(["data/drugs:train"]), min_count=2)                        # doctest: +SKIP
>>> shrink("bert-base-chinese", "small", layers=[0, 6, 11], vocabulary=texts, inner=2048)  # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from torch import Tensor, nn

from onoma.data.corpora import find_splits, read_info
from onoma.data.formats import read
from onoma.data.texts import read_texts
from onoma.errors import OnomaError
from onoma.files import atomic_folder, plain_suffix
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
"""Single characters that are always kept, so that unseen texts can be read."""
MARKERS = ("[unused1]", "[unused2]")
"""Unused tokens that systems put around mentions."""
_BATCH = 10_000  # words that are tokenised at once
_MIXTURE = (128, 62)  # texts and their tokens for the choice of neurons


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Which tokens are kept: those that occur in texts at least `min_count` times, special ones and `CHARACTERS`.

    With a `min_count` of 0, all but those that the tokenizer never makes, so that every text has the same tokens as
    before: a Chinese BERT has 7,322 ideographs as continuations of words, but each ideograph is a word of its own.
    """

    texts: Iterable[str] = ()
    min_count: int = 2


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an encoder without its pooling layer."""

    layers: int
    inner: int  # neurons of a feed-forward network
    tokens: int
    parameters: int
    int8_bytes: int  # as `onoma export --int8` writes it, estimated


@dataclass(frozen=True, slots=True)
class Report:
    """The sizes before and after, and the share of unknown tokens in the texts (None without texts)."""

    before: Size
    after: Size
    unknown_before: float | None = None
    unknown_after: float | None = None


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
    feed-forward network, the `inner` neurons with the largest outputs are kept, for tokens as frequent as in the texts.
    """
    with atomic_folder(output) as folder:
        model: Any = load_encoder(encoder)
        if model.config.model_type != "bert":
            raise OnomaError(
                f"{encoder!s} is an encoder of the type {model.config.model_type!r}; only BERT can be shrunk"
            )
        before, path = _size(model), folder / "tokenizer.json"
        save_tokenizer(str(encoder), folder)
        _keep_layers(model, layers)
        _require_neurons(model.config, inner)  # before long work
        usage = None if vocabulary is None else _cut_vocabulary(model, path, vocabulary)
        if inner is not None:
            _keep_neurons(model, inner, _mixture(Tokenizer.from_file(str(path)), usage and usage.tokens))
        model.save_pretrained(folder)
    return Report(before, _size(model), usage and usage.unknown_before, usage and usage.unknown)


def texts_of(sources: Iterable[str]) -> Iterator[str]:
    """The texts of corpora, the names and descriptions of their types, and the lines of plain text files (.txt).

    All splits of a corpus folder are read except those for tests; FOLDER:SPLIT is one split.
    """
    for source in sources:
        if os.path.isfile(source) and plain_suffix(source) == ".txt":
            yield from (document.text for document in read_texts(source, by_line=True).documents)
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


def _require_neurons(config: Any, inner: int | None) -> None:
    size = config.intermediate_size
    if inner is not None and not 1 <= inner <= size:
        raise OnomaError(f"the encoder has {size} neurons in each feed-forward network; keep 1 to {size}, not {inner}")


@torch.no_grad()
def _keep_neurons(model: Any, inner: int, ids: Tensor) -> None:
    """Keep the neurons with the largest outputs: root mean square of the activation times the norm of its weights.

    Weights alone do not suffice: many neurons with large weights are hardly ever active.
    """
    sizes = _output_sizes(model, ids)
    for layer, outputs in zip(model.encoder.layer, sizes, strict=True):
        reading, writing = layer.get_submodule(NAMES.inner), layer.get_submodule(NAMES.outer)
        kept = outputs.topk(inner).indices.sort().values
        reading.weight, reading.bias = _parameter(reading.weight[kept]), _parameter(reading.bias[kept])
        writing.weight = _parameter(writing.weight[:, kept])
        reading.out_features = writing.in_features = inner
    model.config.intermediate_size = inner


def _output_sizes(model: Any, ids: Tensor) -> list[Tensor]:
    """The size of the output of each neuron of each layer, for texts of these tokens."""
    found: list[Tensor] = []

    def keep(writing: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        weight: Any = writing.weight
        found.append(inputs[0].square().mean((0, 1)).sqrt() * weight.norm(dim=0))

    hooks = [layer.get_submodule(NAMES.outer).register_forward_pre_hook(keep) for layer in model.encoder.layer]
    model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids))
    for hook in hooks:
        hook.remove()
    return found


def _mixture(tokenizer: Tokenizer, tokens: Mapping[str, int] | None) -> Tensor:
    """Random texts (texts, tokens) with the given frequencies of tokens; without them, all are equally frequent."""
    numbers = tokenizer.get_vocab()
    weights = torch.zeros(max(numbers.values()) + 1)
    for token, number in numbers.items():
        weights[number] = 1 if tokens is None else tokens.get(token, 0)
    drawn = torch.multinomial(weights, math.prod(_MIXTURE), True, generator=torch.Generator().manual_seed(0))
    edges = [torch.full((_MIXTURE[0], 1), number) for number in tokenizer.encode("").ids]
    return torch.cat([*edges[:1], drawn.view(_MIXTURE), *edges[1:]], dim=1)


class _Usage(NamedTuple):
    """The tokens of texts, and the share of unknown ones before and after the vocabulary was cut."""

    tokens: Counter[str]
    unknown_before: float
    unknown: float


def _cut_vocabulary(model: Any, path: Path, vocabulary: Vocabulary) -> _Usage:
    """Cut the tokenizer and the word embeddings."""
    words = _count_words(vocabulary.texts)
    if vocabulary.min_count and not words:
        raise OnomaError("there is no word in the texts from which tokens are chosen. Fix: give other texts")
    whole = Tokenizer.from_file(str(path))
    if not isinstance(whole.model, WordPiece):
        raise OnomaError(
            "the tokenizer of the encoder is not a WordPiece model; only the vocabulary of these can be cut"
        )
    before = _count_tokens(whole, words)
    _keep_tokens(model, _renumber(path, _kept_tokens(whole, before, vocabulary.min_count)))
    after = _count_tokens(Tokenizer.from_file(str(path)), words)
    shares = (tokens[whole.model.unk_token] / max(tokens.total(), 1) for tokens in (before, after))
    return _Usage(after, *shares)


def _keep_tokens(model: Any, numbers: Mapping[int, int]) -> None:
    """Cut the word embeddings to the tokens that have a new number, and renumber special tokens in the config."""
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
    """How often each word occurs, so that each distinct word is tokenised once."""
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


def _kept_tokens(tokenizer: Tokenizer, tokens: Mapping[str, int], min_count: int) -> set[str]:
    """The tokens that occur often enough, special ones, and all characters that are always kept."""
    model, vocabulary = tokenizer.model, tokenizer.get_vocab()
    if not min_count:
        prefix = model.continuing_subword_prefix
        continuations = {token for token in vocabulary if token.startswith(prefix) and len(token) == len(prefix) + 1}
        return {*vocabulary} - {one for one in continuations if not _may_be_inside(tokenizer, one[-1])}
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    special |= {*tokenizer.encode("").tokens, model.unk_token, *MARKERS}
    used = {token for token, count in tokens.items() if count >= min_count}
    characters = {token for token in vocabulary if _is_kept_character(token)}
    inside = {
        model.continuing_subword_prefix + character for character in characters if _may_be_inside(tokenizer, character)
    }
    return (special | used | characters | inside).intersection(vocabulary)


def _is_kept_character(token: str) -> bool:
    return len(token) == 1 and any(first <= token <= last for first, last in CHARACTERS)


def _may_be_inside(tokenizer: Tokenizer, character: str) -> bool:
    """Whether a character can be inside a word: without its continuation token, such words would be unknown."""
    text = character * 2
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    return tokenizer.pre_tokenizer is None or len(tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1


def _renumber(path: Path, kept: Collection[str]) -> dict[int, int]:
    """Write the tokenizer with only the kept tokens; returns the new number of each old one, in order."""
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
    """Renumber the tokens at both ends of a text, which both kinds of post-processors store."""
    for token in processor.get("special_tokens", {}).values():
        token["ids"] = [numbers[old] for old in token["ids"]]
    for edge in ("sep", "cls"):
        if edge in processor:
            name, old = processor[edge]
            processor[edge] = [name, numbers[old]]


def _size(model: Any) -> Size:
    weights = dict(model.named_parameters())
    matrices = sum(weight.numel() for name, weight in weights.items() if _is_int8(name, weight))
    parameters = sum(weight.numel() for weight in weights.values())
    config = model.config
    return Size(
        layers=config.num_hidden_layers,
        inner=config.intermediate_size,
        tokens=config.vocab_size,
        parameters=parameters,
        int8_bytes=matrices + 4 * (parameters - matrices),
    )


def _is_int8(name: str, weight: Tensor) -> bool:
    """Whether the weight is stored in 8 bits, as the matrices of layers and the word embeddings are."""
    return weight.dim() == 2 and (name.startswith("encoder.") or "word_embeddings" in name)
