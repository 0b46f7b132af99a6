"""Counters of iostat, sar, PostgreSQL, Prometheus and SMART as workloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.workloads.from_summary import from_summary
from iojoule.recommender.workloads.sources import open_source, summary_of
from tests.errors import having

IOSTAT = """\
Linux 6.1.0 (host) \t11/25/26 \t_x86_64_\t(4 CPU)

11/25/26 10:00:00
Device r/s rkB/s rrqm/s  %rrqm r_await rareq-sz w/s wkB/s f/s aqu-sz  %util
nvme0n1 9.00 36.00 0.00 0.00 0.10 4.00 9.00 36.00  0.00 9.00  99.00

11/25/26 10:00:10
Device r/s rkB/s rrqm/s  %rrqm r_await rareq-sz w/s wkB/s f/s aqu-sz  %util
nvme0n1 300.00 2400.00 0.00 0.00 0.10 8.00  100.00 800.00 10.00 2.00  50.00
nvme1n1 1.00 4.00 0.00 0.00 0.10 4.00 0.00 0.00  0.00 0.01 0.10
"""

SAR = """\
Linux 6.1.0 (host) \t11/25/26 \t_x86_64_\t(4 CPU)

10:00:00 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util
10:00:10 nvme0n1 400.00 2400.00 800.00 0.00 8.00 2.00 0.30 50.00
Average: nvme0n1 400.00 2400.00 800.00 0.00 8.00 2.00 0.30 50.00
"""

PG = """\
now,backend_type,object,context,reads,writes,extends,op_bytes,hits,fsyncs,stats_reset
2026-11-25 10:00:10+00,client backend,relation,normal,2900,900,100,8192,5,0,2026-11-25 10:00:00+00
2026-11-25 10:00:10+00,checkpointer,relation,normal,,0,,8192,,100,2026-11-25 10:00:00+00
2026-11-25 10:00:10+00,client backend,relation,bulkread,100,0,,8192,,,2026-11-25 10:00:00+00
"""

SMART = {
    "json_format_version": [1, 0],
    "device": {"name": "/dev/nvme0"},
    "model_name": "Samsung SSD 980 PRO 1TB",
    "nvme_smart_health_information_log": {
        "power_on_hours": 1,
        "host_reads": 1_080_000,
        "host_writes": 360_000,
        "data_units_read": 17_280,
        "data_units_written": 5_760,
        "controller_busy_time": 30,
        "percentage_used": 3,
    },
}


def prometheus() -> str:
    rates = {
        "reads_completed": 300.0,
        "writes_completed": 100.0,
        "read_bytes": 2457600.0,
        "written_bytes": 819200.0,
        "io_time_seconds": 0.5,
        "io_time_weighted_seconds": 2.0,
    }
    result = []
    for name, rate in rates.items():
        values = [[0, str(5 * rate)], [10, str(15 * rate)], [20, str(10 * rate)]]  # begins again
        metric = {"__name__": f"node_disk_{name}_total", "device": "nvme0n1", "instance": "a"}
        result.append({"metric": metric, "values": values})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def as_json() -> str:
    disk = {"disk_device": "nvme0n1", "r/s": 300, "rkB/s": 2400, "w/s": 100, "wkB/s": 800}
    disk |= {"f/s": 10, "aqu-sz": 2, "util": 50, "%util": 50}
    reports = [{"disk": [disk]}, {"disk": [disk]}]
    return json.dumps({"sysstat": {"hosts": [{"statistics": reports}]}})


def profile(tmp_path: Path, text: str, drive: str | None = None) -> WorkloadProfile:
    path = tmp_path / "seen.txt"
    path.write_text(text)
    source = open_source(path)
    return from_summary(summary_of(path, source.text, source.kind, drive=drive))


@pytest.mark.parametrize(
    ("text", "drive"),
    [
        (IOSTAT, "nvme0n1"),
        (as_json(), None),
        (SAR, None),
        (PG, None),
        (prometheus(), "/dev/nvme0n1"),
        (json.dumps(SMART), None),
    ],
    ids=["iostat", "iostat-json", "sar", "pg_stat_io", "prometheus", "smartctl"],
)
def test_every_source_tells_the_same_workload(text: str, drive: str | None, tmp_path: Path) -> None:
    found = profile(tmp_path, text, drive).workload
    assert found.operation == "mixed"
    assert found.read_fraction == pytest.approx(0.75)
    assert found.demand_bytes_per_second == pytest.approx(400 * 8192, rel=0.01)
    assert found.useful_request_bytes == pytest.approx(8192, abs=512)


def test_queue_and_flushes_of_iostat(tmp_path: Path) -> None:
    found = profile(tmp_path, IOSTAT, "nvme0n1")
    assert found.current.queue_depth == 4
    assert found.workload.flush_every_writes == 10


def test_drives_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, check=having(field="drive")):
        profile(tmp_path, IOSTAT)
    with pytest.raises(InputError, check=having(field="drive")):
        profile(tmp_path, IOSTAT, "nvme7n1")


def test_pg_stat_io_without_a_time_states_no_demand(tmp_path: Path) -> None:
    text = "\n".join(line.partition(",")[2] for line in PG.splitlines())
    assert profile(tmp_path, text).workload.demand_bytes_per_second is None


@pytest.mark.parametrize("text", [IOSTAT.replace("300.00", "x"), '{"sysstat": {"hosts": []}}'])
def test_damage_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"seen\.txt"):
        profile(tmp_path, text, "nvme0n1")
