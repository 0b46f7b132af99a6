"""A quantity at one setting: its value, and how its logarithm follows what settings share.

Numerator and denominator of a ratio share the drive, the host, the power laws, the engine and,
where it rests on few figures, the surface (`model.evaluate.uncertainty`). With gradients g of the
logarithms by the shared parameters (covariance C) and an own part each,

    var(log a/b) = (g_a - g_b)' C (g_a - g_b) + own_a^2 + own_b^2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.findings import Asked, Direction, Form, Judged
from iojoule.datasets.profile import FACTS_RECIPE, DeviceProfile
from iojoule.model.evaluate import host_power, host_work
from iojoule.model.evaluate.bands import EXTRAPOLATED, PUBLISHED, Band
from iojoule.model.evaluate.equal_work import Demand, Work, watts_of, work_of
from iojoule.model.evaluate.frame import COMPLETIONS, USED, Frame, make_frame, used_columns
from iojoule.model.evaluate.host_work import as_flushed, copy_cores
from iojoule.model.evaluate.performance import WAKEUP_EXPONENT
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90, QUANTITIES
from iojoule.model.evaluate.uncertainty import Gradients, Layout, all_gradients, with_shared_surface
from iojoule.model.prior.facts import large_write_loss

Floats = NDArray[np.float64]

LEAST = 1e-12
"""Stands for nothing where a logarithm is taken."""


@dataclass(frozen=True)
class Estimate:
    """One quantity at one setting.

    Attributes:
        value: In SI units, latencies in ns.
        shared: Gradient of the logarithm by the layout's parameters; None where nothing is shared.
        own: Standard deviation of the logarithm that is the setting's own.
        evidence: Code of the weakest evidence (`model.evaluate.performance.EVIDENCE`).
        layout: Of the parameters.
    """

    value: float
    shared: Floats | None
    own: float
    evidence: int
    layout: Layout | None = None

    def spread(self) -> Spread:
        """The value and its interval."""
        half = NORMAL_90 * float(np.sqrt(self._shared_variance(1.0) + self.own**2))
        return Spread(self.value, self.value * np.exp(-half), self.value * np.exp(half))

    def _shared_variance(self, weight: float) -> float:
        return _variance(self.layout, self.shared, weight)


def ratio(a: Estimate, b: Estimate) -> Spread:
    """`a` over `b`, what they share taken out."""
    value = a.value / max(b.value, LEAST)
    half = NORMAL_90 * float(np.sqrt(_joint(a, b, 1.0, 1.0)))
    return Spread(value, value * np.exp(-half), value * np.exp(half))


def difference(a: Estimate, b: Estimate) -> Spread:
    """`a` less `b`, what they share taken out."""
    value = a.value - b.value
    half = NORMAL_90 * float(np.sqrt(_joint(a, b, a.value, b.value)))
    return Spread(value, value - half, value + half)


def _joint(a: Estimate, b: Estimate, weight_a: float, weight_b: float) -> float:
    own = (weight_a * a.own) ** 2 + (weight_b * b.own) ** 2
    if a.layout is not b.layout or a.shared is None or b.shared is None:
        apart = _variance(a.layout, a.shared, weight_a) + _variance(b.layout, b.shared, weight_b)
        return apart + own
    return _variance(a.layout, weight_a * a.shared - weight_b * b.shared, 1.0) + own


def _variance(layout: Layout | None, shared: Floats | None, weight: float) -> float:
    if layout is None or shared is None:
        return 0.0
    return max(float(shared @ layout.covariance @ shared), 0.0) * weight**2


Point = dict[str, Any]

FULL_SPEED = Demand(None, np.inf, np.inf)
"""Closed loop, as fast as possible."""

CORE_TIME_SD = 0.25
"""CPU time of runs and the cost of a request agree within a quarter (`fitting.performance`)."""

CYCLE_SD = 0.03
"""Log sd of a cycle's mean power that another setting of the same drive does not share: which share
of its pause a drive spends at which level (assumption)."""

POWERS = {
    "device_power_watts": "device",
    "serving_power_watts": "device",
    "cpu_power_watts": "cpu",
    "device_cpu_power_watts": "device_cpu",
    "system_power_watts": "system",
}

EFFICIENCIES = {
    "io_per_joule": (-1.0, 1.0),
    "bytes_per_joule": (-1.0, 1.0),
    "edp_mean_joule_seconds": (1.0, -2.0),
    "edp_efficiency": (-1.0, 2.0),
}
"""Exponents of power and of speed: energy a request is P / X, its latency N / X. Settings that are
compared do the same work: the energy is that of the first one's request (as `edp_joule_seconds` of
a recommendation is that of a useful one), the latency that of a request as it is issued."""

SPEEDS = {"throughput_bytes_per_second": 1.0, "iops": 1.0, "latency_mean_ns": -1.0}

TAILS = ("latency_p50_ns", "latency_p99_ns", "latency_p999_ns")

HOST_COUNTS = (
    "cpu_utilisation",
    "cpu_seconds",
    "load_average",
    "merged_share",
    "cpu_frequency_hertz",
    "context_switches_per_second",
    "context_switches_per_operation",
    "interrupts_per_second",
)

BY_RATE = frozenset(
    {
        "cpu_utilisation",
        "cpu_seconds",
        "load_average",
        "context_switches_per_second",
        "interrupts_per_second",
    }
)
"""Those that grow with requests a second."""

KNOWN = frozenset({*POWERS, *EFFICIENCIES, *SPEEDS, *TAILS, *HOST_COUNTS, "system_minus_cpu_watts"})
"""Quantities that follow from a prediction at full speed."""

ARGUMENTS = frozenset({"device", "elapsed_seconds", "demand_operations_per_second"})
"""What a finding says beside a configuration."""


class UnansweredError(Exception):
    """The models do not know yet; `missing` says what."""

    def __init__(self, missing: str) -> None:
        super().__init__(missing)
        self.missing = missing


@dataclass(frozen=True)
class _Bench:
    """Settings of one question, predicted together."""

    frame: Frame
    prediction: Prediction
    work: Work
    gradients: dict[str, Gradients]
    speed: Floats
    own_speed: Floats


class Estimator:
    """Answers quantities of one profile.

    Args:
        profile: The profile that judges.
        standing: Columns that hold for every setting unless it says otherwise.
        without: Findings that must not help.
    """

    def __init__(
        self,
        profile: DeviceProfile,
        standing: Point | None = None,
        without: Collection[str] = (),
    ) -> None:
        self.profile = profile
        self._without = frozenset(without)
        known = used_columns(profile)
        self.standing = {k: v for k, v in (standing or {}).items() if k in known}
        self.unmeasured = profile.recipe == FACTS_RECIPE
        sata = profile.interface == "sata" and not profile.is_disk
        # log of what writes of several commands lose, and its sd; a measured surface knows
        self.write_loss = large_write_loss(without) if sata and self.unmeasured else (0.0, 0.0)
        self.predictor = Predictor(profile)
        self.layout = Layout(profile)

    def estimates(
        self, points: Sequence[Point], quantities: Sequence[str], scope: str | None
    ) -> list[Estimate]:
        """One quantity at each of a few settings that are compared with each other.

        Raises:
            UnansweredError: A column or a power that the profile does not know.
            InputError: An impossible configuration.
        """
        bench = self._bench(points, quantities)
        return [
            self._estimate(bench, row, quantity, scope, points[row])
            for row, quantity in enumerate(quantities)
        ]

    def _bench(self, points: Sequence[Point], quantities: Sequence[str]) -> _Bench:
        disk = self.profile.is_disk
        seen = [self.standing | as_columns(point, disk=disk) for point in points]
        if self.unmeasured and not disk:  # a measured surface knows large requests as they were run
            seen = [split_parts(point, quantities) for point in seen]
        columns = _columns(seen, quantities)
        frame, _ = make_frame(self.profile, columns, len(points))
        gaps = bool(np.isfinite(frame.gap_seconds).any())
        wanted = (*QUANTITIES, "cycle_power_watts") if gaps else QUANTITIES
        drive = self.predictor.predict(frame, only=wanted)
        prediction = with_host_work(self.profile, drive, points, self.write_loss[0])
        work = _equal_work(frame, prediction, demand(points, FULL_SPEED))
        # what is written costs more later; a run's mean power does not hold that
        work = replace(work, background=np.zeros(len(frame)))
        if len(set(frame.read_fraction)) == 1 and len(set(frame.pattern)) == 1:
            work = with_shared_surface(self.predictor, frame, drive, work)
        watts = watts_of(self.profile, frame, prediction, work, 1.0)
        gradients = all_gradients(self.layout, frame, prediction, work, watts, 1.0)
        between = self.profile.between_drives_relative_sd.value
        ceiling = work.surface_sd * work.saturation
        unloaded = work.surface_sd * (1.0 - work.saturation)
        speed = np.stack([np.full(len(frame), between), ceiling, -unloaded], axis=1)
        total = (work.log_capacity_half / NORMAL_90) ** 2
        own = np.sqrt(np.maximum(total - (speed**2).sum(axis=1), 0.0))
        own = np.hypot(own, [own_sd(p, self.write_loss[1]) for p in points])
        return _Bench(frame, prediction, work, gradients, speed, own)

    def _estimate(
        self, bench: _Bench, row: int, quantity: str, scope: str | None, point: Point
    ) -> Estimate:
        if quantity in SPEEDS:
            return self._speed(bench, row, quantity)
        if quantity in TAILS:
            return self._tail(bench, row, quantity)
        if quantity == "device_power_watts" and np.isfinite(bench.frame.gap_seconds[row]):
            return self._cycle_power(bench, row)
        if quantity in POWERS:
            return self._power(bench, row, POWERS[quantity], 1.0, 0.0)
        if quantity in EFFICIENCIES:
            return self._efficiency(bench, row, quantity, scope or "device_cpu")
        if quantity in HOST_COUNTS:
            return self._host(bench, row, quantity, point)
        return self._beside_cpu(bench, row)

    def _speed(self, bench: _Bench, row: int, quantity: str) -> Estimate:
        band, sign = bench.prediction[quantity], SPEEDS[quantity]
        return Estimate(
            float(band.value[row]),
            self._by_speed(bench, row, sign),
            float(bench.own_speed[row]),
            int(band.evidence[row]),
            self.layout,
        )

    def _tail(self, bench: _Bench, row: int, quantity: str) -> Estimate:
        band = bench.prediction[quantity]
        value = float(band.value[row])
        if not np.isfinite(value):
            raise UnansweredError(quantity)
        shared = self._by_speed(bench, row, -1.0)
        sd = float(np.log(band.high[row] / band.value[row])) / NORMAL_90
        own = float(np.sqrt(max(sd**2 - float(shared @ shared), 0.0)))
        return Estimate(value, shared, own, int(band.evidence[row]), self.layout)

    def _by_speed(self, bench: _Bench, row: int, weight: float) -> Floats:
        shared = np.zeros(self.layout.size)
        shared[self.layout.at["speed"]] = weight * bench.speed[row]
        return shared

    def _power(
        self, bench: _Bench, row: int, scope: str, by_power: float, by_speed: float
    ) -> Estimate:
        """Power to one exponent times speed (operations a second) to another."""
        power = bench.gradients.get(scope)
        if power is None:
            raise UnansweredError(f"power of {scope.replace('_', ' and ')}")
        watts = float(power.watts[row])
        shared = by_power * power.common[row] / watts + self._by_speed(bench, row, by_speed)
        alone = by_power * power.own_speed[row] / watts + by_speed * bench.own_speed[row]
        iops = bench.prediction["iops"]
        return Estimate(
            float(watts**by_power * iops.value[row] ** by_speed),
            shared,
            float(np.hypot(alone, by_power * power.own_fit[row] / watts)),
            _weakest(bench, row, scope),
            self.layout,
        )

    def _cycle_power(self, bench: _Bench, row: int) -> Estimate:
        """Mean power over requests and pauses; the drive's own levels cancel in a ratio."""
        cycle = bench.prediction["cycle_power_watts"]
        value = float(cycle.value[row])
        if not value > 0:
            raise UnansweredError("power of a gap")
        alone = self._power(bench, row, "device", 1.0, 0.0)
        return replace(alone, value=value, own=CYCLE_SD)

    def _efficiency(self, bench: _Bench, row: int, quantity: str, scope: str) -> Estimate:
        one = self._power(bench, row, scope, *EFFICIENCIES[quantity])
        in_flight = float(bench.frame.queue_depth[row] * bench.frame.jobs[row])
        size = float(bench.frame.request_bytes[row])
        # energy is that of the same bytes, or a setting's larger requests would count as waste
        same_bytes = float(bench.frame.request_bytes[0]) / size
        scale = {
            "io_per_joule": 1.0,
            "bytes_per_joule": size,
            "edp_mean_joule_seconds": in_flight * same_bytes,
            "edp_efficiency": 1.0 / (in_flight * same_bytes),
        }[quantity]
        return replace(one, value=one.value * scale)

    def _host(self, bench: _Bench, row: int, quantity: str, point: Point) -> Estimate:
        """Core time, context switches and interrupts, from requests a second.

        A job sleeps until a completion wakes it, and deeper jobs reap several a wake-up
        (`model.evaluate.performance.WAKEUP_EXPONENT`); pollers do neither. Without coalescing every
        completion is an interrupt.
        """
        seconds = float(point.get("elapsed_seconds", 1.0))
        busy = float(bench.prediction.activity.load.busy_cores[row])
        iops = float(bench.prediction["iops"].value[row])
        polled = bool(bench.frame.completion[row] == COMPLETIONS.index("polled"))
        wakeups = 0.0 if polled else float(bench.frame.queue_depth[row] ** -WAKEUP_EXPONENT)
        value = {
            "cpu_utilisation": busy,
            "cpu_seconds": cpu_seconds(busy, seconds, self._without),
            "context_switches_per_second": iops * wakeups,
            "context_switches_per_operation": wakeups,
            "interrupts_per_second": 0.0 if polled else iops,
            "load_average": load_percent(busy, self.profile.host.cpu_cores, self._without),
            "merged_share": merged_share(point),
        }.get(quantity)
        if value is None:
            raise UnansweredError(quantity)
        rate = 1.0 if quantity in BY_RATE else 0.0
        own = float(np.hypot(CORE_TIME_SD, rate * bench.own_speed[row]))
        shared = self._by_speed(bench, row, rate)
        return Estimate(value, shared, own, EXTRAPOLATED, self.layout)

    def _beside_cpu(self, bench: _Bench, row: int) -> Estimate:
        """What the wall draws beside the processors: the system's power less the CPU's."""
        wall, cpu = bench.gradients.get("system"), bench.gradients.get("cpu")
        if wall is None or cpu is None:
            raise UnansweredError("power of system")
        value = float(wall.watts[row] - cpu.watts[row])
        return Estimate(
            value,
            (wall.common[row] - cpu.common[row]) / value,
            float(np.hypot(wall.own_speed[row] - cpu.own_speed[row], wall.own_fit[row])) / value,
            PUBLISHED,
            self.layout,
        )


