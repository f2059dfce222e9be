from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import onoma
from onoma import EntityType, Extractor
from onoma.type_cache import TypeCache, model_digest

DRUG, CITY, PERSON = EntityType("drug"), EntityType("city"), EntityType("person", "a human being")


@pytest.fixture
def encoded(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the types that the backend has had to encode."""
    names: list[str] = []
    encode = ner.backend.encode_types

    def counted(types: Sequence[EntityType]) -> NDArray[np.float32]:
        names.extend(one.name for one in types)
        return encode(types)

    monkeypatch.setattr(ner.backend, "encode_types", counted)
    return names


def test_a_type_is_encoded_once(ner: Extractor, encoded: list[str]) -> None:
    cache = TypeCache(ner.backend)
    first = cache.rows([DRUG, CITY])
    second = cache.rows([CITY, PERSON, DRUG])
    assert encoded == ["drug", "city", "person"]
    assert np.array_equal(second[[2, 0]], first)
    assert cache.rows([EntityType("person")]).tolist() != second[1:2].tolist()  # another description is another type
    assert cache.rows([EntityType("city", threshold=0.9)]).tolist() == first[1:].tolist()  # another threshold is not
    assert encoded == ["drug", "city", "person", "person"]


def test_rows_not_asked_for_the_longest_are_forgotten(
    ner: Extractor, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onoma.type_cache.MOST_ROWS", 2)
    cache = TypeCache(ner.backend)
    for one in (DRUG, CITY, DRUG, PERSON, DRUG, CITY):
        cache.rows([one])
    assert encoded == ["drug", "city", "person", "city"]
    assert len(cache.rows([DRUG, CITY, PERSON])) == 3  # more than are kept


def test_threads_do_not_encode_the_same_type_twice(ner: Extractor, encoded: list[str]) -> None:
    cache = TypeCache(ner.backend)
    types = [EntityType(f"kind {number}") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(cache.rows, [types] * 8))
    assert sorted(encoded) == sorted(one.name for one in types)
    assert all(np.array_equal(one, rows[0]) for one in rows)


def test_rows_are_kept_on_disk(ner: Extractor, tiny_model: Path, encoded: list[str], tmp_path: Path) -> None:
    first = Extractor(ner.backend, tiny_model, tmp_path)
    expected = first.extract("Tom flew to Paris .", ["person", "city"])
    assert sorted(encoded) == ["city", "person"]
    again = Extractor(ner.backend, tiny_model, tmp_path)
    assert again.extract("Tom flew to Paris .", ["city", "person"]) == expected != []
    assert sorted(encoded) == ["city", "person"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".npy"}
    assert len(files) == 2


@pytest.mark.parametrize("damage", ["", "cut", "objects", "shape"])
def test_a_damaged_file_is_written_again(ner: Extractor, encoded: list[str], tmp_path: Path, damage: str) -> None:
    expected = TypeCache(ner.backend, tmp_path).rows([DRUG])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    match damage:
        case "":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(whole[:-7])
        case "objects":
            np.save(path, np.array([{"a": 1}], object), allow_pickle=True)
        case "shape":
            np.save(path, np.zeros((2, 2), np.float32))
    assert np.array_equal(TypeCache(ner.backend, tmp_path).rows([DRUG]), expected)
    assert encoded == ["drug", "drug"]
    assert path.read_bytes() == whole


def test_models_do_not_share_their_rows(tiny_model: Path, ner: Extractor, tmp_path: Path) -> None:
    ner.save_pretrained(tmp_path / "copy")
    assert model_digest(tmp_path / "copy", "torch") == model_digest(tiny_model, "torch")
    assert model_digest(tiny_model, "onnx") != model_digest(tiny_model, "torch")
    with (tmp_path / "copy" / "model.safetensors").open("ab") as file:
        file.write(b"\0")
    assert model_digest(tmp_path / "copy", "torch") != model_digest(tiny_model, "torch")


def test_load_takes_the_folder_for_the_cache(tiny_model: Path, tmp_path: Path) -> None:
    onoma.load(tiny_model, cache_dir=tmp_path).extract("Tom", ["person"])
    assert len(list(tmp_path.glob(f"{model_digest(tiny_model, 'torch')}/*.npy"))) == 1
