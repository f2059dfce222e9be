from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onoma
import tiny
from onoma import Document, EntityType, Extractor, OnomaError
from onoma.chunks import Line, Proposed
from onoma.config import ModelConfig
from onoma.data import Inventory
from onoma.decoding import Proposals
from onoma.entities import Entity
from onoma.label_names import LABELS, write_label_names
from onoma.routing import SCRIPTS, SHARE, Route, RoutedExtractor, merge, require_single

ROUTES = [{"folder": "zh", "scripts": ["Han"]}, {"folder": "en", "scripts": []}]
PERSON = EntityType("人名", "用名字称呼的个人，包括真实人物和虚构人物")
CITY = EntityType("城市", "城市或城镇的名称、别称或简称")
PEOPLE = ("王芳", "李大伟", "欧阳娜", "陈晨", "赵明月")
CITIES = ("北京", "上海", "哈尔滨", "西安", "成都")
SENTENCES = (
    "{person}昨天飞往{city}。",
    "{person}说，{city}今天下雨。",
    "我们在{city}见到了{person}。",
    "大家每天喝汤吃面包。",
)
ENGLISH, CHINESE = "Tom flew to Paris .", "王芳昨天飞往北京。"
TEXTS = [
    ENGLISH,
    CHINESE,
    "",
    "In Lima it rains , says Greta .",
    "陈晨说，西安今天下雨。" * 30,
    "12 + 30 = 42",
    "Nobody has seen Ann since the concert in Oslo . " * 20,
    "我们在成都见到了Tom。",
]
NAMES = ["person", "city"]


def chinese_documents() -> list[Document]:
    found = []
    for pattern, person, city in product(SENTENCES, PEOPLE, CITIES):
        text = pattern.format(person=person, city=city)
        names = ((person, PERSON.name), (city, CITY.name))
        spans = [(text.index(name), text.index(name) + len(name), label) for name, label in names if name in text]
        found.append(Document.from_spans(text, spans))
    return found


