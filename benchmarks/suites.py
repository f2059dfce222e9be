"""Which corpora a zero-shot model is developed on, and which ones only a finished model is tested on.

The development suite consists of corpora from many fields that the embedded model is never trained on; every choice of
loss, data, rule, threshold and checkpoint is made by the mean F1 over them (`recipes/embedded` names the same corpora).
Benchmarks are scored with a finished model, and nobody reads its errors there.
"""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """Corpora below a folder of a language."""

    sets: tuple[str, ...]
    average: str  # name of the mean over them
    texts: str  # description in the records
    limit: int | None = None  # sentences of each
    splits: tuple[str, ...] = ("test", "dev", "train")  # the first one that exists


SPLITS = {"cluener": "dev"}  # nobody has published the labels of its test sentences
DEVELOPMENT_LIMIT = 400
_DEVELOPMENT = f"first {DEVELOPMENT_LIMIT} sentences of dev, else of test, else of train"
_FIRST_DEV = ("dev", "test", "train")

# field -> corpora
DEVELOPMENT: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "web, mail, many genres": ("uner_en_ewt_devtest", "gum", "distant_webpage"),
        "social media": ("wnut17",),
        "historical text": ("hipe_hipe2020_en", "hipe_ajmc_en"),
        "fiction": ("litbank",),
        "finance": ("sec_filings_fin",),
        "jobs": ("skillspan",),
        "dialogue": ("atis_slots", "nlupp_slots", "music_reco_ner"),
        "software": ("stackoverflow_ner",),
        "computer science": ("scierc_flat", "few_tk"),
        "materials": ("sofc_exp_slots",),
        "biology": ("biored", "linnaeus"),
        "medicine": ("cadec", "ebmnlp_devtest", "neurotrial_ner"),
        "thousands of types": ("pilener_slimer_subset", "pilener_type_examples"),
    },
    "zh": {
        "news": ("people_daily_1998", "people_daily_2014_punified"),
        "addresses": ("address_parsing",),
        "medicine": ("cmeee", "tcm"),
        "search and dialogue": ("video_music_book",),
        "literature": ("literature",),
        "classical Chinese": ("c_clue",),
    },
}
SUITES: dict[str, dict[str, Suite]] = {
    "benchmarks": {
        "en": Suite(
            (
                *("crossner_ai", "crossner_literature", "crossner_music", "crossner_politics", "crossner_science"),
                *("mit_movie_eng", "mit_restaurant"),
            ),
            "average-of-seven",
            "all test sentences",
        ),
        "zh": Suite(
            ("resume", "cluener", "ecommerce", "msra"), "average-of-four", "all test sentences, of CLUENER all of dev"
        ),
    },
    "wide": {  # other sets with published zero-shot scores
        "en": Suite(("conll2003", "wikineural_en_devtest", "wikiann_en"), "average-of-three", "all test sentences"),
    },
    "development": {
        language: Suite(
            tuple(name for sets in fields.values() for name in sets),
            f"average-{language}",
            _DEVELOPMENT,
            DEVELOPMENT_LIMIT,
            _FIRST_DEV,
        )
        for language, fields in DEVELOPMENT.items()
    },
}
