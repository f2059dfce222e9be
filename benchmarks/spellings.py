"""Whether the same entities are found when person, location and organization are asked for in other words.

    python benchmarks/spellings.py --data CORPORA [--model FOLDER] [--language en|zh|both] [--sentences N]

The sets of labels below are fixed: spellings, plurals, tags, phrases and synonyms that people write, also those that no
rule of `onoma.labels.spelling` knows. "full name" or "city" are other types, not other spellings, and are left out. For
each set, the entities (start, end, type) are compared with those of the plain labels: |A ∩ B| / |A ∪ B| over all
sentences, in percent. No gold labels are needed; the sentences are from corpora by which rules may be chosen
(suites.py), and from the dev splits of CoNLL-2003 and WikiNEuRal. Results are written to
benchmarks/results/spellings.json.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

import onoma
from onoma import Extractor
from onoma.data import load_corpus
from onoma.errors import OnomaError
from records import RESULTS, Record, command, commit_for, main_with_errors, write_records
from zero_shot import encoder_of

Labels = tuple[str, str, str]
Found = set[tuple[int, int, int, int]]
"""Number of the text, start, end, number of the type."""


class Spellings(NamedTuple):
    """Sets of labels of one language, and the corpora whose dev splits are read."""

    plain: Labels
    sets: tuple[Labels, ...]
    corpora: tuple[str, ...]
    prefix: str = ""  # of the sets in the records


SPELLINGS = {
    "en": Spellings(
        ("person", "location", "organization"),
        (
            ("PER", "LOC", "ORG"),
            ("per", "geo", "org"),
            ("pers", "loc", "orgs"),
            ("B-PER", "B-LOC", "B-ORG"),
            ("Person", "Location", "Organization"),
            ("PERSON", "LOCATION", "ORGANIZATION"),
            ("persons", "locations", "organizations"),
            ("Person(s)", "Location(s)", "Organization(s)"),
            ("PEOPLE", "PLACES", "ORGANISATIONS"),
            ("people", "places", "organizations"),
            ("a person", "a location", "an organization"),
            ("person_name", "location_name", "organization_name"),
            ("PersonName", "LocationName", "OrganizationName"),
            ("people names", "place names", "organization names"),
            ("name of a person", "name of a place", "name of an organization"),
            ("names of people", "names of places", "names of organizations"),
            ("individual", "place", "institution"),
            ("human", "geographical name", "institution"),
            ("person entity", "location entity", "organization entity"),
            ("named person", "named location", "named organization"),
        ),
        ("uner_en_ewt_devtest", "hipe_hipe2020_en", "litbank", "gum", "conll2003", "wikineural_en_devtest"),
    ),
    "zh": Spellings(
        ("人名", "地名", "机构名"),
        (
            ("人物", "地点", "机构"),
            ("人", "地点", "组织"),
            ("姓名", "地点", "组织机构"),
            ("人名", "地名", "组织名"),
            ("人物名称", "地点名称", "机构名称"),
            ("人員", "地名", "機構"),
            ("PER", "LOC", "ORG"),
            ("B-PER", "B-LOC", "B-ORG"),
            ("person", "location", "organization"),
            ("people", "places", "organizations"),
        ),
        ("people_daily_1998",),
        "zh-",
    ),
}


def main() -> None:
    """Measure, print the tables and write the records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="folder with en/conll2003 and the others")
    parser.add_argument("--model", default=None, help="model folder; by default the embedded one")
    parser.add_argument("--language", choices=[*SPELLINGS, "both"], default="both", help="language of the texts")
    parser.add_argument("--sentences", type=int, default=360, help="of each language, as many of each corpus")
    parser.add_argument("--name", default="embedded", help="the model's name in the records")
    parser.add_argument("--output", type=Path, default=RESULTS / "spellings.json")
    arguments = parser.parse_args()
    commit_for(arguments.output)
    model = onoma.load(arguments.model)
    for language, spellings in SPELLINGS.items():
        if arguments.language in (language, "both"):
            texts = read_texts(arguments.data / language, spellings.corpora, arguments.sentences)
            scores = measure(model, spellings, texts)
            Console().print(table(spellings.plain, scores))
            data = f"{len(texts)} sentences: first of dev of {', '.join(spellings.corpora)}"
            made = records(arguments.name, spellings, scores, encoder_of(model, language), data)
            write_records(arguments.output, list(made))


def read_texts(folder: Path, corpora: Sequence[str], sentences: int) -> list[str]:
    """The first sentences of the dev splits, as many of each corpus."""
    each = sentences // len(corpora)
    if each < 1:
        raise OnomaError(f"{sentences} sentences are too few. Fix: give --sentences {len(corpora)} or more")
    loaded = (load_corpus(folder / name, "dev") for name in corpora)
    return [document.text for corpus in loaded for document in corpus.documents[:each]]


def measure(model: Extractor, spellings: Spellings, texts: Sequence[str]) -> dict[Labels, float]:
    """For each set of labels, how many entities are the same as with the plain labels, in percent."""
    plain = find(model, texts, spellings.plain)
    if not plain:
        asked = ", ".join(spellings.plain)
        raise OnomaError(f"no {asked} was found in {len(texts)} sentences. Fix: give another model or more sentences")
    sets = track(spellings.sets, f"asking for {spellings.plain[0]}", console=Console(stderr=True))
    return {labels: percent_same(plain, find(model, texts, labels)) for labels in sets}


def find(model: Extractor, texts: Sequence[str], labels: Labels) -> Found:
    """What is found, with types by their number instead of their label."""
    return {
        (number, entity.start, entity.end, labels.index(entity.label))
        for number, entities in enumerate(model.stream(texts, labels))
        for entity in entities
    }


def percent_same(one: Found, other: Found) -> float:
    """|A ∩ B| / |A ∪ B|, in percent."""
    return 100 * len(one & other) / len(one | other)


def table(plain: Labels, scores: dict[Labels, float]) -> Table:
    """One row per set of labels, and their mean."""
    shown = Table("asked for", Column("same entities, %", justify="right"), title=f"instead of {', '.join(plain)}")
    for labels, score in scores.items():
        shown.add_row(", ".join(labels), f"{score:.1f}")
    shown.add_row("mean", f"{fmean(scores.values()):.1f}")
    return shown


def records(name: str, spellings: Spellings, scores: dict[Labels, float], encoder: str, data: str) -> Iterator[Record]:
    """The mean, named after the plain labels, and a record for each set."""
    mean = {spellings.plain: fmean(scores.values())}
    for labels, score in (mean | scores).items():
        about = f"mean of {len(scores)} sets of labels" if labels == spellings.plain else ", ".join(labels)
        yield Record(
            f"{name}/spellings/{spellings.prefix}{slug(labels)}/{encoder}/same_entities_percent",
            round(score, 2),
            command(without=["--output"]),
            f"{about}; {data}",
            None,
            encoder,
        )


def slug(labels: Labels) -> str:
    """Labels as one part of a metric.

    >>> slug(("Person(s)", "a place", "ORG"))
    'Person-s-a-place-ORG'
    """
    return "-".join(re.findall(r"\w+", " ".join(labels)))


if __name__ == "__main__":
    main_with_errors(main)
