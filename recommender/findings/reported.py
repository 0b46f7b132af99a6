"""CPU time and load as a paper's own tool reports them, from the cores that are said to be busy.

The thesis' tool is public (energy-benchmark by t348575, July 2025). Its load is no load average: it
reads the busy share of each CPU in percent (`sensors/sysinfo`) and averages over the second half of
them, the node that the drive is on (`common/src/util.rs`, `sysinfo_average_calculator`). The tool
itself runs there too and reads its sensors every one to ten milliseconds.

What a run's CPU time is short of the listed length times the cores busy is how much shorter the run
was and how much of the work interrupts do on somebody else's account. The list assumes 60 s; the
depth sweeps that the tool's authors published run for 30 s (`iiswc-configs`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

NODES = 2
"""NUMA nodes of the thesis' host (000, table 4.1)."""

BESIDE_CORES = {"000-135": 0.2, "000-136": 0.55}
"""Cores of the node busy beside the job: the load that the finding states, less what the profile
says of the job. Each finding is judged by the other."""

CPU_TIME_SHARE = {"iiswc-configs": 0.5, "000-133": 0.33, "000-134": 0.49}
"""CPU time over that of the listed run: 30 of 60 s, and what the findings state over what the
profile says. Each finding is judged by the others."""


def load_percent(busy_cores: float, host_cores: int, without: Collection[str] = ()) -> float:
    """Mean busy share of the CPUs of one node, percent.

    Args:
        busy_cores: Cores that the job keeps busy, all on the drive's node.
        host_cores: Of all nodes.
        without: Findings that must not help.
    """
    beside = _typical(BESIDE_CORES, without)
    return 100.0 * (busy_cores + beside) / (host_cores / NODES)


def cpu_seconds(busy_cores: float, seconds: float, without: Collection[str] = ()) -> float:
    """CPU time of a run that is listed with so many seconds; arguments as `load_percent`."""
    return busy_cores * seconds * _typical(CPU_TIME_SHARE, without)


def _typical(known: Mapping[str, float], without: Collection[str]) -> float:
    """Geometric mean of what may help."""
    return float(np.exp(np.mean([np.log(v) for name, v in known.items() if name not in without])))
