"""Labels as people write them."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
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
        ("prénom_du_patient", "prénom du patient"),
        ("R&D_project", "r&d project"),
        ("IBANs", "IBAN"),
        ("EIEIOs", "eieio"),
    ],
)
def test_how_a_label_is_read(asked: str, read: str) -> None:
    assert spell_out(asked) == read


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("B-PER", "person"),
        ("I-per", "person"),
        ("E-ORG", "organization"),
        ("S-LOC", "location"),
        ("L-Organization", "organization"),
        ("U-geo", "location"),
        ("B-DISEASE", "disease"),
        ("I-WORK_OF_ART", "creative work"),
        ("B-cell", "B cell"),
        ("I-beam", "I beam"),
        ("I-phone", "I phone"),
        ("E-mail", "email address"),
        ("E-COMMERCE", "e commerce"),
        ("B-52", "B 52"),
        ("B-人名", "b 人名"),
    ],
)
def test_tags_are_left_out_before_labels(asked: str, read: str) -> None:
    assert spell_out(asked).casefold() == read.casefold()


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("a person", "person"),
        ("An Organization", "organization"),
        ("the_city", "city"),
        ("The drugs", "drug"),
        ("theater", "theater"),
        ("A", "a"),
        ("vitamin A", "vitamin A"),
        ("Person(s)", "person"),
        ("LOCATION(S)", "location"),
        ("dose(s) of a drug", "dose of a drug"),
        ("f(x)", "f(x)"),
        ("Org.", "organization"),
    ],
)
def test_articles_and_optional_plurals_are_left_out(asked: str, read: str) -> None:
    assert spell_out(asked).casefold() == read.casefold()


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("person_name", "person"),
        ("PersonNames", "person"),
        ("people names", "person"),
        ("people's names", "person"),
        ("persons’ names", "person"),
        ("human name", "person"),
        ("ORG_NAME", "organization"),
        ("organisation names", "organization"),
        ("place name", "location"),
        ("Name of a person", "person"),
        ("the names of the people", "person"),
        ("name of place", "location"),
        ("name(s) of organizations", "organization"),
        ("individuals", "person"),
        ("human beings", "person"),
        ("Places", "location"),
        ("ORGS", "organization"),
        ("LOCS", "location"),
        ("institution", "institution"),  # a narrower type
        ("company name", "company name"),
        ("file name", "file name"),
        ("name of a company", "name of a company"),
        ("full name", "full name"),
        ("person's first name", "person's first name"),
        ("place of birth", "place of birth"),
        ("name", "name"),
        ("names", "name"),
    ],
)
def test_names_of_persons_places_and_organizations_are_these(asked: str, read: str) -> None:
    assert spell_out(asked) == read


PARTS = (
    *("the", "a", "an", "A", "B-", "I-", "E-", "(s)", "(S)", "name", "names", "of", "'s", "’", "s", "ies", "xes"),
    *("_", " ", "-", "/", ".", "PER", "loc", "ORGs", "People", "É", "T\u0308", "人名", "3", "XYZABCs", "B-DISEASE"),
)


@given(st.text(min_size=1).filter(str.strip) | st.lists(st.sampled_from(PARTS), min_size=1).map("".join))
@example("the a_b")
@example("_x(s).y")
@example("an(s)s")
def test_what_is_read_is_read_as_it_is(label: str) -> None:
    once = spell_out(label)
    assert spell_out(once) == once
    assert once.strip() or not label.strip()


@pytest.mark.parametrize("part", ["the ", "B-", "B-BB-", "name of ", "people's ", "x(s)", "(s)", "aA", "'"])
def test_long_labels_are_read_in_linear_time(part: str) -> None:
    started = time.perf_counter()
    spell_out(part * 50_000)
    assert time.perf_counter() - started < 10  # quadratic steps would take minutes


@pytest.mark.parametrize("full", sorted(set(ABBREVIATIONS.values())))
def test_full_names_stay(full: str) -> None:
    assert spell_out(full) == full