@pytest.fixture(scope="module")
def folder(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Chinese and a tiny English model in one folder."""
    folder = tmp_path_factory.mktemp("models") / "routed"
    shutil.copytree(tiny_model, folder / "en")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "TYPES", (CITY, PERSON))
        patch.setattr(tiny, "documents", chinese_documents)
        tiny.tiny_binder(folder / "zh")
    write_label_names(folder / "zh", "zh")
    write_label_names(folder / "en", "en")
    # what the tiny model has learned, in place of the inventory's descriptions
    known = {"人名": ["person", "a human being with a name"], "城市": ["city", "a large town"]}
    (folder / "en" / LABELS).write_text(json.dumps(known), "utf-8")
    write_config(folder, {"routes": ROUTES})
    return folder


def write_config(folder: Path, options: dict[str, Any]) -> None:
    content = {"format": 1, "system": "routed", "options": options}
    (folder / "config.json").write_text(json.dumps(content), "utf-8")


def load(folder: Path, **options: Any) -> Extractor:
    return onoma.load(folder, backend="torch", device="cpu", **options)


@pytest.fixture(scope="module")
def routed(folder: Path) -> Extractor:
    return load(folder)


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, Extractor]:
    return {name: load(folder / name) for name in ("zh", "en")}


def found(entities: list[Entity]) -> list[tuple[str, str]]:
    return [(one.text, one.label) for one in entities]


def loaded(extractor: Extractor) -> list[str]:
    assert isinstance(extractor, RoutedExtractor)
    return [route.folder.name for route in extractor._routes if route.loaded]


def test_each_text_is_read_by_the_model_for_its_script(routed: Extractor) -> None:
    texts = [CHINESE, ENGLISH, "We eat soup and bread every day .", "我们在上海见到了李大伟。"]
    assert [found(one) for one in routed.extract(texts, NAMES)] == [
        [("王芳", "person"), ("北京", "city")],
        [("Tom", "person"), ("Paris", "city")],
        [],
        [("上海", "city"), ("李大伟", "person")],
    ]
    assert found(routed.extract(CHINESE, ["person"])) == [("王芳", "person")]
    assert routed.extract([], NAMES) == []


@given(st.permutations(TEXTS), st.sampled_from([1, 3, 64]))
@settings(max_examples=15)
def test_mixed_texts_give_what_each_model_alone_gives(
    routed: Extractor, alone: dict[str, Extractor], texts: list[str], batch_size: int
) -> None:
    several = routed.extract(texts, NAMES, threshold=0.1, overlap="nested", batch_size=batch_size)
    for text, entities in zip(texts, several, strict=True):
        model = alone["zh" if any("一" <= one <= "龥" for one in text) else "en"]
        expected = model.extract(text, NAMES, threshold=0.1, overlap="nested")
        assert [one.key for one in entities] == [one.key for one in expected]
        assert [one.score for one in entities] == pytest.approx([one.score for one in expected], abs=1e-4)
        assert all(text[one.start : one.end] == one.text for one in entities)


def test_proposals_stand_on_one_line_in_the_order_of_the_texts(routed: Extractor) -> None:
    (chunk,) = routed.propose(TEXTS, NAMES)
    assert list(chunk.line.texts) == TEXTS
    assert len(chunk.line.begins) == len(TEXTS) + 1
    assert chunk.entities(sorted(NAMES)) == routed.extract(TEXTS, NAMES)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=8), st.randoms())
def test_merged_proposals_point_at_the_words_of_their_own_text(choice: list[tuple[int, int]], random: Any) -> None:
    texts = [f"{number} " + "w " * words for number, (_, words) in enumerate(choice)]
    words = [np.array([(at, at + 1) for at in range(size + 1)], np.int32) for _, size in choice]
    parts, expected = [], Counter[tuple[int, int, int]]()
    for route in sorted({route for route, _ in choice}):
        places = [place for place, (own, _) in enumerate(choice) if own == route]
        line = Line.of([texts[place] for place in places], [words[place] for place in places])
        spans = []
        for number, place in enumerate(places):
            first = random.randrange(len(words[place]))
            last = random.randrange(first, len(words[place]))
            spans.append((0, line.begins[number] + first, line.begins[number] + last, place, 0.5))
            expected[place, first, last] += 1
        parts.append((places, Proposed(line, Proposals(*map(np.array, zip(*spans, strict=True))))))
    merged = merge(texts, parts)
    assert list(merged.line.texts) == texts
    document = merged.line.document(merged.proposals.first)
    assert document.tolist() == merged.proposals.type.tolist()  # the type says which text it was made for
    first, last = merged.proposals.first - merged.line.begins[document], merged.proposals.last
    rows = zip(document.tolist(), first.tolist(), (last - merged.line.begins[document]).tolist(), strict=True)
    assert Counter(rows) == expected


def test_a_model_is_loaded_when_its_first_text_comes(folder: Path) -> None:
    extractor = load(folder)
    assert loaded(extractor) == []
    assert (extractor.config.encoder, extractor.styles) == ("tiny", ())
    assert loaded(extractor) == []
    extractor.extract([ENGLISH, "42"], NAMES)
    assert loaded(extractor) == ["en"]
    extractor.extract(CHINESE, NAMES)
    assert loaded(extractor) == ["zh", "en"]


def test_an_english_text_needs_no_file_of_the_chinese_model(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the inventory, nor the names of labels."""
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    shutil.rmtree(broken / "zh")
    (broken / "zh").mkdir()
    (broken / "en" / LABELS).write_text("{", "utf-8")
    monkeypatch.setattr(Inventory, "load", None)
    assert len(load(broken).extract(ENGLISH, NAMES)) == 2
    with pytest.raises(OnomaError, match=r"zh is no model folder"):
        load(broken).extract(CHINESE, NAMES)
    with pytest.raises(OnomaError, match=r"labels\.json is damaged"):
        load(broken).extract(ENGLISH, ["人名"])


def test_single_models_do_not_import_routing(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "onoma.routing")
    load(tiny_model)
    assert "onoma.routing" not in sys.modules


def test_threads_load_a_model_once_and_find_the_same(folder: Path, routed: Extractor) -> None:
    calls = Counter[str]()

    def counted(path: Path) -> Extractor:
        calls[path.name] += 1
        return load(path)

    shared = RoutedExtractor(folder, ModelConfig.load(folder), counted)
    expected = routed.extract(TEXTS, NAMES)
    with ThreadPoolExecutor(6) as pool:
        assert all(result == expected for result in pool.map(lambda _: shared.extract(TEXTS, NAMES), range(12)))
    assert calls == {"zh": 1, "en": 1}


def test_a_stream_reads_only_some_batches_ahead(routed: Extractor) -> None:
    read = []

    def endless() -> Any:
        for number in count():
            read.append(number)
            yield (ENGLISH, CHINESE)[number % 2]

    results = list(islice(routed.stream(endless(), ["person"], batch_size=2), 40))
    assert [found(one) for one in results] == [[("Tom", "person")], [("王芳", "person")]] * 20
    assert len(read) <= 40 + 2 * 16


def test_annotate(routed: Extractor) -> None:
    documents = [Document(CHINESE, id="a"), Document(ENGLISH, id="b")]
    after = list(routed.annotate(documents, ["city"]))
    assert [(one.id, found(list(one.entities))) for one in after] == [
        ("a", [("北京", "city")]),
        ("b", [("Paris", "city")]),
    ]


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["person"], {"threshold": 1.5}, "between 0 and 1"),
        (["person"], {"threshold": {"persn": 0.5}}, "persn"),
        ([], {}, "no labels"),
        (["person"], {"batch_size": 0}, "batch_size"),
    ],
)
def test_a_stream_complains_before_it_is_read(folder: Path, labels: list[str], options: Any, message: str) -> None:
    extractor = load(folder)
    with pytest.raises(OnomaError, match=message):
        extractor.stream([CHINESE], labels, **options)
    assert loaded(extractor) == []


