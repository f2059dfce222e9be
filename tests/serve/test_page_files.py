"""The page: what is saved, opened and kept in the address."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from onoma import Extractor
from onoma.data import read
from serve.page_driver import (
    ASTRAL,
    CHINESE_LABELS,
    DISTRICT,
    DISTRICT_LABELS,
    LABELS,
    NESTED,
    NESTED_LABELS,
    TEXT,
    drop,
    saved,
    select_text,
    set_threshold,
    show,
    shown,
    spans,
    wait_for_entities,
)
from test_docs import check_command

pytestmark = pytest.mark.slow


# --- saving


@pytest.mark.parametrize("text_and_labels", [(TEXT, LABELS), (ASTRAL, CHINESE_LABELS)], ids=["english", "chinese"])
@pytest.mark.parametrize("name", ["JSONL", "CoNLL"])
def test_files_are_read_by_the_library(
    page: Page, tmp_path: Path, embedded: Extractor, name: str, text_and_labels: tuple[str, list[str]]
) -> None:
    text, labels = text_and_labels
    show(page, text, labels)
    page.get_by_label("Format").select_option(name)
    file = tmp_path / f"saved.{name.lower()}"
    file.write_text(saved(page, "Download"), encoding="utf-8")
    (document,) = read(file)
    assert document.text == text
    assert spans(document.entities) == spans(embedded.extract(text, labels))


def test_json_and_html(page: Page, embedded: Extractor) -> None:
    text = f"<b>{NESTED}</b> & more"
    show(page, text, NESTED_LABELS, overlap="nested")
    wanted = embedded.extract(text, NESTED_LABELS, overlap="nested")
    page.get_by_label("Format").select_option("JSON")
    (record,) = json.loads(saved(page, "Download"))
    assert record["text"] == text
    assert [(one["text"], one["label"]) for one in record["entities"]] == [(one.text, one.label) for one in wanted]
    assert [one["score"] for one in record["entities"]] == pytest.approx([one.score for one in wanted], abs=2e-3)
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#status")).to_have_text("Copied the results")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == [record]
    page.get_by_label("Format").select_option("HTML")
    html = saved(page, "Download")
    assert html.count("<mark") == len(wanted) + len({one.label for one in wanted})
    saved_page = page.context.new_page()
    saved_page.set_content(html)
    saved_page.evaluate("document.querySelectorAll('article mark span').forEach(one => one.remove())")
    assert saved_page.locator("article p").text_content() == text


def test_conll_refuses_what_columns_cannot_hold(page: Page) -> None:
    show(page, DISTRICT, DISTRICT_LABELS, overlap="nested")
    page.get_by_label("Format").select_option("CoNLL")
    page.get_by_role("button", name="Download").click()
    expect(page.get_by_role("alert").first).to_contain_text("CoNLL columns cannot hold mentions that overlap")
    expect(page.get_by_role("alert").first).to_contain_text("Set overlap to flat, or save JSONL.")


def test_training_data_and_its_command(page: Page, tmp_path: Path) -> None:
    show(page, TEXT, LABELS)
    file = tmp_path / "corrections.jsonl"
    file.write_text(saved(page, "Save corrections.jsonl"), encoding="utf-8")
    (document,) = read(file)
    assert spans(document.entities) == shown(page)
    page.get_by_role("button", name="Copy command").click()
    expect(page.locator("#status")).to_have_text("Copied the command")
    training, serving = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert training == "onoma train --start embedded --data corrections.jsonl --output runs/corrections"
    assert serving == "onoma serve --model corrections=runs/corrections/onnx"
    for command in (training, serving):
        check_command(shlex.split(command)[1:])


# --- state in the address


def test_a_reload_and_a_link_show_the_same(page: Page) -> None:
    show(page, ASTRAL, CHINESE_LABELS)
    select_text(page, "见面", ASTRAL)
    page.keyboard.press("2")
    set_threshold(page, 0.3)
    page.locator("#overlap").get_by_text("Any").click()
    before = shown(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_have_text("Copied the link")
    shared = page.evaluate("navigator.clipboard.readText()")
    page.reload()
    wait_for_entities(page)
    assert shown(page) == before
    page.goto("about:blank")
    page.goto(shared)
    wait_for_entities(page)
    assert shown(page) == before
    expect(page.locator("#threshold-value")).to_have_text("0.30")


def test_descriptions_are_kept_in_the_address(page: Page) -> None:
    labels = [{"name": "drug, dose", "description": "a medicine", "examples": ["take [[aspirin]]"], "threshold": 0.2}]
    show(page, TEXT, [json.dumps(labels)])
    page.reload()
    wait_for_entities(page)
    page.locator("#chips .chip").click()
    assert page.get_by_label("Name", exact=True).input_value() == "drug, dose"
    assert page.get_by_label("Description, if").input_value() == "a medicine"
    assert page.get_by_label("Examples, one per line").input_value() == "take [[aspirin]]"


def test_a_damaged_address_is_harmless(page: Page) -> None:
    address = page.url.split("#")[0]
    corrections = '[[[[0, 99999, "a"]]]]'
    damaged = {"labels": "[1, null, {}]", "threshold": "x", "overlap": "y", "corrections": corrections, "text": "Tom"}
    page.goto("about:blank")
    page.goto(f"{address}#{urlencode(damaged)}")
    expect(page.locator("#input")).to_have_value("Tom")


# --- files and several texts


def docx(xml: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", xml)
    return content.getvalue()


WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>'
PARAGRAPH = (
    "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>{}</w:t></w:r><w:r><w:tab/><w:t>end</w:t></w:r></w:p>"
)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.txt", "Tom 😀\r\nParis".encode(), "Tom 😀\nParis"),
        ("b.txt", "马云".encode("utf-16"), "马云"),
        ("c.jsonl", b'{"text": "Tom"}\n\n', "Tom"),
        ("d.docx", docx(WORD.format(PARAGRAPH.format("Tom &amp; Ann") * 2)), "Tom & Ann\tend\nTom & Ann\tend"),
    ],
)
def test_dropped_files_are_opened(page: Page, name: str, content: bytes, text: str) -> None:
    drop(page, (name, content))
    expect(page.locator("#input")).to_have_value(text)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"%PDF-1.7", "PDF files cannot be read here. Save a.pdf as text first"),
        ("b.txt", b"\xff\xfa\x00", "b.txt is not encoded in UTF-8"),
        ("c.jsonl", b'{"text": "Tom"}\n{"text": 3}', 'c.jsonl, line 2: there is no "text"'),
        ("d.jsonl", b'{"text": "Tom", "entities": [{"start": 0, "end": 9, "label": "x"}]}', "does not lie in the text"),
        ("e.docx", b"PK\x03\x04 and nothing else", "e.docx is not a docx file, or is damaged"),
        ("f.docx", docx(WORD.format("<w:p>" + " " * 30_000_000)), "f.docx unpacks to more than 20 MB"),
        ("g.docx", docx("<not><well formed"), "g.docx is damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 9 else "",
)
def test_files_that_cannot_be_read_are_refused(
    page: Page, problems: list[str], name: str, content: bytes, message: str
) -> None:
    drop(page, (name, content))
    expect(page.get_by_role("alert").first).to_contain_text(message)
    problems[:] = [one for one in problems if "inline style" not in one]  # of the browser's own report on bad XML


def test_several_texts_are_read_checked_and_saved(page: Page, embedded: Extractor) -> None:
    texts = [TEXT, "Tom lives in Paris.", "Nobody was there.", ASTRAL]
    page.get_by_label("Add labels").fill("person, city")
    page.keyboard.press("Enter")
    lines = "\n".join(json.dumps({"text": text}) for text in texts)
    drop(page, ("texts.jsonl", lines.encode()))
    expect(page.locator("#page-number")).to_have_text("1 of 4")
    wait_for_entities(page)
    page.locator("#read").focus()
    for number, text in enumerate(texts):
        expect(page.locator("#page-number")).to_have_text(f"{number + 1} of 4")
        assert shown(page) == spans(embedded.extract(text, ["person", "city"])), text
        page.keyboard.press("j")
    page.get_by_role("button", name="Save corrections.jsonl").click()
    expect(page.get_by_role("alert").first).to_contain_text("No text is checked yet")
    page.locator("#read").focus()
    page.keyboard.press("k")
    page.keyboard.press("c")
    expect(page.get_by_label("Checked")).to_be_checked()
    page.get_by_role("button", name="Previous text").click()
    page.locator("mark", has_text="Tom").click()
    page.keyboard.press("Delete")
    records = [json.loads(line) for line in saved(page, "Save corrections.jsonl").splitlines()]
    assert [one["text"] for one in records] == texts[1:3]
    assert "Tom" not in [texts[1][one["start"] : one["end"]] for one in records[0]["entities"]]
    expect(page.locator("#train-hint")).to_contain_text("2 of 4 texts are checked")


def test_a_saved_file_is_opened_again_as_it_was(page: Page) -> None:
    entities = [{"start": 12, "end": 17, "label": "town"}]
    drop(page, ("saved.jsonl", json.dumps({"text": "Tom flew to Paris.", "entities": entities}).encode()))
    expect(page.locator("mark")).to_have_text("Paris")
    assert shown(page) == [(12, 17, "town")]
    assert json.loads(saved(page, "Save corrections.jsonl"))["entities"] == entities
    page.get_by_label("Add labels").fill("person")
    page.keyboard.press("Enter")
    wait_for_entities(page)
    assert shown(page) == [(12, 17, "town")], "what the model finds is not mixed with the annotation of a file"
    page.get_by_role("button", name="Show what the model finds as well").click()
    expect(page.locator("#list .mention")).to_have_text(["Tom", "Paris"])


def test_the_lines_of_a_text_become_texts(page: Page) -> None:
    page.locator("#input").fill(f"{TEXT}\n\n  Tom lives in Paris.\nNobody was there.\n")
    page.get_by_label("Add labels").fill("person, city")
    page.get_by_role("button", name="One text per line").click()  # the labels were not confirmed
    expect(page.locator("#page-number")).to_have_text("1 of 3")
    page.get_by_role("button", name="Extract").click()
    wait_for_entities(page)
    page.get_by_role("button", name="Next text").click()
    expect(page.locator("#read")).to_contain_text("Tom lives in Paris.")
    assert [label for *_, label in shown(page)] == ["person", "city"]
