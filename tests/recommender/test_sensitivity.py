"""Intervals of watts and of savings follow from the profile's parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.device_power import WAITING_SD
from iojoule.model.evaluate.equal_work import Demand, Watts, Work, watts_of, work_of
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.latency import Arrivals, alone_of
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.uncertainty import (
    Gradients,
    Layout,
    all_gradients,
    contrast,
    energies,
    idle_gradients,
    with_shared_surface,
)

COLUMNS: dict[str, Any] = {
    "operation": ["read", "mixed", "write", "mixed"],
    "read_fraction": [None, 0.7, None, 0.5],
    "queue_depth": [4, 32, 16, 1],
    "jobs": [1, 2, 1, 8],
    "engine": ["io_uring", "libaio", "io_uring", "io_uring"],
    "completion": ["interrupt", "interrupt", "polled", "interrupt"],
    "power_state": [0, 0, 0, 0],
}

DEMANDS = {
    "bursts": Demand(5e7, 4096.0, 4096.0, arrivals=Arrivals.BURSTS),
    "even": Demand(5e7, 4096.0, 4096.0, rest=0.0, arrivals=Arrivals.POISSON),
    "full speed": Demand(None, 4096.0, 4096.0),
}


def evaluate(
    profile: DeviceProfile, demand: Demand
) -> tuple[Layout, Frame, Prediction, Work, Watts]:
    frame, _ = make_frame(profile, COLUMNS, 4)
    prediction = Predictor(profile).predict(frame)
    alone = Predictor(profile).predict(alone_of(frame))
    work = work_of(frame, prediction, demand, alone)
    return (
        Layout(profile), frame, prediction, work,
        watts_of(profile, frame, prediction, work, demand.rest),
    )  # fmt: skip


def nudged(profile: DeviceProfile, part: str, index: int, by: float) -> DeviceProfile:
    data = profile.model_dump(mode="json")
    data[part]["parameters"][index]["value"] += by
    return DeviceProfile.model_validate(data)


@pytest.mark.parametrize("kind", DEMANDS)
@pytest.mark.parametrize(
    ("part", "scope", "count"), [("device_power", "device", 6), ("host_power", "cpu", 5)]
)
def test_gradients_are_the_derivatives_by_the_parameters(
    make_profile: Callable[..., DeviceProfile], kind: str, part: str, scope: str, count: int
) -> None:
    profile, demand = make_profile(), DEMANDS[kind]
    layout, frame, prediction, work, watts = evaluate(profile, demand)
    found = all_gradients(layout, frame, prediction, work, watts, demand.rest)[scope]
    for index in range(count):
        parameter = getattr(profile, part).parameters[index]
        step = 1e-4 * parameter.value
        moved = getattr(evaluate(nudged(profile, part, index, step), demand)[4], scope)
        difference = (moved - getattr(watts, scope)) / step
        place = layout.at["device" if part == "device_power" else "cpu"].start + index
        assert found.common[:, place] == pytest.approx(difference, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("kind", DEMANDS)
def test_gradients_are_the_derivatives_by_speed(
    make_profile: Callable[..., DeviceProfile], kind: str
) -> None:
    """A drive (or path) 0.1 % faster at every point, by its own error."""
    profile, demand = make_profile(), DEMANDS[kind]
    layout, frame, prediction, work, watts = evaluate(profile, demand)
    between = profile.between_drives_relative_sd.value
    gradients = all_gradients(layout, frame, prediction, work, watts, demand.rest)
    step = 1e-3
    faster = _faster(profile, frame, prediction, 1 + step)
    alone = work.latencies.alone
    assert alone is not None
    again = work_of(frame, faster, demand, _sooner(alone, 1 + step))
    moved = watts_of(profile, frame, faster, again, demand.rest)
    for scope in ("device", "cpu"):
        by_speed = gradients[scope].common[:, layout.at["speed"].start] / between
        difference = (getattr(moved, scope) - getattr(watts, scope)) / step
        assert by_speed == pytest.approx(difference, rel=5e-2, abs=2e-3)


def _sooner(prediction: Prediction, factor: float) -> Prediction:
    bands = {
        name: replace(one, value=one.value / factor, low=one.low / factor, high=one.high / factor)
        if name.startswith("latency")
        else one
        for name, one in prediction.bands.items()
    }
    return replace(prediction, bands=bands)


def _faster(
    profile: DeviceProfile, frame: Frame, prediction: Prediction, factor: float
) -> Prediction:
    bands = dict(_sooner(prediction, factor).bands)
    for name in ("iops", "throughput_bytes_per_second"):
        band = bands[name]
        bands[name] = replace(
            band, value=band.value * factor, low=band.low * factor, high=band.high * factor
        )
    activity = prediction.activity
    x = activity.device_x.copy()
    x[:, 1:5] *= factor
    activity = replace(activity, device_x=x)
    power = profile.device_power
    assert power is not None
    theta = np.array([parameter.value for parameter in power.parameters])
    bands["device_power_watts"] = replace(bands["device_power_watts"], value=x @ theta)
    return Prediction(bands, prediction.evidence, activity)


@pytest.mark.parametrize("bytes_per_second", [1e3, 5e7])
def test_watts_between_requests_are_less_sure_than_those_at_full_speed(
    make_profile: Callable[..., DeviceProfile], bytes_per_second: float
) -> None:
    """The law was fitted at full speed; what all rows err by alike hardly shows in differences."""
    demand = Demand(bytes_per_second, 4096.0, 4096.0, rest=0.0, arrivals=Arrivals.POISSON)
    layout, frame, prediction, work, watts = evaluate(make_profile(), demand)
    found = all_gradients(layout, frame, prediction, work, watts, demand.rest)["device"]
    waiting = WAITING_SD * (1.0 - work.busy) * found.watts / (1.0 + work.busy)
    assert (found.sd(layout) >= 0.9 * waiting).all()
    shared = found.common[:, layout.at["waiting"]]
    assert (np.abs(shared - shared[0]) < 0.3 * shared).all()


def test_a_difference_is_surer_than_its_parts(make_profile: Callable[..., DeviceProfile]) -> None:
    profile, demand = make_profile(), DEMANDS["bursts"]
    layout, frame, prediction, work, watts = evaluate(profile, demand)
    power = all_gradients(layout, frame, prediction, work, watts, 1.0)["device_cpu"]
    idle = idle_gradients(layout, frame, prediction, work, 1.0)["device_cpu"]
    single = power.sd(layout)
    for a, b in ((0, 1), (1, 2), (2, 3), (0, 3)):
        value, sd = watts_saved(layout, power, idle, work, (a, b))
        assert sd < np.hypot(single[a], single[b])
        assert value == pytest.approx(power.watts[a] - power.watts[b])
        back = watts_saved(layout, power, idle, work, (b, a))
        assert back == pytest.approx((-value, sd))


def test_intervals_agree_with_drawing_the_parameters(
    make_profile: Callable[..., DeviceProfile],
) -> None:
    """The drive's power law drawn 20,000 times: sd of a difference within 3 %."""
    profile, demand = make_profile(), DEMANDS["bursts"]
    layout, frame, prediction, work, watts = evaluate(profile, demand)
    power = all_gradients(layout, frame, prediction, work, watts, 1.0)["device"]
    block = slice(0, layout.at["idle"].stop)
    draws = np.random.default_rng(7).multivariate_normal(
        np.zeros(block.stop), layout.covariance[block, block], 20_000
    )
    drawn = draws @ (power.common[0] - power.common[1])[block]
    others = power.common[0] - power.common[1]
    others[block] = 0.0
    rest = float(others @ layout.covariance @ others)
    for own in (power.own_speed, power.own_fit):
        rest += own[0] ** 2 + own[1] ** 2
    idle = idle_gradients(layout, frame, prediction, work, 1.0)["device"]
    found = watts_saved(layout, power, idle, work, (0, 1))[1]
    assert found == pytest.approx(np.sqrt(drawn.var() + rest), rel=0.03)


