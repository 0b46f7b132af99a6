"""Policies of a SATA link: what they save by hand, and what must hold whatever the gaps are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iojoule.api.application.profiles import profile_of
from iojoule.datasets.vocabulary import LinkPowerPolicy
from iojoule.meter.idle import Gaps
from iojoule.meter.idle_link import link_outcomes

DRIVE = profile_of("samsung-860-pro")
AWAKE, PARTIAL, SLUMBER = (
    LinkPowerPolicy.MAX_PERFORMANCE,
    LinkPowerPolicy.MEDIUM_POWER,
    LinkPowerPolicy.MED_POWER_WITH_DIPM,
)


def gaps_of(*seconds: float, watch_seconds: float) -> Gaps:
    return Gaps(np.array(seconds), watch_seconds)


def test_a_policy_saves_its_depth_of_slumber_in_the_gaps() -> None:
    assert DRIVE.device_power is not None
    assert DRIVE.idle is not None
    assert DRIVE.idle.link is not None
    slumber = DRIVE.device_power.idle_watts[0].value - DRIVE.idle.link.slumber_watts.value
    rows = link_outcomes(DRIVE, gaps_of(1.0, 3.0, watch_seconds=10.0), AWAKE, 20_000)
    saved = {row.policy: row.saving_watts.value for row in rows}
    assert rows[0].policy is SLUMBER
    assert saved == pytest.approx(
        {AWAKE: 0.0, PARTIAL: 0.4 * 0.625 * slumber, SLUMBER: 0.4 * slumber}
    )
    assert all(row.saving_watts.low <= row.saving_watts.value for row in rows)
    assert all(row.saving_watts.high >= row.saving_watts.value for row in rows)


@pytest.mark.parametrize(("bound", "policy"), [(20_000, SLUMBER), (1000, PARTIAL), (5, AWAKE)])
def test_the_bound_of_the_wake_up_is_kept(bound: int, policy: LinkPowerPolicy) -> None:
    best = link_outcomes(DRIVE, gaps_of(5.0, watch_seconds=10.0), AWAKE, bound)[0]
    assert best.policy is policy
    assert best.wake_us <= bound


@given(st.sampled_from(list(LinkPowerPolicy)), st.floats(0.0, 10.0))
def test_the_recommended_policy_never_costs(present: LinkPowerPolicy, rest: float) -> None:
    best = link_outcomes(DRIVE, gaps_of(rest, watch_seconds=10.0), present, 20_000)[0]
    assert best.saving_watts.value >= 0
    if not rest:
        assert (best.policy, best.saving_watts.value) == (present, 0.0)


def test_a_drive_without_a_sata_link_has_no_policies() -> None:
    nvme = profile_of("samsung-980-pro-1tb")
    assert link_outcomes(nvme, gaps_of(1.0, watch_seconds=2.0), AWAKE, 20_000) == []
