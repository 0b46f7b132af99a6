"""What a lower power state does, read off runs made from a law that is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.datasets.schema import from_row
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.evaluate.surface import log_smooth_max
from iojoule.model.fit.power_states import measured_effect

SIZES = (4096, 16384, 65536)
DEPTHS = (1, 16)


def runs(each_seconds: float, bytes_per_second: float, slower: float = 1.0):
    """A drive of 10 ms at PS0 whose PS1 is slower, and takes so long a request at the least."""
    rows = []
    for size in SIZES:
        for depth in DEPTHS:
            capped = depth * (each_seconds + size / bytes_per_second)
            both = float(np.exp(log_smooth_max(np.log(0.010 * slower), np.log(capped), 4.0)))
            for state, rate in ((0, depth / 0.010), (1, depth / both)):
                rows.append(
                    from_row(
                        {
                            "operation": "read",
                            "request_bytes": size,
                            "queue_depth": depth,
                            "engine": "libaio",
                            "power_state": state,
                            "iops": rate,
                            "throughput_bytes_per_second": rate * size,
                            "latency_mean_ns": depth / rate * 1e9,
                        }
                    )
                )
    return rows


@given(each=st.floats(1e-3, 5e-3), rate=st.floats(5e6, 1e8))
def test_the_time_of_a_request_at_the_cap_is_found(each: float, rate: float) -> None:
    found = measured_effect(runs(each, rate), Operation.READ, 1)
    assert found is not None
    assert found.ceiling_seconds_per_operation is not None
    sizes = np.array(SIZES)
    told = found.ceiling_seconds_per_operation.value + sizes / found.ceiling_bytes_per_second.value
    np.testing.assert_allclose(told, each + sizes / rate, rtol=0.02)
    assert found.ceiling_bytes_per_second.evidence is Evidence.MEASURED


def test_without_a_cap_the_ceiling_is_above_all_that_was_seen() -> None:
    rows = runs(0.0, 1e12, slower=1.05)
    found = measured_effect(rows, Operation.READ, 1)
    assert found is not None
    seen = max(row.observations.throughput_bytes_per_second or 0 for row in rows)
    assert found.ceiling_bytes_per_second.value > seen
    assert found.ceiling_seconds_per_operation is None
    assert found.latency_factor.value == pytest.approx(1.05, rel=0.005)


def test_runs_without_a_twin_say_nothing() -> None:
    alone = [run for run in runs(1e-3, 1e7) if run.configuration.power_state == 1]
    assert measured_effect(alone, Operation.READ, 1) is None


@given(slower=st.floats(1.1, 1.5), rate=st.floats(1e7, 3e7))
def test_a_state_that_slows_everything_is_no_ceiling(slower: float, rate: float) -> None:
    alone = measured_effect(runs(0.0, 1e12, slower), Operation.READ, 1)
    assert alone is not None
    assert alone.latency_factor.value == pytest.approx(slower, rel=0.01)
    assert alone.ceiling_seconds_per_operation is None
    both = measured_effect(runs(1e-3, rate, slower), Operation.READ, 1)
    assert both is not None
    assert both.latency_factor.value == pytest.approx(slower, rel=0.05)
    assert both.ceiling_seconds_per_operation is not None
