"""From made-up evidence to estimates: what each question makes of drives whose truth is known."""

import numpy as np
import pytest

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.measure.characterise.experiments import EXPERIMENTS
from iojoule.measure.characterise.experiments.asymmetry import Asymmetry
from iojoule.measure.characterise.experiments.idle_states import IdleStates
from iojoule.measure.characterise.experiments.locality import (
    Locality,
    WritePattern,
    permuted,
    windows,
)
from iojoule.measure.characterise.experiments.proportionality import EnergyProportionality
from iojoule.measure.characterise.experiments.saturation import SaturationDepth
from iojoule.measure.characterise.experiments.settle import PACES, SettleTime
from iojoule.measure.characterise.experiments.slc_cache import Background, SlcCache

IDLE = Row(label="idle", values={"power_watts": 1.6, "power_error_watts": 0.001})
STEP = 0.1


def row(label: str, **values: float) -> Row:
    return Row(label=label, values=values)


def holds(one: Estimate, truth: float) -> bool:
    assert one.low is not None
    assert one.high is not None
    return one.low <= truth <= one.high


def burst(label: str, fast: int, slow: int, delay: int, work: int) -> tuple[Row, dict]:
    """A write of so many bins at 20 and at 10 a bin, then a rest, then work of 2 W above idle."""
    moved = np.array([0.0] * 3 + [20.0] * fast + [10.0] * slow + [0.0] * (delay + work + 20))
    watts = np.where(moved > 0, np.where(moved > 15, 4.0, 5.0), 1.6)
    begin = 3 + fast + slow + delay
    watts[begin : begin + work] = 3.6
    seconds = STEP * np.arange(1, len(moved) + 1)
    ended = (3 + fast + slow) * STEP * 1e9
    values = {"bytes_written": float(moved.sum()), "span_begin_ns": 0.0, "span_end_ns": ended}
    series = {"seconds": seconds, "bytes": moved, "watts": watts}
    return row(label, **values), {f"{label} {name}": tuple(one) for name, one in series.items()}


def test_the_cache_and_its_folding_are_found() -> None:
    fill, series = burst("fill 0", 30, 30, 10, 40)
    rows = (IDLE, fill, row("after 0", quiet=1.0))
    found = SlcCache().estimate(Evidence(rows=rows, series=series))
    assert holds(found["cache_bytes"], 600)
    assert holds(found["cache_bytes_by_power"], 600)
    assert holds(found["fold_delay_seconds"], 1.0)
    assert holds(found["fold_seconds"], 4.0)
    assert found["write_slow_bytes_per_second"].value == pytest.approx(100)
    assert found["write_slow_watts"].value == pytest.approx(5.0)
    assert found["full_work_joules"].value is None, "it began after a rest"


def test_what_a_full_cache_leaves_goes_on_at_once() -> None:
    fill, series = burst("fill 0", 30, 30, 0, 40)
    rows = (IDLE, fill, row("after 0", quiet=1.0))
    found = SlcCache().estimate(Evidence(rows=rows, series=series))
    assert holds(found["full_work_joules"], 2.0 * 40 * STEP)
    assert found["fold_seconds"].value is None


def test_a_write_buffer_that_is_emptied_at_once_is_not_the_cache() -> None:
    """Three bins of it, then a rest, then the work: that waits, whatever came before."""
    fill, series = burst("fill 0", 30, 30, 13, 40)
    watts = np.array(series["fill 0 watts"])
    watts[63:66] = 3.6
    series["fill 0 watts"] = tuple(watts)
    rows = (IDLE, fill, row("after 0", quiet=1.0))
    found = SlcCache().estimate(Evidence(rows=rows, series=series))
    assert found["full_work_joules"].value is None
    assert holds(found["fold_delay_seconds"], 1.3)


def test_a_drive_without_a_cache_gets_a_bound_and_no_number() -> None:
    fill, series = burst("fill 0", 60, 0, 0, 0)
    rows = (IDLE, fill, row("after 0", quiet=1.0))
    found = SlcCache().estimate(Evidence(rows=rows, series=series))
    assert found["cache_bytes"].value is None
    assert found["cache_bytes"].low == fill["bytes_written"]
    assert found["fold_seconds"].value is None


