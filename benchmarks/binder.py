"""BINDER's experiments: tables 1, 2, 4, 5, 6, 8, 9 and 10, figures 2 and 3, and appendix A.3.

    python benchmarks/binder.py supervised --data CORPORA [--encoders FOLDER]     tables 1, 8, 9 and 10
    python benchmarks/binder.py blurb --data CORPORA [--encoders FOLDER]          table 2
    python benchmarks/binder.py ablations --data CORPORA [--encoders FOLDER]      tables 4, 5 and 6, A.3
    python benchmarks/binder.py genia-choice --data CORPORA [--encoders FOLDER]   settings for GENIA, on dev alone

All models are chosen on dev by F1 with the thresholds that training learned. Then thresholds are chosen by one of
the rules of `binder_scores`: a measure without ending has the main rule of its setting, one that ends in a rule
(`f1_learned`, `dev_f1_per_type`) has that rule. Ablations are compared with the full model by a paired bootstrap over
sentences and seeds: `difference` in F1, the ends of its interval of 95%, and `p_value`. Of GENIA there are also scores
by type and boundary (table 8), the kinds of wrong predictions in percent (table 9), and F1 by length.

Finished runs are only read, so that an experiment can be measured in parts: `--variants`, `--seeds`, `--corpora`,
`--seconds`. The pictures are made from the runs of the ablations by plot_similarities.py. Results are written to
benchmarks/results/binder_PLAN.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments import Run, add_arguments, mean_record, run_all
from onoma.data.corpora import load_splits, relabel
from onoma.data.formats import write
from onoma.data.inventory import Inventory
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.evaluation.bootstrap import paired_bootstrap_of_runs
from onoma.files import atomic_write
from papers import published_figure
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records

if TYPE_CHECKING:
    from onoma.evaluation.columns import Integers

SCORER = "binder_scores:score_run"
MAIN_MEASURES = ("f1", "precision", "recall")
RULE_TEXTS = {
    "learned": "learned thresholds",
    "common": "one threshold for all types, tuned on dev",
    "per_type": "thresholds of types tuned on dev",
}


def settings(epochs: float, batch: int, rate: float) -> tuple[str, ...]:
    """Larger batches and fewer epochs than in the paper, and a learning rate of its own for the heads."""
    return (
        f"training.epochs={epochs}",
        f"training.batch_size={batch}",
        f"training.learning_rate={rate}",
        "training.gradient_accumulation_steps=1",
        "training.head_learning_rate=3e-4",
        "training.eval_steps=200",
    )


SETTINGS = {
    ("conll2003", "mpnet-base"): settings(10, 16, 6e-5),
    ("conll2003", "gte-small"): settings(20, 16, 1.5e-4),
    ("genia", "mpnet-base"): settings(8, 48, 6e-5),
    ("genia", "gte-small"): settings(16, 32, 1.5e-4),
}
"""Chosen on dev; "paper-settings" are those of the recipes."""
GENIA_CHOICES = {
    "base": SETTINGS["genia", "mpnet-base"],
    "long": settings(16, 32, 5e-5),
    "averaged": (*settings(12, 48, 6e-5), "training.ema_decay=0.99"),
    "small-batch": settings(10, 16, 4e-5),
    "wide-windows": (*settings(10, 24, 6e-5), "max_tokens=256"),
    "spans-only": (*settings(8, 48, 6e-5), "options.position_losses=false"),
}
"""Candidates for GENIA with MPNet."""
BLURB_SETTINGS = {"mpnet-base": settings(12, 24, 5e-5), "gte-small": settings(16, 32, 1.5e-4)}
"""The same for all corpora, not tuned."""
BLURB = {"bc2gm": "en/bc2gm", "jnlpba_merged": None, "ncbi_disease": "en/ncbi_disease"}
BLURB |= {"bc5cdr_chemical": None, "bc5cdr_disease": None}
"""The corpora of table 2, the longest first; those without a folder are made by `derive_corpora`."""
MERGED = EntityType("biomedical entity", "a protein, a DNA or RNA molecule or region, a cell type or a cell line")


class Ablation(NamedTuple):
    """A variant of BINDER; the paper's figures are from ACE2005, so the order can be compared, not the values."""

    changes: tuple[str, ...] = ()
    rule: str = "learned"
    trained_as: str | None = None  # the variant whose models are used; this one differs in inference alone
    inference: str = "span"
    max_tokens: int = 130  # of a window; with longer ones, batches have fewer windows and as many tokens

    def windows(self, batch_size: int) -> tuple[str, ...]:
        """Changes of the recipe for windows of another length."""
        if self.max_tokens == Ablation().max_tokens:
            return ()
        windows = batch_size * Ablation().max_tokens // self.max_tokens
        return f"max_tokens={self.max_tokens}", f"training.batch_size={windows}"


