"""Unified type inventories."""

from __future__ import annotations

from pathlib import Path

import pytest

from onoma.data.inventory import Inventory
from onoma.entities import Corpus, Document, EntityType
from onoma.errors import DataError, OnomaError

YAML = """\
types:
  person:
    description: a human being with a name
    zh: 人名
    zh_description: 有名字的人
  place:
    description: "somewhere: a city, a river"
    zh: 地点
  song:
    description: a piece of music with words
corpora:
  news:
    PER.NAM: person
    PER.NOM: person
    LOC: place
    NO: song
    MISC: null
  tunes: identity
"""


def write(folder: Path, text: str, name: str = "types.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    return Inventory.load(write(tmp_path, YAML))


def news(*spans: tuple[int, int, str], annotated: set[str] | None = None) -> Corpus:
    document = Document.from_spans("Ann, a singer in Oslo", spans, annotated=annotated)
    types = tuple(EntityType(name) for name in ("PER.NAM", "PER.NOM", "LOC", "NO", "MISC"))
    return Corpus("news", [document], types)


def test_labels_are_renamed_merged_and_dropped(inventory: Inventory) -> None:
    unified = inventory.unify(news((0, 3, "PER.NAM"), (0, 3, "PER.NOM"), (17, 21, "LOC"), (5, 13, "MISC")))
    assert unified.name == "news"
    assert unified.types == (
        EntityType("person", "a human being with a name"),
        EntityType("place", "somewhere: a city, a river"),
        EntityType("song", "a piece of music with words"),
    )
    assert [entity.key for entity in unified.documents[0].entities] == [(0, 3, "person"), (17, 21, "place")]
    assert unified.documents[0].annotated is None


def test_annotated_labels_are_mapped(inventory: Inventory) -> None:
    corpus = news((17, 21, "LOC"), annotated={"LOC", "PER.NAM", "MISC", "NO"})
    assert inventory.unify(corpus).documents[0].annotated == {"place", "song"}


def test_types_can_have_chinese_names(inventory: Inventory) -> None:
    corpus = Corpus("news", [Document.from_spans("安娜在奥斯陆", [(0, 2, "PER.NAM"), (3, 6, "LOC")])])
    unified = inventory.unify(corpus, language="zh")
    assert unified.types == (EntityType("地点"), EntityType("人名", "有名字的人"))
    with pytest.raises(OnomaError, match="'song' has no Chinese name"):
        inventory.unify(news(), language="zh")


def test_an_identity_corpus_keeps_its_labels(inventory: Inventory) -> None:
    corpus = Corpus("tunes", [Document.from_spans("Yesterday", [(0, 9, "song")])])
    assert inventory.unify(corpus).types == (EntityType("song", "a piece of music with words"),)
    tempo = Corpus("tunes", [Document.from_spans("Allegro", [(0, 7, "tempo")])])
    with pytest.raises(OnomaError, match=r"types:\n  tempo: \{description: ...\}$"):
        inventory.unify(tempo)


def test_unmapped_labels_are_listed_with_the_lines_to_add(inventory: Inventory, tmp_path: Path) -> None:
    corpus = Corpus("my blog", [Document.from_spans("a b c", [(0, 1, "PERSON"), (2, 3, "Song_Title"), (4, 5, "a: b")])])
    with pytest.raises(OnomaError) as caught:
        inventory.unify(corpus)
    message, lines = str(caught.value).split("\n", 1)
    assert "no type for 3 labels of corpus 'my blog'" in message
    assert lines == 'corpora:\n  my blog:\n    PERSON: person\n    Song_Title: song title\n    "a: b": "a: b"'
    more = "types: {song title: {description: t}, 'a: b': {description: t}, person: {description: p}}\n"
    Inventory.load(write(tmp_path, more + lines)).unify(corpus)


def test_only_unmapped_labels_of_a_corpus_are_listed(inventory: Inventory) -> None:
    types = tuple(EntityType(name) for name in ("LOC", *(f"X{n}" for n in range(30))))
    with pytest.raises(OnomaError, match=r"X19: x19\n    # \.\.\. and 10 more$") as caught:
        inventory.unify(Corpus("news", [], types))
    assert "LOC" not in str(caught.value)


def test_unmapped_labels_can_be_kept(inventory: Inventory) -> None:
    corpus = Corpus("blog", [], (EntityType("mood", "how one feels"), EntityType("person")))
    assert inventory.unify(corpus, keep_unmapped=True).types == corpus.types


def test_the_types_of_a_corpus_can_be_listed(inventory: Inventory) -> None:
    assert [one.name for one in inventory.types_of("news")] == ["person", "place", "song"]
    assert [one.name for one in inventory.types_of("tunes")] == ["person", "place", "song"]
    with pytest.raises(OnomaError, match=r"the inventory has no corpus 'new' \(did you mean 'news'\?\)\. Fix: "):
        inventory.types_of("new")


def test_files_of_a_folder_are_merged(tmp_path: Path) -> None:
    write(tmp_path, "types:\n  person:\n    description: a human being\n", "a.yaml")
    write(tmp_path, "types:\n  person:\n    zh: 人名\n", "b.yaml")
    write(tmp_path, "corpora:\n  news:\n    PER: person\n", "c.yaml")
    write(tmp_path, "corpora:\n  news:\n    P: person\n    PER: person\n", "d.yaml")
    write(tmp_path, "", "empty.yaml")
    inventory = Inventory.load(tmp_path)
    assert (inventory.types["person"].description, inventory.types["person"].zh) == ("a human being", "人名")
    assert inventory.corpora == {"news": {"PER": "person", "P": "person"}}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("types: {person: {description: other}}", r"b\.yaml, line 1: 'description' of type 'person' is 'other' here"),
        (
            "corpora:\n  news:\n    PER: null",
            r"b\.yaml, line 3: label 'PER' of corpus 'news' is None here, but 'person'",
        ),
        ("corpora:\n  news: identity", r"b\.yaml, line 2: corpus 'news' is 'identity' and also has labels"),
    ],
)
def test_contradictions_between_files_are_errors(tmp_path: Path, second: str, message: str) -> None:
    write(tmp_path, "types: {person: {description: one}}\ncorpora: {news: {PER: person}}", "a.yaml")
    write(tmp_path, second, "b.yaml")
    with pytest.raises(DataError, match=message):
        Inventory.load(tmp_path)


