"""fio's logs over time, where they are all that is left of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.fio import import_fio
from iojoule.datasets.importers.fio_logs import LOG_OF_RESULT, log_of
from tests.datasets.fio_runs import RUNS, only

RUN = "randread-iodepth-4-numjobs-2"
KIB = {"bw": (400, 1200), "iops": (100, 300), "lat": (40_000_000, 13_333_333)}
"""Two intervals of one job; in each 4 requests are in flight by Little's law."""


def logs(folder: Path, run: str = RUN, unit: int = 1) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, values in KIB.items():
        for job in (1, 2):
            lines = [
                f"{end}, {value // (unit if kind == 'lat' else 1)}, 0, 0, 0\n"
                for end, value in zip((1000, 3000), values, strict=True)
            ]
            (folder / f"{run}_{kind}.{job}.log").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("unit", [1, 1000], ids=["ns", "us"])
def test_logs_tell_rates_depth_and_latency(tmp_path: Path, unit: int) -> None:
    found = only(import_fio([logs(tmp_path / "bench", unit=unit)]))
    assert (found.configuration.queue_depth, found.configuration.jobs) == (4, 2)
    assert found.configuration.request_bytes == 4096
    assert found.configuration.engine is None
    iops = 2 * (100 * 1 + 300 * 2) / 3  # of two jobs, over intervals of 1 s and 2 s
    assert found.observations.iops == pytest.approx(iops)
    assert found.observations.throughput_bytes_per_second == pytest.approx(iops * 4096)
    assert found.observations.latency_mean_ns == pytest.approx(8 / iops * 1e9, rel=1e-3)
    assert found.observations.latency_p99_ns is None
    assert found.judgement.verdict is None


def test_logs_beside_their_result_are_skipped(tmp_path: Path) -> None:
    folder = logs(tmp_path / "bench" / "course")
    shutil.copy(RUNS / "clones.json", folder.parent / "randread-4-2.json")
    dataset = import_fio([folder.parent])
    assert len(dataset) == 1
    assert {item.reason for item in dataset.provenance.excluded} == {LOG_OF_RESULT}


def test_logs_that_tell_no_rate_are_refused(tmp_path: Path) -> None:
    folder = logs(tmp_path / "one")
    for path in folder.glob("*_bw.*"):
        path.unlink()
    with pytest.raises(InputError) as caught:
        import_fio([folder])
    assert caught.value.field == "logs of one rate only"
    folder = logs(tmp_path / "single")
    lines = "".join(f"{number}, 1, 0, 4096\n" for number in range(1000))
    (folder / f"{RUN}_iops.1.log").write_text(lines)
    with pytest.raises(InputError) as caught:
        import_fio([folder])
    assert caught.value.field == "logs of single requests"


@pytest.mark.parametrize(("run", "unknown"), [("mytest", "random or"), ("seqread", "depth")])
def test_what_the_name_leaves_out_is_refused(tmp_path: Path, run: str, unknown: str) -> None:
    with pytest.raises(InputError, match=unknown) as caught:
        import_fio([logs(tmp_path / "any", run)])
    assert caught.value.field == "options not recorded"


def test_another_log_is_none(tmp_path: Path) -> None:
    path = tmp_path / "kernel_lat.log"
    path.write_text("Nov 25 10:00:00 host kernel: hello\n")
    assert log_of(path) is None
