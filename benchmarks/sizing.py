"""What it takes to annotate very large corpora, computed from the measured rate of one core.

    python benchmarks/sizing.py [--rate 300] [--price 0.05]

Without a rate, it is the one that `python benchmarks/scale.py` measured. Rates grow with the number of cores, because
workers share nothing; what scale.py measured with two workers beside one says how well. The table is part of
docs/guides/scale.md.
"""

from __future__ import annotations

import argparse

from figures import Figures, table_line
from records import RESULTS, main_with_errors, read_records

DOCUMENTS = (1_000_000, 100_000_000, 1_000_000_000)
MACHINES = ((1, 16), (1, 64), (100, 64))
"""Numbers of machines and of their cores."""
PRICE = 0.05
"""Of one core for an hour: about what virtual machines cost, in dollars."""
PREFIX = "embedded/scale-speed/onoma_written/gte-small/"
NOT_MEASURED = "Not measured in one run yet: run `python benchmarks/scale.py --parts speed`."


def render(figures: Figures, price: float = PRICE) -> str:
    """The table for the measured rate, with a line that says what was measured: figures of one run."""
    rate, words, share = (
        figures.find(PREFIX + measure)
        for measure in ("local_1_worker_documents_per_s", "words_per_document", "local_2_workers_times_1")
    )
    if rate is None or share is None or share.run != rate.run:
        return NOT_MEASURED
    length = f" of {words.value:.0f} words" if words is not None and words.run == rate.run else ""
    intro = (
        f"One worker on one core annotates {rate.value:,.0f} documents{length} per second with 10 types; "
        f"two workers on two cores are {share.value:.2f} times as fast. From this follows, with "
        f"{min(1.0, share.value / 2):.0%} of the rate on each core:"
    )
    return f"{intro}\n\n{table(rate.value * min(1.0, share.value / 2), price)}"


def table(rate: float, price: float) -> str:
    """One row per corpus; `rate` in documents per second and core."""
    machines = [f"{count} machine{'s' * (count > 1)} with {cores} cores" for count, cores in MACHINES]
    lines = [table_line(["documents", "core hours", f"cost at ${price:g} per core hour", *machines])]
    lines.append(table_line(["---:"] * (3 + len(machines))))
    for documents in DOCUMENTS:
        hours = documents / rate / 3600
        times = [duration(hours / (count * cores)) for count, cores in MACHINES]
        lines.append(table_line([f"{documents:,}", f"{hours:,.1f}", f"${hours * price:,.2f}", *times]))
    return "\n".join(lines)


def duration(hours: float) -> str:
    """A length of time in a unit that suits it.

    >>> duration(0.01), duration(0.5), duration(30), duration(100)
    ('36 s', '30 min', '30 h', '4.2 days')
    """
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    if hours < 1:
        return f"{hours * 60:.0f} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:,.1f} days"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, help="documents per second and core, by default as measured")
    parser.add_argument("--price", type=float, default=PRICE, help="of one core for an hour")
    arguments = parser.parse_args()
    if arguments.rate:
        print(table(arguments.rate, arguments.price))
    else:
        path = RESULTS / "scale.json"
        print(render(Figures(read_records(path) if path.exists() else [], {}), arguments.price))


if __name__ == "__main__":
    main_with_errors(main)
