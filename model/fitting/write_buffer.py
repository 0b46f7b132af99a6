"""How many bytes the drive answers before its flash takes them, from writes below full speed.

At full speed a write buffer is always full, so that no such run tells its size. Below that, writes
that come by chance wait for the flash only once the buffer is full: runs with a demand show it in
their mean and p99.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement, to_row
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.demanded import FIELDS, demands
from iojoule.model.equal_work import work_of
from iojoule.model.fitting.background import number
from iojoule.model.fitting.rows import SETTINGS
from iojoule.model.frame import make_frame
from iojoule.model.normal import NORMAL_90
from iojoule.model.predictor import Predictor
from iojoule.model.served_latency import Arrivals, ServedLatency, alone_of

Floats = NDArray[np.float64]

SEEN = ("latency_mean_ns", "latency_p99_ns")
"""Latencies that tell of a buffer."""

LOADS = (0.2, 0.95)
"""Below, nothing waits; above, a run does not reach its steady state."""

RUNS_MIN = 4
"""Fewer runs are chance."""

SIZES = np.geomspace(1 << 16, 1 << 34, 73)
"""Bytes that are tried: 64 KiB to 16 GiB, a quarter of an octave apart."""

RUN_LOG_SD = 0.05
"""What repeats of a run differ by; an assumption."""

FREEDOM = 4.0
"""Degrees of freedom of the t distribution that errors come from: a few runs may be far off."""

DROP = 0.5 * NORMAL_90**2
"""By how much the log likelihood falls at the ends of a 90 % interval."""


def with_write_buffer(profile: DeviceProfile, measurements: Sequence[Measurement]) -> DeviceProfile:
    """The profile with the write buffer that runs below full speed show.

    As it was where there are too few of them, or where they are as likely without any buffer.
    """
    runs = list(_runs(profile, measurements))
    if len(runs) < RUNS_MIN:
        return profile
    none = sum(one.log_likelihood(0.0) for one in runs)
    likely = np.array([sum(one.log_likelihood(size) for one in runs) for size in SIZES])
    best = likely.max()
    if best < none + DROP:
        return profile
    # where larger ones are as likely, the runs never filled it: the least that explains them
    within = SIZES[likely >= best - DROP]
    size = within[0] if within[-1] == SIZES[-1] else SIZES[likely.argmax()]
    sd = max(np.log(within[-1] / within[0]) / (2.0 * NORMAL_90), 0.1)
    buffer = number(
        "write_buffer_bytes", float(size), float(sd), "bytes",
        f"{len(runs)} runs of writes below full speed", Evidence.MEASURED,
    )  # fmt: skip
    return profile.model_copy(update={"write_buffer_bytes": buffer})


@dataclass(frozen=True)
class _Run:
    """A run with a demand: what its latencies may be, and what they were."""

    latencies: ServedLatency
    written: float
    seen: dict[str, float]

    def log_likelihood(self, buffer_bytes: float) -> float:
        """Of what was seen, with so large a buffer."""
        requests = np.array([buffer_bytes / self.written])
        latencies = replace(self.latencies, buffer_requests=requests)
        total = 0.0
        for name, seen in self.seen.items():
            value, high = latencies.at(name)[0], latencies.at(name, 1.0)[0]
            if not np.isfinite(high):
                continue
            sd = np.hypot(np.log(high / value) / NORMAL_90, RUN_LOG_SD)
            z = np.log(seen / value) / sd
            total -= 0.5 * (FREEDOM + 1.0) * np.log1p(z * z / FREEDOM) + np.log(sd)
        return float(total)


def _runs(profile: DeviceProfile, measurements: Sequence[Measurement]) -> Iterator[_Run]:
    own = [one for one in measurements if _tells(profile, one)]
    if not own:
        return
    rows = [to_row(one) for one in own]
    names = ("operation", "pattern", "read_fraction", "power_state", *SETTINGS, *FIELDS)
    columns = {name: [row[name] for row in rows] for name in names}
    frame, _ = make_frame(profile, columns, len(own))
    predictor = Predictor(profile)
    prediction, alone = predictor.predict(frame), predictor.predict(alone_of(frame))
    for place, (one, demand) in enumerate(zip(own, demands(frame, columns), strict=True)):
        if demand is None or demand.arrivals not in (Arrivals.POISSON, Arrivals.EVEN):
            continue
        at = slice(place, place + 1)
        row = frame.take(at)
        latencies = work_of(row, prediction.rows(at), demand, alone.rows(at)).latencies
        load = float(latencies.rate[0] / latencies.capacity[0])
        if LOADS[0] <= load <= LOADS[1]:
            written = float(row.request_bytes[0] * (1.0 - row.read_fraction[0]))
            seen = {name: value for name in SEEN if (value := getattr(one.observations, name))}
            yield _Run(latencies, written, seen)


def _tells(profile: DeviceProfile, one: Measurement) -> bool:
    """Whether a run has writes below full speed, without pauses and flushes, cache in play."""
    asked, full = one.workload, profile.write_state
    return (
        asked.operation is not Operation.READ
        and bool(asked.demand_bytes_per_second or asked.demand_operations_per_second)
        and not (asked.think_time_ns or asked.flush_every_writes or asked.force_unit_access)
        and one.state.device_state != "collecting"
        and (
            full is None
            or (one.state.host_bytes_written_since_purge or 0.0) < full.cached_bytes.value
        )
        and any(getattr(one.observations, name) for name in SEEN)
    )
