"""Labels as people write them: "PER", "COMPANY_NAME", "phoneNumbers" and "cities" are read as words in the singular.

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
    "mail": "email address",
    "misc": "miscellaneous",
    "norp": "nationality, religious or political group",
    "num": "number",
    "ord": "ordinal number",
    "ordinal": "ordinal number",
    "org": "organization",
    "organisation": "organization",
    "pct": "percentage",
    "percent": "percentage",
    "per": "person",
    "pers": "person",
    "person name": "person",
    "name of person": "person",
    "name of a person": "person",
    "human": "person",
    "people": "person",
    "phone": "phone number",
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

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W_a-zA-Z\d]+")
_SEPARATED = re.compile(r"[_\-/]|[a-z][A-Z]")
_INVARIABLE = {"news", "series", "species", "means", "physics", "mathematics", "economics", "politics", "diabetes"}
_LONGEST_ACRONYM = 4


def spell_out(label: str) -> str:
    """A label in lower-case words in the singular; abbreviations in full, acronyms as they are.

    >>> [spell_out(one) for one in ("PER", "COMPANY_NAME", "phoneNumbers", "cities", "IBAN", "drug")]
    ['person', 'company name', 'phone number', 'city', 'IBAN', 'drug']
    """
    words = _words(unicodedata.normalize("NFKC", label).strip())
    for candidate in (words, [*words[:-1], *map(_singular, words[-1:])]):
        full = ABBREVIATIONS.get(" ".join(candidate).casefold())
        if full is not None:
            return full
    return " ".join([*words[:-1], *map(_singular, words[-1:])]) or label


def _words(label: str) -> list[str]:
    """The words of a label, in lower case except acronyms and names."""
    if _SEPARATED.search(label) and " " not in label:
        label = " ".join(_PARTS.findall(label))
    words = label.split()
    shouted = all(one.isupper() for one in words) and any(len(one) > _LONGEST_ACRONYM for one in words)
    return [one.lower() if shouted or (len(words) > 1 and not one.isupper()) or one.istitle() else one for one in words]


def _singular(word: str) -> str:
    """An English noun in the singular, by the usual endings."""
    lower = word.lower()
    if lower in _INVARIABLE or len(word) < _LONGEST_ACRONYM or not word.isascii() or word.isupper():
        return word
    if lower.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if lower.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else word
