"""What is wrong with measurements is found, named, and comes with a remedy."""

from __future__ import annotations

from typing import Any

import pytest

from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.schema import Measurement
from iojoule.model.fit.selection import check, select, within_limits
from tests.errors import having


def run(
    size: int = 4096,
    depth: int = 1,
    *,
    iops: float | None = None,
    ratio: float = 1.0,
    watts: float | None = None,
    cpu_watts: float | None = None,
    wall_watts: float | None = None,
    **conditions: Any,
) -> Measurement:
    """One run of a drive that takes 100 us and obeys Little's law but for `ratio`."""
    rate = iops if iops is not None else depth * 1e4 * (4096 / size) ** 0.5
    return Measurement.model_validate(
        {
            "workload": {"operation": "read", "pattern": "random"},
            "configuration": {"request_bytes": size, "queue_depth": depth},
            "conditions": conditions,
            "observations": {
                "iops": rate,
                "latency_mean_ns": ratio * depth / rate * 1e9,
                "device_power_watts": watts,
                "cpu_power_watts": cpu_watts,
                "system_power_watts": wall_watts,
            },
        }
    )


def sweep(**conditions: Any) -> list[Measurement]:
    return [run(s, d, **conditions) for s in (4096, 8192, 16384) for d in (1, 4, 16)]


def test_a_clean_sweep_passes_without_a_word() -> None:
    checked = check(sweep(session_id="a"))
    assert len(checked.measurements) == 9
    assert checked.notes == []


@pytest.mark.parametrize(
    ("field", "word"),
    [("device_serial_hash", "drives"), ("firmware", "firmware"), ("host_id", "hosts")],
)
def test_a_session_is_of_one_drive_host_and_firmware(field: str, word: str) -> None:
    mixed = sweep(**{field: "a"}) + sweep(**{field: "b"})
    with pytest.raises(DataQualityError, match=word) as caught:
        check(mixed)
    assert "session_id" in caught.value.message
    told = check(
        sweep(session_id="x", **{field: "a"}) + sweep(session_id="y", **{field: "b"})
    ).notes
    assert any(word in note and "told apart by session" in note for note in told)


def test_runs_that_do_not_name_their_drive_are_told() -> None:
    notes = check(sweep(device_serial_hash="a", session_id="x") + sweep(session_id="y")).notes
    assert any("9 of 18 runs do not say their device_serial_hash" in note for note in notes)


def test_throttled_runs_are_left_out_by_name() -> None:
    checked = check([*sweep(), run(65536, 8, thermal_throttle_seconds=3.0)])
    assert len(checked.measurements) == 9
    assert any("throttled" in note and "65536 bytes, depth 8" in note for note in checked.notes)
    with pytest.raises(DataQualityError, check=having(field="thermal_throttle_seconds")):
        check(sweep(thermal_throttle_seconds=1.0))


def test_littles_law_warns_refuses_runs_and_refuses_datasets() -> None:
    warned = check([*sweep(), run(65536, 8, ratio=1.05)])
    assert len(warned.measurements) == 10
    assert any("3%" in note for note in warned.notes)
    refused = check([*sweep(), run(65536, 8, ratio=1.2)])
    assert len(refused.measurements) == 9
    assert any("65536" in note and "1.200" in note for note in refused.notes)
    with pytest.raises(DataQualityError, match="Little"):
        check([run(s, d, ratio=1.2) for s in (4096, 8192) for d in (1, 4)])


def test_contradicting_repeats_are_refused_in_a_session_and_told_between() -> None:
    twice = [*sweep(session_id="a"), run(4096, 1, iops=3e4, session_id="a")]
    with pytest.raises(DataQualityError, match=r"factor of 3\.00"):
        check(twice)
    between = check([*sweep(session_id="a"), run(4096, 1, iops=3e4, session_id="b")])
    assert any("between a and b" in note for note in between.notes)
    folders = check([*sweep(series_id="a"), run(4096, 1, iops=3e4, series_id="b")])
    assert any("between a and b" in note for note in folders.notes)
    shaky = check([*sweep(session_id="a"), run(4096, 1, iops=1.4e4, session_id="a")])
    assert any("unsteady" in note and "1.40" in note for note in shaky.notes)


def test_a_constant_column_is_a_stuck_sensor() -> None:
    stuck = [run(s, d, watts=5.0) for s in (4096, 8192, 16384) for d in (1, 4)]
    with pytest.raises(DataQualityError, check=having(field="device_power_watts")):
        check(stuck)


def test_a_constant_cpu_is_stuck_and_a_wall_meter_of_whole_watts_is_not() -> None:
    plan = [(s, d) for s in (4096, 8192, 16384) for d in (1, 4, 16)]
    with pytest.raises(DataQualityError, check=having(field="cpu_power_watts")):
        check([run(s, d, cpu_watts=20.0) for s, d in plan])
    assert check([run(s, d, wall_watts=50.0) for s, d in plan]).notes == []


@pytest.mark.parametrize("part", ["watts", "cpu_watts", "wall_watts"])
def test_no_power_under_load_is_no_power(part: str) -> None:
    dead: dict[str, Any] = {part: 0.0}
    with pytest.raises(DataQualityError, match="while the drive serves"):
        check([*sweep(), run(32768, 2, **dead)])


def test_a_system_draws_no_less_than_its_parts() -> None:
    assert check([*sweep(), run(32768, 2, watts=5.0, cpu_watts=20.0, wall_watts=40.0)])
    with pytest.raises(DataQualityError, check=having(field="system_power_watts")):
        check([*sweep(), run(32768, 2, watts=5.0, cpu_watts=20.0, wall_watts=24.0)])


def test_too_few_runs_say_what_to_measure() -> None:
    with pytest.raises(InputError, match="65536"):
        check([run(4096, 1), run(4096, 4)])
    notes = check([run(4096, d) for d in (1, 4, 16, 64)]).notes
    assert any("Measure next: request sizes 16384, 65536" in note for note in notes)


def test_what_ran_under_a_power_limit_says_nothing_of_the_drive_without() -> None:
    rows = sweep(session_id="a")
    limited, lifted = (
        run.model_copy(
            update={"configuration": run.configuration.model_copy(update={"power_limit_watts": w})}
        )
        for run, w in zip(rows, (3.5, 0.0), strict=False)
    )
    selected = select([limited, lifted, *rows[2:]])
    assert selected.measurements == [lifted, *rows[2:]]
    assert selected.limited == [limited]
    limit, fitted, notes = within_limits(selected.measurements, selected.limited, [])
    assert (limit, fitted) == (None, selected.measurements), "one run is too few"
    assert len(notes) == 1
