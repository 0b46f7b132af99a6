"""Findings about drives that nobody measured, and about no drive at all."""

from __future__ import annotations

import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.profile import load_shipped_profile
from iojoule.recommender.validation.finding_estimates import (
    Estimator,
    as_columns,
    asked_quantity,
    jobs_counted,
    merged_share,
    ratio,
)
from iojoule.recommender.validation.finding_facts import NO_DRIVE, Facts, cap, state_count, typical
from iojoule.recommender.validation.findings import drive_without, expected_of

WATTS = "system_power_watts"
AT_REST = {"demand_operations_per_second": 0}


def _estimator(device: str) -> Estimator:
    profile = expected_of(device, drive_without(device, ()))
    assert profile is not None
    return Estimator(profile)


def test_a_drive_adds_to_an_idle_host() -> None:
    alone = _estimator(NO_DRIVE).estimates([AT_REST], [WATTS], None)[0]
    with_drive = _estimator("samsung-960-evo").estimates([AT_REST], [WATTS], None)[0]
    busy = _estimator("samsung-960-evo").estimates([{"queue_depth": 32}], [WATTS], None)[0]
    assert alone.value < with_drive.value < busy.value


def test_what_is_said_less_a_finding_is_not_in_the_entry() -> None:
    named = drive_without("intel-d7-p5510", ["004-006"])
    assert named is not None
    assert "measured_power_max" not in {one.metric for one in named.facts}
    # a fact of the same paper that names no finding may be it
    unnamed = drive_without("samsung-860-evo", ["004-057"])
    assert unnamed is not None
    assert "idle_power" not in {one.metric for one in unnamed.facts}


def test_relatives_answer_for_a_cap() -> None:
    drive = load_catalogue().get("intel-d7-p5510")
    found = [typical(drive, cap(state)) for state in range(3)]
    known = [one for one in found if one is not None]
    assert len(known) == 3
    assert known[0].value > known[1].value > known[2].value
    assert all(one.own > 0 for one in known)


def test_slumber_draws_less() -> None:
    facts = Facts(_estimator("samsung-860-evo"), None, ())
    asleep = facts.estimate("idle_power_watts", [{"sata_link_state": "slumber"}])
    awake = facts.estimate("idle_power_watts", [{"sata_link_state": "active"}])
    assert ratio(asleep, awake).high < 1.0


def test_at_the_wall_an_idle_drive_draws_more_and_a_sata_port_with_it() -> None:
    for device, port in (("samsung-850-pro", True), ("samsung-960-evo", False)):
        facts = Facts(_estimator(device), drive_without(device, ()), ())
        own, wall = (facts.estimate(f"{at}idle_power_watts", [{}]) for at in ("", "wall_"))
        slope = wall.value / own.value
        assert (slope > 1.3) is port
        assert slope > 1.0
    assert asked_quantity("idle_power_watts", "host of a paper") == "wall_idle_power_watts"
    assert asked_quantity("idle_power_watts", None) == "idle_power_watts"
    assert asked_quantity("device_power_watts", "host of a paper") == "device_power_watts"


def test_drives_that_never_sleep_are_no_relatives_of_those_that_do() -> None:
    drive = load_catalogue().get("intel-optane-900p")
    anyone = drive.model_copy(
        update={"facts": tuple(one for one in drive.facts if one.metric != "sleep_states")}
    )
    counts = [typical(one, state_count) for one in (drive, anyone)]
    caps = [typical(one, cap(0)) for one in (drive, anyone)]
    assert all(one is not None for one in (*counts, *caps))
    assert counts[0].value < counts[1].value  # type: ignore[union-attr]
    assert caps[0].value > caps[1].value  # type: ignore[union-attr]


def test_striped_memory_saturates_where_latency_times_ceiling_says() -> None:
    def depth(device: str) -> float:
        facts = Facts(_estimator(device), drive_without(device, ()), ())
        return facts.estimate("saturation_queue_depth", [{"request_bytes": 4096}]).value

    assert depth("intel-optane-900p") < depth("samsung-z-ssd") < depth("samsung-960-evo")