def _equal_work(frame: Frame, prediction: Prediction, demand: Demand) -> Work:
    """Work of settings that are compared at one rate: the stated one, or what all of them carry."""
    work = work_of(frame, prediction, demand)
    carried = float(work.served_bytes.min())
    if demand.bytes_per_second is None or carried >= demand.bytes_per_second:
        return work
    return work_of(frame, prediction, replace(demand, bytes_per_second=carried))


def _columns(points: Sequence[Point], quantities: Sequence[str]) -> dict[str, list[Any]]:
    """Columns of the settings.

    Raises:
        UnansweredError: One of them changes nothing in the models yet.
    """
    spoken = {name for point in points for name in point} - ARGUMENTS
    if set(quantities) == {"serving_power_watts"}:  # while serving, pauses do not matter
        spoken -= {"think_time_ns", "burst_bytes"}
    unknown = sorted(spoken - set(USED))
    if unknown:
        raise UnansweredError(", ".join(unknown))
    return {name: [point.get(name) for point in points] for name in spoken}


def _weakest(bench: _Bench, row: int, scope: str) -> int:
    codes = [int(bench.prediction["device_power_watts"].evidence[row])] if scope != "cpu" else []
    if scope != "device":
        codes.append(int(bench.prediction["cpu_power_watts"].evidence[row]))
    return max(codes)


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


