"""How good a system is, and where it errs: pure functions of gold and predicted mentions.

`evaluate` gives everything at once. The measures stand in files of their own, each with its formula, and start from
a `Comparison`; only conlleval reads tags or flat documents.
"""

from onoma.evaluation.bootstrap import bootstrap, paired_bootstrap
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.conlleval import conlleval, score_tags
from onoma.evaluation.render import render
from onoma.evaluation.report import Report, evaluate
from onoma.evaluation.scores import Averages, Breakdown, Recall, Scores
from onoma.evaluation.throughput import Throughput, measure_throughput

__all__ = [
    "Averages",
    "Breakdown",
    "Comparison",
    "Recall",
    "Report",
    "Scores",
    "Throughput",
    "bootstrap",
    "conlleval",
    "evaluate",
    "measure_throughput",
    "paired_bootstrap",
    "render",
    "score_tags",
]
