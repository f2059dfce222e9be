"""schemathesis sends what the OpenAPI document allows, and what it does not allow.

ONOMA_SCHEMATHESIS_CASES=2000 runs more cases.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from serve.services import Running

CASES = int(os.environ.get("ONOMA_SCHEMATHESIS_CASES", "60"))
EXCLUDED = [positive_data_acceptance]
"""Not all rules can be written as a schema: labels must be visible, thresholds name labels, marks are closed."""


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_makes_the_service_fail(service: Running, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    schema.config.generation.update(modes=[mode])
    statuses: Counter[int] = Counter()
    operations = [result.ok() for result in schema.get_all_operations()]
    assert {one.path for one in operations} >= {"/v1/extract", "/v1/extract/stream", "/v1/model", "/healthz"}
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue  # nothing could be wrong

        @settings(
            max_examples=CASES // 4 if operation.body else 5,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @_given(operation, mode)
        def send(case: Any) -> None:
            answer = case.call(base_url=service.url)
            statuses[answer.status_code] += 1
            assert answer.status_code < 500, answer.text
            case.validate_response(answer, excluded_checks=EXCLUDED)

        send()
    assert statuses[200 if mode is GenerationMode.POSITIVE else 422] > 0


def _given(operation: Any, mode: GenerationMode) -> Any:
    return given(case=operation.as_strategy(generation_mode=mode))
