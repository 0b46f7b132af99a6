"""When fio completed nothing, and which latency is usual."""

import json
from pathlib import Path

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.fio import FioResult, read_fio_result
from iojoule.measure.point import Point

BEGIN_MS = 1_700_000_000_000
DEPTH = 4
BINS = {"1000000": 2000, "2000000": 4, "9000000": 1}
"""Latencies in ns and how many requests took them."""


def fio_result(
    folder: Path, steps_ms: list[int], runtime_ms: int = 10_000, held_up: int = 0
) -> FioResult:
    """Of a run whose log has steps that end so long after its begin."""
    bins = BINS | ({"2000000000": held_up} if held_up else {})
    count = sum(bins.values())
    lat = {"mean": 1e6, "N": count, "bins": bins}
    job = {
        "jobname": "read",
        "error": 0,
        "usr_cpu": 1.0,
        "sys_cpu": 1.0,
        "ctx": 10,
        "job options": {"rw": "randread", "bs": "4096"},
        "read": {
            "io_bytes": 4096 * count,
            "bw_bytes": 4096 * 200,
            "iops": 200.0,
            "runtime": runtime_ms,
            "total_ios": count,
            "lat_ns": lat,
            "clat_ns": lat,
            "slat_ns": {"mean": 0.0},
        },
    }
    (folder / "fio.json").write_text(
        json.dumps(
            {"fio version": "fio-3.33", "timestamp_ms": BEGIN_MS + runtime_ms, "jobs": [job]}
        )
    )
    lines = [f"{BEGIN_MS + step}, 800, 0, 0, 0\n" for step in steps_ms]
    (folder / "fio_bw.log").write_text("".join(lines))
    configuration = Configuration(request_bytes=4096, queue_depth=DEPTH)
    return read_fio_result(folder, Point(Workload(operation=Operation.READ), configuration))


STEPS = list(range(100, 10_001, 100))


@pytest.mark.parametrize(
    ("steps", "runtime_ms", "seconds"),
    [
        (STEPS, 10_000, 0.0),
        ([*STEPS, *STEPS], 10_000, 0.0),  # two jobs, one after the other in the file
        ([one for one in STEPS if not 3000 < one < 5000], 10_000, 1.9),
        ([one for one in STEPS if one > 2000], 10_000, 2.0),  # at the begin
        (STEPS[:50], 10_000, 4.9),  # at the end, where fio logs no step any more
        ([], 10_000, 9.9),  # all but the first step
    ],
)
def test_the_longest_pause(
    tmp_path: Path, steps: list[int], runtime_ms: int, seconds: float
) -> None:
    pause = fio_result(tmp_path, steps, runtime_ms).pause_unix_ns
    assert (pause[1] - pause[0]) * 1e-9 == pytest.approx(seconds, abs=0.11)


def test_requests_that_a_stall_held_up_do_not_make_it_usual(tmp_path: Path) -> None:
    calm = fio_result(tmp_path, STEPS)
    held = fio_result(tmp_path, STEPS, held_up=DEPTH)
    assert held.observations["latency_p999_ns"] == 2e9
    assert calm.usual_p999_ns is not None
    assert held.usual_p999_ns is not None
    assert calm.usual_p999_ns <= held.usual_p999_ns <= 9e6