FULL = "full"
ABLATIONS = {
    FULL: Ablation(),
    "shared-linear": Ablation(("options.shared_linear=true",)),
    "joint-inference": Ablation(trained_as=FULL, inference="joint"),
    "no-positions": Ablation(("options.position_losses=false",)),
    "atomic-labels": Ablation(("options.types=atomic",)),
    "keywords": Ablation(("options.types=name",)),
    "prototypes": Ablation(("options.types=prototype",)),
    "global-thresholds": Ablation(("options.thresholds=global",)),
    "tuned-thresholds": Ablation(("options.thresholds=tuned",), rule="per_type"),
    "shared-encoder": Ablation(("options.shared_encoder=true",)),
    "length-256": Ablation(max_tokens=256),
    "length-384": Ablation(max_tokens=384),
}
"""Tables 4, 5 and 6, one of ours, and A.3."""
ABLATION_BATCHES = {"gte-small": 64, "mpnet-base": 48}
ABLATION_SETTINGS = {"gte-small": settings(10, 64, 2e-4), "mpnet-base": SETTINGS["genia", "mpnet-base"]}
WITH_SIMILARITIES = (FULL, "global-thresholds", "tuned-thresholds")


class Figure(NamedTuple):
    """What a run is a part of: runs that differ in the seed only make one figure."""

    setting: str
    corpus: str
    encoder: str
    seed: int


Found = dict[Figure, dict[str, Any]]
"""The scores of `binder_scores.score_rules`."""


def plan(arguments: argparse.Namespace) -> Iterator[tuple[Figure, Run]]:
    """The runs of an experiment, the longest first."""
    plans = {"supervised": _supervised, "blurb": _blurb, "ablations": _ablations, "genia-choice": _genia_choice}
    for setting, corpus, encoder, changes, options in plans[arguments.plan](arguments):
        for seed in arguments.seeds:
            yield _run(Figure(setting, corpus, encoder, seed), changes, **options)


Part = tuple[str, str, str, tuple[str, ...], dict[str, Any]]
"""Setting, corpus, encoder, changes of the recipe, and arguments of `_run`."""


def _supervised(arguments: argparse.Namespace) -> Iterator[Part]:
    for setting in arguments.settings:
        for encoder in arguments.only:
            for corpus in arguments.corpora or ("genia", "conll2003"):
                changes = SETTINGS[corpus, encoder] if setting == "supervised" else ()
                if (setting, corpus, encoder) == ("supervised", "genia", "mpnet-base"):
                    changes = GENIA_CHOICES[arguments.genia]
                yield setting, corpus, encoder, changes, {}


def _blurb(arguments: argparse.Namespace) -> Iterator[Part]:
    made = derive_corpora(Path(arguments.data), arguments.runs / "corpora")
    for encoder in arguments.only:
        for corpus in arguments.corpora or BLURB:
            path = f"data.corpora.0.path={BLURB[corpus] or made / corpus}"
            yield "supervised", corpus, encoder, (*BLURB_SETTINGS[encoder], path), {"recipe": "blurb"}


def _ablations(arguments: argparse.Namespace) -> Iterator[Part]:
    for name in arguments.variants or ABLATIONS:
        trained = ABLATIONS[name].trained_as or name
        windows = ABLATIONS[trained].windows(ABLATION_BATCHES[arguments.small])
        changes = (*ABLATION_SETTINGS[arguments.small], *ABLATIONS[trained].changes, *windows)
        scoring = {
            "inferences": ["joint", "span"] if trained == FULL else ["span"],
            "similarities": trained in WITH_SIMILARITIES,
        }
        yield name, "genia", arguments.small, changes, {"run": trained, "scoring": scoring}


def _genia_choice(arguments: argparse.Namespace) -> Iterator[Part]:
    for name in arguments.variants or GENIA_CHOICES:
        changes = (*GENIA_CHOICES[name], "data.corpora.0.test=null")  # test plays no part in the choice
        yield f"choice-{name}", "genia", "mpnet-base", changes, {}


def _run(
    figure: Figure,
    changes: tuple[str, ...],
    recipe: str | None = None,
    run: str | None = None,
    scoring: Mapping[str, Any] | None = None,
) -> tuple[Figure, Run]:
    name = f"{run or figure.setting}-{figure.corpus}-{figure.encoder}-{figure.seed}"
    changes = (f"seed={figure.seed}", "training.threshold_from=paper", *changes)
    path = f"binder/{recipe or figure.corpus}.yaml"
    return figure, Run(name, figure.encoder, path, changes, scorer=SCORER, scoring=json.dumps(scoring or {}))


