"""The host's model against published CPU time."""

from pathlib import Path

import numpy as np
import pytest

from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile import load_shipped_profile
from iojoule.model.predictor import Predictor

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the public measurements (../shared/data) are not here"
)


def test_cpu_time_of_the_980_pro_host_is_predicted() -> None:
    """Over depth, size, jobs and engine; sessions of one host differ by a third."""
    data = import_csv(DATA / "980pro_fio_randread.csv", public_map("980pro_fio_randread"))
    rows = [
        one for one in data.measurements()
        if one.observations.cpu_utilisation and one.conditions.session_id != "sizes-unsteady"
    ]  # fmt: skip
    knobs = ("request_bytes", "queue_depth", "jobs", "engine", "completion")
    answer, _ = Predictor(load_shipped_profile("samsung-980-pro-1tb")).predict_columns(
        {name: [getattr(one.configuration, name) for one in rows] for name in knobs}, len(rows)
    )
    band = answer["cpu_utilisation"]
    seen = np.array([one.observations.cpu_utilisation for one in rows])
    assert np.median(np.abs(np.log(band.value / seen))) < 0.15
    assert np.mean((band.low <= seen) & (seen <= band.high)) > 0.8


def test_the_ceiling_of_a_core_is_that_of_the_980_pro_host() -> None:
    """383 k requests a second of one io_uring thread, 736 to 783 k of SPDK."""
    answer, _ = Predictor(load_shipped_profile("samsung-980-pro-1tb")).predict_columns(
        {"engine": ["io_uring", "spdk"], "queue_depth": 256}, 2
    )
    assert answer["iops_per_core_max"].value == pytest.approx([378e3, 760e3], rel=0.1)
    assert answer["iops_per_core_max"].low[0] < 383e3 < answer["iops_per_core_max"].high[0]
