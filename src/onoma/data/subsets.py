"""Random subsets of a corpus, with a seed: splits, and small samples for few-shot learning.

The chosen documents keep their order and all of their mentions, and each subset keeps the whole inventory.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from onoma.data.quality import text_key
from onoma.entities import Corpus
from onoma.errors import OnomaError


def split(corpus: Corpus, parts: Mapping[str, float], *, seed: int = 0) -> dict[str, Corpus]:
    """Split a corpus at random, for example into {"train": 0.8, "dev": 0.1, "test": 0.1}.

    Copies of a text (ignoring letter case and white space) go to the same split, so that no text leaks into another.
    """
    if not parts or any(share <= 0 for share in parts.values()) or abs(sum(parts.values()) - 1) > 1e-6:
        raise OnomaError(f"the parts must be shares above 0 that add up to 1, got {dict(parts)}")
    copies: dict[bytes, list[int]] = {}
    for index, document in enumerate(corpus):
        copies.setdefault(text_key(document.text), []).append(index)
    groups = list(copies.values())
    random.Random(seed).shuffle(groups)
    groups.sort(key=len, reverse=True)  # small groups come last and even out the sizes
    sizes = {name: share * len(corpus) for name, share in parts.items()}
    chosen: dict[str, list[int]] = {name: [] for name in parts}
    for group in groups:
        emptiest = max(parts, key=lambda name: sizes[name] - len(chosen[name]))
        chosen[emptiest].extend(group)
    return {name: _take(corpus, indices) for name, indices in chosen.items()}


def sample_documents(corpus: Corpus, k: int, *, seed: int = 0) -> Corpus:
    """k documents drawn at random, with as few replacements as needed to include every type.

    Types without a mention in the sample are added one after the other, the rarest first: of the documents with the
    type, the first one in the random order replaces the last chosen document that is not the only one with a type.
    If k is at least the number of types, the sample includes all of them; otherwise as many as this procedure finds.
    """
    if not 0 < k <= len(corpus):
        raise OnomaError(
            f"cannot draw {k} documents from corpus {corpus.name!r}, which has {len(corpus)}. "
            "Fix: choose k between 1 and that number."
        )
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)
    chosen = order[:k]
    covered = Counter(label for index in chosen for label in corpus.documents[index].labels)
    by_label = _documents_by_label(corpus, order)
    for label in sorted(by_label, key=lambda label: (len(by_label[label]), label)):
        if covered[label]:
            continue
        replaceable = _last_replaceable(corpus, chosen, covered)
        if replaceable is None:
            break
        covered.subtract(corpus.documents[chosen.pop(replaceable)].labels)
        chosen.insert(0, by_label[label][0])
        covered.update(corpus.documents[chosen[0]].labels)
    return _take(corpus, chosen)


def _last_replaceable(corpus: Corpus, chosen: Sequence[int], covered: Mapping[str, int]) -> int | None:
    """The place of the last chosen document whose types all occur in another chosen document."""
    for place in reversed(range(len(chosen))):
        if all(covered[label] > 1 for label in corpus.documents[chosen[place]].labels):
            return place
    return None


def sample_mentions(corpus: Corpus, k: int, *, seed: int = 0) -> Corpus:
    """Documents with about k mentions of every type (k-shot): at least k, or all if the corpus has fewer.

    Greedy: for each type, the rarest first, documents are added in random order as long as no type exceeds 2k
    mentions; if that is not enough, any documents with the type. Finally, documents that are not needed by any type are
    removed. A type exceeds 2k mentions only if the corpus does not have enough documents with fewer mentions.
    """
    if k < 1:
        raise OnomaError(f"k-shot sampling needs a k of at least 1, got {k}")
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)
    mentions = [Counter(entity.label for entity in document.entities) for document in corpus]
    total: Counter[str] = Counter()
    for counts in mentions:
        total.update(counts)
    need = {label: min(k, count) for label, count in sorted(total.items(), key=lambda item: (item[1], item[0]))}
    chosen = _collect(mentions, _documents_by_label(corpus, order), need, limit=2 * k)
    return _take(corpus, _without_redundant(mentions, chosen, need))


def _collect(
    mentions: Sequence[Counter[str]], by_label: Mapping[str, Iterable[int]], need: Mapping[str, int], limit: int
) -> list[int]:
    """Add documents until every label has enough mentions; documents that exceed the limit only if necessary."""
    have: Counter[str] = Counter()
    chosen: dict[int, None] = {}  # a set that keeps its order
    for label in need:
        for bound in (limit, sys.maxsize):
            for index in by_label[label]:
                if have[label] >= need[label]:
                    break
                fits = all(have[one] + count <= bound for one, count in mentions[index].items())
                if fits and index not in chosen:
                    chosen[index] = None
                    have.update(mentions[index])
    return list(chosen)


def _without_redundant(mentions: Sequence[Counter[str]], chosen: Sequence[int], need: Mapping[str, int]) -> list[int]:
    """The chosen documents without those that no label needs; the last ones are checked first."""
    have: Counter[str] = Counter()
    for index in chosen:
        have.update(mentions[index])
    kept = []
    for index in reversed(chosen):
        if all(have[label] - count >= need[label] for label, count in mentions[index].items()):
            have.subtract(mentions[index])
        else:
            kept.append(index)
    return kept


def _documents_by_label(corpus: Corpus, order: Iterable[int]) -> dict[str, list[int]]:
    by_label: dict[str, list[int]] = {}
    for index in order:
        for label in corpus.documents[index].labels:
            by_label.setdefault(label, []).append(index)
    return by_label


def _take(corpus: Corpus, indices: Iterable[int]) -> Corpus:
    return Corpus(corpus.name, [corpus.documents[index] for index in sorted(indices)], corpus.types)
