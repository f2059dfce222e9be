"""Evaluation: how good a system is and which errors it makes, computed from gold and predicted mentions.

`evaluate` computes all measures at once. Each measure has its own file with its formula, and takes a `Comparison`;
only conlleval takes tags or flat documents. `analyse` runs a model and computes what a report shows, `study` does so
for several models and corpora, and `write_report` writes the page. Plotting libraries are imported when needed.
"""

from onoma.evaluation.analysis import Analysis, Study, analyse, study
from onoma.evaluation.bootstrap import bootstrap, paired_bootstrap
from onoma.evaluation.comparison import Comparison
from onoma.evaluation.conlleval import conlleval, score_tags
from onoma.evaluation.errors import MentionError, find_errors
from onoma.evaluation.pages import render_report, write_report
from onoma.evaluation.render import render
from onoma.evaluation.report import Report, evaluate
from onoma.evaluation.scores import Averages, Breakdown, Recall, Scores
from onoma.evaluation.throughput import Throughput, measure_throughput

__all__ = [
    "Analysis",
    "Averages",
    "Breakdown",
    "Comparison",
    "MentionError",
    "Recall",
    "Report",
    "Scores",
    "Study",
    "Throughput",
    "analyse",
    "bootstrap",
    "conlleval",
    "evaluate",
    "find_errors",
    "measure_throughput",
    "paired_bootstrap",
    "render",
    "render_report",
    "score_tags",
    "study",
    "write_report",
]
