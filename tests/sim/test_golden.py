"""Every reference run of MQSim, by name: the simulator's numbers are the same."""

import csv
from pathlib import Path

import pytest

from iojoule.sim.engines import engine
from iojoule.sim.result import EngineName
from iojoule.sim.verify import Case, read_cases, verify
from tests.reference_data import MQSIM_RUNS


def names() -> list[str]:
    """Names of the cases; without the reference runs a single one, which is skipped."""
    if not MQSIM_RUNS.is_dir():
        return ["none"]
    with (MQSIM_RUNS / "golden.csv").open(encoding="utf-8", newline="") as file:
        return list(dict.fromkeys(row["case"] for row in csv.DictReader(file)))


@pytest.fixture(scope="module")
def cases(reference: Path) -> dict[str, Case]:
    return {case.name: case for case in read_cases(reference)}


@pytest.mark.parametrize("name", names())
def test_case_is_equal(name: str, cases: dict[str, Case]) -> None:
    verdict = verify(cases[name], engine(EngineName.EMBEDDED))
    assert verdict.failure is None
    assert verdict.differences == ()
    assert verdict.compared >= 26 * len(cases[name].rows)
