"""A profile with a calibrated simulator's tables: when they answer, and how."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.profile import (
    DeviceProfile,
    ResidualTable,
    Simulated,
    SimulatedTable,
    load_shipped_profile,
    parse_profile,
)
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.model.evaluate.predictor import Predictor

DEPTHS, JOBS, SIZES = (1, 64), (1, 8), (4096, 1 << 20)
PATH = "io_uring/interrupt/none"
LATENCY_SD = 0.05


def table(latency_ns: float, watts: float) -> ResidualTable:
    """The same latency for each request alone, a ceiling far away."""
    cells = len(DEPTHS) * len(JOBS) * len(SIZES)
    logs = {"latency": np.log(latency_ns), "p50": -0.1, "p99": 0.5, "p999": 1.0}
    values = {name: [float(value)] * cells for name, value in logs.items()}
    values["watts"] = [float(np.log(watts))] * cells
    for name in (*logs, "watts"):
        values[f"{name}_sd"] = [LATENCY_SD] * cells
    return ResidualTable(
        log2_queue_depth=[float(np.log2(one)) for one in DEPTHS],
        log2_jobs=[float(np.log2(one)) for one in JOBS],
        log2_request_bytes=[float(np.log2(one)) for one in SIZES],
        paths=[f"{PATH} ps0"],
        values=values,
    )


def with_tables(latency_ns: float = 300_000.0, watts: float = 4.0) -> DeviceProfile:
    section = Simulated(
        engine="embedded",
        drive="a drive",
        condition="as said",
        base_watts=2.5,
        parameters=[],
        energy=[],
        discrepancy_sd=0.05,
        indistinct=[],
        excluded=[],
        errors=[],
        tables=[
            SimulatedTable(
                operation=Operation.READ, pattern=Pattern.RANDOM, table=table(latency_ns, watts)
            )
        ],
    )
    shipped = load_shipped_profile("samsung-980-pro-1tb")
    return shipped.model_copy(update={"simulated": section})


FAR = {"request_bytes": [524288], "queue_depth": [64], "engine": ["io_uring"]}
"""Beyond what was measured at depth."""


def test_what_would_be_extrapolated_is_answered_from_the_tables() -> None:
    plain, _ = Predictor(load_shipped_profile("samsung-980-pro-1tb")).predict_columns(FAR, 1)
    told, _ = Predictor(with_tables(latency_ns=20e6)).predict_columns(FAR, 1)
    assert plain.evidence_words() == ["extrapolated"]
    assert told.evidence_words() == ["simulated"]
    assert told["latency_mean_ns"].value[0] == pytest.approx(20e6, rel=1e-9)
    wide = told["latency_mean_ns"].high / told["latency_mean_ns"].value
    assert wide[0] < (plain["latency_mean_ns"].high / plain["latency_mean_ns"].value)[0]
    assert told.evidence_words("device_power_watts") == ["simulated"]
    assert told["device_power_watts"].value[0] == pytest.approx(4.0)


def test_a_host_that_is_set_otherwise_has_the_watts_of_its_simulated_rate() -> None:
    profile = with_tables(latency_ns=20e6)
    predictor = Predictor(profile)
    told, _ = predictor.predict_columns(FAR, 1)
    slow, _ = predictor.predict_columns(FAR | {"cpu_frequency_max_hertz": [1.2e9]}, 1)
    assert slow.evidence_words() == ["assumed"]  # as sure as what the settings do
    assert slow.evidence_words("device_power_watts") == ["assumed"]
    base = profile.simulated.base_watts if profile.simulated else None
    assert base is not None
    above = [one["device_power_watts"].value[0] - base for one in (slow, told)]
    rate = [one["iops"].value[0] for one in (slow, told)]
    assert above[0] / above[1] == pytest.approx(rate[0] / rate[1], rel=1e-9)


def test_littles_law_holds_whatever_the_evidence() -> None:
    columns = {
        "request_bytes": [4096, 65536, 524288] * 2,
        "queue_depth": [1, 64, 32] * 2,
        "jobs": [1, 1, 1, 8, 8, 8],
    }
    told, _ = Predictor(with_tables(latency_ns=50e6)).predict_columns(columns, 6)
    requests = np.array(columns["queue_depth"]) * np.array(columns["jobs"])
    product = told["iops"].value * told["latency_mean_ns"].value * 1e-9
    assert product == pytest.approx(requests, rel=1e-9)
    assert (told["latency_p99_ns"].value >= told["latency_p50_ns"].value).all()


def test_measured_configurations_and_what_the_tables_do_not_reach_stay_as_they_were() -> None:
    columns = {
        "request_bytes": [4096, 2 << 20, 524288, 524288],
        "queue_depth": [16, 64, 64, 64],
        "engine": ["io_uring", "io_uring", "libaio", "io_uring"],
        "operation": ["read", "read", "read", "write"],
    }
    plain, _ = Predictor(load_shipped_profile("samsung-980-pro-1tb")).predict_columns(columns, 4)
    told, _ = Predictor(with_tables()).predict_columns(columns, 4)
    assert "simulated" not in told.evidence_words()
    for name in ("latency_mean_ns", "device_power_watts"):
        assert told[name].value == pytest.approx(plain[name].value)


def test_a_profile_with_the_section_survives_its_file() -> None:
    profile = with_tables()
    text = profile.model_dump_json().encode()
    assert parse_profile(text, "here") == profile
    old = load_shipped_profile("samsung-980-pro-1tb")
    assert old.simulated is None