def test_work_that_does_not_end_is_a_lower_bound() -> None:
    fill, series = burst("fill 0", 30, 30, 10, 40)
    rows = (IDLE, fill, row("after 0", quiet=0.0))
    one = SlcCache().estimate(Evidence(rows=rows, series=series))["fold_seconds"]
    assert one.value is None
    assert one.low == pytest.approx(5.0, abs=0.2)


def test_background_work_grows_with_the_bytes() -> None:
    rows, series = [IDLE], {}
    for number, size in enumerate((5, 10, 20)):
        one, told = burst(f"burst {number} 0", size, 0, 10, 2 * size)
        rows += [one, row(f"after {number} 0", quiet=1.0)]
        series |= told
    found = Background().estimate(Evidence(rows=tuple(rows), series=series))
    # two bins of 2 W for every bin of 20 bytes
    assert found["background_joules_per_byte"].value == pytest.approx(0.4 / 20, rel=0.05)
    assert found["background_seconds_per_byte"].value == pytest.approx(0.2 / 20, rel=0.05)
    assert holds(found["background_seconds_at_once"], 1.0)
    assert holds(found["background_watts"], 2.0)


def test_idle_power_wake_and_a_state_that_does_not_hold() -> None:
    rows = []
    for state, watts, wake in ((0, 1.6, 8e6), (3, 0.4, 38e6), (4, 0.9, 8e6)):
        rows.append(
            row(
                f"state {state} repeat 0",
                power_watts=watts,
                power_error_watts=0.001,
                state_held=float(state != 4),
            )
        )
        rows.append(row(f"wake {state} repeat 0", latency_ns=wake))
        rows.append(row(f"awake {state} repeat 0", latency_ns=8e6 + 1e5 * state))
    found = IdleStates().estimate(Evidence(rows=tuple(rows)))
    assert holds(found["idle_watts_ps3"], 0.4)
    assert found["idle_watts_ps4"].reason == "the drive left the state while it was measured"
    assert found["wake_seconds_ps3"].value == pytest.approx(0.03, rel=0.05)
    assert found["wake_seconds_ps0"].value is None


def test_saturation_per_size_and_the_greenest_depth() -> None:
    rows = []
    for depth in (1, 4, 16, 64, 256):
        rate = (0.01**2 / depth**2 + 1 / 1500**2) ** -0.5
        rows.append(
            row(
                f"read 4096 depth {depth} 0",
                request_bytes=4096.0,
                queue_depth=float(depth),
                iops=rate,
                relative_error=0.01,
                power_watts=2 + rate / 500 + depth / 100,
                power_error_watts=0.01,
            )
        )
    found = SaturationDepth().estimate(Evidence(rows=tuple(rows)))
    assert holds(found["saturation_depth_4096"], 15)
    assert holds(found["iops_max_4096"], 1500)
    assert found["green_depth_4096"].value == 64
    tiny = [
        one.model_copy(update={"values": {**one.values, "iops": 100 * one["queue_depth"]}})
        for one in rows
    ]
    open_ended = SaturationDepth().estimate(Evidence(rows=tuple(tiny)))["saturation_depth_4096"]
    assert open_ended.value is None
    assert open_ended.low == 256


def settling(seconds: float) -> Estimate:
    """A drive of 2 W above idle while awake, 8 ms and 1 mJ a read, awake so long after it."""
    error = 1e-4
    rows = [IDLE, row("row 0", iops=125.0, power_watts=1.6 + 2.0 + 0.125, power_error_watts=error)]
    for pace in PACES:
        awake = min(pace * (8e-3 + seconds), 1.0)
        watts = 1.6 + 2.0 * awake + 1e-3 * pace
        rows.append(row(f"pace {pace:g} 0", iops=pace, power_watts=watts, power_error_watts=error))
    return SettleTime().estimate(Evidence(rows=tuple(rows)))["settle_joules"]


@pytest.mark.parametrize("seconds", [0.03, 0.2, 0.7])
def test_a_read_that_comes_alone_keeps_the_drive_awake(seconds: float) -> None:
    found = settling(seconds)
    assert found.value == pytest.approx(2.0 * seconds, rel=0.05)
    assert holds(found, 2.0 * seconds)


