"""Warnings for texts in scripts and languages that the models of a folder were not made for."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

import onoma
from onoma.labels import coverage
from onoma.labels.coverage import Coverage, guess_language

JAPANESE = "東京都知事選挙は七月に行われる予定"  # kana, but mostly kanji
LANGUAGES = {
    "German": (
        "Die Stadt liegt an der Elbe und ist mit dem Umland eng verbunden. Im Jahr wurde eine neue Brücke "
        "gebaut, die nicht nur den Verkehr erleichtert, sondern auch als Ausflugsziel beliebt ist. Das Museum "
        "zeigt Werke von Malern."
    ),
    "French": (
        "La ville est située dans une vallée au bord du fleuve. Les habitants sont fiers de leur marché, qui "
        "attire des visiteurs de toute la région. Cette année, le maire a décidé de construire un pont pour "
        "les cyclistes avec une rampe."
    ),
    "Spanish": (
        "La ciudad se encuentra en el valle del río y es conocida por su mercado. El alcalde dijo que los "
        "vecinos pueden votar por un puente nuevo para las bicicletas, pero el proyecto no fue aprobado como "
        "se esperaba en la región."
    ),
    "Italian": (
        "La città si trova nella valle del fiume ed è nota per il mercato. Il sindaco ha detto che gli "
        "abitanti possono votare per un ponte nuovo, ma il progetto non è stato approvato come si sperava "
        "anche nella regione vicina."
    ),
    "Portuguese": (
        "A cidade fica no vale do rio e é conhecida pelo mercado. O prefeito disse que os moradores podem "
        "votar em uma ponte nova para as bicicletas, mas o projeto não foi aprovado como se esperava e a "
        "região ficou sem a obra."
    ),
    "Dutch": (
        "De stad ligt aan de rivier en is bekend om het museum met een verzameling van schilderijen. De "
        "burgemeester zei dat er voor de bewoners een nieuwe brug wordt gebouwd, maar het plan werd niet door "
        "de raad aangenomen."
    ),
    "Polish": (
        "Miasto leży w dolinie rzeki i jest znane z targu, który przyciąga gości z całego regionu. Burmistrz "
        "powiedział, że mieszkańcy nie są zadowoleni, bo most nie został zbudowany do końca roku przez firmę, "
        "która to obiecała."
    ),
}
ENGLISH = (
    "Anna Berg works as a nurse at a small clinic near Oslo. Her brother Lars drives a taxi. They met "
    "Maria Silva last summer when she was looking for somebody who could repair an old boat. In the end "
    "it was Lars who did it, for nothing."
)


@pytest.fixture(autouse=True)
def nothing_was_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_warned", set())


def reported(caplog: pytest.LogCaptureFixture, *texts: str, is_other: bool = True) -> list[str]:
    both = Coverage({"Han", "Latin"}, english=True)
    with caplog.at_level(logging.WARNING, "onoma"):
        for text in texts:
            both.check(text, Counter(filter(str.isalpha, text)), is_other=is_other)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (JAPANESE, "Hiragana"),
        ("わたしはトムです", "Hiragana"),
        ("Москва слезам не верит", "Cyrillic"),
        ("서울은 대한민국의 수도이다", "Hangul"),
        ("القاهرة عاصمة مصر", "Arabic"),
        ("ירושלים של זהב", "Hebrew"),
        ("Η Αθήνα είναι πρωτεύουσα", "Greek"),
    ],
)
def test_a_script_that_is_not_covered_is_reported_once(
    text: str, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = reported(caplog, text, "Tom flew to Oslo.", text)
    assert f"the script {script} " in message


@pytest.mark.parametrize(
    "text",
    [
        "北京是中国的首都。",
        "我在北京喝了优の良品的咖啡。",
        "TNF-α and IL-1β",
        "Tom flew to 東京.",
        "",
        "42",
        ENGLISH,
        ENGLISH.upper(),
    ],
)
def test_covered_texts_and_single_words_in_other_scripts_are_not_reported(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert reported(caplog, text) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_text_in_another_european_language_is_reported_once(
    language: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = LANGUAGES[language]
    assert guess_language(text) == language
    (message,) = reported(caplog, text * 2, text * 2, ENGLISH * 2)
    assert f"seems to be {language} " in message


def test_short_texts_and_texts_for_other_models_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert reported(caplog, "Der Zug ist nicht auf dem Gleis.") == []
    assert reported(caplog, LANGUAGES["German"] * 2, is_other=False) == []


@pytest.mark.parametrize("text", ["", "x" * 300, "Anna Berg, Lars Berg, Maria Silva, " * 10, "Anna van de Berg. " * 20])
def test_text_without_function_words_has_no_language(text: str) -> None:
    assert guess_language(text) is None


def test_the_embedded_model_reports_what_it_does_not_cover(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "onoma"):
        onoma.load().extract([JAPANESE, "Москва слезам не верит", ENGLISH * 2, LANGUAGES["Polish"] * 2], ["person"])
    assert len(caplog.records) == 3
