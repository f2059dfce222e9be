"""Pictures of NerCo (figures 3 and 4 of the paper): F1 by sentence length, and word vectors after each stage.

    python benchmarks/nerco_vectors.py lengths
    python benchmarks/nerco_vectors.py vectors --data CORPORA --encoder FOLDER --word-vectors FOLDER [--corpus resume]

`lengths` plots the records of benchmarks/nerco.py. `vectors` trains FLAT and NerCo on a corpus, takes the vectors of
the words of gold mentions in dev (MSRA: test) after each stage (or reads them from --file, if it exists), and shows
them by t-SNE with the tag of each word as its colour; `vectors-file` only writes them. Plots are written to
docs/images.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nerco import LENGTHS_MEASURE
from onoma.evaluation.curves import SETTINGS, new_figure
from onoma.evaluation.plot_style import DASHES, MARKERS, plot_style
from onoma.files import atomic_write_bytes
from records import RESULTS, ROOT, main_with_errors, read_records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = ROOT / "docs" / "images"
LINES = {"supervised": "NerCo", "flat": "FLAT (no contrast)", "bert-crf": "BERT-CRF"}
SPLITS = {"msra": "test"}
"""The parts whose words are shown, of corpora without a dev part of their own."""
MOST_WORDS = 1500
"""Words in a picture."""


def plot_lengths(arguments: argparse.Namespace) -> None:
    """F1 by sentence length, one line per setting."""
    with plot_style():
        _save(draw_lengths(arguments.corpus), f"nerco-lengths-{arguments.corpus}.svg")


def draw_lengths(corpus: str) -> Any:
    """A figure with one line per setting; lines differ in their dashes and markers as well."""
    rows = read_records(RESULTS / "nerco.json")
    figure = new_figure((6, 4))
    axes = figure.subplots()
    for (setting, label), marker, dashes in zip(LINES.items(), MARKERS, DASHES, strict=False):
        start = f"nerco/{setting}/{corpus}/bert-zh/{LENGTHS_MEASURE}"
        found = {row["metric"].removeprefix(start): row for row in rows if row["metric"].startswith(start)}
        lengths = sorted(found, key=lambda name: int(name.rstrip("+").split("-")[0]))
        values, spreads = zip(*((found[one]["value"], found[one]["spread"] or 0.0) for one in lengths), strict=True)
        look = {"marker": marker, "linestyle": dashes, "capsize": 3, "label": f"{label}, {_seeds(found)}"}
        axes.errorbar(lengths, values, yerr=spreads, **look)
    axes.set_xlabel("characters of the sentence")
    axes.set_ylabel(f"strict F1 on {corpus} test")
    axes.grid()
    figure.legend(loc="outside upper center", ncols=len(LINES))
    return figure


def _seeds(found: dict[str, Any]) -> str:
    number = len(next(iter(found.values()))["seeds"])
    return f"{number} seed{'s' if number > 1 else ''}"


def plot_vectors(arguments: argparse.Namespace) -> None:
    """Vectors of the words of mentions: FLAT, NerCo after contrast, NerCo after tagging."""
    if not arguments.file.exists():
        write_vectors(arguments)
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from sklearn.manifold import TSNE  # type: ignore[import-untyped]

    stored = np.load(arguments.file, allow_pickle=False)
    names, tags = stored["tag_names"].tolist(), stored["tags"]
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    panels = {"flat": "FLAT", "contrast": "NerCo after contrast", "tag": "NerCo after tagging"}
    colors = colormaps["tab20"]
    for axes, (key, title) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        places = TSNE(random_state=0, init="pca", perplexity=30).fit_transform(stored[key].astype(np.float32))
        for number in np.unique(tags):
            chosen = places[tags == number]
            axes.scatter(*chosen.T, s=4, color=colors((int(number) - 1) % 20), label=names[number])
        axes.set(title=title, xticks=[], yticks=[])
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=8, markerscale=3, fontsize="small")
    _save(figure, f"nerco-vectors-{arguments.corpus}.png")


def write_vectors(arguments: argparse.Namespace) -> None:
    """Write the vectors to a file; this part needs neither matplotlib nor scikit-learn."""
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.file, **extract_vectors(arguments))  # type: ignore[arg-type]


def extract_vectors(arguments: argparse.Namespace) -> dict[str, NDArray[Any]]:
    """Train both models, and take the vectors of the same words from each."""
    from onoma.training.recipe import load_recipe
    from onoma.training.run import STAGES, train

    changes = [f"encoder={arguments.encoder}", f"parts.word_vectors={arguments.word_vectors}", *arguments.set]
    recipe = ROOT / "recipes" / "nerco" / f"{arguments.corpus}.yaml"
    found: dict[str, NDArray[Any]] = {}
    for name, change in (("flat", "options.contrast=none"), ("nerco", "options.contrast=first")):
        output = arguments.runs / f"{name}-{arguments.corpus}"
        model = train(load_recipe(recipe, [*changes, change]), output=output, data=arguments.data)
        if name == "flat":
            found |= {"flat": word_vectors(model, None, arguments)["vectors"]}
        else:
            found["contrast"] = word_vectors(model, output / STAGES / "contrast", arguments)["vectors"]
            found |= {
                "tag" if key == "vectors" else key: one for key, one in word_vectors(model, None, arguments).items()
            }
    return found


def word_vectors(model: Path, weights: Path | None, arguments: argparse.Namespace) -> dict[str, NDArray[Any]]:
    """Vectors and tags of words of gold mentions in dev, with the weights of a stage instead of the model's own."""
    import onoma
    from onoma.data import load_corpus
    from onoma.evaluation.candidates import EvaluationSet
    from onoma.models.weights import load_weights
    from onoma.systems.nerco.torch_runtime import TorchNerCo
    from onoma.training.examples import make_examples

    runtime = onoma.load(model, "torch").runtime
    assert isinstance(runtime, TorchNerCo)
    if weights is not None:
        runtime.model.load_state_dict(load_weights(weights))
    corpus = load_corpus(Path(arguments.data) / "zh" / arguments.corpus, SPLITS.get(arguments.corpus, "dev"))
    numbers = {name: number for number, name in enumerate(runtime.config.types)}
    settings = {"max_tokens": runtime.config.max_tokens, "overlap": 0, "drop_empty": False}
    examples, _ = make_examples([corpus], numbers, runtime.tokenizer, **settings)  # type: ignore[arg-type]
    texts, scheme = EvaluationSet(corpus, runtime).texts, runtime.model.scheme
    vectors, tags = [], []
    for start in range(0, len(examples), 32):
        batch = texts.batch(np.arange(start, min(start + 32, len(examples))), runtime.tokenizer)
        rows = [np.insert(one.gold, 0, window, axis=1) for window, one in enumerate(examples[start : start + 32])]
        encoded = scheme.encode(np.concatenate(rows), batch.words, batch.first.shape[1])
        vectors.append(runtime.word_states(batch)[encoded > 0])
        tags.append(encoded[encoded > 0])
    joined, numbered = np.concatenate(vectors), np.concatenate(tags)
    chosen = np.sort(np.random.default_rng(0).permutation(len(joined))[:MOST_WORDS])
    prefixes = [f"{prefix}-{name}" for name in runtime.config.types for prefix in scheme.prefixes]
    return {
        "vectors": joined[chosen].astype(np.float16),
        "tags": numbered[chosen],
        "tag_names": np.array(["O", *prefixes]),
    }


