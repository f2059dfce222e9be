"""Lexicons: reading them, finding their words, storing them."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.errors import DataError, OnomaError
from onoma.text import lexicon as module
from onoma.text.chinese import fold_chinese
from onoma.text.lexicon import Lexicon

BRIDGE = ["南京", "南京市", "市长", "长江", "长江大桥", "大桥"]
LETTERS = st.sampled_from("中国國北京Ａa b\n\U00020000")
WORDS = st.lists(st.text(LETTERS.filter(lambda one: one != "\n"), max_size=5), max_size=12)
TEXTS = st.lists(st.text(LETTERS, max_size=30), max_size=5)


def rows(lexicon: Lexicon, texts: list[str]) -> list[tuple[int, int, int, str]]:
    text, start, end, word = (column.tolist() for column in lexicon.find(texts))
    return list(zip(text, start, end, map(lexicon.__getitem__, word), strict=True))


def obvious_rows(words: tuple[str, ...], texts: list[str]) -> list[tuple[int, int, int, str]]:
    known, folded = set(words), [fold_chinese(text, case=True) for text in texts]
    return [
        (number, start, end, text[start:end])
        for number, text in enumerate(folded)
        for start in range(len(text))
        for end in range(start + 1, len(text) + 1)
        if text[start:end] in known
    ]


def test_all_overlapping_words_are_found_in_order() -> None:
    found = rows(Lexicon(BRIDGE), ["在南京市长江大桥", "", "市长"])
    assert found == [
        (0, 1, 3, "南京"),
        (0, 1, 4, "南京市"),
        (0, 3, 5, "市长"),
        (0, 4, 6, "长江"),
        (0, 4, 8, "长江大桥"),
        (0, 6, 8, "大桥"),
        (2, 0, 2, "市长"),
    ]


def test_columns_are_64_bit_integers_even_without_matches() -> None:
    for texts in ([], [""], ["没有"], ["南京"]):
        assert [column.dtype for column in Lexicon(BRIDGE).find(texts)] == [np.int64] * 4


def test_words_do_not_reach_from_one_text_into_the_next() -> None:
    assert rows(Lexicon(BRIDGE), ["南", "京", "南\n京"]) == []


@pytest.mark.parametrize("text", ["長江大橋ＡＴ＆Ｔ", "长江大桥at&t", "長江大橋AT&T"])
def test_script_width_and_case_make_no_difference(text: str) -> None:
    assert [row[1:] for row in rows(Lexicon(["長江大橋", "AT&T"]), [text])] == [(0, 4, "长江大桥"), (4, 8, "at&t")]


def test_words_are_numbered_in_their_order_without_repeated_ones_and_single_characters() -> None:
    lexicon = Lexicon(["臺灣", "中", "中国", "台湾", "", "中國", "北京"])
    assert lexicon.words == ("台湾", "中国", "北京")
    assert [lexicon[number] for number in range(len(lexicon))] == ["台湾", "中国", "北京"]
    with pytest.raises(IndexError, match="0 to 2, got 3"):
        lexicon[3]


def test_a_lexicon_may_be_empty() -> None:
    assert (len(Lexicon([])), Lexicon([]).words, rows(Lexicon([]), ["北京"])) == (0, (), [])
    assert Lexicon.from_bytes(Lexicon([]).to_bytes()).words == ()


@settings(max_examples=300)
@given(WORDS, TEXTS)
def test_the_same_words_are_found_by_trying_all_substrings(words: list[str], texts: list[str]) -> None:
    lexicon = Lexicon(words)
    assert rows(lexicon, texts) == obvious_rows(lexicon.words, texts)


@given(WORDS, TEXTS, st.integers(1, 9))
def test_long_texts_are_searched_part_by_part(words: list[str], texts: list[str], block: int) -> None:
    lexicon = Lexicon(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        assert rows(lexicon, texts) == obvious_rows(lexicon.words, texts)


def test_many_random_words_are_found() -> None:
    random = np.random.default_rng(0)
    letters = np.array([*fold_chinese("".join(map(chr, range(0x4E00, 0x4E80))))])
    words = ["".join(random.choice(letters, random.integers(2, 6))) for _ in range(20_000)]
    lexicon, texts = Lexicon(words), ["".join(random.choice(letters, 500)) for _ in range(3)]
    found = rows(lexicon, texts)
    assert len(found) > 300
    assert found == obvious_rows(lexicon.words, texts)


@settings(max_examples=20)  # each compresses two times, with large buffers
@given(WORDS)
def test_a_stored_lexicon_is_the_same(words: list[str]) -> None:
    lexicon = Lexicon(words)
    content = lexicon.to_bytes()
    assert content == Lexicon(words).to_bytes()
    assert Lexicon.from_bytes(content).words == lexicon.words
    assert Lexicon.from_bytes(content).to_bytes() == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a lexicon"),
        (b"rubbish", "not a lexicon"),
        (Lexicon(BRIDGE).to_bytes()[:-9], "not a lexicon"),
        (Lexicon(BRIDGE).to_bytes() + b"more", "not a lexicon"),
        (lzma.compress(b"\xff\xff"), "not a lexicon"),
        (lzma.compress("北".encode()), "from 2 to 64"),
        (lzma.compress(("北" * 65).encode()), "from 2 to 64"),
        (lzma.compress("北京\n北京".encode()), "repeated words"),
    ],
)
def test_a_damaged_lexicon_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Lexicon.from_bytes(content, "model/lexicon.txt.xz")
    assert str(caught.value).startswith("model/lexicon.txt.xz: ")
    assert caught.value.fix == "save or download the model again"


def test_words_that_cannot_be_in_a_lexicon_are_refused() -> None:
    with pytest.raises(OnomaError, match="at most 64 characters, '长长长"):
        Lexicon(["北京", "长" * 65])
    with pytest.raises(OnomaError, match="line break"):
        Lexicon(["北\n京"])
    with pytest.raises(OnomaError, match="unpaired surrogate"):
        Lexicon(["\ud800\ud800"]).to_bytes()


def write(path: Path, text: str) -> Path:
    packed = {".xz": lzma.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
    path.write_bytes(packed(text.encode()))
    return path


@pytest.mark.parametrize("name", ["words.txt", "words.txt.xz", "words.txt.gz", "words.dict"])
@pytest.mark.parametrize(
    "text",
    [
        "长江\n南京 市\nA型 5\n",
        "\ufeff长江\r\n\r\n 南京 市 \r\nA型 5",
        "长江\t12\n南京 市\t3\nA型 5\t1",
        "长江 12 ns\n南京 市 3 nz\nA型 5 30 n\n",
        "长江 12\n南京 市 3\nA型 5 2",
        "长江\n南京 市 3\n" + "武汉 3\n长江 1\n" * 3 + "A型 5 2",
    ],
    ids=["plain", "windows", "tab", "jieba", "frequency", "some frequencies"],
)
def test_word_lists_are_read_with_and_without_frequencies(tmp_path: Path, name: str, text: str) -> None:
    words = Lexicon.read(write(tmp_path / name, text)).words
    assert tuple(word for word in words if word != "武汉") == ("长江", "南京 市", "a型 5")


def test_several_files_and_folders_become_one_lexicon(tmp_path: Path) -> None:
    folder = tmp_path / "lists"
    folder.mkdir()
    write(folder / "b.txt", "北京\n上海\n")
    write(folder / "a.txt.xz", "天津\n上海\n")
    write(folder / "a.LICENSE.txt", "Do what you like\n")
    write(folder / "meta.json", "{}")
    one = write(tmp_path / "one.txt", "上海\n重庆\n")
    assert Lexicon.read(folder).words == ("天津", "上海", "北京")
    assert Lexicon.read(str(folder)).words == ("天津", "上海", "北京")
    assert Lexicon.read([one, folder]).words == ("上海", "重庆", "天津", "北京")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("words.txt", b"", "no words"),
        ("words.txt", b"\n \n\t3\n", "no words"),
        ("words.jsonl", b'{"word": "ab"}\n', "not a plain list"),
        ("words.txt", b"%PDF-1.7 ...", "PDF document"),
        ("words.txt", "北京\n".encode("gb18030"), "UTF-8"),
        ("words.txt.xz", b"rubbish", "damaged"),
        ("words.txt", f"北京\n{'长' * 65}\n".encode(), "line 2: a word has at most 64 characters"),
    ],
)
def test_rubbish_is_refused_with_a_fix(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        Lexicon.read(tmp_path / name)
    assert caught.value.fix
    assert name in str(caught.value)


def test_missing_files_and_folders_without_lists_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Lexicon.read(tmp_path / "none.txt")
    with pytest.raises(DataError, match="no word lists"):
        Lexicon.read(tmp_path)
