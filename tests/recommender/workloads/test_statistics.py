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

IOSTAT_10 = """\
Device:      rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz await svctm %util
sda            0.00     1.00    1.00    1.00     8.00     8.00     8.00     0.10  3.00  1.00  3.00

Device:      rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz await svctm %util
sda            0.00     1.00  300.00  100.00  4800.00  1600.00    16.00     2.00  3.00  1.00 50.00
"""

SAR_10 = """\
12:00:01 AM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await  svctm  %util
12:00:11 AM    dev8-0    400.00   4800.00   1600.00     16.00      2.00      5.00   1.00  50.00
Average:       dev8-0    400.00   4800.00   1600.00     16.00      2.00      5.00   1.00  50.00
"""

SAR_PRETTY = """\
10:00:00     tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util DEV
10:00:10  400.00   2400.00    800.00      0.00      8.00      2.00      0.30     50.00 nvme0n1
"""

IOSTAT_HUMAN = """\
Device r/s rkB/s rrqm/s  %rrqm r_await rareq-sz w/s wkB/s f/s aqu-sz  %util
nvme0n1 9.00 36.0k 0.00 0.0% 0.10 4.0k 9.00 36.0k  0.00 9.00  99.0%

Device r/s rkB/s rrqm/s  %rrqm r_await rareq-sz w/s wkB/s f/s aqu-sz  %util
nvme0n1 300.00 2.3M 0.00 0.0% 0.10 8.0k 100.00 800.0k 10.00 2.00  50.0%
"""

SADF = """\
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
host;10;2026-11-25 10:00:10 UTC;nvme0n1;400.00;2400.00;800.00;0.00;8.00;2.00;0.30;50.00
"""

PG_18 = """\
 now | backend_type | object | context | reads | read_bytes | writes | write_bytes | extends \
| extend_bytes | fsyncs | stats_reset
-----+--------------+--------+---------+-------+------------+--------+-------------+---------\
+--------------+--------+-------------
 2026-11-25 10:00:10+00 | client backend | relation | normal | 3000 | 24576000 | 900 | 7372800 \
| 100 | 819200 | 100 | 2026-11-25 10:00:00+00
(1 row)
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


def sadf_json() -> str:
    disk = {"disk-device": "nvme0n1", "tps": 400, "rkB": 2400, "wkB": 800, "util-percent": 50}
    stamp = {"date": "2026-11-25", "time": "10:00:10", "utc": 1, "interval": 10}
    reports = [{"timestamp": stamp, "disk": [disk]}]
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
        (IOSTAT_10, None),
        (SAR_10, None),
        (SAR_PRETTY, "nvme0n1"),
        (SADF, None),
        (sadf_json(), None),
        (PG_18, None),
    ],
)
def test_every_source_tells_the_same_workload(text: str, drive: str | None, tmp_path: Path) -> None:
    found = profile(tmp_path, text, drive).workload
    assert found.operation == "mixed"
    assert found.read_fraction == pytest.approx(0.75)
    assert found.demand_bytes_per_second == pytest.approx(400 * 8192, rel=0.01)
    assert found.useful_request_bytes == pytest.approx(8192, abs=512)


def test_units_for_humans_are_of_1024(tmp_path: Path) -> None:
    found = profile(tmp_path, IOSTAT_HUMAN).workload
    assert found.demand_bytes_per_second == pytest.approx(2.3 * 2**20 + 800 * 2**10, rel=1e-4)
    assert found.read_fraction == pytest.approx(0.75)


def test_a_table_without_reads_and_writes_says_how_to_write_one(tmp_path: Path) -> None:
    short = "Device tps kB/s rqm/s await areq-sz aqu-sz %util\nsda 1 4 0 0 4 0 1\n"
    with pytest.raises(InputError, match=r"seen\.txt.*iostat -x"):
        profile(tmp_path, short)


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
