from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onoma
from onoma import Document, EntityType, Extractor, OnomaError
from onoma.batches import collate, slice_windows
from onoma.decoding import decode
from onoma.entities import Entity
from onoma.text import cut_windows, segment, sentence_starts
from tiny import TYPES, documents

NAMES = [one.name for one in TYPES]
TEXT = "Tom flew to Paris. The Rome Players will sing for Maria Silva today."


def found(entities: list[Entity]) -> list[tuple[str, str]]:
    return [(one.text, one.label) for one in entities]


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


def test_only_what_is_asked_for_is_found(ner: Extractor) -> None:
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
def test_labels_may_be_written_in_many_ways(ner: Extractor, labels: object) -> None:
    assert found(ner.extract("Tom flew to Paris .", labels)) == [("Tom", "person"), ("Paris", "city")]  # type: ignore[call-overload]


def test_a_label_keeps_its_threshold(ner: Extractor) -> None:
    sure, never = EntityType("city"), EntityType("person", threshold=1.0)
    assert found(ner.extract("Tom flew to Paris .", [sure, never])) == [("Paris", "city")]
    assert len(ner.extract("Tom flew to Paris .", [sure, never], threshold=0.5)) == 2
    assert len(ner.extract("Tom flew to Paris .", [sure, never], threshold={"person": 0.5})) == 2
    assert found(ner.extract("Tom flew to Paris .", ["city", "person"], threshold={"city": 1.0})) == [("Tom", "person")]


def test_a_threshold_of_zero_gives_every_span_with_valid_offsets(ner: Extractor) -> None:
    text = "Tom flew to Paris ."
    entities = ner.extract([text, "Greta ."], ["city"], threshold=0.0, overlap="any")[0]
    assert {(one.start, one.end) for one in entities} == {
        (start, end) for start in (0, 4, 9, 12, 18) for end in (3, 8, 11, 17, 19) if start < end
    }


def test_overlap_decides_what_may_share_words(ner: Extractor) -> None:
    text = "The Rome Players will sing for Ann today ."
    assert len(ner.extract(text, NAMES, overlap="flat")) == 2
    assert len(ner.extract(text, NAMES, overlap="nested")) == 3
    crossing = ner.extract(text, NAMES, overlap="any", threshold=0.0, several_labels=True)
    assert any(a.start < b.start < a.end < b.end for a in crossing for b in crossing)
    assert len({one.key for one in crossing}) == len(crossing) > len({(one.start, one.end) for one in crossing})


@pytest.mark.parametrize(
    ("texts", "labels", "options", "message"),
    [
        ("Tom", "person", {}, "labels are a list"),
        ("Tom", EntityType("person"), {}, "labels are a list"),
        ("Tom", [], {}, "no labels"),
        ("Tom", ["person", 3], {}, "a label is a name"),
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
    ],
)
def test_bad_input_is_explained(ner: Extractor, texts: object, labels: object, options: dict, message: str) -> None:
    with pytest.raises(OnomaError, match=message):
        ner.extract(texts, labels, **options)  # type: ignore[call-overload]


def test_a_stream_complains_before_it_is_read(ner: Extractor) -> None:
    with pytest.raises(OnomaError, match="no labels"):
        ner.stream(["Tom"], [])


@given(st.permutations([*NAMES, "a kind of soup", "weather", "band of players"]), st.sampled_from(["flat", "nested"]))
@settings(max_examples=20)
def test_the_order_of_labels_has_no_influence(ner: Extractor, labels: list[str], overlap: str) -> None:
    fresh = Extractor(ner.backend, ner.folder)  # with no type encoded yet
    expected = ner.extract([TEXT, TEXT[:30]], sorted(labels), threshold=0.01, overlap=overlap)
    found = fresh.extract([TEXT, TEXT[:30]], labels, threshold=0.01, overlap=overlap)
    for some, others in zip(found, expected, strict=True):
        assert [one.key for one in some] == [one.key for one in others]
        # types that were encoded in another batch may differ in the last bit
        assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-5)


def reference(ner: Extractor, text: str, names: list[str], overlap: str) -> list[Entity]:
    """One document, one window at a time."""
    words = segment(text)
    pieces = ner.backend.subwords.split([(text, words)])[0]
    windows = cut_windows(pieces.counts, ner.config.max_tokens - 2, ner.config.overlap, sentence_starts(text, words))
    rows = ner.backend.encode_types([EntityType(name) for name in names])
    proposals = [
        ner.backend.propose(collate([part], ner.backend.subwords), rows, 0.3) for part in slice_windows(pieces, windows)
    ]
    moved = [one._replace(window=one.window + number) for number, one in enumerate(proposals)]
    joined = type(moved[0])(*(np.concatenate(column) for column in zip(*moved, strict=True)))
    return decode(text, words, joined, names, threshold=0.3, overlap=overlap, windows=windows)  # type: ignore[arg-type]


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_long_documents_and_batches_give_what_each_window_alone_gives(ner: Extractor, overlap: str) -> None:
    sentences = [one.text for one in documents()]
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(sentences, size)) for size in (1, 40, 2, 7, 1, 100, 3)]
    several = ner.extract(["", *texts], NAMES, threshold=0.3, overlap=overlap, batch_size=5)  # type: ignore[arg-type]
    assert several[0] == []
    for text, entities in zip(texts, several[1:], strict=True):
        expected = reference(ner, text, NAMES, overlap)
        assert [one.key for one in entities] == [one.key for one in expected]
        assert [one.score for one in entities] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert len(several[6]) > 100


