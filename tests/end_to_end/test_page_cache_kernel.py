"""What passes a real page cache: predictions of buffered jobs against Linux' own counters."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iojoule.recommender.workloads.fio_job import parse_fio_job
from iojoule.recommender.workloads.page_cache import DIRTY_SHARE, PageCache

MIB = 1 << 20
MEMORY = 512 * MIB
JOB = """\
[job]
filename={file}
size=1g
direct=0
ioengine=psync
time_based
runtime={seconds}
norandommap
randrepeat=0
{options}
"""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and control groups need root"),
]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A file system on a loop device in memory, and the device's counters."""
    image = Path(f"/dev/shm/iojoule-page-cache-{os.getpid()}.img")
    mounted = tmp_path_factory.mktemp("mounted")
    try:
        subprocess.run(["fallocate", "-l", "1500M", image], check=True)
        made = subprocess.run(
            ["losetup", "--find", "--show", image], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            pytest.skip(f"no loop device: {made.stderr.strip()}")
        loop = made.stdout.strip()
        try:
            # all inodes at once: nothing is written behind the test's back
            lazy = "lazy_itable_init=0,lazy_journal_init=0"
            subprocess.run(["mkfs.ext4", "-q", "-E", lazy, loop], check=True)
            subprocess.run(["mount", "-o", "noatime", loop, mounted], check=True)
            try:
                yield mounted / "file", Path("/sys/block") / Path(loop).name / "stat"
            finally:
                subprocess.run(["umount", mounted], check=True)
        finally:
            subprocess.run(["losetup", "--detach", loop], check=True)
    finally:
        image.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def group() -> Iterator[tuple[Path, int]]:
    """A control group that may hold `MEMORY`, page cache included; the memory of a host that would
    let as many pages be dirty.

    In version 1 pages may be dirty until the group's memory is full of them, or the host's limit
    is reached.
    """
    first, second = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    root, limit = (first, "memory.limit_in_bytes") if first.is_dir() else (second, "memory.max")
    folder = root / f"iojoule-page-cache-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(MEMORY), encoding="ascii")
    except OSError as error:
        pytest.skip(f"no control group of memory: {error}")
    host = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
    assert host is not None
    full = min(int(host[1]) << 10, round(MEMORY / DIRTY_SHARE))
    try:
        yield folder, full if root == first else MEMORY
    finally:
        folder.rmdir()


def moved(counters: Path) -> int:
    """Bytes that the device has read and written."""
    fields = counters.read_text(encoding="ascii").split()
    return 512 * (int(fields[2]) + int(fields[6]))


@pytest.mark.parametrize(
    ("options", "warm_up", "seconds"),
    [
        pytest.param("rw=randread\nbs=8k\nrate_iops=20000", 20, 20, id="random reads"),
        pytest.param("rw=randread\nbs=64k\nrate_iops=3000", 15, 15, id="larger ones"),
        pytest.param("rw=read\nbs=8k\nrate=100m", 15, 15, id="in sequence"),
        pytest.param("rw=write\nbs=8k\nrate=50m", 60, 60, id="written in sequence"),
        pytest.param("rw=randwrite\nbs=8k\nrate_iops=2000", 60, 60, id="random writes"),
    ],
)
def test_the_drive_sees_what_is_predicted(
    disk: tuple[Path, Path],
    group: tuple[Path, int],
    tmp_path: Path,
    options: str,
    warm_up: int,
    seconds: int,
) -> None:
    """Within 15 %: the flusher's periods do not end with the window, and fio takes memory too."""
    file, counters = disk
    text = JOB.format(file=file, seconds=warm_up + seconds + 2, options=options)
    job = tmp_path / "job.fio"
    job.write_text(text, encoding="ascii")
    folder, dirty_memory = group
    memory = dirty_memory if "write" in options else MEMORY
    profile = parse_fio_job(text, job, cache=PageCache(memory))
    expected = profile.workload.demand_bytes_per_second
    assert expected is not None
    if not file.exists():
        lay = ["fio", "--name=lay", f"--filename={file}", "--size=1g", "--rw=write", "--bs=1m"]
        subprocess.run([*lay, "--direct=1"], check=True, capture_output=True)
    subprocess.run(["sync"], check=True)
    enter = 'echo $$ > "$0/cgroup.procs" && exec fio "$1"'
    with subprocess.Popen(["sh", "-c", enter, folder, job], stdout=subprocess.DEVNULL) as fio:
        time.sleep(warm_up)
        before, begun = moved(counters), time.monotonic()
        time.sleep(seconds)
        seen = (moved(counters) - before) / (time.monotonic() - begun)
        assert fio.wait() == 0
    sys.stdout.write(
        f"\n{options!r}: {seen / 1e6:.1f} MB/s at the drive, {expected / 1e6:.1f} predicted\n"
    )
    assert seen == pytest.approx(expected, rel=0.15)
