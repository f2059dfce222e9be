"""A worker: one model on one thread, which annotates shard after shard.

As a program (`python -m onoma.scale.worker FOLDER`) it takes the numbers of shards as tasks; see `onoma.scale.service`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.extractor import Extractor
from onoma.scale.attempts import LEFT_OUT, Attempts
from onoma.scale.manifest import Manifest, Settings, current_versions, digest_model
from onoma.scale.plan import GroupCounter, Shard, ShardRows
from onoma.scale.rows import MAX_REASON, Row
from onoma.scale.service import serve
from onoma.scale.storage import OutputFolder, open_output
from onoma.scale.writers import JsonLinesWriter, ParquetWriter, ShardWriter

RECEIPTS = "_shards"
"""The folder with one file per shard: what was counted, and the rows that could not be annotated."""


class ShardWorker:
    """Annotates shards of one run. The model is loaded once."""

    def __init__(self, output: str) -> None:
        self.folder = open_output(output)
        self.manifest = Manifest.read(self.folder)
        self.settings = self.manifest.settings
        self.extractor = open_model(self.settings)
        _require_same_model(self.manifest, self.extractor)
        self.rows = ShardRows([file.open(self.settings.text_column) for file in self.manifest.files])

    def annotate(self, number: int) -> dict[str, Any]:
        """Annotate a shard, unless it is there already; what was counted in it."""
        name = self.manifest.shard_name(number)
        if name in self.folder.names():
            return read_receipt(self.folder, number)
        shard, attempts = self.manifest.shards[number], Attempts(self.folder, number)
        errors: list[tuple[int, str]] = []  # numbers of rows, and reasons
        with self.folder.write(name) as file:
            writer = self._open_writer(file)
            for group in _groups(self.rows.read(shard)):
                readable = self._readable(group, attempts, errors)
                for together in self._tried(readable, group[0].number, attempts):
                    self._annotate_group(together, writer, errors)
            writer.finish()
            receipt = self._receipt(shard, writer, [*errors, *writer.errors])
            self._write_receipt(number, receipt)  # before the shard, so that it exists if the shard does
        attempts.forget()
        return receipt

    def _write_receipt(self, number: int, receipt: dict[str, Any]) -> None:
        with self.folder.write(receipt_name(number)) as file:
            file.write(json.dumps(receipt, ensure_ascii=False).encode())

    def _open_writer(self, file: IO[bytes]) -> ShardWriter:
        column = self.settings.entities_column
        if self.manifest.schema is not None:
            return ParquetWriter(file, column, self.manifest.schema)
        return JsonLinesWriter(file, column)

    def _readable(self, rows: Sequence[Row], attempts: Attempts, errors: list[tuple[int, str]]) -> list[Row]:
        """The rows of a group with a text; those that cannot be annotated become errors."""
        readable = []
        for row in rows:
            if row.error is None and row.record is not None and self.settings.entities_column in row.record:
                row.error = f"there is a field {self.settings.entities_column!r} already"
            if row.error is None and attempts.is_left_out(row.number):
                row.error = LEFT_OUT
            if row.error is not None:
                errors.append((row.number, row.error))
            elif row.text is not None:
                readable.append(row)
        return readable

    def _tried(self, rows: Sequence[Row], group: int, attempts: Attempts) -> Iterator[Sequence[Row]]:
        """The rows of a group that are to be annotated together: usually all of them.

        After attempts that failed, each row is read by itself first, and what is read is noted: if the process dies
        now, the next one knows where.
        """
        if not attempts.is_careful:
            yield rows
            return
        is_split = attempts.is_split(group)
        for row in rows:
            attempts.note(row=row.number)
            if is_split:
                yield [row]
            else:
                annotate_texts(self.extractor, _texts([row]), self.settings)
        if not is_split:
            attempts.note(group=group)
            yield rows
        attempts.note()

    def _annotate_group(self, rows: Sequence[Row], writer: ShardWriter, errors: list[tuple[int, str]]) -> None:
        for row, found in zip(rows, annotate_texts(self.extractor, _texts(rows), self.settings), strict=True):
            if isinstance(found, str):
                errors.append((row.number, found))
            else:
                writer.write(row, found)

    def _receipt(self, shard: Shard, writer: ShardWriter, errors: Sequence[tuple[int, str]]) -> dict[str, Any]:
        file = self.manifest.files[shard.file].name
        found = sorted((row + 1, reason) for row, reason in errors)
        return {
            "documents": writer.documents,
            "labels": dict(sorted(writer.labels.items())),
            "errors": [{"file": file, "row": row, "reason": reason} for row, reason in found],
        }


def _require_same_model(manifest: Manifest, extractor: Extractor) -> None:
    """Raise an error if this machine has another model or other versions than the one where the run was started."""
    digest, versions = digest_model(extractor.folder), current_versions()
    if digest != manifest.model_digest or versions != manifest.versions:
        different = {name: number for name, number in versions.items() if manifest.versions.get(name) != number}
        what = f"versions: {different}" if different else f"model: {digest}, not {manifest.model_digest}"
        raise OnomaError(
            f"a worker would give other results than the run ({what}). Fix: install the same on all machines"
        )


def open_model(settings: Settings) -> Extractor:
    """Load the model and ask it once: a question that does not fit it is an error now, not in every row."""
    extractor = settings.load()
    extract(extractor, ["Ann is in Rome."], settings)
    return extractor


def _groups(rows: Iterator[Row]) -> Iterator[list[Row]]:
    group, counter = list[Row](), GroupCounter()
    for row in rows:
        group.append(row)
        if counter.is_complete_with(row.size):
            yield group
            group = []
    if group:
        yield group


def _texts(rows: Sequence[Row]) -> list[str]:
    return [row.text for row in rows if row.text is not None]


def annotate_texts(extractor: Extractor, texts: Sequence[str], settings: Settings) -> list[list[Entity] | str]:
    """The entities of each text, or the reason why there are none. A text that fails does not affect the others."""
    try:
        return list(extract(extractor, texts, settings))
    except Exception:
        return [_try_text(extractor, text, settings) for text in texts]


def _try_text(extractor: Extractor, text: str, settings: Settings) -> list[Entity] | str:
    try:
        return extract(extractor, [text], settings)[0]
    except Exception as error:
        return f"the model failed ({type(error).__name__}: {error})"[:MAX_REASON]


def extract(extractor: Extractor, texts: Sequence[str], settings: Settings) -> list[list[Entity]]:
    """The entities of each text."""
    return extractor.extract(
        texts,
        settings.types,
        threshold=settings.threshold,
        overlap=settings.overlap,
        several_labels=settings.several_labels,
        batch_size=settings.batch_size,
    )


def receipt_name(number: int) -> str:
    """The file with what was counted in a shard."""
    return f"{RECEIPTS}/{number}.json"


def read_receipt(folder: OutputFolder, number: int) -> dict[str, Any]:
    """What was counted in a shard."""
    receipt: dict[str, Any] = json.loads(folder.read(receipt_name(number)))
    return receipt


def _prepare() -> Callable[[str], dict[str, Any]]:
    worker = ShardWorker(sys.argv[1])
    return lambda task: worker.annotate(int(task))


if __name__ == "__main__":
    serve(_prepare)