def derive_corpora(data: Path, folder: Path) -> Path:
    """Write the corpora of table 2 that are parts of others: BC5CDR by type, JNLPBA with all types as one."""
    inventory = Inventory.load()
    made: dict[str, tuple[str, dict[str, EntityType | None]]] = {}
    chemical, disease = (inventory.types[name].in_language("en") for name in ("chemical", "disease"))
    made["bc5cdr_chemical"] = "en/bc5cdr", {"chemical": chemical, "disease": None}
    made["bc5cdr_disease"] = "en/bc5cdr", {"chemical": None, "disease": disease}
    made["jnlpba_merged"] = "en/jnlpba", dict.fromkeys(("protein", "DNA", "RNA", "cell type", "cell line"), MERGED)
    for name, (source, mapping) in made.items():
        if (folder / name / "types.jsonl").is_file():  # written last
            continue
        (folder / name).mkdir(parents=True, exist_ok=True)
        for split, corpus in load_splits(data / source, splits=["train", "dev", "test"]).items():
            write(relabel(inventory.unify(corpus), mapping), folder / name / f"{split}.jsonl")
        with atomic_write(folder / name / "types.jsonl") as file:
            for one in {one for one in mapping.values() if one is not None}:
                file.write(json.dumps({"name": one.name, "description": one.description}) + "\n")
    return folder.resolve()


