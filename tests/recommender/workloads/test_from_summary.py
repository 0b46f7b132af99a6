"""From what was seen to a question, and that a recommendation takes it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import IoSource, IoSummary, IoWindow, LogHistogram
from iojoule.datasets.vocabulary import Pattern
from iojoule.recommender.request import Current, Loop, load_workload, parse_workload, with_loop
from iojoule.recommender.workloads.day_profile import day_profile, windows_in
from iojoule.recommender.workloads.from_summary import from_summary
from iojoule.recommender.workloads.presets import Preset, find_preset, presets
from iojoule.recommender.workloads.sizes import percent_text
from iojoule.recommender.workloads.sources import as_data, as_json, as_toml
from tests.errors import having

SEEN = IoWindow(
    seconds=10.0, reads=300, writes=100, read_bytes=300 * 4096, write_bytes=100 * 16384,
    flushes=25, forced_writes=80, busy_seconds=2.0, in_flight={0: 8.0, 2: 1.0, 6: 1.0},
    gaps=LogHistogram.of([0.5] * 10), bursts=LogHistogram.of([2e5] * 9),
    read_sizes={4096: 300}, write_sizes={16384: 10}, sequential_share=0.9, span_bytes=1 << 20,
    resolution_seconds=0.0,
)  # fmt: skip


def summary(*windows: IoWindow, scheduler: str | None = "none") -> IoSummary:
    return IoSummary(
        source=IoSource.BLKPARSE, name="seen", scheduler=scheduler, windows=windows or (SEEN,)
    )


def test_what_was_seen_is_the_question() -> None:
    question = from_summary(summary())
    workload, current = question.workload, question.current
    assert workload.read_fraction == 0.75
    assert workload.useful_request_bytes == 7168
    assert workload.request_bytes_mix == "4096/75:16384/25", "each direction by all its requests"
    assert workload.demand_bytes_per_second == pytest.approx(SEEN.bytes / 10)
    assert workload.flush_every_writes == 4
    assert workload.force_unit_access is True
    assert workload.pattern == "sequential"
    assert workload.working_set_bytes == 1 << 20
    assert workload.arrival_process == "bursts"
    assert workload.burst_bytes == pytest.approx(SEEN.bytes / 10)
    assert workload.idle_gap_seconds_p50 == pytest.approx(0.5, rel=0.03)
    assert (current.queue_depth, current.jobs, current.scheduler) == (4, 1, "none")


def test_the_mean_latency_follows_from_what_was_in_flight() -> None:
    """Little's law: 8 request-seconds of 400 requests; none of what has no rate."""
    found = from_summary(summary(), same_drive=True)
    assert found.observed.stated == {"latency_mean_ns": pytest.approx(2e7)}
    other = from_summary(summary())
    assert not other.observed.stated
    assert any("observed.latency_mean_ns = 2e+07" in note for note in other.notes)
    assert not from_summary(summary(), loop=Loop.CLOSED, same_drive=True).observed.stated
    unknown = SEEN.model_copy(update={"in_flight": {}})
    assert not from_summary(summary(unknown), same_drive=True).observed.stated


def test_a_closed_loop_has_no_demand() -> None:
    assert from_summary(summary(), loop=Loop.CLOSED).as_fast_as_possible
    busy = SEEN.model_copy(update={"busy_seconds": 9.9})
    assert any("--loop closed" in note for note in from_summary(summary(busy)).notes)
    untimed = IoWindow(reads=1, read_bytes=4096)
    assert from_summary(summary(untimed)).as_fast_as_possible
    with pytest.raises(InputError, check=having(field="loop")):
        from_summary(summary(untimed), loop=Loop.OPEN)
    assert with_loop(find_preset("tpcc-like"), Loop.CLOSED).as_fast_as_possible


def test_what_the_source_does_not_tell_may_be_stated() -> None:
    unknown = SEEN.model_copy(update={"sequential_share": None})
    assert from_summary(summary(unknown)).workload.pattern == "random"
    stated = from_summary(summary(unknown), pattern=Pattern.SEQUENTIAL)
    assert stated.workload.pattern == "sequential"


def test_short_gaps_are_no_bursts() -> None:
    steady = SEEN.model_copy(update={"gaps": LogHistogram.of([0.011] * 3)})
    workload = from_summary(summary(steady)).workload
    assert workload.arrival_process == "steady"
    assert workload.idle_gap_seconds_p50 is None


