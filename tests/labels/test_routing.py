from __future__ import annotations

import logging

import pytest

from onoma.labels.routing import ScriptRouter
from onoma.models.config import DEFAULT_SHARE

JAPANESE = "東京都知事選挙は七月に行われる予定"  # kana, but mostly kanji


@pytest.mark.parametrize(
    ("text", "scripts", "share", "accepted"),
    [
        ("Tom 北京路", ["Han"], 0.5, True),
        ("Tom 北京路", ["Han"], 0.51, False),
        ("ab京", ["Han"], DEFAULT_SHARE, True),
        ("abc京", ["Han"], DEFAULT_SHARE, False),
        ("123 (京) !?", ["Han"], 1.0, True),
        ("123", ["Han"], 0.0, False),
        ("", ["Han"], 0.0, False),
        ("私はトムです", ["Han"], DEFAULT_SHARE, False),
        ("私はトムです", ["Han", "Hiragana"], DEFAULT_SHARE, True),
        ("Том", ["Latin"], DEFAULT_SHARE, False),
        ("Τομ", ["Greek", "Cyrillic"], 1.0, True),
    ],
)
def test_the_share_of_letters_decides(text: str, scripts: list[str], share: float, accepted: bool) -> None:
    assert ScriptRouter([scripts, []], share).route(text) == (0 if accepted else 1)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("购买Microsoft Office请联系王芳", True),
        ("iPhone 15 Pro Max在Apple Store上海南京东路店开售", True),
        ("Galaxy S24 Ultra、Pixel 8 Pro发布，京东预售", True),
        ("詳情請見https://example.org/a/very/long/address?with=several&options", True),
        ("ＧｉｔＨｕｂ和ＳｔａｃｋＯｖｅｒｆｌｏｗ是程序员的网站", True),
        ("Huawei CEO 任正非 visited Berlin", False),  # a name in an English sentence
        ("Marcus Chin ( 陈建彬 )", False),
        ("The film “我的父亲母亲” was directed by Zhang Yimou and shown in Berlin.", False),  # a title
        ("Please write 的 here, then 了, as in the first part of this lesson.", False),
    ],
)
def test_words_are_counted_in_chinese_sentences_with_other_scripts(text: str, accepted: bool) -> None:
    assert ScriptRouter([["Han"], []], DEFAULT_SHARE).route(text) == (0 if accepted else 1)


def test_words_are_counted_for_chinese_routes_only() -> None:
    text = "购买Microsoft Office请联系王芳"
    assert ScriptRouter([["Han", "Hiragana", "Katakana"], []], DEFAULT_SHARE).route(text) == 1
    assert ScriptRouter([["Han"], []], 0.9).route(text) == 1


def test_the_first_route_that_accepts_a_text_is_taken() -> None:
    router = ScriptRouter([["Han"], ["Cyrillic", "Han"], []], 0.5)
    texts = ("北京", "Москва", "Paris", "Москва北京北京北京", "42")
    assert [router.route(text) for text in texts] == [0, 1, 2, 0, 2]


def test_japanese_with_many_kanji_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    router = ScriptRouter([["Han"], []], DEFAULT_SHARE)
    with caplog.at_level(logging.WARNING, "onoma"):
        assert [router.route(text) for text in (JAPANESE, "北京", JAPANESE, "Tom")] == [0, 0, 0, 1]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("onoma", "WARNING")
    assert "results on Japanese are not reliable" in record.getMessage()


@pytest.mark.parametrize(
    "text", ["北京是中国的首都。", "我在北京喝了优の良品的咖啡。", "わたしはトムです", "Tom flew to 東京."]
)
def test_texts_that_another_model_reads_and_chinese_do_not_warn(text: str, caplog: pytest.LogCaptureFixture) -> None:
    ScriptRouter([["Han"], []], DEFAULT_SHARE).route(text)
    assert caplog.records == []


def test_a_route_for_japanese_does_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    router = ScriptRouter([["Han", "Hiragana", "Katakana"], []], DEFAULT_SHARE)
    assert router.route(JAPANESE) == 0
    assert caplog.records == []
