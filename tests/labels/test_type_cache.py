from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import onoma
from onoma import EntityType, Extractor
from onoma.labels.type_cache import MAX_BYTES, TypeCache, _as_bytes
from onoma.models.folder import open_single


class Encoder:
    """Encodes names as rows of numbers, and notes which ones it had to encode."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def rows(self, cache: TypeCache, names: Sequence[str]) -> NDArray[np.float32]:
        def encode(places: list[int]) -> NDArray[np.float32]:
            self.encoded += [names[place] for place in places]
            return np.array([row_of(names[place]) for place in places], np.float32)

        return cache.rows(names, encode)


def row_of(name: str) -> list[float]:
    return [len(name), ord(name[0]), ord(name[-1])]


@pytest.fixture
def encoder() -> Encoder:
    return Encoder()


def test_a_type_is_encoded_once(encoder: Encoder) -> None:
    cache = TypeCache()
    first = encoder.rows(cache, ["drug", "city"])
    second = encoder.rows(cache, ["city", "person", "drug", "city"])
    assert encoder.encoded == ["drug", "city", "person"]
    assert first.tolist() == [row_of("drug"), row_of("city")]
    assert second.tolist() == [row_of("city"), row_of("person"), row_of("drug"), row_of("city")]


def test_the_least_recently_used_rows_are_dropped(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.labels.type_cache.MAX_BYTES", 2 * (3 * 4 + 300))
    cache = TypeCache()
    for name in ("drug", "city", "drug", "person", "drug", "city"):
        encoder.rows(cache, [name])
    assert encoder.encoded == ["drug", "city", "person", "city"]
    assert len(encoder.rows(cache, ["drug", "city", "person"])) == 3  # more than are kept


def test_threads_do_not_encode_the_same_type_twice(encoder: Encoder) -> None:
    cache = TypeCache()
    names = [f"kind {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda _: encoder.rows(cache, names), range(8)))
    assert sorted(encoder.encoded) == sorted(names)
    assert all(np.array_equal(one, rows[0]) for one in rows)


def test_any_string_is_a_key_on_disk(encoder: Encoder, tmp_path: Path) -> None:
    names = ["人名", "\ud800", "../x", "a" * 1000]
    expected = encoder.rows(TypeCache(tmp_path), names)
    assert np.array_equal(encoder.rows(TypeCache(tmp_path), names), expected)
    assert encoder.encoded == names
    assert len(list(tmp_path.iterdir())) == 4


def test_ever_new_long_labels_take_a_bounded_amount_of_memory(encoder: Encoder) -> None:
    cache = TypeCache()
    rows, size = np.zeros((250, 2_000), np.float32), 300
    tracemalloc.start()
    for number in range(0, 20_000, len(rows)):  # 160 MB of rows, 200 MB of labels
        keys = [f"{place}{'x' * 10_000}" for place in range(number, number + len(rows))]
        cache.rows(keys, lambda places: rows[places])
    del keys
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 50e6 < held < MAX_BYTES * 1.1
    assert len(encoder.rows(cache, ["drug"] * size)) == size


@pytest.mark.parametrize("damage", ["empty", "truncated", "objects", "shape", "length", "not a number", "one bit"])
def test_a_damaged_file_is_written_again(encoder: Encoder, tmp_path: Path, damage: str) -> None:
    expected = encoder.rows(TypeCache(tmp_path), ["drug"])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "truncated":
            path.write_bytes(whole[:-7])
        case "objects":
            np.save(path, np.array([{"a": 1}], object), allow_pickle=True)
        case "shape":
            path.write_bytes(_as_bytes(np.zeros((2, 2), np.float32)))
        case "length":
            np.save(path, np.zeros(2, np.float32))
        case "not a number":
            path.write_bytes(_as_bytes(np.full(3, np.nan, np.float32)))
        case "one bit":
            path.write_bytes(whole[:130] + bytes([whole[130] ^ 64]) + whole[131:])
    assert np.array_equal(encoder.rows(TypeCache(tmp_path), ["drug"]), expected)
    assert encoder.encoded == ["drug", "drug"]
    assert path.read_bytes() == whole


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the types that BINDER models had to encode."""
    from onoma.systems.binder.torch_runtime import TorchBinder

    names: list[str] = []
    encode = TorchBinder.encode_types

    def counted(runtime: TorchBinder, types: Sequence[EntityType]) -> NDArray[np.float32]:
        names.extend(one.name for one in types)
        return encode(runtime, types)

    monkeypatch.setattr(TorchBinder, "encode_types", counted)
    return names


def test_a_damaged_cache_never_makes_persons_vanish(tiny_model: Path, tmp_path: Path) -> None:
    expected = load(tiny_model, tmp_path).extract("Tom flew to Paris .", ["person", "city"])
    assert {one.label for one in expected} == {"person", "city"}
    for path in tmp_path.rglob("*.npy"):
        whole = path.read_bytes()
        path.write_bytes(whole[:128] + b"\xff" * (len(whole) - 128))  # NaN in every place
    assert load(tiny_model, tmp_path).extract("Tom flew to Paris .", ["person", "city"]) == expected


def load(folder: Path, cache_dir: Path | None = None) -> Extractor:
    return onoma.load(folder, backend="torch", device="cpu", cache_dir=cache_dir)


def test_a_type_is_encoded_again_if_its_description_changes(tiny_model: Path, encoded: list[str]) -> None:
    runtime = load(tiny_model).runtime
    person = runtime.ask([EntityType("person", "a human being")])
    assert runtime.ask([EntityType("person")]).tolist() != person.tolist()
    assert runtime.ask([EntityType("person", "a human being", threshold=0.9)]).tolist() == person.tolist()
    assert encoded == ["person", "person"]


def test_other_processes_find_encoded_types_on_disk(tiny_model: Path, encoded: list[str], tmp_path: Path) -> None:
    expected = load(tiny_model, tmp_path).extract("Tom flew to Paris .", ["person", "city"])
    assert sorted(encoded) == ["city", "person"]
    assert load(tiny_model, tmp_path).extract("Tom flew to Paris .", ["city", "person"]) == expected != []
    assert sorted(encoded) == ["city", "person"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".npy"}
    assert {path.parent for path in files} == {tmp_path / open_single(tiny_model, "use").digest("torch")}
    assert len(files) == 2
