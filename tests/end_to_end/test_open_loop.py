"""The open-loop model against simulated drives with Poisson arrivals (`pytest -s -m soak`)."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from tests.end_to_end.open_loop_study import (
    LOADS,
    NAMES,
    Study,
    fitted_cases,
    held_out_cases,
    study,
    table,
)

REQUESTS = int(os.environ.get("OPEN_LOOP_REQUESTS", "6000"))
"""Of an open loop of low load; one of high load has four times as many."""


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    made = {
        "presets (fitted)": study(fitted_cases(), REQUESTS),
        "altered (held out)": study(held_out_cases(), REQUESTS),
    }
    for label, told in made.items():
        lines = [
            f"\n{label}: {len(told.load)} points; median error and coverage of 90 % at load",
            " " * 16 + "".join(f"{load:11.0%}  " for load in LOADS),
            *(line for name in NAMES for line in table(told, name)),
        ]
        sys.stdout.write("\n".join(lines) + "\n")
    return made


@pytest.mark.soak
def test_p99_of_reads_in_the_median(studies: dict[str, Study]) -> None:
    for told in studies.values():
        error = np.abs(told.log_error("p99"))
        for load, bound in ((0.3, 0.15), (0.6, 0.15), (0.8, 0.15), (0.9, 0.2)):
            rows = (told.reads == 100) & (told.nominal == load)
            assert np.median(error[rows]) < np.log1p(bound)


@pytest.mark.soak
def test_the_mean_is_within_15_percent_in_the_median(studies: dict[str, Study]) -> None:
    for told in studies.values():
        error = np.abs(told.log_error("latency"))
        for load in (0.1, 0.3, 0.6, 0.8, 0.9):
            assert np.median(error[told.nominal == load]) < np.log(1.15)


@pytest.mark.soak
def test_intervals_hold_what_they_promise(studies: dict[str, Study]) -> None:
    for told in studies.values():
        for name in NAMES:
            error = np.abs(told.log_error(name))
            assert np.mean(error <= told.half_width[name]) > 0.85
