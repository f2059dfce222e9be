from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onoma
import tiny
from onoma import Document, EntityType, Extractor, OnomaError
from onoma.decoding import Overlap, Proposals, decode, stitch
from onoma.entities import Entity
from onoma.extractor import _load_model
from onoma.inputs.batches import Batch, collate
from onoma.inputs.packing import PackedTexts
from onoma.labels.translation import TRANSLATIONS_FILE
from onoma.models.config import ModelConfig, Route, RoutedConfig, load_config
from onoma.models.export import write_translations
from onoma.reading import SECTION_TOKENS, Section, _last_uncrossed
from onoma.systems import base
from onoma.text import cut_windows, segment, sentence_starts
from tiny import TYPES, documents

NAMES = [one.name for one in TYPES]
TEXT = "Tom flew to Paris. The Rome Players will sing for Maria Silva today."


def found(entities: list[Entity]) -> list[tuple[str, str]]:
    return [(one.text, one.label) for one in entities]


def load(folder: Path, **options: Any) -> Extractor:
    return onoma.load(folder, backend="torch", device="cpu", **options)


def assert_same_entities(some: list[Entity], others: list[Entity]) -> None:
    """The same spans and labels; scores may differ in the last bits, because batches differ."""
    assert [one.key for one in some] == [one.key for one in others]
    assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-4)


def test_entities_have_the_text_at_their_offsets(ner: Extractor) -> None:
    entities = ner.extract(TEXT, NAMES, overlap="nested")
    assert found(entities) == [
        ("Tom", "person"),
        ("Paris", "city"),
        ("The Rome Players", "band"),
        ("Rome", "city"),
        ("Maria Silva", "person"),
    ]
    assert all(TEXT[one.start : one.end] == one.text and 0.5 <= one.score <= 1.0 for one in entities)


def test_only_the_labels_asked_for_are_found(ner: Extractor) -> None:
    assert found(ner.extract(TEXT, ["city"])) == [("Paris", "city"), ("Rome", "city")]


def test_a_string_gives_a_list_and_strings_give_lists(ner: Extractor) -> None:
    texts = ["Tom flew to Oslo .", "", "We eat soup and bread every day .", "In Lima it rains , says Greta ."]
    several = ner.extract(texts, NAMES)
    assert [found(one) for one in several] == [
        [("Tom", "person"), ("Oslo", "city")],
        [],
        [],
        [("Lima", "city"), ("Greta", "person")],
    ]
    assert ner.extract((text for text in texts), NAMES) == several
    assert found(ner.extract(texts[0], NAMES)) == found(several[0])
    assert ner.extract([], NAMES) == []
    assert ner.extract(" \n\t", NAMES) == []


@pytest.mark.parametrize(
    "labels",
    [
        ["city", "person"],
        ("person", "city", "person"),
        {"person": "a human being with a name", "city": "a large town"},
        ["city", EntityType("person", "a human being with a name", examples=("Tom", "Ann"))],
        iter(["person", EntityType("city"), EntityType("city")]),
    ],
)
def test_labels_may_be_written_in_many_ways(ner: Extractor, labels: Any) -> None:
    assert found(ner.extract("Tom flew to Paris .", labels)) == [("Tom", "person"), ("Paris", "city")]


def test_a_label_keeps_its_threshold(ner: Extractor) -> None:
    usual, never = EntityType("city"), EntityType("person", threshold=1.0)
    assert found(ner.extract("Tom flew to Paris .", [usual, never])) == [("Paris", "city")]
    assert len(ner.extract("Tom flew to Paris .", [usual, never], threshold=0.5)) == 2
    assert len(ner.extract("Tom flew to Paris .", [usual, never], threshold={"person": 0.5})) == 2
    assert found(ner.extract("Tom flew to Paris .", ["city", "person"], threshold={"city": 1.0})) == [("Tom", "person")]


def test_a_threshold_of_zero_gives_every_span_with_valid_offsets(ner: Extractor) -> None:
    text = "Tom flew to Paris ."
    entities = ner.extract([text, "Greta ."], ["city"], threshold=0.0, overlap="any")[0]
    assert {(one.start, one.end) for one in entities} == {
        (start, end) for start in (0, 4, 9, 12, 18) for end in (3, 8, 11, 17, 19) if start < end
    }


