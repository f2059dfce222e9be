from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.inputs.blocks import Part, block_end
from onoma.labels import routing
from onoma.labels.routing import ScriptRouter
from onoma.models.config import DEFAULT_SHARE


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
        ("The film 我的父亲母亲 was directed by 张艺谋 in 1999.", False),
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


ROUTER = ScriptRouter([["Han"], []], DEFAULT_SHARE)
ZH, EN = 0, 1


def read_by(text: str, route: int) -> list[str]:
    return [text[one.start : one.end] for block in ROUTER.split(text) for one in block if one.route == route]


@pytest.mark.parametrize(
    ("text", "chinese", "english"),
    [
        (
            "The CEO of 腾讯, 马化腾, met Tim Cook in 深圳.",
            ["腾讯, 马化腾", "深圳"],
            ["The CEO of 腾讯, 马化腾, met Tim Cook in 深圳."],
        ),
        ("苹果公司CEO Tim Cook在上海。", ["苹果公司CEO Tim Cook在上海。"], []),
        (
            "王芳主持。Tim Cook left for Oslo. 马云在杭州。",
            ["王芳主持。", " 马云在杭州。"],
            ["Tim Cook left for Oslo."],
        ),
        ("我们在Apple Inc. 工作。Tim Cook! 他来了。", ["我们在Apple Inc. 工作。Tim Cook! 他来了。"], []),  # names only
        ("It rained hard. 昨天下雨了。 It rained again.", [" 昨天下雨了。"], ["It rained hard.", " It rained again."]),
        ("姓名\nName of the person\n王芳\n", ["姓名\n", "王芳\n"], ["Name of the person\n"]),  # lines
        (
            "Sold in 2023年5月 as 《红楼梦》 for 3.5亿 to iPhone15手机 users.",
            ["2023年5月", "《红楼梦》", "3.5亿", "手机"],
            None,
        ),
        ("42!", [], ["42!"]),
        ("", [], [""]),
    ],
)
def test_sentences_and_runs_are_read_by_the_model_for_their_script(
    text: str, chinese: list[str], english: list[str] | None
) -> None:
    assert read_by(text, ZH) == chinese
    assert english is None or read_by(text, EN) == english


def test_runs_of_a_script_are_read_if_there_is_a_route_for_it() -> None:
    router = ScriptRouter([["Han"], ["Cyrillic"], []], DEFAULT_SHARE)
    text = "Anna met Иван Иванов and 王芳 in Oslo last week."
    (block,) = router.split(text)
    assert sorted((one.route, text[one.start : one.end]) for one in block if one.is_run) == [
        (0, "王芳"),
        (1, "Иван Иванов"),
    ]


PIECES = [
    "Tom ",
    "met ",
    "the ",
    "人",
    "王芳",
    "。",
    "，",
    ". ",
    "! ",
    "\n",
    "\n\n",
    "2023",
    "年",
    "ＡＢ",
    "Иван ",
    "ゆき",
    "的",
]
mixed_texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.text())


@given(mixed_texts, st.sampled_from([5, 40, 1000]))
def test_parts_cover_a_text_once_and_runs_lie_inside_of_parts_of_other_models(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(routing, "BLOCK_CHARACTERS", size)
        blocks = ROUTER.split(text)
    main = [one for block in blocks for one in block if not one.is_run]
    assert "".join(text[one.start : one.end] for one in main) == text
    assert [block_end(block) for block in blocks][-1] == len(text)
    for block in blocks:
        for run in (one for one in block if one.is_run):
            assert not any(
                letter.isalpha() and ROUTER.route(letter) != run.route for letter in text[run.start : run.end]
            )
            assert any(
                one.start <= run.start and run.end <= one.end and one.route != run.route
                for one in block
                if not one.is_run
            )
    han = [place for place, letter in enumerate(text) if letter.isalpha() and ROUTER.route(letter) == ZH]
    chinese = [one for block in blocks for one in block if one.route == ZH]
    assert all(any(one.start <= place < one.end for one in chinese) for place in han)


@given(st.text(st.sampled_from("Tom ran. \n!2,")) | st.text(st.sampled_from("王芳在北京。，！2\n 的")))
def test_a_text_in_one_script_is_one_part(text: str) -> None:
    assert ROUTER.split(text) == [[Part(ROUTER.route(text), 0, len(text))]]


def test_a_long_mixed_text_is_cut_into_blocks_at_sentences() -> None:
    text = "Anna met 王芳 in Oslo. " * 5000
    blocks = ROUTER.split(text)
    assert len(blocks) > 2
    assert all(block_end(block) % 20 == 19 or block_end(block) == len(text) for block in blocks)
    assert max(one.end - one.start for block in blocks for one in block) <= routing.BLOCK_CHARACTERS


@pytest.mark.parametrize(
    "text",
    [
        "1," * 100_000,
        "王" + "-" * 100_000,
        "《" * 100_000,
        "\n" * 100_000,
        "王-" * 50_000,
        "。" * 100_000,
        "1" * 100_000,
    ],
)
def test_monotonous_text_is_split_in_linear_time(text: str) -> None:
    started = time.perf_counter()
    ROUTER.split(f"{text} 王 met the a b c d e f {text} 王芳")
    assert time.perf_counter() - started < 5
