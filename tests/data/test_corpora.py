"""Corpora on disk: folders, splits, metadata and labels."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest

from onoma.data.corpora import find_splits, load_corpus, load_splits, read_info, relabel
from onoma.entities import Corpus, Document, EntityType
from onoma.errors import DataError, OnomaError


def line(text: str, *spans: tuple[int, int, str]) -> str:
    entities = [{"start": start, "end": end, "label": label} for start, end, label in spans]
    return json.dumps({"text": text, "entities": entities}, ensure_ascii=False) + "\n"


ANN = line("Ann sings in Oslo.", (0, 3, "PER"), (13, 17, "GPE"))
BOB = line("Bob is tall.", (0, 3, "PER"))
FJORD = line("The fjord is deep.", (4, 9, "LOC"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus with meta.json, compressed and plain splits, and files that are not splits."""
    folder = tmp_path / "songs"
    folder.mkdir()
    with lzma.open(folder / "train.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(ANN + BOB)
    (folder / "test.jsonl").write_text(FJORD, encoding="utf-8")
    (folder / "extra.jsonl").write_text(BOB, encoding="utf-8")
    (folder / "marked.jsonl").write_text('{"m": "[[Ann|PER]] sings"}\n', encoding="utf-8")
    (folder / "types.jsonl").write_text('{"name": "PER", "description": "a human being"}\n', encoding="utf-8")
    (folder / "README.txt").write_text("Songs.\n", encoding="utf-8")
    (folder / "singers.txt").write_text("Ann\nBob\n", encoding="utf-8")
    meta = {
        "name": "song_corpus",
        "language": "en",
        "license": "CC0",
        "role": "train",
        "weights_ok": True,
        "types": {"PER": 3, "GPE": 1, "LOC": 1, "TIME": 0},
        "type_names": {"PER": "person", "GPE": "location", "LOC": "location", "TIME": "time"},
    }
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    return folder


def test_all_splits_of_a_folder_share_one_inventory(folder: Path) -> None:
    splits = load_splits(folder)
    assert list(splits) == ["train", "test", "extra"]
    assert [len(corpus) for corpus in splits.values()] == [2, 1, 1]
    assert {corpus.name for corpus in splits.values()} == {"song_corpus"}
    assert {corpus.labels for corpus in splits.values()} == {("PER", "GPE", "LOC", "TIME")}
    assert splits["train"].documents[0].entities[1].text == "Oslo"


def test_descriptions_are_read_from_types_jsonl(folder: Path) -> None:
    types = {one.name: one.description for one in load_corpus(folder, "train").types}
    assert types == {"PER": "a human being", "GPE": "", "LOC": "", "TIME": ""}


@pytest.mark.parametrize("form", ["{}:train", "{}/train.jsonl", "{}/train.jsonl.xz"])
def test_a_split_can_be_given_in_several_ways(folder: Path, form: str) -> None:
    assert load_corpus(form.format(folder)) == load_corpus(folder, "train")


def test_a_folder_with_a_colon_in_its_name_is_a_folder(folder: Path) -> None:
    moved = folder.rename(folder.with_name("songs:v2"))
    assert len(load_corpus(moved, "train")) == 2
    assert len(load_corpus(f"{moved}:test")) == 1


def test_metadata_is_read_without_documents(folder: Path) -> None:
    (folder / "train.jsonl.xz").write_bytes(b"damaged")
    info = read_info(folder)
    assert (info.name, info.language, info.licence, info.role, info.weights_ok) == (
        *("song_corpus", "en", "CC0", "train", True),
    )
    assert list(find_splits(folder)) == ["train", "test", "extra"]


def test_labels_with_the_same_natural_name_are_merged(folder: Path) -> None:
    splits = load_splits(folder, natural_names=True)
    assert splits["train"].labels == ("person", "location", "time")
    assert splits["train"].documents[0].labels == {"person", "location"}
    assert splits["test"].documents[0].labels == {"location"}
    assert splits["train"].types[0].description == "a human being"


def test_natural_names_can_have_two_languages(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(line("安娜在唱歌。", (0, 2, "PER")), encoding="utf-8")
    meta = {"language": "zh", "type_names": {"PER": {"zh": "人名", "en": "person"}}}
    (tmp_path / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    assert load_corpus(tmp_path, natural_names=True).labels == ("人名",)
    assert load_corpus(tmp_path, natural_names=True, language="en").labels == ("person",)
    assert load_corpus(tmp_path, language="en").labels == ("PER",)
    with pytest.raises(OnomaError, match=r"in en, zh, not in 'fr'\. Fix: choose one of these languages"):
        load_corpus(tmp_path, natural_names=True, language="fr")


def test_labels_that_meta_json_does_not_list_are_added_to_the_inventory(folder: Path) -> None:
    (folder / "extra.jsonl").write_text(line("Ugh, no!", (0, 3, "CRY")), encoding="utf-8")
    assert load_splits(folder)["train"].labels == ("PER", "GPE", "LOC", "TIME", "CRY")


def test_a_folder_without_meta_json_can_have_splits_in_several_formats(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.conll").write_text("Ann B-PER\nsings O\n\nBob B-PER\n", encoding="utf-8")
    (folder / "dev.txt").write_text("Oslo B-LOC\nfjord O\n", encoding="utf-8")
    (folder / "test.jsonl").write_text(BOB, encoding="utf-8")
    splits = load_splits(folder)
    assert {name: len(corpus) for name, corpus in splits.items()} == {"train": 2, "dev": 1, "test": 1}
    assert {corpus.labels for corpus in splits.values()} == {("LOC", "PER")}
    assert splits["dev"].name == "mine"


def test_a_txt_file_is_a_split_by_its_content_or_by_a_usual_name(tmp_path: Path) -> None:
    (tmp_path / "pool.txt").write_text("Ann B-PER\nsings O\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("song\nmelody\n", encoding="utf-8")
    assert list(load_splits(tmp_path)) == ["pool"]
    (tmp_path / "dev.txt").write_text("Not a format that anybody knows.\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"dev\.txt"):
        load_splits(tmp_path)


def test_a_brat_folder_is_one_split(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "one.txt").write_text("Ann sings.", encoding="utf-8")
        (tmp_path / split / "one.ann").write_text("T1\tPER 0 3\tAnn\n", encoding="utf-8")
    assert {name: corpus.labels for name, corpus in load_splits(tmp_path).items()} == {
        "train": ("PER",),
        "dev": ("PER",),
    }
    assert list(load_splits(tmp_path / "dev")) == ["dev"]


@pytest.mark.parametrize(("file", "name"), [("train.jsonl", "mine"), ("opera.jsonl", "opera")])
def test_a_single_file_is_named_after_its_folder_or_itself(tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / "mine" / file
    path.parent.mkdir()
    path.write_text(BOB, encoding="utf-8")
    corpus = load_corpus(path)
    assert (corpus.name, len(corpus), corpus.labels) == (name, 1, ("PER",))
    assert load_corpus(path, name="own").name == "own"


def test_the_error_for_a_missing_split_lists_the_others(folder: Path) -> None:
    for call in (lambda: load_corpus(folder, "dev"), lambda: load_corpus(f"{folder}:dev")):
        with pytest.raises(DataError, match=r"no split 'dev'\. Fix: use one of: train, test, extra\."):
            call()


def test_loading_one_of_several_splits_needs_its_name(folder: Path) -> None:
    with pytest.raises(DataError, match=r"several splits \(train, test, extra\).*name the split: .*songs:train"):
        load_corpus(folder)


def test_two_files_for_one_split_are_an_error(folder: Path) -> None:
    (folder / "train.conll").write_text("Ann B-PER\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"train\.conll and train\.jsonl\.xz are both split 'train'"):
        load_splits(folder)
    assert len(load_corpus(folder / "train.conll")) == 1


def test_missing_and_empty_folders_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        load_splits(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no file with documents"):
        load_splits(tmp_path)


def test_a_folder_of_word_lists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("song\n", encoding="utf-8")
    (tmp_path / "meta.json").write_text('{"role": "lexicon"}', encoding="utf-8")
    with pytest.raises(DataError, match="word lists"):
        load_splits(tmp_path)


def test_a_model_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"system": "binder"}', encoding="utf-8")
    (tmp_path / "train.jsonl").write_text(BOB, encoding="utf-8")
    with pytest.raises(DataError, match=r"contains a model, not documents\. Fix: give a corpus"):
        load_splits(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("meta.json", "{", r"meta\.json, line 1: this is not valid JSON"),
        ("meta.json", '{\n"name": songs}', r"meta\.json, line 2: this is not valid JSON at character 9"),
        ("meta.json", "[]", "not a JSON object"),
        ("meta.json", '{"types": "PER"}', "'types' must be a list of labels"),
        ("meta.json", '{"type_names": {"PER": 1}}', "'type_names' must give a name"),
        ("types.jsonl", '\n{"name": "PER"}\n', r"types\.jsonl, line 2: the key 'description' is missing"),
    ],
)
def test_errors_in_metadata_name_file_and_line(folder: Path, file: str, content: str, message: str) -> None:
    (folder / file).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        load_splits(folder)
    assert caught.value.fix


def test_mentions_that_differ_only_in_a_merged_label_are_merged() -> None:
    document = Document.from_spans("Ann sings.", [(0, 3, "PER"), (0, 3, "SINGER"), (4, 9, "VERB")])
    corpus = Corpus("songs", [document])
    person = EntityType("person", "a human being")
    merged = relabel(corpus, {"PER": EntityType("person"), "SINGER": person, "VERB": None})
    assert merged.types == (person,)
    assert [entity.key for entity in merged.documents[0].entities] == [(0, 3, "person")]
    assert document.labels == {"PER", "SINGER", "VERB"}


def test_a_merged_type_is_annotated_if_all_of_its_labels_are() -> None:
    both = Document("No one.", annotated=frozenset({"PER", "SINGER", "VERB"}))
    half = Document("No one.", annotated=frozenset({"PER", "VERB"}))
    used = Document.from_spans("Ann.", [(0, 3, "PER")], annotated={"PER"})
    whole = Document("No one.")
    person = EntityType("person")
    merged = relabel(Corpus("songs", [both, half, used, whole]), {"PER": person, "SINGER": person, "VERB": None})
    assert [document.annotated for document in merged] == [{"person"}, frozenset(), {"person"}, None]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A corpus without meta.json whose splits have different labels."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "train.jsonl").write_text(ANN, encoding="utf-8")
    (folder / "dev.conll").write_text("fjord B-LOC\n", encoding="utf-8")
    (folder / "test.jsonl").write_text(BOB, encoding="utf-8")
    return folder


def test_one_split_has_the_types_of_the_whole_folder(bare: Path) -> None:
    for corpus in (
        load_corpus(f"{bare}:test"),
        load_corpus(bare, "test"),
        load_corpus(bare, "test", natural_names=True),
        load_splits(bare, splits=["test"])["test"],
    ):
        assert corpus.labels == ("GPE", "LOC", "PER")
        assert len(corpus) == 1
    assert load_corpus(bare / "test.jsonl").labels == ("PER",)  # a single file has only its own types


def test_other_splits_are_not_read_if_meta_json_lists_the_types(folder: Path) -> None:
    (folder / "extra.jsonl").write_text("damaged", encoding="utf-8")
    (folder / "train.jsonl.xz").write_bytes(b"damaged")
    assert load_corpus(folder, "test").labels == ("PER", "GPE", "LOC", "TIME")


def test_damage_in_another_split_is_a_warning(bare: Path, caplog: pytest.LogCaptureFixture) -> None:
    (bare / "train.jsonl").write_text("{damaged", encoding="utf-8")
    assert load_corpus(bare, "test").labels == ("LOC", "PER")
    (record,) = caplog.records
    assert "train.jsonl, line 1" in record.getMessage()


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"name": 5}, "'name' must be a string, got 5"),
        ({"language": ["en"]}, "'language' must be a string, such as en"),
        ({"license": {}}, "'license' must be a string"),
        ({"role": True}, "'role' must be a string"),
        ({"weights_ok": "yes"}, "'weights_ok' must be true or false, got 'yes'"),
    ],
)
def test_values_of_the_wrong_type_in_metadata_are_errors(folder: Path, meta: dict[str, object], message: str) -> None:
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        read_info(folder)
    assert caught.value.path == folder / "meta.json"
    (folder / "meta.json").write_text(json.dumps(dict.fromkeys(meta)), encoding="utf-8")
    assert read_info(folder).name == "songs"


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match=r"pipe or a device.*save its content to a file"):
        load_corpus(tmp_path / "pipe.jsonl")
