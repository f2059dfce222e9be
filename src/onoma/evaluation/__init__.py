"""Evaluation: how good a system is and which errors it makes, computed from gold and predicted mentions.

`evaluate` computes all measures at once. Each measure has its own file with its formula, and takes a `Comparison`;
only conlleval takes tags or flat documents.
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
