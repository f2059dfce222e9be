"""What `onoma bench speed` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table

LATENCY = ("calls", "p50 ms", "p99 ms", "max ms")


def render_speed(found: Mapping[str, Any]) -> Group:
    """Figures of `measure_speed` as tables."""
    parts: list[Any] = [
        f"{found['model']} ({found['encoder']}), {found['backend']}, {found['threads']} threads of "
        f"{found['processors']} processors; {found['sentences']:,} texts, {found['words']:,} words, "
        f"{found['turns']} turns",
        _labels_table(found),
    ]
    if found["bare_encoder"] is None:
        parts.append(f"The encoder alone was not measured: {found['bare_encoder_missing']}")
    if found["text_lengths"]:
        parts.append(_lengths_table(found))
    if found["batch_sizes"]:
        parts.append(_batches_table(found))
    start = found["cold_start"]
    parts.append(
        f"Cold start (`onoma extract` in a new process): {start['seconds']['median']:.2f} s, "
        f"{_megabytes(start['peak_memory_mb'])} at most"
    )
    return Group(*parts)


def _labels_table(found: Mapping[str, Any]) -> Table:
    columns = ("labels", "texts/s", "lowest–highest", "words/s", "share", *LATENCY, "memory")
    table = _table("By the number of labels; share: of the rate of the bare encoder, which is the limit", *columns)
    for row in found["labels"]:
        share = f"{row['share_of_encoder']['median']:.0%}" if "share_of_encoder" in row else ""
        memory = _megabytes(row["peak_memory_mb"])
        table.add_row(f"{row['labels']:,}", *_rate_cells(row), share, *_latency_cells(row), memory)
    if found["bare_encoder"] is not None:
        table.add_row("bare encoder", *_rate_cells(found["bare_encoder"]), "100%")
    return table


def _lengths_table(found: Mapping[str, Any]) -> Table:
    table = _table("One text at a time, by its length", "words", "words/s", *LATENCY, "peak memory")
    for row in found["text_lengths"]:
        memory = _megabytes(row["peak_memory_mb"])
        table.add_row(f"{row['words']:,}", f"{row['words_per_second']:,.0f}", *_latency_cells(row), memory)
    return table


def _batches_table(found: Mapping[str, Any]) -> Table:
    table = _table("By batch size", "batch size", "texts/s", "lowest–highest", "words/s", *LATENCY)
    for row in found["batch_sizes"]:
        table.add_row(f"{row['batch_size']:,}", *_rate_cells(row), *_latency_cells(row))
    return table


def _latency_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    latency = row["latency_ms"]
    times = (f"{latency[name]:,.1f}" if name in latency else "" for name in ("p50", "p99", "max"))
    return f"{latency['calls']}", *times


def _rate_cells(row: Mapping[str, Any]) -> tuple[str, str, str]:
    rate = row["sentences_per_second"]
    return (
        f"{rate['median']:,.1f}",
        f"{rate['low']:,.1f}–{rate['high']:,.1f}",
        f"{row['words_per_second']['median']:,.0f}",
    )


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _megabytes(value: float | None) -> str:
    return "not known here" if value is None else f"{value:,.0f} MB"
