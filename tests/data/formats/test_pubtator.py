"""The format pubtator: title, abstract and rows of mentions."""

from __future__ import annotations

from pathlib import Path

import pytest

from onoma import DataError, Document
from onoma.data.formats import read, write


def parsed(folder: Path, content: str) -> list[Document]:
    path = folder / "a.pubtator"
    path.write_bytes(content.encode())
    return list(read(path))


def test_titles_abstracts_and_mentions_are_read_and_relations_skipped(tmp_path: Path) -> None:
    content = (
        "\n12|t|Aspirin | use\r\n12|a|It helps pain.\r\n"
        "12\t0\t7\tAspirin\tChemical\tD1\r\n12\t23\t27\tpain\tDisease\r\n"
        "12\tCID\tD1\tD2\r\n12\tPositive_Correlation\tD1\tD2\tNovel\r\n\r\n\n13|t|Alone\n13|a|\n14|t|No abstract\n"
    )
    first, second, third = parsed(tmp_path, content)
    assert (first.id, first.text) == ("12", "Aspirin | use It helps pain.")
    assert [(entity.text, entity.label) for entity in first.entities] == [("Aspirin", "Chemical"), ("pain", "Disease")]
    assert (second.text, third.text) == ("Alone", "No abstract")


def test_an_id_is_kept_or_replaced_by_the_number_of_the_document(tmp_path: Path) -> None:
    documents = [Document("a", id="77"), Document("b", id="x|y"), Document("c"), Document("d", id=12)]
    write(documents, tmp_path / "a.pubtator")
    assert [document.id for document in read(tmp_path / "a.pubtator")] == ["77", "2", "3", "12"]


@pytest.mark.parametrize(
    "document", [Document("a\nb"), Document("a\rb"), Document.from_spans("a", [(0, 1, "x\ty")])], ids=repr
)
def test_line_breaks_and_tabs_in_labels_are_refused(tmp_path: Path, document: Document) -> None:
    with pytest.raises(DataError, match=r"document 2 .*jsonl"):
        write([Document("fine"), document], tmp_path / "a.pubtator")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("1\t0\t4\tAnn\tper", 3),
        ("1\t0\t3\tBob\tper", 3),
        ("1\t0\t99\tAnn\tper", 3),
        ("1\t7\t9\t\tper", 3),
        ("1\t0\t3\tAnn\t", 3),
        ("1\t0\t3x\tAnn\tper", 3),
        ("1\t0\t3", 3),
        ("2\t0\t3\tAnn\tper", 3),
        ("2|a|other", 3),
        ("1|a|again", 3),
        ("loose text", 3),
    ],
)
def test_the_error_names_the_line_that_is_not_valid(tmp_path: Path, line: str, number: int) -> None:
    with pytest.raises(DataError) as caught:
        parsed(tmp_path, f"1|t|Ann\n1|a|\n{line}\n")
    assert caught.value.line == number
    assert caught.value.fix


def test_rows_before_a_title_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1"):
        parsed(tmp_path, "1\t0\t3\tAnn\tper\n")