def _save(figure: Figure, name: str) -> None:
    from matplotlib import rc_context

    IMAGES.mkdir(parents=True, exist_ok=True)
    kind = name.rpartition(".")[2]
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context(SETTINGS), atomic_write_bytes(IMAGES / name) as file:
        figure.savefig(file, format=kind, metadata=metadata, dpi=110, facecolor="white")
    print(f"written to {IMAGES / name}")


def main() -> None:
    """Draw one of the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    pictures = {"lengths": plot_lengths, "vectors": plot_vectors, "vectors-file": write_vectors}
    parser.add_argument("picture", choices=list(pictures))
    parser.add_argument("--corpus", default="weibo", choices=["weibo", "resume", "msra"])
    parser.add_argument("--data", help="folder of the corpora")
    parser.add_argument("--encoder", help="folder or hub name")
    parser.add_argument("--word-vectors", help="folder with vectors.npy and words.txt")
    parser.add_argument("--set", nargs="*", default=[], help="changes of the recipe, such as training.epochs=3")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "nerco-vectors")
    parser.add_argument("--file", type=Path, help="the vectors, to be written or read")
    arguments = parser.parse_args()
    if arguments.file is None:
        arguments.file = arguments.runs / f"{arguments.corpus}.npz"
    pictures[arguments.picture](arguments)


if __name__ == "__main__":
    main_with_errors(main)
