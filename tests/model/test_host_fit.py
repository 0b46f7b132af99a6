"""Fitting a host whose truth is known."""

import numpy as np
import pytest

from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate import host_power, system_power
from iojoule.model.evaluate.host_work import load_of
from iojoule.model.evaluate.operating_point import busy_watts_factor
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.host_power import (
    core_seconds_per_byte,
    expected_operation,
    fit_host_power,
    fit_system_power,
    meters_disagree,
)
from iojoule.model.recipe import (
    Figure,
    HostAnchor,
    HostPowerRecipe,
    SystemAnchor,
    SystemPowerRecipe,
    generic_recipe,
    load_recipe,
)
from tests.model.conftest import Maker

TRUTH = np.array([30.0, 8.0, 3.0, 4.0, 0.6, 3e-5])
DEEP, SHALLOW = 1e-3, 1e-4
CORES = 8
LIGHT = (2.0, 0.8, 0.5)


def figure(value: float, sd: float) -> Figure:
    return Figure(value=value, sd=sd, unit="", source="test", evidence=Evidence.DATASHEET)


def recipe(anchors: list[HostAnchor]) -> HostPowerRecipe:
    priors = dict(
        zip(
            host_power.LINEAR,
            [
                figure(25, 10),
                figure(5, 5),
                figure(5, 5),
                figure(5, 5),
                figure(0.5, 0.5),
                figure(2e-5, 4e-5),
            ],
            strict=True,
        )
    )
    return HostPowerRecipe(
        host_id="truth",
        scope="test",
        cpu_cores=CORES,
        priors=priors,
        anchors=anchors,
    )


def made(noise: float = 0.0) -> list[HostAnchor]:
    operation = expected_operation(load_recipe("samsung-980-pro-1tb").host_operation)
    assert operation is not None
    assert operation.clock is not None
    parts = ("static_share", 0.2), ("voltage_floor", 0.65), ("uncore_share", 0.3)
    clock = operation.clock.model_copy(
        update={
            name: getattr(operation.clock, name).model_copy(update={"value": value})
            for name, value in parts
        }
    )
    random = np.random.default_rng(1)
    anchors = []
    settings = [
        *(
            (busy, serving, woken, None, None)
            for busy, serving in ((0, 1), (0.05, 1), (0.2, 1), (0.9, 1), (1, 4), (3.5, 4), (8, 8))
            for woken in (0.0, 3e2, 1e3, 6e3, 3e4)
        ),
        *(
            (busy, serving, 0.0, hertz, None)
            for busy, serving in ((0.2, 1), (1, 1), (4, 4), (8, 8))
            for hertz in (1e9, 2e9)
        ),
        *((0.01, 1, 0.0, None, limit) for limit in (0, 1, 2)),
    ]
    for busy, serving, woken, hertz, limit in settings:
        scale, _ = busy_watts_factor(clock, np.array([(hertz or 3e9) / 3e9]))
        drawn = host_power.Drawn(scale, 0.0, 1 + 0.3 * (scale - 1))
        load = load_of(
            np.array([float(busy)]),
            np.array([float(serving)]),
            np.array([woken]),
            (DEEP, SHALLOW),
        )
        watts = float((host_power.regressors(load, drawn) @ TRUTH)[0])
        watts += LIGHT[limit] * (CORES - busy) if limit is not None else 0
        anchors.append(
            HostAnchor(
                busy_cores=busy,
                serving_cores=serving,
                wakeups_per_second=woken,
                frequency_hertz=hertz,
                cstate_limit=limit,
                watts=watts * (1 + noise * random.standard_normal()),
                sd=0.005 * watts,
                evidence=Evidence.MEASURED,
                source="test",
            )
        )
    return anchors


def test_cores_wakeups_frequency_and_sleep_are_found_together() -> None:
    expected = expected_operation(load_recipe("samsung-980-pro-1tb").host_operation)
    power, operation = fit_host_power(recipe(made(0.005)), expected)
    assert operation is not None
    assert operation.clock is not None
    for parameter, truth in zip(power.parameters, [*TRUTH, DEEP, SHALLOW], strict=True):
        assert abs(parameter.value - truth) < 3.5 * parameter.sd
        assert parameter.evidence is Evidence.MEASURED
    assert power.parameters[0].value == pytest.approx(30.0, rel=0.03)
    assert power.parameters[3].value == pytest.approx(4.0, rel=0.1)
    assert power.parameters[6].value == pytest.approx(DEEP, rel=0.1)
    assert operation.clock.static_share.value == pytest.approx(0.2, abs=0.12)
    assert operation.clock.voltage_floor.value == pytest.approx(0.65, abs=0.08)
    light = [state.core_watts.value for state in operation.idle_states]
    assert light[:3] == pytest.approx(LIGHT, abs=0.1)
    assert light[3] == 0.0


def test_intervals_hold_the_truth_of_loads_that_were_not_run() -> None:
    expected = expected_operation(load_recipe("samsung-980-pro-1tb").host_operation)
    power, _ = fit_host_power(recipe(made(0.005)), expected)
    busy, serving = np.array([0.1, 0.6, 2.5, 6.0]), np.array([1.0, 2.0, 3.0, 6.0])
    woken = np.full(4, 5e3)
    truth = host_power.regressors(load_of(busy, serving, woken, (DEEP, SHALLOW))) @ TRUTH
    value, sd = host_power.watts(power, load_of(busy, serving, woken, host_power.gaps(power)))
    np.testing.assert_allclose(value, truth, rtol=0.02)
    assert (np.abs(value - truth) < 3 * sd).all()


def test_a_law_without_anchors_is_its_priors() -> None:
    power, _ = fit_host_power(recipe([]), None)
    stated = [25, 5, 5, 5, 0.5, 2e-5, *host_power.GAPS]
    assert [parameter.value for parameter in power.parameters] == pytest.approx(stated)