def test_each_model_has_thresholds_of_its_own(folder: Path, tmp_path: Path) -> None:
    strict = tmp_path / "strict"
    shutil.copytree(folder, strict)
    for name, changes in (("zh", {"thresholds": {"人名": 1.0}}), ("en", {"thresholds": {"city": 1.0}})):
        replace(ModelConfig.load(strict / name), **changes).save(strict / name)
    ner = load(strict)
    assert found(ner.extract(CHINESE, NAMES)) == [("北京", "city")]
    assert found(ner.extract(ENGLISH, NAMES)) == [("Tom", "person")]
    assert found(ner.extract(ENGLISH, ["人名", "城市"])) == [("Tom", "人名")]
    assert [len(one) for one in ner.extract([CHINESE, ENGLISH], NAMES, threshold=0.5)] == [2, 2]
    assert [len(one) for one in ner.extract([CHINESE, ENGLISH], NAMES, threshold={"person": 0.5})] == [2, 1]
    never = [EntityType("person", threshold=1.0), EntityType("city", threshold=0.5)]
    assert [found(one) for one in ner.extract([CHINESE, ENGLISH], never)] == [[("北京", "city")], [("Paris", "city")]]


def test_labels_are_asked_in_the_language_of_the_model(routed: Extractor, alone: dict[str, Extractor]) -> None:
    assert found(routed.extract(ENGLISH, ["人名", "城市"])) == [("Tom", "人名"), ("Paris", "城市")]
    assert found(routed.extract(CHINESE, ["Person", "CITY"])) == [("王芳", "Person"), ("北京", "CITY")]
    asked = routed.extract(CHINESE, ["person"], threshold=0.0, overlap="any")
    same = alone["zh"].extract(CHINESE, [PERSON], threshold=0.0, overlap="any")
    other = alone["zh"].extract(CHINESE, {"person": "a man"}, threshold=0.0, overlap="any")  # stays as it is
    assert [one.score for one in asked] == pytest.approx([one.score for one in same])
    assert [one.score for one in asked] != pytest.approx([one.score for one in other])


def test_a_label_in_both_languages_is_found_under_both_names(routed: Extractor) -> None:
    both = routed.extract(CHINESE, ["person", "人名"], several_labels=True, threshold=0.2)
    assert {one.label for one in both if one.text == "王芳"} == {"person", "人名"}


def test_a_saved_model_finds_the_same(folder: Path, routed: Extractor, tmp_path: Path) -> None:
    expected = routed.extract(TEXTS, NAMES)
    routed.save_pretrained(tmp_path / "copy")
    assert load(tmp_path / "copy").extract(TEXTS, NAMES) == expected
    load(folder).save_pretrained(tmp_path / "unused")  # none of its models has been loaded
    assert Extractor.from_pretrained(tmp_path / "unused").config == routed.config
    with pytest.raises(OnomaError, match="exists already"):
        routed.save_pretrained(tmp_path / "copy")


def test_types_are_kept_for_each_model(folder: Path, tmp_path: Path) -> None:
    ner = load(folder, cache_dir=tmp_path)
    expected = ner.extract(TEXTS, NAMES)
    kept = {path.name: len(list(path.iterdir())) for path in tmp_path.iterdir()}
    assert list(kept.values()) == [2, 2]
    assert load(folder, cache_dir=tmp_path).extract(TEXTS, NAMES) == expected