PERSON = "types:\n  person: {description: a human being}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("types:\n  person:\n    zh: 人名\n", r"line 2: type 'person' has no description\. Fix: add"),
        ("types:\n  person:\n    description:\n", r"line 3: 'description' of type 'person' must be a non-empty string"),
        (
            "types:\n  person:\n    description: [a]\n",
            r"line 3: 'description' of type 'person' must be a non-empty string",
        ),
        ("types:\n  person: a human being\n", r"line 2: type 'person' is not a mapping"),
        ("types:\n  person:\n    describe: x\n", r"line 3: .*unknown field 'describe'\. Fix: use description, zh"),
        (PERSON + "  person: {zh: 人}\n", r"line 3: the key 'person' is given twice\. Fix: .* line 2"),
        (PERSON + "corpora:\n  news:\n    PER: person\n    PER: person\n", r"line 6: the key 'PER' is given twice"),
        (PERSON + "corpora:\n  news:\n    PER: persona\n", r"line 5: .*unknown type 'persona' .did you mean 'person'"),
        (PERSON + "corpora:\n  news:\n    PER: [person]\n", r"line 5: label 'PER' of corpus 'news' has no type"),
        (PERSON + "corpora:\n  news: same\n", r"line 4: corpus 'news' is not a mapping"),
        (PERSON + "labels: {}\n", r"line 3: unknown section 'labels'\. Fix: use 'types' and 'corpora'"),
        ("types:\n  a: b: c\n", r"line 2: this is not valid YAML"),
        ("types:\n\tperson:\n", r"line 2: this is not valid YAML"),
        ("- person\n", "line 1: the file is not a mapping"),
        ("types: " + "[" * 40_000, "line 1: lists and mappings are nested more than 64 levels deep"),
    ],
)
def test_errors_name_the_line_and_a_fix(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Inventory.load(write(tmp_path, text))
    assert "Fix: " in str(caught.value)


def test_a_missing_inventory_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "types.yaml"):
        with pytest.raises(DataError, match="there is no inventory"):
            Inventory.load(path)


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "types.yaml"
    path.write_bytes(b"types: \xff\xfe")
    with pytest.raises(DataError, match="UTF-8"):
        Inventory.load(path)


def test_the_own_inventory_is_valid() -> None:
    ours = Inventory.load()
    assert len(ours.types) > 10
    assert all(ours.types_of(name) for name in ours.corpora)


def test_several_files_are_merged_and_can_extend_the_own_inventory(tmp_path: Path) -> None:
    types = write(tmp_path, "types:\n  moon base: {description: a settlement on the moon}\n", "types.yaml")
    corpora = write(tmp_path, "corpora:\n  moons: {BASE: moon base}\n", "corpora.yaml")
    assert [one.name for one in Inventory.load(types, corpora).types_of("moons")] == ["moon base"]
    both = write(tmp_path, "corpora:\n  mine: {PER: person, BASE: moon base}\n", "both.yaml")
    extended = Inventory.load(types, both, extend=True)
    assert [one.name for one in extended.types_of("mine")] == ["person", "moon base"]
    assert set(extended.types) == {*Inventory.load().types, "moon base"}
    assert Inventory.load(extend=True) == Inventory.load()
    with pytest.raises(DataError, match=r"both\.yaml, line 2: .*unknown type 'person'"):
        Inventory.load(types, both)


OWN = PERSON + "corpora:\n  stories: own\n"


def test_a_corpus_with_own_types_is_not_changed(tmp_path: Path) -> None:
    inventory = Inventory.load(write(tmp_path, OWN))
    types = (EntityType("dragon", "a beast that breathes fire"), EntityType("person"))
    stories = Corpus("stories", [Document.from_spans("Fafnir", [(0, 6, "dragon")])], types)
    assert inventory.unify(stories, language="zh") == stories
    with pytest.raises(OnomaError, match="describes its types itself"):
        inventory.types_of("stories")
    with pytest.raises(DataError, match="'stories' is 'own' and also has labels"):
        Inventory.load(write(tmp_path, OWN), write(tmp_path, "corpora: {stories: {X: person}}", "more.yaml"))
    with pytest.raises(DataError, match="'stories' is 'identity' here, but 'own'"):
        Inventory.load(write(tmp_path, OWN), write(tmp_path, "corpora: {stories: identity}", "more.yaml"))


def test_the_own_inventory_maps_labels_without_mentions() -> None:
    ours = Inventory.load()
    labels = ours.corpora["pilener_slimer_subset"]
    assert labels is not None
    assert labels["ui element"] == "user interface element"
    assert labels["medical"] is None
    assert "onoma_synthetic" in ours.own
