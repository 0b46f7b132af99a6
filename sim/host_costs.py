"""What one request costs the host's CPU, by I/O engine, with the source of every number.

All from `low_latency_ssd_engines.csv` (stonet-research, Performance-Characterization-Storage-
Stacks, runs 2-iops_d1_qd1: 4 KiB reads at depth 1, one engine each on one drive) and from the
4 KiB rows of `980pro_fio_randread.csv` (stonet-research, icpe24_io_scheduler_study_artifact).

* Time between two requests at depth 1: SPDK 7198 ns, io_uring polled 8855, psync 10567, io_uring
  12299, libaio 12331. SPDK itself takes 168 ns to submit and 313 ns between two requests.
* Time to submit: io_uring 1821 ns (polled 1396), libaio 1934 ns.
* One io_uring thread at its limit: 383 k requests/s, 2612 ns each (depth 64).

So the time on the CPU is what a thread at its limit takes, and what is left of the time at depth 1
is waking up. libaio's limit is nowhere measured; at depth 1 it does not differ from io_uring.
psync's CPU time is fio's own figure (usr 8.1 % + sys 27.6 % of 10567 ns).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class HostEngine(StrEnum):
    """How the host submits requests; none: at no cost."""

    none = "none"
    psync = "psync"
    posixaio = "posixaio"
    libaio = "libaio"
    io_uring = "io_uring"
    io_uring_cmd = "io_uring_cmd"
    spdk = "spdk"


class Completion(StrEnum):
    """How the host learns that a request is done."""

    interrupt = "interrupt"
    polled = "polled"


class HostCosts(NamedTuple):
    """Nanoseconds of one request: on the CPU before and after the drive, and waking up."""

    submit_cpu_ns: int
    complete_cpu_ns: int
    wake_ns: int


HOST_COSTS: dict[tuple[HostEngine, Completion], HostCosts] = {
    (HostEngine.none, Completion.interrupt): HostCosts(0, 0, 0),
    (HostEngine.none, Completion.polled): HostCosts(0, 0, 0),
    # 168 + 313
    (HostEngine.spdk, Completion.polled): HostCosts(168, 313, 0),
    # 8855 - 7198 + 481 = 2138
    (HostEngine.io_uring, Completion.polled): HostCosts(1396, 742, 0),
    # 12299 - 7198 + 481 = 5582, of which 2612 on the CPU
    (HostEngine.io_uring, Completion.interrupt): HostCosts(1821, 791, 2970),
    # 12331 - 7198 + 481 = 5614
    (HostEngine.libaio, Completion.interrupt): HostCosts(1934, 791, 2889),
    # 10567 - 7198 + 481 = 3850, of which 3779 on the CPU
    (HostEngine.psync, Completion.interrupt): HostCosts(1889, 1890, 71),
}