def test_a_settle_time_that_is_none_or_too_long_is_bounded() -> None:
    none, long = settling(0.0), settling(5.0)
    assert none.value is None
    assert none.high == pytest.approx(0.0, abs=5e-3)
    assert long.value is None
    assert long.low == pytest.approx(2.0 * 0.992, rel=0.05)


def reads(label: str, rate: float, **values: float) -> Row:
    return row(label, throughput_bytes_per_second=rate, relative_error=0.005, **values)


def test_locality_is_found_or_its_absence_bounded() -> None:
    rates = {65536: 50.0, 1 << 20: 80.0, 1 << 24: 100.0, 1 << 26: 100.0}
    rows = [reads(f"within {size} 0", rate, window_bytes=size) for size, rate in rates.items()]
    rows += [
        reads(f"{name} 8 0", rate)
        for name, rate in (("sequential", 200.0), ("permuted", 190.0), ("random", 100.0))
    ]
    found = Locality().estimate(Evidence(rows=tuple(rows)))
    assert holds(found["smallest_over_largest_window"], 0.5)
    assert found["indifferent_window_bytes"].value == 1 << 24
    assert holds(found["permuted_over_sequential_8"], 0.95)
    flat = [
        one.model_copy(update={"values": {**one.values, "throughput_bytes_per_second": 100.0}})
        for one in rows
    ]
    none = Locality().estimate(Evidence(rows=tuple(flat)))["indifferent_window_bytes"]
    assert none.value is None
    assert none.high == 65536


def test_orders_hold_every_request_once_and_stay_in_their_window() -> None:
    order = permuted(100, 8, 1)
    assert sorted(order) == list(range(100))
    assert all(place // 8 == at // 8 for at, place in enumerate(order))
    assert windows(1 << 26, 4)[0] == 65536
    assert windows(1 << 26, 4)[-1] == 1 << 26


def test_read_and_written_bytes_cost_what_they_cost() -> None:
    rows = [IDLE]
    for size in (4096, 65536):
        rows.append(reads(f"read {size} 0", 1e6, power_watts=3.6, power_error_watts=0.01))
        # 10 J over 5 s at idle 1.6 W, of which 2 J are above idle, for 1 MB
        write = row(
            f"write {size} 0",
            bytes_written=1e6,
            span_joules=6.0,
            span_seconds=2.0,
            power_error_watts=0.01,
        )
        rest = row(f"after {size} 0", quiet=1.0, span_joules=4.0, span_seconds=3.0)
        rows += [write, rest]
    found = Asymmetry().estimate(Evidence(rows=tuple(rows)))
    assert holds(found["read_joules_per_byte_4096"], 2e-6)
    assert holds(found["read_joules_per_operation_4096"], 2e-6 * 4096)
    assert holds(found["write_joules_per_byte_65536"], 2e-6)
    assert holds(found["write_over_read_joules_4096"], 1.0)


def test_written_at_random_is_slower_and_dearer() -> None:
    powers = {"power_watts": 4.0, "power_error_watts": 0.01}
    rows = (reads("read ordered 0", 20e6, **powers), reads("read shuffled 0", 5e6, **powers))
    found = WritePattern().estimate(Evidence(rows=rows))
    assert holds(found["shuffled_over_ordered"], 0.25)
    assert holds(found["shuffled_over_ordered_joules"], 4.0)


def test_proportionality_begins_at_idle() -> None:
    rows = [IDLE] + [
        row(
            f"share {share:.2f} 0",
            iops=1000 * share,
            power_watts=1.6 + 4.8 * share,
            power_error_watts=0.01,
        )
        for share in (0.25, 0.5, 1.0)
    ]
    found = EnergyProportionality().estimate(Evidence(rows=tuple(rows)))
    assert holds(found["dynamic_range"], 0.75)
    assert holds(found["proportionality_index"], 0.75)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_every_question_says_where_it_comes_from(experiment) -> None:
    assert experiment.sources
    assert experiment.purpose
    assert experiment.title