def test_overlap_decides_which_mentions_may_share_words(ner: Extractor) -> None:
    text = "The Rome Players will sing for Ann today ."
    assert len(ner.extract(text, NAMES, overlap="flat")) == 2
    assert len(ner.extract(text, NAMES, overlap="nested")) == 3
    crossing = ner.extract(text, NAMES, overlap="any", threshold=0.0, several_labels=True)
    assert any(a.start < b.start < a.end < b.end for a in crossing for b in crossing)
    assert len({one.key for one in crossing}) == len(crossing) > len({(one.start, one.end) for one in crossing})


@pytest.mark.parametrize(
    ("texts", "labels", "options", "message"),
    [
        ("Tom", "person", {}, "labels must be a list"),
        ("Tom", EntityType("person"), {}, "labels must be a list"),
        ("Tom", [], {}, "no labels"),
        ("Tom", ["person", 3], {}, "a label must be a name"),
        ("Tom", ["person", " "], {}, "needs a name"),
        ("Tom", {"person": None}, {}, "description"),
        ("Tom", ["person", EntityType("person", "somebody")], {}, "given twice"),
        (["Tom", None], ["person"], {}, "number 1 is NoneType"),
        (b"Tom", ["person"], {}, "iterable of strings"),
        (3, ["person"], {}, "iterable of strings"),
        ("Tom", ["person"], {"threshold": 1.5}, "between 0 and 1"),
        ("Tom", ["person"], {"threshold": float("nan")}, "between 0 and 1"),
        ("Tom", ["person"], {"threshold": {"persn": 0.5}}, "persn"),
        ("Tom", ["person"], {"overlap": "crossed"}, "flat, nested, any"),
        ("Tom", ["person"], {"batch_size": 0}, "batch_size"),
        ("Tom", ["person"], {"batch_size": 1.5}, "batch_size"),
        ("Tom", ["person"], {"batch_size": "8"}, "batch_size"),
    ],
)
def test_bad_input_is_explained(ner: Extractor, texts: Any, labels: Any, options: Any, message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        ner.extract(texts, labels, **options)


def test_a_stream_reports_errors_before_it_is_read(ner: Extractor) -> None:
    with pytest.raises(OnomaError, match="no labels"):
        ner.stream(["Tom"], [])


@given(st.permutations([*NAMES, "a kind of soup", "weather", "band of players"]), st.sampled_from(["flat", "nested"]))
@settings(max_examples=20)
def test_the_order_of_labels_has_no_influence(ner: Extractor, labels: list[str], overlap: Overlap) -> None:
    fresh = load(ner.folder)  # none of its types is encoded yet
    expected = ner.extract([TEXT, TEXT[:30]], sorted(labels), threshold=0.01, overlap=overlap)
    for some, others in zip(
        fresh.extract([TEXT, TEXT[:30]], labels, threshold=0.01, overlap=overlap), expected, strict=True
    ):
        assert_same_entities(some, others)


def reference(ner: Extractor, text: str, names: list[str], overlap: Overlap) -> list[Entity]:
    """One text, one window at a time."""
    runtime, words = ner.runtime, segment(text)
    tokens = runtime.tokenizer.tokenize([text[start:end] for start, end in words])
    edges = np.concatenate([[0], np.cumsum(tokens.counts)])
    windows = cut_windows(tokens.counts, ner.config.max_tokens - 2, ner.config.overlap, sentence_starts(text, words))
    query = runtime.ask([EntityType(name) for name in names])
    parts = []
    for number, (start, end) in enumerate(zip(windows.start, windows.end, strict=True)):
        window = (np.array([start]), np.array([end]))
        batch = collate(tokens.ids, edges, *window, runtime.tokenizer, [text], [words[start:end]])
        one = runtime.propose(batch, query, 0.3)
        parts.append(one._replace(window=one.window + number))
    stitched = stitch(Proposals.concatenate(parts), windows)
    decoded = decode(stitched, names, thresholds=0.3, overlap=overlap)
    return PackedTexts.pack([text], [words]).entities(decoded, names)[0]


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_long_texts_and_batches_give_what_each_window_alone_gives(ner: Extractor, overlap: Overlap) -> None:
    texts = [random_text(size, seed) for seed, size in enumerate((1, 40, 2, 7, 1, 100, 3))]
    several = ner.extract(["", *texts], NAMES, threshold=0.3, overlap=overlap, batch_size=5)
    assert several[0] == []
    for text, entities in zip(texts, several[1:], strict=True):
        assert_same_entities(entities, reference(ner, text, NAMES, overlap))
    assert len(several[6]) > 100


def random_text(sentences: int, seed: int = 0) -> str:
    return " ".join(np.random.default_rng(seed).choice([one.text for one in documents()], sentences))


def test_nothing_is_lost_at_the_end_of_a_long_text(ner: Extractor) -> None:
    text = "We eat soup and bread every day . " * 5000 + "Tom flew to Paris ."
    assert found(ner.extract(text, NAMES))[-2:] == [("Tom", "person"), ("Paris", "city")]


def test_a_word_longer_than_a_window_is_read_whole(ner: Extractor) -> None:
    long = "PnewYorkT" * 11  # far more tokens than the 62 of a window
    text = f"{long} . Tom flew to Paris ."
    assert found(ner.extract(text, ["person", "city"]))[-2:] == [("Tom", "person"), ("Paris", "city")]


def test_a_stream_reads_only_some_batches_ahead(ner: Extractor) -> None:
    read = []

    def endless() -> Iterator[str]:
        for number in count():
            read.append(number)
            yield f"Tom flew to Paris . Now {number} times ."

    results = ner.stream(endless(), ["person"], batch_size=2)
    assert [found(one) for one in islice(results, 40)] == [[("Tom", "person")]] * 40
    assert len(read) <= 40 + 2 * 16


def test_a_stream_reads_a_limited_number_of_characters_ahead(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.inputs.packing.MAX_CHUNK_CHARACTERS", 50)
    read: list[str] = []

    def texts() -> Iterator[str]:
        for text in ["Tom flew to Paris . We eat soup ."] * 10:
            read.append(text)
            yield text

    next(ner.stream(texts(), ["person"]))
    assert len(read) == 2


def test_streams_keep_the_order_of_texts_of_different_lengths(ner: Extractor) -> None:
    texts = ["We eat soup . " * (number * 7 % 23) + "Tom flew to Paris ." for number in range(60)]
    starts = [entities[-1].start for entities in ner.stream(texts, ["city"], batch_size=3)]
    assert starts == [text.rindex("Paris") for text in texts]


def test_threads_find_the_same(ner: Extractor) -> None:
    texts = [one.text for one in documents()[::5]]
    expected = ner.extract(texts, NAMES, threshold=0.05)
    shared = load(ner.folder)

    def work(number: int) -> list[list[Entity]]:
        labels = NAMES[number % 3 :] + NAMES[: number % 3]
        return shared.extract(texts, labels, threshold=0.05)

    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(work, range(16)):
            assert result == expected


def test_annotate_replaces_the_entities_of_documents(ner: Extractor) -> None:
    before = Document.from_spans("Tom flew to Paris .", [(4, 8, "verb")], id="a1", meta={"source": "news"})
    (after,) = ner.annotate([before], ["person"])
    assert found(list(after.entities)) == [("Tom", "person")]
    assert (after.id, after.text, after.annotated, after.meta) == ("a1", before.text, {"person"}, before.meta)


def test_a_saved_model_finds_the_same(ner: Extractor, tmp_path: Path) -> None:
    ner.save_pretrained(tmp_path / "copy")
    copy = Extractor.from_pretrained(tmp_path / "copy")
    assert copy.extract(TEXT, NAMES) == ner.extract(TEXT, NAMES)
    with pytest.raises(OnomaError, match="exists already"):
        ner.save_pretrained(tmp_path / "copy")


def changed(ner: Extractor, folder: Path, **changes: Any) -> Extractor:
    """A copy of a model with another configuration."""
    ner.save_pretrained(folder)
    replace(ner.config, **changes).save(folder)
    return load(folder)


def test_thresholds_of_the_configuration_are_used(ner: Extractor, tmp_path: Path) -> None:
    strict = changed(ner, tmp_path / "strict", thresholds={"city": 1.0})
    assert found(strict.extract("Tom flew to Paris .", ["person", "city"])) == [("Tom", "person")]


def test_catch_all_labels_rank_last_only_if_the_configuration_names_them(ner: Extractor, tmp_path: Path) -> None:
    text, labels = "The Rome Players will sing for Ann today .", ["band", "city"]
    best = max(ner.extract(text, labels, overlap="nested"), key=lambda one: one.score)
    assert found(ner.extract(text, labels)) == [(best.text, best.label)]
    (other,) = (one for one in ner.extract(text, labels, overlap="nested") if one.label != best.label)
    ranked = changed(ner, tmp_path / "ranked", catch_all=(best.label,))
    assert ranked.extract(text, labels) == [other]
    assert ranked.extract(text, [best.label]) == [best]


def test_labels_are_asked_in_the_language_of_the_model(ner: Extractor, tmp_path: Path) -> None:
    english = changed(ner, tmp_path / "english", language="en")
    names = {"人名": ["person", "a human being with a name"], "城市": ["city", "a large town"]}
    (tmp_path / "english" / TRANSLATIONS_FILE).write_text(json.dumps(names), "utf-8")
    labels = ["城市", EntityType("人名", threshold=0.4)]
    assert found(english.extract("Tom flew to Paris .", labels)) == [("Tom", "人名"), ("Paris", "城市")]
    assert english.extract("Tom flew to Paris .", labels, threshold={"人名": 1.0, "城市": 1.0}) == []
    assert english.extract(TEXT, NAMES) == ner.extract(TEXT, NAMES)


@pytest.mark.parametrize("backend", ["tensorflow", "ONNX"])
def test_an_unknown_backend_is_explained(tiny_model: Path, backend: Any) -> None:
    with pytest.raises(OnomaError, match="the backends are auto, onnx and torch"):
        onoma.load(tiny_model, backend)


def test_repr_says_what_an_extractor_is(ner: Extractor) -> None:
    assert repr(ner) == f"<Extractor: {ner.folder}, binder on tiny>"
    embedded = onoma.load()
    assert repr(embedded).startswith("<Extractor: embedded model, binder on ")
    assert repr(embedded).endswith(f", binder on {embedded.config.encoder}>")
    assert loaded(embedded) == []


# Sections of long texts


def sections_of(ner: Extractor, texts: list[str], **options: Any) -> list[list[Section]]:
    """The sections of each text."""
    sections: list[list[Section]] = [[] for _ in texts]
    previous = 0
    for section in ner.stream_sections(texts, NAMES, **options):
        assert section.text in (previous, previous + 1)  # texts come in order
        previous = section.text
        sections[section.text].append(section)
    return sections


@pytest.mark.parametrize("several_labels", [False, True])
@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
@pytest.mark.parametrize("section_tokens", [60, 400])
@pytest.mark.parametrize("threshold", [3e-4, 1e-5])  # so low that many proposals cross the ends of sections
def test_the_sections_of_a_long_text_are_decoded_as_the_whole(
    ner: Extractor,
    threshold: float,
    section_tokens: int,
    overlap: Overlap,
    several_labels: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = random_text(120)
    # windows are read one by one, so that scores are exactly the same
    options = {"threshold": threshold, "overlap": overlap, "several_labels": several_labels, "batch_size": 1}
    monkeypatch.setattr("onoma.extractor.SECTION_TOKENS", 10**9)
    whole = ner.extract(text, NAMES, **options)
    assert len(whole) > 150
    monkeypatch.setattr("onoma.extractor.SECTION_TOKENS", section_tokens)
    (sections,) = sections_of(ner, [text], **options)
    assert len(sections) > 2
    assert [one for section in sections for one in section.entities] == whole
    assert ner.extract(text, NAMES, **options) == whole


def test_sections_come_in_order_and_say_how_far_a_text_is_read(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.extractor.SECTION_TOKENS", 100)
    monkeypatch.setattr("onoma.inputs.packing.MAX_CHUNK_CHARACTERS", 1000)
    texts = ["Tom flew to Paris .", random_text(60), "", "In Lima it rains .", random_text(40, seed=1)]
    several = sections_of(ner, texts)
    assert [len(one) > 1 for one in several] == [False, True, False, False, True]
    for text, sections in zip(texts, several, strict=True):
        assert [section.is_last for section in sections] == [False] * (len(sections) - 1) + [True]
        ends = [0, *(section.end for section in sections)]
        assert ends == sorted(ends)
        assert ends[-1] == len(text)
        for section, (start, end) in zip(sections, pairwise(ends), strict=True):
            assert all(start <= one.start < one.end <= end for one in section.entities)
    assert [[one for section in sections for one in section.entities] for sections in several] == ner.extract(
        texts, NAMES
    )


def test_the_first_section_comes_before_the_whole_text_is_read(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.extractor.SECTION_TOKENS", 100)
    batches = Counter[str]()
    propose = ner.runtime.propose

    def counted(*arguments: Any) -> Proposals:
        batches["read"] += 1
        return propose(*arguments)

    monkeypatch.setattr(ner.runtime, "propose", counted)
    sections = ner.stream_sections([random_text(200)], NAMES, batch_size=1)
    assert found(next(sections).entities)
    first = batches["read"]
    assert sum(1 for _ in sections) > 10
    assert batches["read"] > 10 * first


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 5)).map(lambda row: (row[0], row[0] + row[1])), max_size=8),
    st.integers(0, 20),
)
def test_the_last_boundary_that_no_proposal_crosses(spans: list[tuple[int, int]], limit: int) -> None:
    rows = [(0, first, last, 0, 0.5) for first, last in spans]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    proposals = Proposals(*(np.array(column, np.int64) for column in columns))
    uncrossed = [edge for edge in range(limit + 1) if not any(first < edge <= last for first, last in spans)]
    assert _last_uncrossed(proposals, limit) == max(uncrossed)


# Several models in one folder

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
MIXED = [
    ENGLISH,
    CHINESE,
    "",
    "In Lima it rains , says Greta .",
    "陈晨说，西安今天下雨。" * 30,
    "12 + 30 = 42",
    "Nobody has seen Ann since the concert in Oslo . " * 20,
    "我们在成都见到了Tom。",
]
ASKED = ["person", "city"]


def chinese_documents() -> list[Document]:
    made = []
    for pattern, person, city in product(SENTENCES, PEOPLE, CITIES):
        text = pattern.format(person=person, city=city)
        names = ((person, PERSON.name), (city, CITY.name))
        spans = [(text.index(name), text.index(name) + len(name), label) for name, label in names if name in text]
        made.append(Document.from_spans(text, spans))
    return made


@pytest.fixture(scope="module")
def folder(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Chinese and a tiny English model in one folder."""
    folder = tmp_path_factory.mktemp("models") / "routed"
    shutil.copytree(tiny_model, folder / "en")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "TYPES", (CITY, PERSON))
        patch.setattr(tiny, "documents", chinese_documents)
        tiny.tiny_binder(folder / "zh")
    for language in ("zh", "en"):
        write_translations(folder / language, language, config_of(folder / language))
    # the descriptions that the tiny model was trained with instead of those of the inventory
    known = {"人名": ["person", "a human being with a name"], "城市": ["city", "a large town"]}
    (folder / "en" / TRANSLATIONS_FILE).write_text(json.dumps(known), "utf-8")
    RoutedConfig((Route("zh", ("Han",)), Route("en"))).save(folder)
    return folder


def config_of(folder: Path) -> ModelConfig:
    config = load_config(folder)
    assert isinstance(config, ModelConfig)
    return config


@pytest.fixture(scope="module")
def routed(folder: Path) -> Extractor:
    return load(folder)


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, Extractor]:
    return {name: load(folder / name) for name in ("zh", "en")}


def loaded(extractor: Extractor) -> list[str]:
    return [model.folder.path.name for model in extractor._models if model._loaded]


def test_each_text_is_read_by_the_model_for_its_script(routed: Extractor) -> None:
    texts = [CHINESE, ENGLISH, "We eat soup and bread every day .", "我们在上海见到了李大伟。"]
    assert [found(one) for one in routed.extract(texts, ASKED)] == [
        [("王芳", "person"), ("北京", "city")],
        [("Tom", "person"), ("Paris", "city")],
        [],
        [("上海", "city"), ("李大伟", "person")],
    ]
    assert found(routed.extract(CHINESE, ["person"])) == [("王芳", "person")]
    assert routed.extract([], ASKED) == []


@given(st.permutations(MIXED), st.sampled_from([1, 3, 64]))
@settings(max_examples=15)
def test_mixed_texts_give_what_each_model_alone_gives(
    routed: Extractor, alone: dict[str, Extractor], texts: list[str], batch_size: int
) -> None:
    several = routed.extract(texts, ASKED, threshold=0.1, overlap="nested", batch_size=batch_size)
    for text, entities in zip(texts, several, strict=True):
        model = alone["zh" if any("一" <= one <= "龥" for one in text) else "en"]
        assert_same_entities(entities, model.extract(text, ASKED, threshold=0.1, overlap="nested"))
        assert all(text[one.start : one.end] == one.text for one in entities)


def test_breadths_choose_labels_in_mixed_texts_by_their_own_model(folder: Path) -> None:
    extractor, text = load(folder), f"{CHINESE}\n{ENGLISH}"
    before = extractor.extract(text, ASKED, threshold=0.0)
    english = extractor._models[1].get().runtime
    english.config = replace(english.config, breadth_weight=1.0)
    with pytest.MonkeyPatch.context() as patch:  # "person" is so broad that "city" is preferred to it
        patch.setattr(english, "breadths", lambda query: np.array([0.0, 100.0], np.float32))
        after = extractor.extract(text, ASKED, threshold=0.0)
    labels = {one.text: one.label for one in before}
    changed = {one.text: one.label for one in after}
    assert {labels["王芳"], labels["Tom"], changed["王芳"]} == {"person"}
    assert changed["Tom"] == "city"


def test_a_long_text_of_either_script_comes_in_sections(
    routed: Extractor, alone: dict[str, Extractor], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["陈晨说，西安今天下雨。" * 60, ENGLISH, random_text(60)]
    expected = [alone["zh" if number == 0 else "en"].extract(text, ASKED) for number, text in enumerate(texts)]
    monkeypatch.setattr("onoma.extractor.SECTION_TOKENS", 100)
    monkeypatch.setattr("onoma.inputs.packing.MAX_CHUNK_CHARACTERS", 100)
    joined: list[list[Entity]] = [[] for _ in texts]
    numbers = []
    for section in routed.stream_sections(texts, ASKED):
        joined[section.text] += section.entities
        numbers.append(section.text)
    assert Counter(numbers)[0] > 1 < Counter(numbers)[2]
    assert numbers == sorted(numbers)
    for entities, others in zip(joined, expected, strict=True):
        assert_same_entities(entities, others)


def test_a_model_is_loaded_when_its_first_text_comes(folder: Path) -> None:
    extractor = load(folder)
    assert (extractor.config.encoder, extractor.styles) == ("tiny", ())
    assert loaded(extractor) == []
    extractor.extract([ENGLISH, "42"], ASKED)
    assert loaded(extractor) == ["en"]
    extractor.extract(CHINESE, ASKED)
    assert loaded(extractor) == ["zh", "en"]


def test_an_english_text_needs_only_the_configuration_of_the_chinese_model(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    shutil.rmtree(broken / "zh")
    (broken / "zh").mkdir()
    shutil.copy(folder / "zh" / "config.json", broken / "zh")
    (broken / "en" / TRANSLATIONS_FILE).write_text("{", "utf-8")  # English labels are not translated
    assert len(load(broken).extract(ENGLISH, ASKED)) == 2
    with pytest.raises(OnomaError, match=r"zh has no model\.safetensors"):
        load(broken).extract(CHINESE, ASKED)
    with pytest.raises(OnomaError, match=r"labels\.json, line 1: this is not valid JSON"):
        load(broken).extract(ENGLISH, ["人名"])


def test_a_route_to_a_folder_without_a_model_is_explained_at_once(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    (broken / "zh" / "config.json").unlink()
    with pytest.raises(OnomaError, match=r"zh is not a model folder"):
        load(broken)


def test_threads_load_a_model_once_and_find_the_same(
    folder: Path, routed: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()

    def counted(one: Any, settings: Any) -> Any:
        calls[one.path.name] += 1
        return _load_model(one, settings)

    monkeypatch.setattr("onoma.extractor._load_model", counted)
    shared = load(folder)
    expected = routed.extract(MIXED, ASKED)
    with ThreadPoolExecutor(6) as pool:
        assert all(result == expected for result in pool.map(lambda _: shared.extract(MIXED, ASKED), range(12)))
    assert calls == {"zh": 1, "en": 1}


def test_a_mixed_stream_reads_only_some_batches_ahead(routed: Extractor) -> None:
    read = []

    def endless() -> Iterator[str]:
        for number in count():
            read.append(number)
            yield (ENGLISH, CHINESE)[number % 2]

    results = list(islice(routed.stream(endless(), ["person"], batch_size=2), 40))
    assert [found(one) for one in results] == [[("Tom", "person")], [("王芳", "person")]] * 20
    assert len(read) <= 40 + 2 * 16


def test_annotate_with_several_models(routed: Extractor) -> None:
    after = list(routed.annotate([Document(CHINESE, id="a"), Document(ENGLISH, id="b")], ["city"]))
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
        (["person"], {"overlap": "crossed"}, "flat, nested, any"),
    ],
)
def test_errors_are_reported_before_a_model_is_loaded(
    folder: Path, labels: list[str], options: Any, message: str
) -> None:
    extractor = load(folder)
    with pytest.raises(OnomaError, match=message):
        extractor.stream([CHINESE], labels, **options)
    assert loaded(extractor) == []


def test_each_model_has_its_own_thresholds(folder: Path, tmp_path: Path) -> None:
    strict = shutil.copytree(folder, tmp_path / "strict")
    for name, changes in (("zh", {"thresholds": {"人名": 1.0}}), ("en", {"thresholds": {"city": 1.0}})):
        replace(config_of(strict / name), **changes).save(strict / name)
    ner = load(strict)
    assert found(ner.extract(CHINESE, ASKED)) == [("北京", "city")]
    assert found(ner.extract(ENGLISH, ASKED)) == [("Tom", "person")]
    assert found(ner.extract(ENGLISH, ["人名", "城市"])) == [("Tom", "人名")]
    assert [len(one) for one in ner.extract([CHINESE, ENGLISH], ASKED, threshold=0.5)] == [2, 2]
    assert [len(one) for one in ner.extract([CHINESE, ENGLISH], ASKED, threshold={"person": 0.5})] == [2, 1]
    never = [EntityType("person", threshold=1.0), EntityType("city", threshold=0.5)]
    assert [found(one) for one in ner.extract([CHINESE, ENGLISH], never)] == [[("北京", "city")], [("Paris", "city")]]


def test_labels_are_translated_for_each_model(routed: Extractor, alone: dict[str, Extractor]) -> None:
    assert found(routed.extract(ENGLISH, ["人名", "城市"])) == [("Tom", "人名"), ("Paris", "城市")]
    assert found(routed.extract(CHINESE, ["Person", "CITY"])) == [("王芳", "Person"), ("北京", "CITY")]
    asked = routed.extract(CHINESE, ["person"], threshold=0.0, overlap="any")
    same = alone["zh"].extract(CHINESE, [PERSON], threshold=0.0, overlap="any")
    other = alone["zh"].extract(CHINESE, {"person": "a man"}, threshold=0.0, overlap="any")  # is not translated
    assert [one.score for one in asked] == pytest.approx([one.score for one in same])
    assert [one.score for one in asked] != pytest.approx([one.score for one in other])


def test_a_label_in_both_languages_is_found_under_both_names(routed: Extractor) -> None:
    both = routed.extract(CHINESE, ["person", "人名"], several_labels=True, threshold=0.2)
    assert {one.label for one in both if one.text == "王芳"} == {"person", "人名"}


def test_saved_models_find_the_same(folder: Path, routed: Extractor, tmp_path: Path) -> None:
    expected = routed.extract(MIXED, ASKED)
    routed.save_pretrained(tmp_path / "copy")
    assert load(tmp_path / "copy").extract(MIXED, ASKED) == expected
    load(folder).save_pretrained(tmp_path / "unused")  # none of its models has been loaded
    assert Extractor.from_pretrained(tmp_path / "unused").config == routed.config
    with pytest.raises(OnomaError, match="exists already"):
        routed.save_pretrained(tmp_path / "copy")


def test_encoded_types_are_cached_for_each_model(folder: Path, tmp_path: Path) -> None:
    ner = load(folder, cache_dir=tmp_path)
    expected = ner.extract(MIXED, ASKED)
    assert [len(list(path.iterdir())) for path in tmp_path.iterdir()] == [2, 2]
    assert load(folder, cache_dir=tmp_path).extract(MIXED, ASKED) == expected


def test_styles_are_those_of_any_model(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "styled")
    replace(config_of(folder / "zh"), datasets=("news",)).save(tmp_path / "styled" / "zh")
    ner = load(tmp_path / "styled")
    assert ner.styles == ("news",)
    styled = ner.with_style("news")
    assert styled.extract(MIXED, ASKED) == ner.extract(MIXED, ASKED)  # this system has no styles
    assert loaded(styled) == loaded(ner) == ["zh", "en"]
    with pytest.raises(OnomaError, match="it knows: news"):
        ner.with_style("novels")
    with pytest.raises(OnomaError, match="it knows: news"):
        load(tmp_path / "styled", style="novels")


def test_actions_on_one_model_are_refused_for_several(routed: Extractor, ner: Extractor) -> None:
    with pytest.raises(OnomaError, match=r"holds several models\. Fix: tune one of them: .*zh, .*en"):
        routed.single("tune")
    assert ner.single("tune").runtime is ner.runtime


def test_the_command_line_takes_a_folder_with_several_models(folder: Path, command: Callable[..., Any]) -> None:
    arguments = ("--labels", "person", "--model", folder, "--backend", "torch", "--format", "json")
    (document,) = json.loads(command("extract", CHINESE, *arguments).out)
    assert [(one["text"], one["label"]) for one in document["entities"]] == [("王芳", "person")]


# What is imported and read


def test_importing_onoma_and_its_extractor_is_light() -> None:
    script = """
import sys, onoma
heavy = {"torch", "transformers", "onnxruntime", "tokenizers", "rich", "yaml", "pydantic", "numpy", "huggingface_hub"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert "load" in dir(onoma) and not hasattr(onoma, "lod")
onoma.load, onoma.Extractor
heavy -= {"numpy", "tokenizers"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_configuration_of_each_model_folder_is_read_once() -> None:
    script = """
import collections, os, sys
opened = collections.Counter()

def count(event, arguments):
    if event == "open" and str(arguments[0]).endswith("config.json"):
        opened[os.path.basename(os.path.dirname(arguments[0]))] += 1

sys.addaudithook(count)
import onoma
ner = onoma.load()
for _ in range(2):
    ner.extract(["Tom flew to Paris.", "马云在杭州。"], ["person", "城市"])
repr(ner), ner.config, ner.styles, ner.runtime
assert opened == {"default": 1, "en": 1, "zh": 1}, opened
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_thousand_labels_at_threshold_0_take_little_memory(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, text = [f"person {number}" for number in range(1000)], "Tom flew to Paris . " * 40
    results, peaks = [], []
    for limit in (10**9, base.MANY_PROPOSALS):  # all proposals are kept, or the best label of each span
        monkeypatch.setattr(base, "MANY_PROPOSALS", limit)
        tracemalloc.start()
        results.append(ner.extract(text, labels, threshold=0.0, batch_size=1))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert results[0] == results[1] != []
    assert peaks[1] < peaks[0] / 3


def cpu_seconds(ner: Extractor, words: int) -> float:
    """The time of all threads to extract from a text of so many words, in which no two windows are equal."""
    text = " ".join(f"Tom{number} flew to Paris ." for number in range(words // 5))
    started = time.process_time()
    ner.extract(text, ["person", "city"])
    return time.process_time() - started


def test_time_grows_linearly_with_the_words_of_a_text(ner: Extractor) -> None:
    cpu_seconds(ner, 100)
    shorter = min(cpu_seconds(ner, 2_500) for _ in range(3))
    longer = min(cpu_seconds(ner, 20_000) for _ in range(2))
    assert longer < 3 * 8 * shorter  # quadratic time would be 64 times as long


def test_a_hundred_thousand_emoji_are_a_few_windows(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    read, propose = [], ner.runtime.propose

    def count(batch: Batch, query: Any, floor: float) -> Proposals:
        read.append(batch.ids.size)
        return propose(batch, query, floor)

    monkeypatch.setattr(ner.runtime, "propose", count)
    for emoji in (2_000, 100_000):
        read.clear()
        ner.extract("😀" * emoji, ["person", "city"])
        assert len(read) <= 2 * (1 + emoji // SECTION_TOKENS)  # full windows, and the last one, in each section


def test_time_grows_linearly_with_emoji_that_differ(ner: Extractor) -> None:
    def seconds(emoji: int) -> float:
        text = "".join(map(chr, random.Random(emoji).choices(range(0x1F600, 0x1F640), k=emoji)))
        started = time.process_time()
        ner.extract(text, ["person", "city"])
        return time.process_time() - started

    seconds(200)
    shorter = min(seconds(1_000) for _ in range(3))
    longer = min(seconds(8_000) for _ in range(2))
    assert longer < 3 * 8 * shorter  # quadratic time would be 64 times as long


def test_a_question_that_is_asked_again_is_not_prepared_again(tiny_model: Path) -> None:
    ner = load(tiny_model)
    asked, ask = [], ner.runtime.ask

    def count(types: Sequence[EntityType], examples: Any = ()) -> Any:
        asked.append([one.name for one in types])
        return ask(types, examples)

    ner.runtime.ask = count  # type: ignore[method-assign]
    thresholds = {"person": 0.0, "city": 0.0}
    first = ner.extract("Tom flew to Paris.", ["person", "city"], threshold=thresholds)
    assert ner.extract("Tom flew to Paris.", ["city", "person"], threshold=dict(thresholds)) == first != []
    assert asked == [["city", "person"]]
    thresholds["city"] = 1.0  # the caller's own mapping
    assert {one.label for one in ner.extract("Tom flew to Paris.", ["person", "city"], threshold=thresholds)} == {
        "person"
    }
    ner.extract("Tom flew to Paris.", ["person"])
    assert asked == [["city", "person"]] * 2 + [["person"]]