def test_meters_that_disagree_are_told_and_widen_the_wall() -> None:
    """A wall that rises by half of what the packages do: no supply does that."""
    parts = np.linspace(50, 90, 6)
    stated = SystemPowerRecipe(
        host_id="truth",
        relative_sd=0.02,
        slope_prior=figure(1.12, 0.05),
        anchors=[
            SystemAnchor(parts_watts=part, wall_watts=66 + 0.5 * part, sd=1.0, source="test")
            for part in parts
        ],
    )
    found = fit_system_power(stated)
    assert found.slope.value >= 1.0
    assert found.slope.sd > 0.2
    assert meters_disagree(stated, found) is not None
    wall, sd = system_power.watts(found, parts, np.zeros(len(parts)))
    assert (np.abs(wall - (66 + 0.5 * parts)) < 1.645 * sd).all()


def test_the_wall_is_found_with_its_square() -> None:
    parts = np.linspace(30, 200, 12)
    anchors = [
        SystemAnchor(
            parts_watts=p,
            wall_watts=20 + 1.05 * p + 4e-4 * p * p,
            sd=0.2,
            source="test",
            evidence=Evidence.MEASURED,
        )
        for p in parts
    ]
    power = fit_system_power(
        SystemPowerRecipe(
            host_id="truth",
            relative_sd=0.01,
            anchors=anchors,
            floor_prior=figure(30, 30),
            slope_prior=figure(1.1, 0.1),
            quadratic_prior=figure(2.5e-4, 2.5e-4),
        )
    )
    found, sd = system_power.watts(power, np.array([50.0, 150.0]), np.zeros(2))
    np.testing.assert_allclose(found, [73.5, 186.5], rtol=0.005)
    assert (sd > 0).all()
    assert power.quadratic is not None
    assert power.quadratic.value == pytest.approx(4e-4, rel=0.3)
    assert float(system_power.slope(power, np.array([100.0]))[0]) == pytest.approx(1.13, rel=0.02)


def test_the_published_wall_draws_20_to_68_percent_on_top() -> None:
    """000 7.1; the gap reduces as the load increases (000 5.2, 6.2)."""
    system = load_recipe("samsung-980-pro-1tb").system_power
    assert system is not None
    power = fit_system_power(system)
    share = system_power.overhead(power, np.array([63.8, 80.0, 93.2]))
    assert (np.diff(share) < 0).all()
    assert 0.2 < share[-1] < share[0] < 0.68
    wall, sd = system_power.watts(power, np.array([51.5, 63.8, 93.2]), np.zeros(3))
    assert (np.abs(wall - [91, 94, 116]) < 1.645 * sd).all()


def test_core_time_of_a_byte_is_told_from_that_of_a_request() -> None:
    measurements = []
    for size in (4096, 16384, 65536, 262144):
        for depth in (1, 16):
            iops, woken = 2e4, 1.0 if depth == 1 else 0.4
            each = 2.5e-6 + 4e-6 * woken + 3e-11 * (size - 4096)
            measurements.append(
                Measurement.model_validate(
                    {
                        "workload": {"operation": "read"},
                        "configuration": {"request_bytes": size, "queue_depth": depth},
                        "observations": {
                            "iops": iops,
                            "cpu_utilisation": each * iops,
                            "context_switches_per_second": woken * iops,
                        },
                    }
                )
            )
    found = core_seconds_per_byte(measurements)
    assert found is not None
    assert found.value == pytest.approx(3e-11, rel=1e-3)
    assert core_seconds_per_byte(measurements[:2]) is None


def test_a_campaign_with_cpu_power_fits_the_same_law(measure: Maker) -> None:
    """Cores, memory, frequency and the wall from a dataset's columns."""
    rows = []
    for index, one in enumerate(measure(watts=True)):
        hertz = (1.5e9, 3.0e9)[index % 2]
        busy = 0.2 + 0.05 * (index % 9)
        scale = 0.4 if hertz < 2e9 else 1.0
        cpu = 20.0 + 5.0 * busy * scale * 4
        dram = 3.0 + 2.0 * 1e-10 * (one.observations.throughput_bytes_per_second or 0.0)
        device = one.observations.device_power_watts or 0.0
        seen = one.observations.model_copy(
            update={
                "cpu_power_watts": cpu,
                "cpu_utilisation": busy,
                "dram_power_watts": dram,
                "system_power_watts": 30.0 + 1.1 * (cpu + dram + device),
            }
        )
        how = one.configuration.model_copy(update={"cpu_frequency_max_hertz": hertz})
        rows.append(one.model_copy(update={"observations": seen, "configuration": how}))
    profile = fit_profile(generic_recipe("truth", "Truth"), rows, [])
    assert profile.host_power is not None
    assert profile.host_power.dram is not None
    assert profile.host_power.dram.idle_watts.value == pytest.approx(3.0, rel=0.03)
    assert profile.host_power.dram.joules_per_byte.value == pytest.approx(1e-10, rel=0.1)
    assert profile.host_operation is not None
    assert profile.host_operation.clock is not None
    assert profile.host_operation.clock.reference_hertz.value == 3.0e9
    answer, _ = Predictor(profile).predict_columns(
        {"queue_depth": 4, "cpu_frequency_max_hertz": [1.5e9, 3e9]}, 2
    )
    assert answer.evidence_words("cpu_power_watts")[1] != "published"
    parts = sum(answer[f"{n}_power_watts"].value for n in ("cpu", "dram", "device"))
    np.testing.assert_allclose(answer["system_power_watts"].value, 30 + 1.1 * parts, rtol=0.03)
