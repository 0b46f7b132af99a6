"""The answers to 500 frozen requests are what they were when the requests were drawn."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.frozen.requests import ANSWERS, FrozenRequest, answer, frozen_requests

# On one machine the numbers agree to 12 digits and more. Another processor makes BLAS add in
# another order, which searches for an optimum amplify.
TOLERANCE = float(os.environ.get("IOJOULE_FROZEN_TOLERANCE", "1e-7"))
NOTHING = 1e-15
"""What is left of a difference of equal numbers."""
FAST = 25
"""One request in so many runs with the fast tests."""


def _kept() -> dict[str, Any]:
    with ANSWERS.open() as lines:
        return {line["name"]: line for line in map(json.loads, lines)}


def _check(requests: list[FrozenRequest]) -> None:
    kept = _kept()
    for request in requests:
        now, then = answer(request), kept[request.name]
        for name in ("code", "count", "places"):
            assert now[name] == then[name], (name, request)
        assert [*now["numbers"], now["sum"]] == pytest.approx(
            [*then["numbers"], then["sum"]], rel=TOLERANCE, abs=NOTHING
        ), request


def test_the_frozen_requests_are_the_ones_that_were_answered() -> None:
    assert [request.name for request in frozen_requests()] == list(_kept())
    assert len(_kept()) == 500


def test_some_frozen_answers_are_unchanged() -> None:
    _check([one for place, one in enumerate(frozen_requests()) if place % FAST == 0])


@pytest.mark.slow
def test_every_frozen_answer_is_unchanged() -> None:
    _check([one for place, one in enumerate(frozen_requests()) if place % FAST])