Claim = Mapping[str, Any]

LEAST_DEMAND = 1e-3
"""Requests a second that stand for none."""

UNALIGNED_SPEED = (0.5**0.5, 0.2)
"""Speed of requests across two access units, and log sd: the second unit is read beside the first
(1) or after it (1/2)."""

PART_BYTES = 512 * 1024
"""Largest command that a request is split into (`model.evaluate.host_work.MERGED_BYTES`)."""

BY_BYTES = frozenset(
    {
        "throughput_bytes_per_second",
        "bytes_per_joule",
        "device_power_watts",
        "cpu_power_watts",
        "system_power_watts",
    }
)
"""Quantities that do not ask how long a request takes or how many there are."""

NO_EFFECT = frozenset({"job_kind", "arrival_process"})
"""Words that change nothing here. Threads and processes submit through the same code. An arrival
process spaces the requests of a stated rate (fio, HOWTO, `rate_process`; `usec_for_io` of its
backend.c is called only where a rate is set); a think time without a rate is as long as stated."""


STANDING = {"000": {"fill_fraction": 1.0}}
"""What a paper did before each of its microbenchmarks: the thesis formats the drive and fills all
of it, so that neither cache nor mapping is at its best (000, chapter 5)."""


SUMMED_OVER_JOBS = {"000": frozenset({"latency_mean_ns", "latency_p99_ns"})}
"""Quantities of a run with several jobs that a paper's own program reports as the sum of the jobs'.
The thesis' draws the sum of the jobs' completion latencies, mean and 99th percentile, and divides
by their number only for energy-delay products (its repository t348575/energy-benchmark of July
2025, plots/fio-basic). Hence its 2.52 ms at 16 jobs beside 0.17 ms at depth 16, and an unchanged
energy-delay product (000, 5.4)."""