def main() -> None:
    """Run an experiment and write its records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=["supervised", "blurb", "ablations", "genia-choice"])
    add_arguments(parser)
    variants = [*ABLATIONS, *GENIA_CHOICES]
    parser.add_argument("--variants", nargs="*", choices=variants, help="ablations or choices to run; by default all")
    parser.add_argument("--corpora", nargs="*", choices=["genia", "conll2003", *BLURB], help="by default all")
    kinds = ["supervised", "paper-settings"]
    parser.add_argument("--settings", nargs="*", choices=kinds, default=kinds, help="ours, and those of the recipes")
    parser.add_argument("--genia", default="base", choices=list(GENIA_CHOICES), help="settings of GENIA with MPNet")
    parser.add_argument(
        "--small", default="gte-small", choices=list(ABLATION_SETTINGS), help="encoder of the ablations"
    )
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--keep-models", action="store_true", help="after they are scored; a base-size one has 0.9 GB")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    _check(arguments)
    output = arguments.output or RESULTS / f"binder_{arguments.plan.replace('-', '_')}.json"
    commit_for(output)
    figures = {figure: replace(run, keep_model=arguments.keep_models) for figure, run in plan(arguments)}
    finished = run_all(list(dict.fromkeys(figures.values())), arguments)
    done = {figure: finished[run] for figure, run in figures.items() if run in finished}
    device = next((metrics["device"] for metrics in done.values()), "")
    found = {figure: metrics["scored"][_inference(figure)] for figure, metrics in done.items()}
    written = list(records(found, command(without=["--output", "--runs", "--cache"])))
    for record in written:
        if record.metric.endswith(("/dev_f1", "/p_value")):
            print(f"{record.metric}: {record.value}", flush=True)
    write_records(output, written, accelerator=device)


def _check(arguments: argparse.Namespace) -> None:
    """An error if variants, corpora or encoders are not those of the plan."""
    plan = arguments.plan
    known = {
        "variants": {"ablations": list(ABLATIONS), "genia-choice": list(GENIA_CHOICES)}.get(plan, []),
        "corpora": {"supervised": ["genia", "conll2003"], "blurb": list(BLURB)}.get(plan, []),
        "only": list(ABLATION_SETTINGS),
    }
    for option, names in known.items():
        for name in getattr(arguments, option) or ():
            if name not in names:
                raise OnomaError(
                    f"{plan} has no {name!r} for --{option}. Fix: choose from {', '.join(names) or 'none'}"
                )


def _inference(figure: Figure) -> str:
    return ABLATIONS[figure.setting].inference if figure.setting in ABLATIONS else "span"


def main_rule(setting: str) -> str:
    """The rule for thresholds of measures without ending."""
    if setting in ABLATIONS:
        return ABLATIONS[setting].rule
    return "learned" if setting == "paper-settings" else "common"


def records(found: Found, command: str) -> Iterator[Record]:
    """The means over seeds, and for ablations and choices the differences from the first of them."""
    groups: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = {}
    for figure, scored in found.items():
        groups.setdefault(figure[:3], {})[figure.seed] = scored
    for (setting, corpus, encoder), by_seed in groups.items():
        values: dict[str, dict[int, float]] = {}
        for seed, scored in by_seed.items():
            for place, value in measures(scored, setting, corpus).items():
                values.setdefault(place, {})[seed] = value
        for place, one in values.items():
            name, _, measure = place.partition("/")
            metric, data = f"binder/{name}/{corpus}/{encoder}/{measure}", _data(setting, corpus, measure)
            paper = published_figure(metric)
            yield mean_record(metric, one, command=command, data=data, encoder=encoder, paper=paper)
        full = groups.get((FULL if setting in ABLATIONS else "choice-base", corpus, encoder))
        if full is not None and full is not by_seed:
            seeds = tuple(sorted(by_seed.keys() & full.keys()))
            for measure, value in differences(by_seed, full, setting).items():
                metric, data = f"binder/{setting}/{corpus}/{encoder}/{measure}", _data(setting, corpus, measure)
                yield Record(metric, round(value, 4), command, data, encoder=encoder, seeds=seeds)


def _data(setting: str, corpus: str, measure: str) -> str:
    rule = next((one for one in RULE_TEXTS if measure.endswith(f"_{one}")), main_rule(setting))
    tested = "" if setting.startswith("choice-") else ", tested on test"
    return f"{corpus}: trained on train, chosen on dev{tested}; {RULE_TEXTS[rule]}"


def measures(scored: Mapping[str, Any], setting: str, corpus: str) -> dict[str, float]:
    """The figures of one run, in percent, by setting/measure."""
    found: dict[str, float] = {}
    main, tested = main_rule(setting), scored.get("test", {})
    for rule, dev in scored["dev"].items():
        ending = "" if rule == main else f"_{rule}"
        found[f"{setting}/dev_f1{ending}"] = dev["f1"]
        for measure in (MAIN_MEASURES if rule == main else ("f1",)) if tested else ():
            found[f"{setting}/{measure}{ending}"] = tested[rule][measure]
    if (setting, corpus) == ("supervised", "genia"):
        found |= breakdown(tested[main])
    return found


def breakdown(tested: Mapping[str, Any]) -> dict[str, float]:
    """Tables 8 (setting `boundaries`) and 9 (`errors`), and F1 by length (`lengths`)."""
    report, found = tested["report"], {}
    for measure, name in (("", "strict"), ("start_", "start_only"), ("end_", "end_only"), ("loose_", "loose")):
        found[f"boundaries/{measure}f1"] = 100 * report[name]["micro"]["f1"]
        for kind, scores in report[name]["types"].items():
            found[f"boundaries/{measure}f1_{kind.replace(' ', '_')}"] = 100 * scores["f1"]
    for what, lengths in (("mentions", "mention_length"), ("sentences", "sentence_length")):
        for length, scores in report["slices"][lengths].items():
            found[f"lengths/f1_{what}_of_{length}"] = 100 * scores["f1"]
    wrong = {kind: count for kind, count in tested["errors"].items() if kind != "missed"}
    return found | {f"errors/{kind}": 100 * count / max(sum(wrong.values()), 1) for kind, count in wrong.items()}


def differences(
    variant: Mapping[int, Mapping[str, Any]], full: Mapping[int, Mapping[str, Any]], setting: str
) -> dict[str, float]:
    """The difference in F1 of two settings over their common seeds, each with its main rule, then with equal rules."""
    seeds = sorted(variant.keys() & full.keys())
    if not seeds:
        return {}
    part = "test" if "test" in variant[seeds[0]] else "dev"
    main = main_rule(setting)
    pairs = {"": (main, main_rule(FULL) if setting in ABLATIONS else main)}
    pairs |= {f"_{rule}": (rule, rule) for rule in variant[seeds[0]][part] if (rule, rule) != pairs[""]}
    found = {}
    for ending, (own, other) in pairs.items():
        one = _counts([variant[seed][part][own] for seed in seeds])
        difference = paired_bootstrap_of_runs(one, _counts([full[seed][part][other] for seed in seeds]))
        found[f"difference{ending}"] = 100 * difference.f1.value
        found[f"p_value{ending}"] = difference.p_value
        if not ending:
            found |= {"difference_low": 100 * difference.f1.low, "difference_high": 100 * difference.f1.high}
    return found


def _counts(runs: Iterable[Mapping[str, Any]]) -> Integers:
    """Gold, predicted and correct mentions: (sentences, runs, 3)."""
    return np.stack([np.array(run["counts"], np.int64) for run in runs], axis=1)


if __name__ == "__main__":
    main_with_errors(main)
