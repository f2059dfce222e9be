"""Calibrate a trained model anew on the development data of a recipe, without training.

python benchmarks/calibrate.py MODEL recipes/binder/embedded.yaml --data CORPORA
"""

from __future__ import annotations

import argparse

from onoma.training.run import recalibrate
from records import RESULTS, Record, write_records


def main() -> None:
    """Fit scores and threshold, and write them into the model's config.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("recipe")
    parser.add_argument("--data", required=True)
    arguments = parser.parse_args()
    config, scores = recalibrate(arguments.model, arguments.recipe, data=arguments.data)
    for name, values in scores.items():
        print(f"{name}: P {values['precision']:.1f}  R {values['recall']:.1f}  F1 {values['f1']:.1f}")
    encoder = config.encoder.rpartition("/")[2]
    command = "python benchmarks/calibrate.py MODEL recipes/binder/embedded.yaml --data CORPORA"
    write_records(
        RESULTS / "embedded_development.json",
        [
            Record(
                f"embedded/development/{name}/{encoder}/f1",
                round(values["f1"], 2),
                command,
                f"{name}: dev, as the recipe limits it; float32 weights",
                encoder=encoder,
            )
            for name, values in scores.items()
        ],
    )
    print(f"scale {config.scale:.3f}, bias {config.bias:.3f}, threshold {config.threshold:.3f}")


if __name__ == "__main__":
    main()
