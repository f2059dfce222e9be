"""Results of protocols as tables."""

from __future__ import annotations

from rich.console import Console

from onoma.training.outcomes import Outcome, Value, render_outcome


def cells_of(outcome: Outcome) -> list[list[str]]:
    """The cells of a table, without the lines between rows."""
    console = Console(width=100)
    with console.capture() as captured:
        console.print(render_outcome(outcome))
    rows = [line.replace("┃", "│").split("│")[1:-1] for line in captured.get().splitlines()]
    return [[cell.strip() for cell in row] for row in rows if row]


def test_a_table_has_dev_and_test_scores_and_their_means() -> None:
    values = (Value("[a]", "dev", 10.0, 20.0, 30.0), Value("b", "dev", 20.0, 30.0, 40.0), Value("b", "test", 1, 2, 3))
    assert cells_of(Outcome("joint", "suner", "tiny", (0,), values)) == [
        ["corpus", "dev P", "dev R", "dev F1", "test P", "test R", "test F1"],
        ["[a]", "10.00", "20.00", "30.00", "-", "-", "-"],
        ["b", "20.00", "30.00", "40.00", "1.00", "2.00", "3.00"],
        ["mean", "15.00", "25.00", "35.00", "1.00", "2.00", "3.00"],
    ]


def test_a_table_has_the_spread_over_samples() -> None:
    scores = [{"precision": 10.0, "recall": 20.0, "f1": f1} for f1 in (50.0, 54.0)]
    values = (Value.over("a", 20, scores), Value.over("b", 20, scores[:1]))
    assert cells_of(Outcome("few-shot", "suner", "tiny", (0, 1), values)) == [
        ["corpus", "sentences", "P", "R", "F1", "± F1"],
        ["a", "20", "10.00", "20.00", "52.00", "2.83"],
        ["b", "20", "10.00", "20.00", "50.00", "-"],
        ["mean", "20", "10.00", "20.00", "51.00", ""],
    ]
