import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from iojoule.measure.characterise.experiments.alignment import ShiftedThroughput, find_unit

REQUEST = 32768
OFFSETS = (0, 512, 1024, 2048, 4096, 8192, 16384)


def drive(unit: int, scatter: float, seed: int) -> list[ShiftedThroughput]:
    """A request that straddles a boundary takes one unit more: throughput falls with the units."""
    source, units = np.random.default_rng(seed), REQUEST // unit
    rows = []
    for offset in OFFSETS:
        taken = units + (1 if offset % unit else 0)
        rate = 100.0 * units / taken * (1 + scatter * source.normal())
        rows.append(ShiftedThroughput(offset, rate, max(scatter, 0.002)))
    return rows


@given(
    unit=st.sampled_from([4096, 8192, 16384]),
    scatter=st.floats(0, 0.005),
    seed=st.integers(0, 1000),
)
def test_the_unit_is_found(unit: int, scatter: float, seed: int) -> None:
    found = find_unit(drive(unit, scatter, seed), REQUEST, "")
    assert found.value == unit
    assert found.low is not None
    assert found.high is not None
    assert found.low <= unit <= found.high


def test_a_drive_without_a_cost_has_no_unit_that_shows() -> None:
    rows = [ShiftedThroughput(offset, 100.0, 0.002) for offset in OFFSETS]
    found = find_unit(rows, REQUEST, "")
    assert found.value is None
    assert found.reason is not None
    assert "costs no more than" in found.reason


def test_where_every_offset_costs_the_unit_is_larger_than_the_largest() -> None:
    rows = [ShiftedThroughput(offset, 100.0 if offset == 0 else 50.0, 0.002) for offset in OFFSETS]
    found = find_unit(rows, REQUEST, "")
    assert found.value is None
    assert found.low == REQUEST


def test_an_offset_that_cannot_be_told_widens_the_interval() -> None:
    rows = [ShiftedThroughput(offset, rate, 0.002) for offset, rate in ((0, 100.0), (512, 60.0))]
    rows += [ShiftedThroughput(2048, 90.0, 0.08), ShiftedThroughput(8192, 100.0, 0.002)]
    found = find_unit(rows, REQUEST, "")
    assert (found.value, found.low, found.high) == (8192, 1024, 8192)


def test_too_few_offsets_say_nothing() -> None:
    assert (
        find_unit(
            [ShiftedThroughput(0, 1.0, 0.1), ShiftedThroughput(512, 1.0, 0.1)], REQUEST, ""
        ).value
        is None
    )
