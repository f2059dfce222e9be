"""Picture of SCL-RAI (figure 4 of the paper): vectors of mentions and of other spans, with and without contrast.

    python benchmarks/scl_rai_vectors.py --data CORPORA --encoder FOLDER [--corpus news]

Two models are trained with sampled negatives, one of them with the contrastive loss. The vectors of 1,000 mentions and
1,000 other spans of the test part (--split) are written to --file, or read from it if it exists, and shown by t-SNE in
docs/images/scl-rai-vectors.png. `--only-file` draws nothing, for machines without matplotlib and scikit-learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Document, Entity
from onoma.files import atomic_write_bytes
from onoma.text.words import segment
from records import ROOT, main_with_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGE = ROOT / "docs" / "images" / "scl-rai-vectors.png"
PANELS = {"contrast": "cross-entropy and contrast", "ce": "cross-entropy only"}
CHANGES = {"contrast": (), "ce": ("options.contrast_weight=0.0",)}
# as in scl_rai.py, where they were chosen on dev
SETTINGS = ("training.epochs=7", "training.batch_size=32", "training.learning_rate=4e-5")
EACH = 1000
"""Mentions, and other spans, in the picture."""
MAX_WIDTH = 6
"""Words of the longest other span."""
OTHER = "no mention"


def main() -> None:
    """Train, take the vectors, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--encoder", help="folder or hub name")
    parser.add_argument("--corpus", default="news", choices=["news", "ec"])
    parser.add_argument("--split", default="test")
    parser.add_argument("--set", nargs="*", default=[], help="changes of the recipe, such as training.epochs=3")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "scl-rai-vectors")
    parser.add_argument("--file", type=Path, help="the vectors, to be written or read")
    parser.add_argument("--only-file", action="store_true", help="write the vectors only")
    arguments = parser.parse_args()
    file: Path = arguments.file or arguments.runs / f"{arguments.corpus}.npz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **extract_vectors(arguments))  # type: ignore[arg-type]
    if arguments.only_file:
        return
    with np.load(file, allow_pickle=False) as stored, atomic_write_bytes(IMAGE) as image:
        draw(dict(stored)).savefig(image, format="png", metadata={"Software": None}, dpi=110, facecolor="white")
    print(f"written to {IMAGE}")


def extract_vectors(arguments: argparse.Namespace) -> dict[str, NDArray[Any]]:
    """Train both models; the vectors of the same spans from each, and whether they are mentions."""
    import onoma
    from onoma.data import load_corpus
    from onoma.evaluation.vectors import mention_vectors
    from onoma.training.recipe import load_recipe
    from onoma.training.run import train

    recipe = ROOT / "recipes" / "scl_rai" / f"{arguments.corpus}.yaml"
    documents = list(load_corpus(arguments.data / "zh" / arguments.corpus, arguments.split).documents)
    marked = list(with_other_spans(documents, np.random.default_rng(0)))
    found: dict[str, NDArray[Any]] = {}
    for name, changes in CHANGES.items():
        settings = [f"encoder={arguments.encoder}", *SETTINGS, *changes, *arguments.set]
        model = train(load_recipe(recipe, settings), output=arguments.runs / name, data=arguments.data)
        runtime: Any = onoma.load(model, "torch").runtime
        vectors, labels = mention_vectors(runtime, marked)
        is_mention = np.array([label != OTHER for label in labels])
        rows = balanced(is_mention, np.random.default_rng(0))
        found |= {name: vectors[rows].astype(np.float16), "is_mention": is_mention[rows]}
    return found


def with_other_spans(documents: Sequence[Document], random: np.random.Generator) -> Iterator[Document]:
    """The documents with other spans at random, as mentions of a type of its own: as many as mentions, or one."""
    for document in documents:
        words, taken = segment(document.text), {(one.start, one.end) for one in document.entities}
        others = []
        for _ in range(max(1, len(document.entities)) if len(words) else 0):
            first = int(random.integers(len(words)))
            last = min(first + int(random.integers(MAX_WIDTH)), len(words) - 1)
            start, end = int(words[first][0]), int(words[last][1])
            if (start, end) not in taken:
                taken.add((start, end))
                others.append(Entity(start, end, document.text[start:end], OTHER))
        yield replace(document, entities=(*document.entities, *others), annotated=None)


def balanced(is_mention: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.int64]:
    """At most `EACH` rows of mentions and as many of other spans, at random."""
    parts = [random.permutation(np.flatnonzero(is_mention == wanted))[:EACH] for wanted in (True, False)]
    return np.sort(np.concatenate(parts))


def draw(stored: dict[str, NDArray[Any]]) -> Figure:
    """Both sets of vectors in the plane."""
    from matplotlib.figure import Figure
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    from onoma.evaluation.plot_style import BLUE, RED

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    kinds = ((False, OTHER, BLUE, "o"), (True, "mention", RED, "^"))
    for axes, (key, title) in zip(figure.subplots(1, 2), PANELS.items(), strict=True):
        places = TSNE(random_state=0, init="pca", perplexity=30).fit_transform(stored[key].astype(np.float32))
        for wanted, label, colour, marker in kinds:
            chosen = places[stored["is_mention"] == wanted]
            axes.scatter(*chosen.T, s=6, color=colour, marker=marker, label=label, linewidths=0)
        axes.set(title=title, xticks=[], yticks=[])
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, markerscale=3)
    return figure


if __name__ == "__main__":
    main_with_errors(main)