def test_requests_across_two_units_are_slower() -> None:
    points = [{"aligned": False}, {"aligned": True}]
    one, other = _estimator("samsung-960-evo").estimates(points, ["iops"] * 2, None)
    assert 0.5 < one.value / other.value < 1.0


def test_an_energy_delay_product_is_that_of_the_same_bytes() -> None:
    estimator = Estimator(load_shipped_profile("samsung-980-pro-1tb"))
    small = {"request_bytes": 16384, "queue_depth": 64}
    large = {"request_bytes": 131072, "queue_depth": 8}
    names = ("edp_mean_joule_seconds", "latency_mean_ns", "bytes_per_joule")
    edp, latency, work = (
        [one.value for one in estimator.estimates([small, large], [name] * 2, "device")]
        for name in names
    )
    assert edp[0] / edp[1] == pytest.approx(latency[0] / latency[1] * work[1] / work[0])


def test_the_thesis_adds_up_the_latencies_of_jobs_and_nobody_else_does() -> None:
    point = {"jobs": 16, "queue_depth": 1}
    assert jobs_counted("000-148", "5.4", "latency_mean_ns", point) == 16.0
    assert jobs_counted("000-147", "5.4", "latency_mean_ns", {"queue_depth": 16}) == 1.0
    assert jobs_counted("000-145", "5.4", "bytes_per_joule", point) == 1.0
    assert jobs_counted("003-060", "5.4", "latency_mean_ns", point) == 1.0


def test_without_a_rate_there_is_nothing_for_an_arrival_process_to_space() -> None:
    assert as_columns({"think_time_ns": 1e9, "arrival_process": "poisson"}) == {
        "think_time_ns": 1e9
    }


def test_small_writes_through_the_page_cache_beat_large_ones_on_sata() -> None:
    write = {"operation": "write", "pattern": "sequential", "engine": "psync", "buffered": True}
    rate = ["throughput_bytes_per_second"] * 2
    sizes = [{**write, "request_bytes": size} for size in (32768, 4194304)]
    found = ratio(*_estimator("kingston-sv300s37a120g").estimates(sizes, rate, None))
    assert 1.0 < found.value < 1.1
    assert found.high / found.low < 1.5  # what both share cancels
    nvme = ratio(*_estimator("samsung-960-evo").estimates(sizes, rate, None))
    assert nvme.value == pytest.approx(1.0)


def test_copies_come_in_bursts_and_single_requests_do_not() -> None:
    write = {"operation": "write", "pattern": "sequential", "engine": "psync"}
    points = [{**write, "request_bytes": 32768, "buffered": kind} for kind in (False, True)]
    one = _estimator("samsung-pm871-240gb")
    direct, buffered = (one.estimates([p], ["cpu_power_watts"], None)[0] for p in points)
    assert direct.value > buffered.value  # its busy time is less, its wake-ups are more


def test_pauses_count_in_a_drives_mean_power() -> None:
    estimator = Estimator(load_shipped_profile("samsung-980-pro-1tb"))
    pauses = [{"think_time_ns": 5e8, "apst_enabled": asleep} for asleep in (True, False)]
    names = ["device_power_watts"] * 2
    asleep, awake = estimator.estimates(pauses, names, None)
    busy = estimator.estimates([{}], names[:1], None)[0]
    assert asleep.value < awake.value < busy.value
    # what the settings share cancels: the ratio is surer than either
    assert ratio(asleep, awake).high / ratio(asleep, awake).low < 2.0


def test_only_neighbours_in_one_submission_merge() -> None:
    polled = {"pattern": "sequential", "queue_depth": 64, "submission_polling": True}
    assert merged_share(polled) == pytest.approx(1 - 1 / 8)
    assert merged_share({**polled, "pattern": "random"}) < 0.01
    assert merged_share({**polled, "submission_polling": False}) < 0.01
