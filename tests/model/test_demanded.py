"""What a configuration does at a demand is what a recommendation says of it."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.api.application.predictors import Predictors
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import Conditions
from iojoule.model.evaluate.demanded import demands
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.validity import under
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import parse_workload

DEVICE = "samsung-980-pro-1tb"
SETTINGS = {"request_bytes": 8192, "queue_depth": 8, "jobs": 2, "engine": "io_uring"}


@pytest.mark.parametrize("arrivals", [None, "poisson", "linear", "bursts"])
@pytest.mark.parametrize("demand", [100.0, 20_000.0, 1e9])
def test_predict_and_recommend_agree(arrivals: str | None, demand: float) -> None:
    profile = under(load_shipped_profile(DEVICE), Conditions())
    rate = min(demand, 60_000.0)
    columns = {name: [value] for name, value in SETTINGS.items()} | {
        "operation": ["read"],
        "demand_operations_per_second": [rate],
        "arrival_process": [arrivals],
    }
    found, _ = Predictors(load_shipped_profile(DEVICE)).predict_columns(columns, {}, 1)
    workload = {
        "operation": "read",
        "useful_request_bytes": 8192,
        "demand_operations_per_second": rate,
        "arrival_process": arrivals,
    }
    row = (
        Recommender(profile)
        .recommend(parse_workload({"workload": workload, "current": SETTINGS, "free": {}}))
        .current
    )
    assert row is not None
    for name in (
        "throughput_bytes_per_second",
        "iops",
        "latency_mean_ns",
        "latency_p99_ns",
        "device_power_watts",
        "cpu_power_watts",
        "system_power_watts",
    ):
        one = getattr(row, name)
        assert one is not None
        for end in ("value", "low", "high"):
            assert getattr(found[name], end)[0] == pytest.approx(getattr(one, end), rel=1e-9), name


def test_rows_with_and_without_a_demand_stand_side_by_side() -> None:
    profile = load_shipped_profile(DEVICE)
    columns = {"operation": ["read"] * 3, "demand_operations_per_second": [None, 1000.0, 1e7]}
    found, _ = Predictors(profile).predict_columns(columns, {}, 3)
    full, _ = Predictors(profile).predict_columns({"operation": ["read"]}, {}, 1)
    assert found["iops"].value[0] == full["iops"].value[0]
    assert found["iops"].value[1] == 1000.0
    assert found["iops"].value[2] == full["iops"].value[0]
    assert np.isinf(found["latency_p99_ns"].value[2])
    assert found["device_power_watts"].value[1] < full["device_power_watts"].value[0]


def test_a_demand_of_nothing_is_refused_by_name() -> None:
    frame, _ = make_frame(load_shipped_profile(DEVICE), {"operation": ["read"]}, 1)
    with pytest.raises(InputError) as caught:
        demands(frame, {"demand_bytes_per_second": [0.0]})
    assert caught.value.field == "demand_bytes_per_second"
