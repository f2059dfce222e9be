"""Labels as people write them: "PER", "COMPANY_NAME", "phoneNumbers" and "cities" are read as words in the singular.

Tags ("B-PER"), articles ("a person") and words that only say that names are meant ("names of people") are left out.
This is for models that read any label as a phrase of natural English. Entities keep the label that was asked for.
"""

from __future__ import annotations

import re
import unicodedata

ABBREVIATIONS = {
    "addr": "address",
    "amt": "amount",
    "dob": "date of birth",
    "e mail": "email address",
    "email": "email address",
    "evt": "event",
    "fac": "facility",
    "geo": "location",
    "gpe": "geopolitical entity",
    "ip": "IP address",
    "lang": "language",
    "loc": "location",
    "locs": "location",
    "mail": "email address",
    "misc": "miscellaneous",
    "norp": "nationality, religious or political group",
    "num": "number",
    "ord": "ordinal number",
    "ordinal": "ordinal number",
    "org": "organization",
    "orgs": "organization",
    "organisation": "organization",
    "pct": "percentage",
    "percent": "percentage",
    "per": "person",
    "pers": "person",
    "human": "person",
    "human being": "person",
    "individual": "person",
    "people": "person",
    "phone": "phone number",
    "place": "location",
    "prod": "product",
    "qty": "quantity",
    "ssn": "social security number",
    "tel": "phone number",
    "telephone": "phone number",
    "url": "web address",
    "website": "web address",
    "work of art": "creative work",
}
"""Abbreviations of annotation schemes, and other words for the same types."""

NAMED = frozenset({"person", "location", "organization"})
"""Types of which "the name of a ..." is the same. A company name or a file name may be another type than the thing."""

_FULL = ABBREVIATIONS | {one: one for one in NAMED}
_ARTICLES = re.compile(r"^(?:(?:an?|the) )+", re.IGNORECASE)
_TAG = re.compile(
    r"^(?:[BI]-(?=[A-Z]{2}[A-Z\d_-]*$)"  # "B-DISEASE", but not "B-cell" or "E-COMMERCE"
    r"|[BIMESLU]-(?=(?i:per|pers|person|loc|location|geo|gpe|org|organi[sz]ation|misc)$))"
)
_OPTIONAL_PLURAL = re.compile(r"(?<=[^\s()])\(e?s\)(?!\S)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
_SEPARATED = re.compile(r"[_\-/]|[a-z][A-Z]")
_BREAKS = re.compile(r"[_\-/.]+|(?<=[a-z])(?=[A-Z\d])|(?<=[A-Z])(?=[A-Z][a-z]|\d)|(?<=\d)(?=[a-zA-Z])")
_INVARIABLE = {"news", "series", "species", "means", "physics", "mathematics", "economics", "politics", "diabetes"}
_LONGEST_ACRONYM = 4


def spell_out(label: str) -> str:
    """A label in lower-case words in the singular; abbreviations in full, acronyms as they are.

    >>> [spell_out(one) for one in ("PER", "COMPANY_NAME", "phoneNumbers", "cities", "IBAN", "drug")]
    ['person', 'company name', 'phone number', 'city', 'IBAN', 'drug']
    >>> [spell_out(one) for one in ("B-PER", "a city", "names of people", "file name")]
    ['person', 'city', 'person', 'file name']
    """
    words = _words(label)
    spelled = unicodedata.normalize("NFKC", " ".join(_lower(_singular(words))))  # lower-case letters may compose
    return _full_name(words) or _named(words) or spelled or label


def _words(label: str) -> list[str]:
    """The words of a label without tag and articles, in lower case except acronyms and names."""
    text = " ".join(unicodedata.normalize("NFKC", label).split())
    text = _TAG.sub("", _ARTICLES.sub("", _OPTIONAL_PLURAL.sub("", text)))
    if " " not in text and _SEPARATED.search(text):
        text = _ARTICLES.sub("", _OPTIONAL_PLURAL.sub("", " ".join(_BREAKS.sub(" ", text).split())))
    return _lower(text.split())


def _lower(words: list[str]) -> list[str]:
    """Words in lower case, except acronyms and names."""
    shouted = all(one.isupper() for one in words) and any(len(one) > _LONGEST_ACRONYM for one in words)
    return [one.lower() if shouted or (len(words) > 1 and not one.isupper()) or one.istitle() else one for one in words]


def _full_name(words: list[str]) -> str | None:
    """What an abbreviation or another word, in the singular or plural, stands for."""
    keys = (" ".join(one).casefold().removesuffix(".") for one in (words, _singular(words)))
    return next((_FULL[key] for key in keys if key in _FULL), None)


def _named(words: list[str]) -> str | None:
    """The type in "person name", "people's names" or "name of a person", if its mentions are names anyway."""
    lower = [one.casefold() for one in words]
    if lower[-1:] in (["name"], ["names"]):
        owner = [_POSSESSIVE.sub("", one) for one in lower[:-1]]
    elif lower[:2] in (["name", "of"], ["names", "of"]):
        owner = _ARTICLES.sub("", " ".join(lower[2:])).split()
    else:
        return None
    full = _full_name(owner)
    return full if full in NAMED else None


def _singular(words: list[str]) -> list[str]:
    """Words with the last one in the singular, by the usual endings of English nouns."""
    return [*words[:-1], *map(_singular_noun, words[-1:])]


def _singular_noun(word: str) -> str:
    lower = word.lower()
    if lower in _INVARIABLE or len(word) < _LONGEST_ACRONYM or not word.isascii() or word.isupper():
        return word
    if lower.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if lower.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if lower.endswith("s") and not lower.endswith(("ss", "us", "is", ")s")) else word
