"""Labels as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.labels.spelling import ABBREVIATIONS, spell_out


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("person", "person"),
        ("PER", "person"),
        ("Per", "person"),
        ("people", "person"),
        ("PEOPLE", "person"),
        ("persons", "person"),
        ("ORG", "organization"),
        ("orgs", "organization"),
        ("organisations", "organization"),
        ("LOCATION", "location"),
        ("Locations", "location"),
        ("company_name", "company name"),
        ("COMPANY_NAME", "company name"),
        ("companyName", "company name"),
        ("CompanyNames", "company name"),
        ("company-names", "company name"),
        ("countries", "country"),
        ("boxes", "box"),
        ("buses", "buse"),  # rules have limits; the model reads that well enough
        ("diseases", "disease"),
        ("species", "species"),
        ("address", "address"),
        ("virus", "virus"),
        ("IBAN", "IBAN"),
        ("CVE ID", "CVE ID"),
        ("ip address", "ip address"),
        ("IP", "IP address"),
        ("work_of_art", "creative work"),
        ("人名", "人名"),
        ("person who signed the contract", "person who signed the contract"),
    ],
)
def test_how_a_label_is_read(asked: str, read: str) -> None:
    assert spell_out(asked) == read


@given(st.text(min_size=1).filter(str.strip))
def test_any_label_can_be_read_and_is_read_alike_twice(label: str) -> None:
    once = spell_out(label)
    assert once.strip()
    assert spell_out(once) == spell_out(spell_out(once))


@pytest.mark.parametrize("full", sorted(set(ABBREVIATIONS.values())))
def test_full_names_stay(full: str) -> None:
    assert spell_out(full) == full
