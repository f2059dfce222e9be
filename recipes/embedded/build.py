"""Rebuild the embedded model from corpora to files:

    python recipes/embedded/build.py --data CORPORA [--encoders FOLDER] [--output src/onoma/models/default]

It makes the small Chinese encoder, trains both halves (10 minutes each on an H200; a run that is done is not
repeated), exports them as int8 and puts them into one folder that chooses between them by script. With `--base` the
base-size models are trained by the same recipes instead, into RUNS/english-base and RUNS/chinese-base, and nothing is
exported. The card is not touched: write into it what you measure with benchmarks/zero_shot.py.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from onoma.config import ModelConfig
from onoma.export import export
from onoma.extractor import ROUTED
from onoma.label_names import Language, write_label_names
from onoma.training.run import train
from onoma.training.shrinking import Vocabulary, shrink, texts_of

HERE = Path(__file__).parent
HUB = {
    "gte-small": "thenlper/gte-small",
    "mpnet-base": "sentence-transformers/all-mpnet-base-v2",
    "bert-zh": "google-bert/bert-base-chinese",
}
NAMES: dict[Language, str] = {"en": HUB["gte-small"], "zh": "bert-zh-3-layers"}  # of the encoders, in configurations
ROUTES = [{"folder": "zh", "scripts": ["Han"]}, {"folder": "en", "scripts": []}]
BASE_RATE = "training.rate=5e-5"
WRITTEN = HERE / "../../corpora/onoma_written/zh"
TEXTS = ("onoma_synthetic:train", "ec:train", "uner_zh_gsd:train", "weibo:train", "aishell_ner:dev")  # below DATA/zh


def main() -> None:
    """Train, export, put together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder of the corpora")
    parser.add_argument("--encoders", type=Path, help="folder with gte-small, mpnet-base and bert-zh, not the hub")
    parser.add_argument("--runs", type=Path, default=Path("runs/embedded"))
    parser.add_argument("--output", type=Path, default=Path("src/onoma/models/default"))
    parser.add_argument("--base", action="store_true", help="train the base-size models instead")
    parser.add_argument("--set", action="append", default=[], help="change of both recipes, such as training.minutes=5")
    arguments = parser.parse_args()
    encoders = {name: str(arguments.encoders / name) if arguments.encoders else hub for name, hub in HUB.items()}
    if arguments.base:
        changes = [BASE_RATE, *arguments.set]
        fit("english", encoders["mpnet-base"], arguments.runs / "english-base", arguments.data, changes)
        fit("chinese", encoders["bert-zh"], arguments.runs / "chinese-base", arguments.data, changes)
        return
    small = small_chinese_encoder(encoders["bert-zh"], arguments.runs / "zh-encoder", arguments.data)
    english = fit("english", encoders["gte-small"], arguments.runs / "english", arguments.data, arguments.set)
    chinese = fit("chinese", str(small), arguments.runs / "chinese", arguments.data, arguments.set)
    put_together({"en": english, "zh": chinese}, arguments.output)


def small_chinese_encoder(encoder: str, folder: Path, data: Path) -> Path:
    """Three layers of Chinese BERT with half of their inner neurons, and the tokens that our texts use."""
    if not folder.is_dir():
        vocabulary = Vocabulary(texts_of([str(WRITTEN), *(str(data / "zh" / name) for name in TEXTS)]), least=8)
        shrink(encoder, folder, layers=[0, 1, 2], vocabulary=vocabulary, inner=1536)
    return folder


def fit(recipe: str, encoder: str, output: Path, data: Path, changes: list[str]) -> Path:
    """Train one half."""
    changes = [f"encoder={encoder}", *changes]
    return train(HERE / f"{recipe}.yaml", output=output, data=data, changes=changes, cache=output.parent / "cache")


def put_together(models: dict[Language, Path], output: Path) -> None:
    """Both models as int8 in one folder, in place of those that are there; a card that is there stays."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as made:
        for language, model in models.items():
            folder = export(model, Path(made) / language, int8=True)
            # Any type may be asked for: those of the training data are no help.
            replace(ModelConfig.load(folder), encoder=NAMES[language], types={}).save(folder)
            write_label_names(folder, language)
            (folder / "README.md").unlink()  # there is one card for both
        for language in models:
            shutil.rmtree(output / language, ignore_errors=True)
            shutil.move(Path(made) / language, output / language)
    ModelConfig(ROUTED, options={"routes": ROUTES}).save(output)


if __name__ == "__main__":
    main()