def jobs_counted(fact_id: str, section: str, quantity: str, point: Claim) -> float:
    """How often a figure of the paper counts what one job sees."""
    summed = section.startswith("5") and quantity in SUMMED_OVER_JOBS.get(fact_id[:3], ())
    return float(point.get("jobs", 1)) if summed else 1.0


def standing(fact_id: str, section: str) -> dict[str, Any]:
    """Conditions of a finding that its paper states once for all."""
    return dict(STANDING.get(fact_id[:3], {})) if section.startswith("5") else {}


def asked_quantity(quantity: str, host: str | None) -> str:
    """What a finding's figure is: idle power that names a host is the wall's difference."""
    return "wall_idle_power_watts" if quantity == "idle_power_watts" and host else quantity


def split_parts(point: Claim, quantities: Sequence[str]) -> dict[str, Any]:
    """A large request as the commands that the block layer makes of it, all in flight at once.

    Only where bytes and watts are asked: the latency is that of the last command.
    """
    size = int(point.get("request_bytes", 4096))
    if size <= PART_BYTES or not set(quantities) <= BY_BYTES:
        return dict(point)
    parts = size // PART_BYTES
    depth = int(point.get("queue_depth", 1)) * parts
    engine = "libaio" if point.get("engine") in ("psync", "posixaio") else point.get("engine")
    seen = {**point, "request_bytes": PART_BYTES, "queue_depth": depth}
    return seen if engine is None else {**seen, "engine": engine}


