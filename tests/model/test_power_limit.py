"""A power limit in watts acts between the caps that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile, Parameter, PowerLimit, load_shipped_profile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.power_limit import with_limits
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.timeline import Phase, Trajectory, follow
from iojoule.model.fit.selection import fit_limit, within_limits
from tests.errors import having
from tests.model.test_gates import run

PROFILE = load_shipped_profile("samsung-980-pro-1tb")
FULL = PROFILE.device_power.cap_watts[0]  # type: ignore[union-attr]
LIMIT = 3.7
CAPS = sorted({3.2, LIMIT, 4.1, 4.9, 5.5, 6.3, 7.1, FULL, FULL + 1.0})
LIMITED = with_limits(PROFILE, CAPS)
PREDICTOR = Predictor(LIMITED)
SEEN = PowerLimit(
    share_drawn=Parameter(
        name="share_drawn", value=0.9, sd=0.02, unit="1", evidence=Evidence.MEASURED, source="made"
    ),
    measured_watts=[4.5],
)


def ask(profile: DeviceProfile, predictor: Predictor, rows: int, **columns: Any) -> Prediction:
    whole = {
        name: value if isinstance(value, list) else [value] * rows
        for name, value in columns.items()
    }
    frame, _ = make_frame(profile, whole, rows)
    return predictor.predict(frame)


@settings(max_examples=60)
@given(
    operation=st.sampled_from(["read", "write"]),
    pattern=st.sampled_from(["random", "sequential"]),
    size=st.sampled_from([4096, 16384, 131072]),
    depth=st.sampled_from([1, 4, 32, 128]),
)
def test_a_lower_limit_never_gives_more_throughput_or_more_watts(
    operation: str, pattern: str, size: int, depth: int
) -> None:
    columns = {
        "operation": operation,
        "pattern": pattern,
        "request_bytes": size,
        "queue_depth": depth,
    }
    told = ask(LIMITED, PREDICTOR, len(CAPS), power_limit_watts=CAPS, **columns)
    iops, watts = told["iops"].value, told["device_power_watts"].value
    assert (np.diff(iops) >= -1e-9 * iops[1:]).all()
    assert (np.diff(watts) >= -1e-9 * watts[1:]).all()
    assert (watts <= np.array(CAPS) * (1.0 + 1e-9)).all()
    free = ask(LIMITED, PREDICTOR, 1, **columns)
    assert iops[-1] == pytest.approx(free["iops"].value[0])
    assert watts[-1] == pytest.approx(free["device_power_watts"].value[0])
    assert (iops <= free["iops"].value[0] * (1.0 + 1e-9)).all()


def test_what_is_held_back_draws_the_limit_and_does_work_in_proportion() -> None:
    columns = {"operation": "read", "pattern": "random", "request_bytes": 4096}
    free = ask(PROFILE, Predictor(PROFILE), 1, queue_depth=128, **columns)
    told = ask(LIMITED, PREDICTOR, 1, queue_depth=128, power_limit_watts=LIMIT, **columns)
    power = PROFILE.device_power
    assert power is not None
    base = power.parameters[0].value
    watts = free["device_power_watts"].value[0]
    assert told["device_power_watts"].value[0] == pytest.approx(LIMIT, rel=0.02)
    share = told["iops"].value[0] / free["iops"].value[0]
    assert share == pytest.approx((LIMIT - base) / (watts - base), rel=0.05)


@pytest.mark.parametrize("pattern", ["random", "sequential"])
@pytest.mark.parametrize("watts", [3.3, 4.5, 5.2])
def test_writing_past_the_cache_and_what_follows_keep_the_limit(pattern: str, watts: float) -> None:
    phases = [Phase(900.0, write=True), Phase(120.0, write=False)]
    columns = {"operation": "write", "pattern": pattern, "request_bytes": 131072, "queue_depth": 32}

    def along(limit: float) -> Trajectory:
        asked = columns | {"power_limit_watts": limit}
        one = with_limits(PROFILE, [limit]) if limit else PROFILE
        return follow(Predictor(one), asked, phases, step_seconds=1.0)

    limited, free = along(watts), along(0.0)
    assert limited.collecting.any()
    assert limited.background.any()
    assert limited.watts_high.max() <= watts + 1e-9
    assert limited.watts[:20].mean() == pytest.approx(min(watts, free.watts[:20].mean()), rel=1e-3)
    assert (np.cumsum(limited.bytes_per_second) <= 1.001 * np.cumsum(free.bytes_per_second)).all()
    assert limited.bytes_written.value < free.bytes_written.value


def test_a_limit_above_what_the_load_takes_changes_nothing() -> None:
    columns = {"operation": "read", "pattern": "random", "request_bytes": 4096}
    free = ask(PROFILE, Predictor(PROFILE), 1, queue_depth=8, **columns)
    watts = 1.05 * free["device_power_watts"].value[0]
    limited = with_limits(PROFILE, [watts])
    told = ask(limited, Predictor(limited), 1, queue_depth=8, power_limit_watts=watts, **columns)
    for name in ("iops", "latency_p99_ns", "device_power_watts"):
        for end in ("value", "low"):
            assert getattr(told[name], end) == pytest.approx(getattr(free[name], end))


def test_it_is_as_sure_as_runs_under_a_limit_make_it() -> None:
    columns = {"operation": "read", "pattern": "random", "request_bytes": 4096}
    known = with_limits(PROFILE.model_copy(update={"power_limit": SEEN}), [LIMIT])
    guessed, seen = (
        ask(one, Predictor(one), 1, queue_depth=128, power_limit_watts=LIMIT, **columns)
        for one in (LIMITED, known)
    )
    assert guessed.evidence_words("iops") == ["extrapolated"]
    assert seen.evidence_words("iops") != ["extrapolated"]
    width = [float((one["iops"].high / one["iops"].low)[0]) for one in (guessed, seen)]
    assert width[0] > 1.1 * width[1]
    assert seen["device_power_watts"].value[0] == pytest.approx(0.9 * LIMIT, rel=0.02)


@pytest.mark.parametrize(("watts", "state"), [(9.0, 0), (8.0, 1), (4.48, 1), (4.4, 2)])
def test_a_limit_that_is_kept_by_states_does_what_the_first_state_within_it_does(
    watts: float, state: int
) -> None:
    kept = SEEN.model_copy(update={"kept_by_states": True})
    profile = with_limits(PROFILE.model_copy(update={"power_limit": kept}), [watts])
    for operation in ("read", "write"):
        columns = {"operation": operation, "pattern": "random", "request_bytes": 16384}
        limited, in_state = (
            ask(profile, Predictor(profile), 1, queue_depth=32, **columns, **one)
            for one in ({"power_limit_watts": watts}, {"power_state": state})
        )
        for name in ("iops", "latency_p99_ns", "device_power_watts"):
            for end in ("value", "low", "high"):
                assert getattr(limited[name], end) == pytest.approx(getattr(in_state[name], end))
            assert limited.evidence_words(name) == in_state.evidence_words(name)


def test_states_that_stand_for_limits_are_not_written() -> None:
    assert LIMITED.limit_states
    assert "limit_states" not in LIMITED.model_dump()


@pytest.mark.parametrize("watts", [0.5, 3.0])
def test_a_limit_below_every_cap_or_what_the_drive_draws_awake_is_refused(watts: float) -> None:
    with pytest.raises(InputError, check=having(field="power_limit_watts")):
        with_limits(PROFILE, [watts])


def test_a_profile_without_watts_is_refused() -> None:
    with pytest.raises(InputError, check=having(field="power_limit_watts")):
        with_limits(PROFILE.model_copy(update={"device_power": None}), [5.0])


def test_a_drive_that_is_no_nvme_drive_takes_no_limit() -> None:
    with pytest.raises(InputError, check=having(field="power_limit_watts")):
        with_limits(load_shipped_profile("samsung-860-pro"), [2.0])


def test_a_limit_and_a_lower_state_at_once_are_refused() -> None:
    with pytest.raises(InputError, check=having(field="power_limit_watts")):
        ask(LIMITED, PREDICTOR, 1, operation="read", power_state=1, power_limit_watts=4.1)


def held_to(one: Measurement, limit: float, share: float) -> Measurement:
    """A run that draws 10 W without a limit, as it is under one."""
    rate = (one.observations.iops or 0.0) * one.configuration.request_bytes
    watts = min(share * limit, 10.0) if limit else 10.0
    held = rate * (watts - 2.0) / 8.0
    seen = {"throughput_bytes_per_second": held, "device_power_watts": watts}
    return one.model_copy(
        update={
            "configuration": one.configuration.model_copy(update={"power_limit_watts": limit}),
            "observations": one.observations.model_copy(update=seen),
        }
    )


@pytest.mark.parametrize("share", [0.85, 1.0])
def test_the_share_of_a_limit_that_is_drawn_is_found_in_runs_that_were_held_back(
    share: float,
) -> None:
    runs = [run(size, depth) for size in (4096, 65536) for depth in (1, 16)]
    free = [held_to(one, 0.0, share) for one in runs]
    limited = [held_to(one, limit, share) for one in runs for limit in (5.0, 7.0, 30.0)]
    found = fit_limit(free, limited)
    assert found is not None
    assert found.share_drawn.value == pytest.approx(share)
    assert found.share_drawn.evidence is Evidence.MEASURED
    assert found.measured_watts == [5.0, 7.0], "30 W held nothing back"
    assert fit_limit(free, limited[:2]) is None
    assert fit_limit([], limited) is None
    profile = PROFILE.model_copy(update={"power_limit": found})
    again = DeviceProfile.model_validate_json(profile.model_dump_json())
    assert again.power_limit == found


def test_a_drive_that_draws_what_its_states_may_keeps_limits_by_them() -> None:
    caps = [10.0, 6.0, 4.0]
    runs = [run(size, depth) for size in (4096, 65536) for depth in (1, 16)]
    free = [held_to(one, 0.0, 1.0) for one in runs]
    shares = {9.0: 6.0 / 9.0, 5.0: 4.0 / 5.0}
    limited = [held_to(one, watts, share) for one in runs for watts, share in shares.items()]
    limit, rows, _ = within_limits(free, limited, caps)
    assert limit is not None
    assert limit.kept_by_states
    states = [one.configuration.power_state for one in rows[len(free) :]]
    assert states == [1, 2] * len(runs)
    assert not any(one.configuration.power_limit_watts for one in rows)
    limit, rows, _ = within_limits(free, limited, [])
    assert limit is not None
    assert not limit.kept_by_states
    assert rows == free
