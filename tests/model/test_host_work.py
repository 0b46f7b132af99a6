"""What the host does at any rate: limits, closed forms and order, whatever the numbers are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from iojoule.datasets.profile import HostPower, SystemPower, load_shipped_profile
from iojoule.model.evaluate import host_power, host_work, system_power
from iojoule.model.evaluate.host_work import HostCosts, activity, load_of
from iojoule.model.prior.host import expected_cpu, expected_wall

SHIPPED = load_shipped_profile("samsung-980-pro-1tb")
assert SHIPPED.host_power is not None
assert SHIPPED.system_power is not None
POWERS = (SHIPPED.host_power, expected_cpu())
WALLS = (SHIPPED.system_power, expected_wall())


def made(
    *,
    request_ns: float = 2700.0,
    wakeup_ns: float = 4700.0,
    jobs: int = 1,
    cores: int = 20,
    depth: int = 1,
    polled: bool = False,
    submission_polling: bool = False,
    always: bool = False,
) -> HostCosts:
    def one(value: float) -> np.ndarray:
        return np.array([float(value)])

    return HostCosts(
        request_ns=one(request_ns),
        wakeup_ns=one(wakeup_ns),
        copy_ns=one(0.0),
        jobs=one(jobs),
        cores=one(cores),
        depth=one(depth),
        polled=np.array([polled]),
        submission_polling=np.array([submission_polling]),
        always=np.array([always]),
        busy_log_sd=one(0.2),
    )


def watts(
    power: HostPower, costs: HostCosts, iops: float, latency_ns: float | None = None
) -> float:
    at = None if latency_ns is None else np.array([latency_ns])
    load = activity(costs, np.array([iops]), at, host_power.gaps(power))
    return float(host_power.value(power, load)[0])


def idle(power: HostPower) -> float:
    return power.parameters[0].value


costs = st.builds(
    made,
    request_ns=st.floats(1000.0, 50_000.0),
    wakeup_ns=st.floats(0.0, 8000.0),
    jobs=st.sampled_from([1, 2, 8, 32, 256]),
    depth=st.sampled_from([1, 2, 8, 64, 256]),
    polled=st.booleans(),
    submission_polling=st.booleans(),
)


@settings(deadline=None, max_examples=400)
@given(costs, st.floats(0.01, 1e6), st.floats(1.01, 10.0), st.sampled_from(POWERS))
def test_more_requests_never_draw_less(
    costs: HostCosts, iops: float, more: float, power: HostPower
) -> None:
    latency = 80_000.0
    slots = float(costs.jobs[0] * costs.depth[0])
    assume(iops * more * latency * 1e-9 <= slots)
    each = float(costs.request_ns[0] + costs.wakeup_ns[0]) * 1e-9
    serving = float(min(costs.jobs[0], costs.cores[0]))
    assume(iops * more * each <= serving)  # at the ceiling of the cores nothing is served faster
    before = watts(power, costs, iops, latency)
    # a core that spins wakes up less often, which may be worth a part in ten thousand
    assert watts(power, costs, iops * more, latency) >= before * (1 - 1e-4)


@settings(deadline=None)
@given(costs, st.sampled_from(POWERS))
def test_sleeping_jobs_cost_nothing(costs: HostCosts, power: HostPower) -> None:
    assert watts(power, costs, 1e-4, 100_000.0) == pytest.approx(idle(power), abs=0.02)


def test_what_spins_is_paid_at_any_rate() -> None:
    power = POWERS[0]
    spdk = made(polled=True, always=True)
    assert watts(power, spdk, 1e-4, 50_000.0) > idle(power) + 10.0
    thread = made(submission_polling=True)
    # the kernel's thread sleeps after a second without a request
    assert watts(power, thread, 100.0) > idle(power) + 10.0
    assert watts(power, thread, 1e-3) < idle(power) + 0.1


@pytest.mark.parametrize("power", POWERS)
def test_32_sleeping_jobs_at_100_requests_a_second_cost_what_one_does(power: HostPower) -> None:
    one, many = watts(power, made(), 100.0), watts(power, made(jobs=32), 100.0)
    assert abs(many - one) < 0.1
    assert one - idle(power) < 0.5


@given(st.floats(0.0, 1.0))
def test_at_depth_1_a_job_spins_while_its_request_is_in_flight(share: float) -> None:
    load = activity(
        made(polled=True, request_ns=1.0, wakeup_ns=0.0), np.array([share * 1e4]), np.array([1e5])
    )
    assert load.busy_cores[0] == pytest.approx(share, abs=1e-4)


def test_at_full_speed_who_polls_spins_all_the_time() -> None:
    for depth in (1, 8, 256):
        load = activity(made(polled=True, depth=depth, jobs=3), np.array([1e3]))
        assert load.busy_cores[0] == 3.0
        assert load.wakeups_per_second[0] == 0.0
        assert load.package_awake[0] == 1.0


def test_wakeups_of_the_980_pro_host_are_those_of_its_context_switches() -> None:
    for depth, iops, seen in ((4, 55e3, 0.65), (16, 171e3, 0.27)):
        load = activity(made(depth=depth), np.array([iops]))
        assert load.wakeups_per_second[0] / iops == pytest.approx(seen, abs=0.1)


def test_limits_of_the_sleeping_cores() -> None:
    def shares(busy: float, serving: float, woken: float) -> tuple[float, float, float]:
        load = load_of(np.array([busy]), np.array([serving]), np.array([woken]))
        return (
            float(load.awake_cores[0]),
            float(load.package_awake[0]),
            float(load.package_active[0]),
        )

    assert shares(0.0, 8.0, 0.0) == (0.0, 0.0, 0.0)
    assert shares(8.0, 8.0, 0.0) == (8.0, 1.0, 1.0)
    assert shares(1.0, 4.0, 0.0) == pytest.approx((1.0, 1 - 0.75**4, 1 - 0.75**4))
    # gaps far below the threshold keep a core awake, gaps far above do not
    assert shares(0.0, 1.0, 1e5)[:2] == pytest.approx((1.0, 1.0))
    assert shares(0.0, 1.0, 10.0)[0] < 0.01


@pytest.mark.parametrize("woken", [300.0, 900.0, 5e3, 2e4])
@pytest.mark.parametrize("serving", [1.0, 8.0])
def test_gradients_by_the_gaps_are_derivatives(woken: float, serving: float) -> None:
    power = POWERS[0]
    given = (np.array([0.1]), np.array([serving]), np.array([woken]))

    def at(index: int, factor: float) -> float:
        parameters = list(power.parameters)
        moved = parameters[index].model_copy(update={"value": parameters[index].value * factor})
        parameters[index] = moved
        changed = power.model_copy(update={"parameters": parameters})
        return float(host_power.value(changed, load_of(*given, host_power.gaps(changed)))[0])

    slopes = host_power.gradients(power, load_of(*given, host_power.gaps(power)))[0]
    names = [parameter.name for parameter in power.parameters]
    for name in host_power.THRESHOLDS:
        index, step = names.index(name), 1e-5
        difference = (at(index, 1 + step) - at(index, 1 - step)) / (2 * step)
        found = slopes[host_power.PARAMETERS.index(name)] * power.parameters[index].value
        assert found == pytest.approx(difference, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("wall", WALLS)
@given(before=st.floats(1.0, 400.0), saved=st.floats(0.01, 200.0))
def test_what_is_saved_behind_a_supply_is_saved_at_its_wall(
    wall: SystemPower, before: float, saved: float
) -> None:
    parts = np.array([before, before + saved])
    at_wall, _ = system_power.watts(wall, parts, np.zeros(2))
    assert at_wall[1] - at_wall[0] >= saved * (1 - 1e-9)


def test_copies_keep_the_host_awake_for_as_long_as_they_take() -> None:
    plain = made(depth=8)
    copying = replace(plain, copy_ns=np.array([1e6]))
    before, after = (activity(one, np.array([100.0])) for one in (plain, copying))
    assert after.busy_cores[0] - before.busy_cores[0] == pytest.approx(0.1)
    assert after.package_awake[0] == pytest.approx(1 - 0.9 * (1 - before.package_awake[0]))


def test_the_host_follows_the_rate_that_is_asked_for() -> None:
    rates = np.array([1e2, 1e4, 1e5])
    costs = made(depth=8)
    wide = HostCosts(**{name: np.repeat(value, 3) for name, value in vars(costs).items()})
    busy = host_work.activity(wide, rates).busy_cores
    assert (np.diff(busy) > 0).all()