def test_configurations_at_the_ceiling_of_a_guessed_surface_err_alike(
    make_profile: Callable[..., DeviceProfile],
) -> None:
    profile, demand = make_profile(), DEMANDS["full speed"]
    predictor = Predictor(profile)
    columns = {"operation": "read", "queue_depth": [64, 128, 1], "jobs": [8, 8, 1]}
    frame, _ = make_frame(profile, columns, 3)
    prediction = predictor.predict(frame)
    work = work_of(frame, prediction, demand)
    watts = watts_of(profile, frame, prediction, work, 1.0)
    shared = with_shared_surface(predictor, frame, prediction, work)
    assert (shared.saturation[:2] > 0.9).all()
    assert shared.saturation[2] < 0.1
    layout = Layout(profile)
    sds = []
    for one in (work, shared):
        power = all_gradients(layout, frame, prediction, one, watts, 1.0)["device_cpu"]
        idle = idle_gradients(layout, frame, prediction, one, 1.0)["device_cpu"]
        found = contrast(layout, energies(layout, power, idle, one, 0), 0, [1, 2])
        sds.append(found.joules_per_byte[1])
        assert power.sd(layout) == pytest.approx(
            all_gradients(layout, frame, prediction, work, watts, 1.0)["device_cpu"].sd(layout)
        ), "sharing does not change the error of one configuration"
    alone, together = sds
    assert together[0] < 0.5 * alone[0]
    assert together[1] > 0.7 * alone[1]


