"""Rebuild the embedded model from corpora:

    python recipes/embedded/build.py --data CORPORA [--encoders FOLDER] [--output src/onoma/models/default]

This makes the small Chinese encoder, trains a base-size English model as a teacher, a small English one that also
learns from its scores, and a small Chinese one (4.25 and 7.25 minutes on an H200 that runs several at once; finished
runs are not repeated), exports the small ones as int8, fits scores and thresholds on the development corpora, and
writes one folder that holds both. A text is read by one of them, depending on its script. The card is kept, but for
the tables of corpora.

    --continue MODEL       train a finished small model further, on a CPU with bfloat16 instructions (100 minutes on two
                           cores), without a teacher, and replace it
    --base                 only the base-size models, as a folder of their own in RUNS/base
    --no-teacher           small models that learn from annotations alone, in English, too
    --seeds 0 1            models of several seeds; those of the first one are written into the folder; the teacher
                           has the seed 0
    --languages en         one of the halves; then no folder is written, unless it is continued
    --dev-limit 8          evaluate less during training: the last weights are kept then, as nearly always
    --only-train           on a machine with a GPU; repeat the command without it where RUNS/*/model have been copied to

The models of a seed before they are put into one folder are RUNS/english-0/int8 and RUNS/chinese-0/int8, and what was
fitted is in calibration.json beside them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

from calibrate import fit as fit_scores
from shrink import Vocabulary, shrink

from onoma.data.corpora import read_info
from onoma.data.inventory import Language
from onoma.errors import OnomaError
from onoma.files import atomic_write
from onoma.models.config import Route, RoutedConfig
from onoma.models.export import export
from onoma.models.folder import CARD_FILE, open_single
from onoma.training.corpora import load_part
from onoma.training.recipe import load_recipe
from onoma.training.run import train

HERE = Path(__file__).parent
HUB = {
    "gte-small": "thenlper/gte-small",
    "mpnet-base": "sentence-transformers/all-mpnet-base-v2",
    "bge-small-zh": "BAAI/bge-small-zh-v1.5",
    "bert-zh": "google-bert/bert-base-chinese",
}
ROUTES = (Route("zh", ("Han",)), Route("en"))
BASE_CHANGES = ("training.learning_rate=5e-5",)
TEACHER_CHANGES = (*BASE_CHANGES, "training.max_minutes=4.25")
TEACHER_SEED = 0
CONTINUED_CHANGES = (
    "encoder=''",
    "training.max_minutes=100",
    "training.max_steps=100000",
    "training.batch_size=32",
    "training.learning_rate=6e-5",
    "training.head_learning_rate=3e-4",
    "training.dropout=0.0",
    "training.frozen_layers=2",
    "training.bf16_on_cpu=true",
    "training.eval_steps=100000",
    "training.dataloader_workers=1",
    "data.max_types_per_batch=254",
)
"""For a processor with two cores: no embeddings to train, no dropout, half of the types in half of the windows. The
last weights are kept: those in between are compared at a threshold that is not theirs."""
UNCALIBRATED = ("training.threshold_from=paper", "training.threshold_score=null")
"""Scores are fitted to the exported weights, not at the end of training."""
CORPORA_TABLE = re.compile(r"(<!-- corpora: (en|zh) -->\n).*?(<!-- end -->)", re.DOTALL)


Kind = Literal["small", "untaught", "continued", "base", "teacher"]
"""Small (with a teacher if the language has one), small without, small from a finished one, base-size, and base-size
with less training."""
ENDINGS: dict[Kind, str] = {
    "small": "",
    "untaught": "-untaught",
    "continued": "-continued",
    "base": "-base",
    "teacher": "-teacher",
}


@dataclass(frozen=True, slots=True)
class Half:
    """A model for one language."""

    language: Language
    recipe: str
    small: str  # encoder
    base: str  # encoder of the base-size model
    taught: bool = False  # whether the small model has a teacher

    @property
    def path(self) -> Path:
        """The file of the recipe."""
        return HERE / f"{self.recipe}.yaml"

    def run(self, kind: Kind, seed: int, runs: Path) -> Path:
        """The folder of a run."""
        return runs / f"{self.recipe}{ENDINGS[kind]}-{seed}"


HALVES = {
    "en": Half("en", "english", "gte-small", "mpnet-base", taught=True),
    "zh": Half("zh", "chinese", "bge-small-zh", "bert-zh"),
}


def main() -> None:
    """Train, export and calibrate the models, and write them into one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument("--encoders", type=Path, help=f"folder with {', '.join(HUB)}, instead of the hub")
    parser.add_argument("--runs", type=Path, default=Path("runs/embedded"))
    parser.add_argument("--output", type=Path, help="by default src/onoma/models/default, of --base RUNS/base")
    parser.add_argument("--languages", nargs="+", choices=list(HALVES), default=list(HALVES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--base", dest="kind", action="store_const", const="base", help="only the base-size models")
    kind.add_argument(
        "--no-teacher", dest="kind", action="store_const", const="untaught", help="small models without teachers"
    )
    kind.add_argument("--continue", dest="start", metavar="MODEL", help="a folder, or embedded")
    parser.set_defaults(kind="small")
    parser.add_argument("--dev-limit", type=int, help="sentences of each corpus that training is evaluated on")
    parser.add_argument("--only-train", action="store_true", help="neither export nor calibrate")
    parser.add_argument(
        "--set", action="append", default=[], help="change of the recipes, such as training.max_minutes=5"
    )
    arguments = parser.parse_args()
    kind: Kind = "continued" if arguments.start else arguments.kind
    halves = [HALVES[one] for one in arguments.languages]
    default = arguments.runs / "base" if kind == "base" else Path("src/onoma/models/default")
    output: Path = arguments.output or default
    kept = HALVES.keys() - set(arguments.languages)
    if kind == "continued" and not all((output / one).is_dir() for one in kept):
        raise OnomaError(f"{output} has no model for {', '.join(kept)}. Fix: give a folder with both as --output")
    for half in halves:
        if kind == "small" and half.taught:
            fit(half, "teacher", TEACHER_SEED, arguments)
    for seed, half in product(arguments.seeds, halves):
        fit(half, kind, seed, arguments)
    if arguments.only_train:
        return
    for seed, half in product(arguments.seeds, halves):
        finish(half, half.run(kind, seed, arguments.runs), arguments.data, base=kind == "base")
    if set(arguments.languages) == set(HALVES) or kind == "continued":
        first = arguments.seeds[0]
        write_models({half.language: half.run(kind, first, arguments.runs) / "int8" for half in halves}, output)
        write_corpora(output / CARD_FILE, arguments.data, arguments.languages)
        print(f"written to {output}")


def fit(half: Half, kind: Kind, seed: int, arguments: argparse.Namespace) -> None:
    """Train one of the models, unless its run is finished."""
    runs: Path = arguments.runs
    run = half.run(kind, seed, runs)
    if (run / "model").is_dir():
        return
    name = half.base if kind in ("base", "teacher") else half.small
    encoder = str(arguments.encoders / name) if arguments.encoders else HUB[name]
    if name == "bge-small-zh" and kind != "continued":
        encoder = str(small_chinese_encoder(encoder, runs / "zh-encoder"))
    changes = [f"encoder={encoder}", f"seed={seed}", *UNCALIBRATED]
    if kind == "base":
        changes += BASE_CHANGES
    elif kind == "teacher":
        changes += TEACHER_CHANGES
    elif kind == "continued":
        changes += [*CONTINUED_CHANGES, f"start={arguments.start}", f"data.language={half.language}"]
    elif kind == "small" and half.taught:
        changes.append(f"training.teacher={half.run('teacher', TEACHER_SEED, runs) / 'model'}")
    if arguments.dev_limit is not None:
        places = [place for place, one in enumerate(load_recipe(half.path).data.corpora) if one.dev is not None]
        changes += [f"data.corpora.{place}.dev_limit={arguments.dev_limit}" for place in places]
    train(half.path, output=run, data=arguments.data, changes=[*changes, *arguments.set], cache=runs / "cache")


def small_chinese_encoder(encoder: str, folder: Path) -> Path:
    """An encoder without the tokens that its tokenizer never makes: a third of its embeddings."""
    if not folder.is_dir():
        shrink(encoder, folder, layers=range(4), vocabulary=Vocabulary(min_count=0))
    return folder


def finish(half: Half, run: Path, data: Path, *, base: bool) -> None:
    """Export a trained model as int8 and fit its scores, unless that has been done."""
    report = run / "calibration.json"
    if report.is_file():
        return
    shutil.rmtree(run / "int8", ignore_errors=True)
    folder = export(run / "model", run / "int8", int8=True)
    config = open_single(folder, "configure").config
    replace(config, encoder=HUB[half.base if base else half.small]).save(folder)
    found = fit_scores(folder, half.path, data, half.language)
    with atomic_write(report) as file:
        json.dump(found, file, indent=2)
    print(f"{run}: mean F1 of the development corpora {found['mean_f1']:.1f}")


def write_models(models: dict[str, Path], output: Path) -> None:
    """Copy both models into one folder, in place of older ones; the card of the folder is kept."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as made:
        for language, model in models.items():
            copy = Path(shutil.copytree(model, Path(made) / language))
            (copy / CARD_FILE).unlink(missing_ok=True)  # there is one card for both
        for language in models:
            shutil.rmtree(output / language, ignore_errors=True)
            shutil.move(Path(made) / language, output / language)
    RoutedConfig(ROUTES).save(output)


def write_corpora(card: Path, data: Path, languages: Collection[str]) -> None:
    """Write the tables of training corpora into a card, between `<!-- corpora: en -->` and `<!-- end -->`.

    Those of other languages are kept, because their recipes may have changed since their models were trained.
    """
    if not card.is_file():
        return

    def table(found: re.Match[str]) -> str:
        start, language, end = found.groups()
        if language not in languages:
            return found[0]
        return f"{start}\n{chr(10).join(corpora_table(HALVES[language], data))}\n\n{end}"

    text = CORPORA_TABLE.sub(table, card.read_text("utf-8"))
    with atomic_write(card) as file:
        file.write(text)


def corpora_table(half: Half, data: Path) -> Iterator[str]:
    """The corpora that a recipe trains on, with their licences and the number of documents drawn from."""
    recipe = load_recipe(half.path).data
    trained = [one for one in recipe.corpora if one.train is not None]
    corpora = load_part(recipe.model_copy(update={"corpora": trained}), data, "train")
    yield "| corpus | licence | documents |"
    yield "|---|---|---:|"
    for one, corpus in zip(trained, corpora, strict=True):
        yield f"| {corpus.name} | {licence_of(data / one.path)} | {len(corpus):,} |"


def licence_of(folder: Path) -> str:
    """The licence that a corpus states."""
    return read_info(folder).licence or "not stated"


if __name__ == "__main__":
    try:
        main()
    except OnomaError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