def as_columns(point: Claim, *, disk: bool = False) -> dict[str, Any]:
    """The columns of a configuration that stand for what a finding says."""
    seen = as_flushed(point, disk=disk)
    for name in (*NO_EFFECT, "aligned"):
        seen.pop(name, None)
    return seen


def with_host_work(
    profile: DeviceProfile,
    prediction: Prediction,
    points: Sequence[Claim],
    large_write_loss: float = 0.0,
) -> Prediction:
    """The prediction with copies of the page cache and the cost of unaligned and large requests.

    Args:
        profile: Whose host.
        prediction: Of the points' columns.
        points: What the finding says.
        large_write_loss: Log of what writes of several commands lose.
    """
    rates = prediction["throughput_bytes_per_second"].value
    copies = np.array([copy_cores(p, float(r)) for p, r in zip(points, rates, strict=True)])
    speed = np.array([UNALIGNED_SPEED[0] if p.get("aligned") is False else 1.0 for p in points])
    speed *= np.exp([-large_write_loss * _is_large_write(p) for p in points])
    if not copies.any() and (speed == 1.0).all():
        return prediction
    iops = prediction["iops"].value * speed
    known = prediction.activity
    costs = replace(known.costs, copy_ns=copies / iops * 1e9)
    gaps = host_power.gaps(profile.host_power)
    activity = replace(known, costs=costs, load=host_work.activity(costs, iops, None, gaps))
    bands = dict(prediction.bands)
    for name, exponent in (
        ("iops", 1),
        ("throughput_bytes_per_second", 1),
        ("latency_mean_ns", -1),
    ):
        bands[name] = _scaled(bands[name], speed**exponent)
    return replace(prediction, bands=bands, activity=activity)


def merged_share(point: Claim) -> float:
    """Share of requests that ride along in another one's command.

    The block layer merges neighbours that one submission brings. A polling kernel thread takes
    what lies in the ring, from one request to all of them (their geometric mean, by default); a
    job that submits each request by itself leaves nothing to merge.
    """
    depth = float(point.get("queue_depth", 1))
    batch = depth**0.5 if point.get("submission_polling") else 1.0
    return max(1.0 - 1.0 / batch, 1e-3) if point.get("pattern") == "sequential" else 1e-3


