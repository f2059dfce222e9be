"""Many clients at once: nothing is lost or mixed up. `benchmarks/serve_load.py` measures speed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from http_load import Load
from onoma import Extractor
from serve.services import Running
from serve_load import LABELS, is_expected, sentences


@pytest.mark.slow
def test_every_client_gets_its_own_answers(service: Running, embedded: Extractor) -> None:
    texts = sentences(150)
    questions = [LABELS, LABELS[:4]]  # two label sets take turns
    expected = [embedded.extract(texts, labels) for labels in questions]
    bodies = [json.dumps({"texts": [text], "labels": labels}).encode() for text in texts for labels in questions]
    answers = Load(service.port, bodies, len(bodies), clients=32).run()
    assert sorted(one.request for one in answers) == list(range(len(bodies)))
    wrong = [one for one in answers if not is_expected(one, expected[one.request % 2][one.request // 2])]
    assert wrong == []
