"""Quantities of one profile, each with what it shares with the same profile's other settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import FACTS_RECIPE, DeviceProfile
from iojoule.model.evaluate.bands import EXTRAPOLATED, PUBLISHED
from iojoule.model.evaluate.equal_work import Demand, Work, watts_of, work_of
from iojoule.model.evaluate.frame import COMPLETIONS, USED, Frame, make_frame, used_columns
from iojoule.model.evaluate.performance import WAKEUP_EXPONENT
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90, QUANTITIES
from iojoule.model.evaluate.uncertainty import Gradients, Layout, all_gradients, with_shared_surface
from iojoule.model.prior.facts import large_write_loss
from iojoule.recommender.findings import reported, said
from iojoule.recommender.findings.estimate import Estimate

Floats = NDArray[np.float64]
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
        "cpu_utilisation", "cpu_seconds", "load_average",
        "context_switches_per_second", "interrupts_per_second",
    }
)  # fmt: skip
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
        seen = [self.standing | said.as_columns(point, disk=disk) for point in points]
        if self.unmeasured and not disk:  # a measured surface knows large requests as they were run
            seen = [said.split_parts(point, quantities) for point in seen]
        columns = _columns(seen, quantities)
        frame, _ = make_frame(self.profile, columns, len(points))
        gaps = bool(np.isfinite(frame.gap_seconds).any())
        wanted = (*QUANTITIES, "cycle_power_watts") if gaps else QUANTITIES
        drive = self.predictor.predict(frame, only=wanted)
        prediction = said.with_host_work(self.profile, drive, points, self.write_loss[0])
        work = _equal_work(frame, prediction, said.demand(points, FULL_SPEED))
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
        own = np.hypot(own, [said.own_sd(p, self.write_loss[1]) for p in points])
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
            float(band.value[row]), self._by_speed(bench, row, sign),
            float(bench.own_speed[row]), int(band.evidence[row]), self.layout,
        )  # fmt: skip

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
            float(watts**by_power * iops.value[row] ** by_speed), shared,
            float(np.hypot(alone, by_power * power.own_fit[row] / watts)),
            _weakest(bench, row, scope), self.layout,
        )  # fmt: skip

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
            "cpu_seconds": reported.cpu_seconds(busy, seconds, self._without),
            "context_switches_per_second": iops * wakeups,
            "context_switches_per_operation": wakeups,
            "interrupts_per_second": 0.0 if polled else iops,
            "load_average": reported.load_percent(busy, self.profile.host.cpu_cores, self._without),
            "merged_share": said.merged_share(point),
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
            value, (wall.common[row] - cpu.common[row]) / value,
            float(np.hypot(wall.own_speed[row] - cpu.own_speed[row], wall.own_fit[row])) / value,
            PUBLISHED, self.layout,
        )  # fmt: skip


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
