"""From a question's job to an fio job file; people can run it themselves in its folder."""

from __future__ import annotations

from pathlib import Path

from iojoule.datasets.schema import Configuration, Workload
from iojoule.datasets.vocabulary import Completion, Engine, Operation
from iojoule.measure.characterise.question import Job
from iojoule.measure.characterise.scope import Scope
from iojoule.measure.fio import JOB_FILE, JobHost, JobTarget, JobTiming, fio_job
from iojoule.measure.point import Point

ORDER_FILE = "order.log"
SLOWEST_BYTES_PER_SECOND = 1e5
"""A run that ends by bytes may be so slow before it counts as hanging (002, 5.9: 876 KB/s)."""


def point_of(job: Job, area_bytes: int) -> Point:
    """What the job measures, in the words of the schema."""
    window = job.window_bytes or area_bytes - job.offset_bytes
    return Point(
        Workload(
            operation=job.operation,
            pattern=job.pattern,
            working_set_bytes=window,
            demand_operations_per_second=job.operations_per_second,
        ),
        Configuration(
            request_bytes=job.request_bytes,
            queue_depth=job.queue_depth,
            engine=Engine.LIBAIO,
            completion=Completion.INTERRUPT,
        ),
    )


def expected_seconds(job: Job, scope: Scope) -> float:
    """How long it may take at the most before it hangs."""
    if job.bytes_total is None and job.order is None:
        return job.seconds + scope.ramp_seconds
    size = len(job.order) * job.request_bytes if job.order is not None else job.bytes_total or 0
    return size / SLOWEST_BYTES_PER_SECOND


def job_text(job: Job, device: Path, scope: Scope, seed: int) -> str:
    """The text of the job file."""
    window = job.window_bytes or scope.area_bytes - job.offset_bytes
    size = window // job.request_bytes * job.request_bytes
    timed = job.bytes_total is None and job.order is None
    # what matters is power over rate, not latency; fio's offloaded submission may hang
    timing = (
        JobTiming(job.seconds, scope.ramp_seconds, offload=False)
        if timed
        else JobTiming(0, 0, job.bytes_total, time_based=False)
    )
    text = fio_job(
        point_of(job, scope.area_bytes).workload,
        point_of(job, scope.area_bytes).configuration,
        JobTarget(str(device), job.offset_bytes, size),
        timing,
        JobHost(seed=seed),
    )
    if job.order is not None:
        text += f"read_iolog={ORDER_FILE}\nreplay_no_stall=1\n"
    return text


def order_text(job: Job, device: Path) -> str:
    """The requests one by one, as fio replays them (iolog version 2)."""
    assert job.order is not None
    verb = "read" if job.operation is Operation.READ else "write"
    lines = [
        f"{device} {verb} {job.offset_bytes + place * job.request_bytes} {job.request_bytes}"
        for place in job.order
    ]
    return "\n".join(
        ["fio version 2 iolog", f"{device} add", f"{device} open", *lines, f"{device} close", ""]
    )


def write_job(job: Job, device: Path, scope: Scope, seed: int, folder: Path) -> None:
    """Put the job's files into a folder."""
    folder.mkdir(parents=True)
    (folder / JOB_FILE).write_text(job_text(job, device, scope, seed))
    if job.order is not None:
        (folder / ORDER_FILE).write_text(order_text(job, device))