def test_nothing_is_lost_at_the_end_of_a_long_document(ner: Extractor) -> None:
    text = "We eat soup and bread every day . " * 5000 + "Tom flew to Paris ."
    assert found(ner.extract(text, NAMES))[-2:] == [("Tom", "person"), ("Paris", "city")]


def test_a_word_longer_than_a_window_is_read_whole(ner: Extractor) -> None:
    long = "PnewYorkT" * 11  # far more tokens than the 62 of a window
    text = f"{long} . Tom flew to Paris ."
    assert found(ner.extract(text, ["person", "city"]))[-2:] == [("Tom", "person"), ("Paris", "city")]


def test_a_stream_reads_only_some_batches_ahead(ner: Extractor) -> None:
    read = []

    def endless() -> object:
        for number in count():
            read.append(number)
            yield f"Tom flew to Paris . Now {number} times ."

    results = ner.stream(endless(), ["person"], batch_size=2)  # type: ignore[arg-type]
    assert [found(one) for one in islice(results, 40)] == [[("Tom", "person")]] * 40
    assert len(read) <= 40 + 2 * 16


def test_a_stream_counts_characters_too(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.chunks.MOST_CHARACTERS", 50)
    read = []
    texts = (read.append(text) or text for text in ["Tom flew to Paris . We eat soup ."] * 10)  # type: ignore[func-returns-value]
    next(ner.stream(texts, ["person"]))
    assert len(read) == 2


def test_streams_keep_the_order_of_texts_of_different_lengths(ner: Extractor) -> None:
    texts = ["We eat soup . " * (number * 7 % 23) + "Tom flew to Paris ." for number in range(60)]
    starts = [entities[-1].start for entities in ner.stream(texts, ["city"], batch_size=3)]
    assert starts == [text.rindex("Paris") for text in texts]


def test_threads_find_the_same(ner: Extractor) -> None:
    texts = [one.text for one in documents()[::5]]
    expected = ner.extract(texts, NAMES, threshold=0.05)
    shared = Extractor(ner.backend, ner.folder)

    def work(number: int) -> list[list[Entity]]:
        labels = NAMES[number % 3 :] + NAMES[: number % 3]
        return shared.extract(texts, labels, threshold=0.05)

    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(work, range(16)):
            assert result == expected


def test_annotate_puts_what_is_found_in_place_of_what_was_there(ner: Extractor) -> None:
    before = Document.from_spans("Tom flew to Paris .", [(4, 8, "verb")], id="a1")
    (after,) = ner.annotate([before], ["person"])
    assert found(list(after.entities)) == [("Tom", "person")]
    assert (after.id, after.text, after.annotated) == ("a1", before.text, {"person"})


def test_a_saved_model_finds_the_same(ner: Extractor, tmp_path: Path) -> None:
    ner.save_pretrained(tmp_path / "copy")
    copy = Extractor.from_pretrained(tmp_path / "copy")
    assert copy.extract(TEXT, NAMES) == ner.extract(TEXT, NAMES)
    with pytest.raises(OnomaError, match="exists already"):
        ner.save_pretrained(tmp_path / "copy")


def test_thresholds_of_the_configuration_count(tiny_model: Path, ner: Extractor, tmp_path: Path) -> None:
    ner.save_pretrained(tmp_path / "strict")
    replace(ner.config, thresholds={"city": 1.0}).save(tmp_path / "strict")
    strict = onoma.load(tmp_path / "strict")
    assert found(strict.extract("Tom flew to Paris .", ["person", "city"])) == [("Tom", "person")]


def test_labels_are_asked_in_the_language_of_the_model(ner: Extractor, tmp_path: Path) -> None:
    ner.save_pretrained(tmp_path / "english")
    replace(ner.config, options={**ner.config.options, "language": "en"}).save(tmp_path / "english")
    names = {"人名": ["person", "a human being with a name"], "城市": ["city", "a large town"]}
    (tmp_path / "english" / "labels.json").write_text(json.dumps(names), "utf-8")
    english = onoma.load(tmp_path / "english", backend="torch", device="cpu")
    labels = ["城市", EntityType("人名", threshold=0.4)]
    assert found(english.extract("Tom flew to Paris .", labels)) == [("Tom", "人名"), ("Paris", "城市")]
    assert english.extract("Tom flew to Paris .", labels, threshold={"人名": 1.0, "城市": 1.0}) == []
    assert english.extract(TEXT, NAMES) == ner.extract(TEXT, NAMES)


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