def watts_saved(
    layout: Layout, power: Gradients, idle: Gradients, work: Work, rows: tuple[int, int]
) -> tuple[float, float]:
    """Watts of the first row less those of the second, and the sd."""
    found = contrast(layout, energies(layout, power, idle, work, rows[0]), rows[0], [rows[1]])
    return float(found.watts[0][0]), float(found.watts[1][0])


def test_the_time_that_the_faster_one_has_left_costs_idle_power(
    make_profile: Callable[..., DeviceProfile],
) -> None:
    """Nothing switches a drive or host off because a run ends sooner."""
    profile, demand = make_profile(), DEMANDS["full speed"]
    layout, frame, prediction, work, watts = evaluate(profile, demand)
    power = all_gradients(layout, frame, prediction, work, watts, 1.0)["device_cpu"]
    idle = idle_gradients(layout, frame, prediction, work, 1.0)["device_cpu"]
    for a, b in ((0, 1), (1, 0), (3, 2)):
        seconds = 1.0 / work.served_bytes[[a, b]].min()  # for a byte
        joules = [
            power.watts[row] / work.served_bytes[row]
            + idle.watts[a] * (seconds - 1.0 / work.served_bytes[row])
            for row in (a, b)
        ]
        found = contrast(layout, energies(layout, power, idle, work, a), a, [b])
        assert found.joules_per_byte[0][0] == pytest.approx(joules[0] - joules[1])
        assert found.percent[0][0] == pytest.approx(100 * (1 - joules[1] / joules[0]))
        assert found.watts[0][0] == pytest.approx((joules[0] - joules[1]) / seconds)
        assert found.most_watts[0] == pytest.approx(joules[0] / seconds)
        assert found.most_watts[0] <= power.watts[a] * (1 + 1e-9)


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (3, 2), (2, 3)])
def test_what_differs_at_full_speed_errs_as_drawing_its_parts_shows(
    make_profile: Callable[..., DeviceProfile], pair: tuple[int, int]
) -> None:
    """Errors of a hundredth, 20,000 times: sds within 3 %, of the faster and of the slower one."""
    layout, frame, prediction, work, watts = evaluate(make_profile(), DEMANDS["full speed"])
    power = all_gradients(layout, frame, prediction, work, watts, 1.0)["device_cpu"]
    idle = idle_gradients(layout, frame, prediction, work, 1.0)["device_cpu"]
    today, other = pair
    every = energies(layout, power, idle, work, today)
    found = contrast(layout, every, today, [other])
    random, scale = np.random.default_rng(9), 0.01
    sds = np.sqrt(np.diag(layout.covariance))
    alike = layout.covariance / np.outer(*2 * [np.where(sds > 0.0, sds, 1.0)])
    common = scale * sds * random.multivariate_normal(np.zeros(layout.size), alike, 20_000)
    speed, fit = scale * random.standard_normal((2, 20_000, len(frame)))
    joules = every.joules_per_byte + common @ every.common.T + speed * every.speed + fit * every.fit
    served = every.served * np.exp(common @ every.served_common.T + speed * every.served_speed)
    rate = served[:, today if every.served[today] <= every.served[other] else other]
    saved = rate * (joules[:, today] - joules[:, other])
    most = every.idle + common @ every.idle_common + rate * joules[:, today]
    for drawn, (value, sd) in ((saved, found.watts), (100.0 * saved / most, found.percent)):
        assert drawn.mean() == pytest.approx(value[0], abs=0.01 * sd[0])
        assert drawn.std() / scale == pytest.approx(sd[0], rel=0.03)
