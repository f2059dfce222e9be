"""Rebuild the embedded model from corpora:

    python recipes/embedded/build.py --data CORPORA [--encoders FOLDER] [--output src/onoma/models/default]

This makes the small Chinese encoder, trains both models (10 minutes each on an H200; finished runs are not repeated),
exports them as int8, and writes one folder that holds both. A text is read by one of them, depending on its script.
With `--base`, the base-size models are trained by the same recipes instead, into RUNS/english-base and
RUNS/chinese-base, and nothing is exported. The card is not changed: its figures come from benchmarks/zero_shot.py.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from shrink import Vocabulary, shrink, texts_of

from onoma.models.config import CATCH_ALL_LABELS, Route, RoutedConfig
from onoma.models.export import export, write_translations
from onoma.models.folder import CARD_FILE, open_single
from onoma.training.run import train

HERE = Path(__file__).parent
HUB = {
    "gte-small": "thenlper/gte-small",
    "mpnet-base": "sentence-transformers/all-mpnet-base-v2",
    "bert-zh": "google-bert/bert-base-chinese",
}
NAMES = {"en": HUB["gte-small"], "zh": "bert-zh-3-layers"}  # of the encoders, in config.json
ROUTES = (Route("zh", ("Han",)), Route("en"))
BASE_LEARNING_RATE = "training.learning_rate=5e-5"
WRITTEN = HERE / "../../corpora/onoma_written/zh"
TEXTS = ("onoma_synthetic:train", "ec:train", "uner_zh_gsd:train", "weibo:train", "aishell_ner:dev")  # below DATA/zh


def main() -> None:
    """Train and export both models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument(
        "--encoders", type=Path, help="folder with gte-small, mpnet-base and bert-zh, instead of the hub"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/embedded"))
    parser.add_argument("--output", type=Path, default=Path("src/onoma/models/default"))
    parser.add_argument("--base", action="store_true", help="train the base-size models instead")
    parser.add_argument(
        "--set", action="append", default=[], help="change of both recipes, such as training.max_minutes=5"
    )
    arguments = parser.parse_args()
    encoders = {name: str(arguments.encoders / name) if arguments.encoders else hub for name, hub in HUB.items()}
    if arguments.base:
        changes = [BASE_LEARNING_RATE, *arguments.set]
        fit("english", encoders["mpnet-base"], arguments.runs / "english-base", arguments.data, changes)
        fit("chinese", encoders["bert-zh"], arguments.runs / "chinese-base", arguments.data, changes)
        return
    small = small_chinese_encoder(encoders["bert-zh"], arguments.runs / "zh-encoder", arguments.data)
    english = fit("english", encoders["gte-small"], arguments.runs / "english", arguments.data, arguments.set)
    chinese = fit("chinese", str(small), arguments.runs / "chinese", arguments.data, arguments.set)
    write_models({"en": english, "zh": chinese}, arguments.output)


def small_chinese_encoder(encoder: str, folder: Path, data: Path) -> Path:
    """Three layers of Chinese BERT with half of their feed-forward neurons, and the tokens of the training texts."""
    if not folder.is_dir():
        vocabulary = Vocabulary(texts_of([str(WRITTEN), *(str(data / "zh" / name) for name in TEXTS)]), min_count=8)
        shrink(encoder, folder, layers=[0, 1, 2], vocabulary=vocabulary, inner=1536)
    return folder


def fit(recipe: str, encoder: str, output: Path, data: Path, changes: list[str]) -> Path:
    """Train one of the models."""
    changes = [f"encoder={encoder}", *changes]
    return train(HERE / f"{recipe}.yaml", output=output, data=data, changes=changes, cache=output.parent / "cache")


def write_models(models: dict[str, Path], output: Path) -> None:
    """Write both models as int8 into one folder, in place of older ones; an existing card is kept."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as made:
        for language, model in models.items():
            folder = export(model, Path(made) / language, int8=True)
            config = open_single(folder, "configure").config
            config = replace(config, encoder=NAMES[language], types={}, catch_all=CATCH_ALL_LABELS)  # for any types
            write_translations(folder, language, config)
            (folder / CARD_FILE).unlink()  # there is one card for both
        for language in models:
            shutil.rmtree(output / language, ignore_errors=True)
            shutil.move(Path(made) / language, output / language)
    RoutedConfig(ROUTES).save(output)


if __name__ == "__main__":
    main()