def own_sd(point: Claim, large_write_sd: float = 0.0) -> float:
    """Log sd of the speed that a word of the finding adds."""
    unaligned = UNALIGNED_SPEED[1] if point.get("aligned") is False else 0.0
    return float(np.hypot(unaligned, large_write_sd * _is_large_write(point)))


def _is_large_write(point: Claim) -> bool:
    large = int(point.get("request_bytes", 4096)) > PART_BYTES
    return large and point.get("operation") == "write"


def demand(points: Sequence[Claim], full_speed: Demand) -> Demand:
    """The demand that settings name, the first one's for all; full speed where none does."""
    stated = points[0].get("demand_operations_per_second")
    if stated is None:
        return full_speed
    useful = float(points[0].get("request_bytes", 4096))
    rate = max(float(stated), LEAST_DEMAND) * useful
    return replace(full_speed, bytes_per_second=rate, useful_bytes=useful)


def _scaled(band: Band, factor: Any) -> Band:
    return Band(band.value * factor, band.low * factor, band.high * factor, band.evidence)


REPEATS = 0.02
"""The thesis' own repeats differ by 1 to 2 % (000, 5.8)."""


SAME = 0.10
"""A prediction within a tenth counts as no difference."""


FACTOR = 2.0
"""An absolute figure has the right magnitude of order within a factor of two."""


@dataclass(frozen=True)
class Spread:
    """A predicted figure and its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """What a prediction is worth beside the published figure."""

    predicted: Spread | None
    direction: bool
    magnitude: bool


UNANSWERED = Verdict(None, direction=False, magnitude=False)


def judge(row: Asked, found: Sequence[Spread]) -> Verdict:
    """Take the settings that a finding leaves open together, and judge the result.

    Args:
        row: A finding with a figure.
        found: The prediction for each of its settings.
    """
    one = together(row, found)
    return Verdict(one, direction=_direction(row, one.value), magnitude=_magnitude(row, one))


def judge_order(row: Asked, ranked: Sequence[Sequence[float]]) -> Verdict:
    """Judge a ranking: each neighbouring pair in order, or within 2 % of each other.

    Args:
        row: A ranking.
        ranked: Values by setting, in the published order, for each setting left open.
    """
    right = all(
        first >= second * (1.0 - REPEATS) for values in ranked for first, second in pairwise(values)
    )
    return Verdict(None, direction=right, magnitude=right)


def together(row: Asked, found: Sequence[Spread]) -> Spread:
    """The mean of the settings, in log units but for differences, or their extreme."""
    if row.over == "max":
        return max(found, key=lambda one: one.value)
    if row.over == "min":
        return min(found, key=lambda one: one.value)
    table = np.array([(one.value, one.low, one.high) for one in found])
    if row.form is Form.DIFFERENCE:
        return Spread(*(float(mean) for mean in table.mean(axis=0)))
    return Spread(*(float(mean) for mean in np.exp(np.log(np.maximum(table, 1e-300)).mean(axis=0))))


def _direction(row: Asked, value: float) -> bool:
    published = float(row.published or 0.0)
    if row.direction is Direction.LEVEL:
        top = row.published_high if row.published_high is not None else published
        enough = row.judged is Judged.AT_MOST or value >= published / FACTOR
        little = row.judged is Judged.AT_LEAST or value <= FACTOR * top
        return enough and little
    if row.form is Form.DIFFERENCE:
        return value > 0.0 if row.direction is Direction.UP else value < 0.0
    if row.direction is Direction.SAME:
        return 1.0 / (1.0 + SAME) <= value <= 1.0 + SAME
    if row.direction is Direction.NOT_DOWN:
        return value >= 1.0 - REPEATS
    if row.direction is Direction.NOT_UP:
        return value <= 1.0 + REPEATS
    stated = row.judged in (Judged.AT_LEAST, Judged.AT_MOST)
    small = 0.0 if stated or abs(published - 1.0) >= REPEATS else REPEATS
    return value > 1.0 - small if row.direction is Direction.UP else value < 1.0 + small


def _magnitude(row: Asked, one: Spread) -> bool:
    published = float(row.published or 0.0)
    top = row.published_high if row.published_high is not None else published
    reaches = one.high >= published * (1.0 - 1e-9)
    leaves = one.low <= top * (1.0 + 1e-9)
    if row.judged is Judged.AT_LEAST:
        return reaches
    if row.judged is Judged.AT_MOST:
        return leaves
    return reaches and leaves