def test_styles_are_those_of_any_model(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "styled")
    config = ModelConfig.load(folder / "zh")
    replace(config, options={**config.options, "datasets": ["news"]}).save(tmp_path / "styled" / "zh")
    ner = load(tmp_path / "styled")
    assert ner.styles == ("news",)
    styled = ner.in_style("news")
    assert styled.extract(TEXTS, NAMES) == ner.extract(TEXTS, NAMES)  # this system cannot be told
    assert loaded(styled) == loaded(ner) == ["zh", "en"]
    with pytest.raises(OnomaError, match="it knows: news"):
        ner.in_style("novels")


def test_the_command_line_takes_such_a_folder(folder: Path, command: Callable[..., Any]) -> None:
    arguments = ("--labels", "person", "--model", folder, "--backend", "torch", "--format", "json")
    (document,) = json.loads(command("extract", CHINESE, *arguments).out)
    assert [(one["text"], one["label"]) for one in document["entities"]] == [("王芳", "person")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has no routes"),
        ({"routes": []}, "has no routes"),
        ({"routes": [{"scripts": []}]}, "a route is"),
        ({"routes": ["en"]}, "a route is"),
        ({"routes": [{"folder": "nl", "scripts": []}]}, "'nl', and no folder"),
        ({"routes": [{"folder": "../routed", "scripts": []}]}, "no folder"),
        ({"routes": [{"folder": ".", "scripts": []}]}, "no folder"),
        ({"routes": [{"folder": "en", "scripts": "Han"}]}, "the scripts are Arabic, Cyrillic"),
        ({"routes": [{"folder": "zh", "scripts": ["Klingon"]}, ROUTES[1]]}, "Klingon"),
        ({"routes": [ROUTES[0]]}, "let the last one have no scripts"),
        ({"routes": [ROUTES[1], ROUTES[0]]}, "'en' without scripts.*put it last"),
        ({"routes": ROUTES, "share": 33}, "share 33"),
        ({"routes": ROUTES, "share": "a third"}, "share 'a third'"),
    ],
)
def test_a_bad_configuration_is_explained(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    for name in ("zh", "en"):
        (tmp_path / "routed" / name).mkdir(parents=True)
    write_config(tmp_path / "routed", options)
    with pytest.raises(OnomaError, match=message):
        onoma.load(tmp_path / "routed")


def test_routes_lead_to_single_models(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "en")
    write_config(tmp_path, {"routes": [{"folder": "en", "scripts": []}]})
    with pytest.raises(OnomaError, match="holds several models itself"):
        load(tmp_path).extract(ENGLISH, NAMES)


def test_what_is_done_to_single_models_is_refused(folder: Path) -> None:
    with pytest.raises(OnomaError, match=r"holds several models\. Fix: export them one by one: .*zh, .*en"):
        require_single(folder, "export")
    require_single(folder / "en", "export")


@pytest.mark.parametrize(
    ("text", "scripts", "share", "taken"),
    [
        ("Tom 在北京", ["Han"], 0.5, True),
        ("Tom 在北京", ["Han"], 0.51, False),
        ("ab京", ["Han"], SHARE, True),
        ("abc京", ["Han"], SHARE, False),
        ("123 (京) !?", ["Han"], 1.0, True),
        ("123", ["Han"], 0.0, False),
        ("私はトムです", ["Han"], SHARE, False),
        ("私はトムです", ["Han", "Hiragana"], SHARE, True),
        ("Том", ["Latin"], SHARE, False),
        ("Τομ", ["Greek", "Cyrillic"], 1.0, True),
    ],
)
def test_the_share_of_letters_decides(text: str, scripts: list[str], share: float, taken: bool) -> None:
    route = Route(Path("x"), scripts, onoma.load)
    assert route.takes(Counter(filter(str.isalpha, text)), share) == taken


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_hold_the_letters_that_unicode_names_after_them(script: str) -> None:
    prefix = {"Han": "CJK "}.get(script, script.upper() + " ")
    letters = {chr(code) for code in range(0x20, 0x10000) if chr(code).isalpha()}
    named = {one for one in letters if unicodedata.name(one, "").removeprefix("FULLWIDTH ").startswith(prefix)}
    route = Route(Path("x"), [script], onoma.load)
    held = {one for one in letters if route.takes(Counter(one), 1.0)}
    assert len(named & held) > max(50, 0.95 * len(named))  # all but some signs of phonetics
    others = {one.upper() for one in SCRIPTS} | {"CJK"}
    assert not {unicodedata.name(one) for one in held - named if unicodedata.name(one).split()[0] in others}