def test_an_idle_drive_has_no_workload() -> None:
    with pytest.raises(InputError, match=r"nothing was read or written in 5\.0 s"):
        from_summary(summary(IoWindow(seconds=5.0)))


def test_an_unknown_scheduler_is_left_open() -> None:
    assert from_summary(summary(scheduler="ours")).current.scheduler is None


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_what_is_written_is_read_as_it_was(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"question.{ending}"
    for question in (from_summary(summary()), *(find_preset(one.name) for one in presets())):
        path.write_text(as_toml(question) if ending == "toml" else as_json(question))
        assert load_workload(path).model_dump() == question.model_dump()
    assert tomllib.loads(as_toml(question)) == json.loads(as_json(question)) == as_data(question)


def test_every_preset_names_its_sources() -> None:
    assert {one.name for one in presets()} == {
        "fileserver", "mlperf-unet3d", "tpcc-like", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f",
    }  # fmt: skip
    for one in presets():
        assert all(any(source in note for note in find_preset(one.name).notes)
                   for source in one.sources)  # fmt: skip
    with pytest.raises(InputError, match=r"ycsb-a|ycsb-b"):
        find_preset("ycsb-e")


def test_presets_are_what_their_sources_say() -> None:
    reads = {name: find_preset(f"ycsb-{name}").read_fraction for name in "abcf"}
    assert reads == pytest.approx({"a": 0.5, "b": 0.95, "c": 1.0, "f": 2 / 3}, abs=1e-6)
    assert find_preset("tpcc-like").read_fraction == pytest.approx(1.9 / 2.9, abs=1e-6)
    training = find_preset("mlperf-unet3d").workload
    assert training.demand_bytes_per_second == pytest.approx(7 * 146600628 / 0.636, rel=1e-6)
    files = find_preset("fileserver").workload
    mean = (128 + 128 + 16) / 3 * 1024
    assert files.useful_request_bytes == pytest.approx(mean, abs=256)


def test_a_day_from_windows_at_different_times() -> None:
    at_eight = SEEN.model_copy(update={"began_unix_seconds": 8 * 3600.0})
    late = SEEN.model_copy(update={"began_unix_seconds": 8 * 3600.0 + 1800, "reads": 100})
    night = SEEN.model_copy(update={"began_unix_seconds": 23 * 3600.0, "seconds": 100.0})
    day = summary(at_eight, night, late)
    eight, twenty_three = day_profile(day)
    assert (eight.hour, eight.observed_seconds) == (8, 20.0)
    assert eight.requests_per_second == pytest.approx((400 + 200) / 20)
    assert eight.read_fraction == pytest.approx(400 / 600)
    assert twenty_three.bytes_per_second == pytest.approx(SEEN.bytes / 100)
    assert windows_in(day, "8-9") == (at_eight, late)
    assert windows_in(day, "22-6") == (night,)
    only = from_summary(day, windows=windows_in(day, "22-6"))
    assert only.workload.demand_bytes_per_second == pytest.approx(SEEN.bytes / 100)
    for hours in ("8", "8-8", "8-25", "a-b", "-"):
        with pytest.raises(InputError, match="--hours"):
            windows_in(day, hours)
    with pytest.raises(InputError, match="there are hours 8, 23"):
        windows_in(day, "10-12")


def test_percentages_add_up_to_a_hundred() -> None:
    chance = np.random.default_rng(1)
    for _ in range(50):
        sizes = {512 * int(n): float(chance.random()) for n in chance.integers(1, 99, 8)}
        text = percent_text(sizes)
        assert text is not None
        assert sum(int(part.split("/")[1]) for part in text.split(":")) == 100
        parse_workload({"workload": {"operation": "read", "request_bytes_mix": text}})
    assert percent_text({4096: 7}) is None
    assert percent_text({4096: 1000, 8192: 1}) is None


@pytest.mark.parametrize("preset", presets(), ids=lambda one: one.name)
def test_a_preset_runs_nowhere_today(preset: Preset) -> None:
    assert not preset.profile.current.model_fields_set
    stated = preset.profile.model_copy(update={"current": Current(jobs=1)})
    with pytest.raises(ValidationError, match=r"profile\.current"):
        Preset.model_validate(preset.model_dump() | {"profile": stated})
