"""Predicting throughput, latency and watts, with 90 % intervals and evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DevicePower, DeviceProfile
from iojoule.datasets.vocabulary import Engine
from iojoule.model import (
    aftermath,
    device_power,
    host_power,
    host_work,
    idle_gaps,
    system_power,
)
from iojoule.model.band import NORMAL_90, Band, linear_band
from iojoule.model.columns import Codes
from iojoule.model.frame import ENGINES, PATTERNS, Frame, make_frame
from iojoule.model.operating_point import Load, OperatingPoint, operating_point
from iojoule.model.performance import (
    DATASHEET,
    EVIDENCE,
    EXTRAPOLATED,
    INTERPOLATED,
    PUBLISHED,
    SIMULATED,
    Direction,
    PerformanceModel,
)
from iojoule.model.surface import Points

Floats = NDArray[np.float64]

__all__ = ["NORMAL_90", "QUANTITIES", "Activity", "Band", "Prediction", "Predictor"]

QUANTITIES = (
    "throughput_bytes_per_second",
    "iops",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "device_power_watts",
    "cpu_power_watts",
    "dram_power_watts",
    "system_power_watts",
    "cpu_utilisation",
    "context_switches_per_second",
    "cpu_joules_per_operation",
    "iops_per_core_max",
)
"""Predicted quantities in the order of `iojoule predict`."""


GAP_QUANTITIES = (
    "wake_latency_ns",
    "cycle_power_watts",
    "idle_power_watts",
    "background_seconds",
    "background_energy_joules",
)
"""Predicted where they are asked for by name: what gaps and writes leave behind cost (see
`model.aftermath`)."""

DEVICE_VALUE = "device_power_watts without interval"
"""Among the quantities wanted: spares the interval of the drive's power, and its evidence."""

BLOCK_ROWS = 32_768
"""Rows evaluated at a time: their arrays stay in the caches, which halves the time of many rows."""

_HOST_POWER = frozenset(
    {"cpu_power_watts", "dram_power_watts", "system_power_watts", "cpu_joules_per_operation"}
)
_HOST_WORK = ("cpu_utilisation", "context_switches_per_second", "iops_per_core_max")


@dataclass(frozen=True)
class Activity:
    """What the drive and the host do at full speed, and idle; each array has shape (n,).

    Attributes:
        device_x: Regressors of the device-power law, shape (n, 6).
        busy_cores: Cores' worth of time spent on I/O.
        active_cores: Cores woken for it.
        factor: Relative dynamic CPU power, and its sd.
        factor_sd: Standard deviation of `factor`.
        always_on: True where the host keeps polling although no request is in flight.
        drawn: What else drives the law of CPU power.
    """

    device_x: Floats
    busy_cores: Floats
    active_cores: Floats
    factor: Floats
    factor_sd: Floats
    always_on: NDArray[np.bool_]
    drawn: host_power.Drawn


@dataclass(frozen=True)
class Prediction:
    """Bands by quantity name, and the evidence of throughput and latency."""

    bands: dict[str, Band]
    evidence: Codes
    activity: Activity

    def __getitem__(self, name: str) -> Band:
        return self.bands[name]

    def evidence_words(self, name: str | None = None) -> list[str]:
        """Evidence as words; of throughput and latency where no quantity is named."""
        codes = self.evidence if name is None else self.bands[name].evidence
        return [EVIDENCE[code] for code in codes]


class Predictor:
    """Answers what a drive does at any configuration; built once from a profile.

    Example:
        >>> from iojoule.datasets.profile import load_shipped_profile
        >>> predictor = Predictor(load_shipped_profile("samsung-980-pro-1tb"))
        >>> answer, _ = predictor.predict_columns({"queue_depth": [1, 16]}, rows=2)
        >>> answer["iops"].value.shape
        (2,)
    """

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.performance = PerformanceModel(profile)
        self._between = profile.between_drives_relative_sd.value

    def predict_columns(
        self, columns: Mapping[str, Any], rows: int
    ) -> tuple[Prediction, dict[str, Any]]:
        """Predict flat columns; returns the prediction and the defaults that were used.

        Raises:
            InputError: An impossible configuration; names row and field.
        """
        frame, used = make_frame(self.profile, columns, rows)
        return self.predict(frame), used

    def predict(
        self, frame: Frame, *, runs: int = 1, only: Collection[str] = QUANTITIES
    ) -> Prediction:
        """Predict n questions at full speed (closed loop).

        Values obey Little's law: requests in flight = IOPS x mean latency.

        Args:
            frame: The questions.
            runs: Rows come in runs of this many that differ in power state only, which saves
                evaluating the same surface several times.
            only: Quantities wanted; throughput, IOPS and mean latency come in any case. Leaving
                percentiles and the host's power out saves about a third of the time.
        """
        block = max(BLOCK_ROWS // runs, 1) * runs
        if len(frame) > block:
            starts = range(0, len(frame), block)
            parts = (
                self.predict(frame.rows(at, at + block), runs=runs, only=only) for at in starts
            )
            return _joined(parts, len(frame))
        tails = [name for name in ("p50", "p99", "p999") if f"latency_{name}_ns" in only]
        operating = self._operating_point(frame, runs)
        points, code = self.performance.points(frame, operating)
        mixed, fraction = self._directions(frame, points, code, runs, ("latency", *tails))
        if self.profile.host.calibrated_apart:
            mixed.evidence[:] = np.maximum(mixed.evidence, INTERPOLATED)
        if operating is not None:
            host_work.unsure(mixed, frame, points, operating)
        waits = self._wake(frame, mixed)
        half = np.hypot(mixed.half_width["latency"], NORMAL_90 * self._between)
        fastest = self._link_floor(frame, points)
        latency = np.maximum(mixed.log_value["latency"], fastest)
        low, high = np.maximum(latency - half, fastest), latency + half
        rate = points.log_requests + np.log(1e9)
        size = np.log(frame.request_bytes)
        bands = {
            "iops": _band(rate - latency, rate - high, rate - low, mixed.evidence),
            "throughput_bytes_per_second": _band(
                rate + size - latency, rate + size - high, rate + size - low, mixed.evidence
            ),
            "latency_mean_ns": _band(latency, low, high, mixed.evidence),
        }
        for name in tails:
            wide = np.hypot(mixed.half_width[name], NORMAL_90 * self._between)
            value = mixed.log_value[name]
            bands[f"latency_{name}_ns"] = _band(value, value - wide, value + wide, mixed.evidence)
        activity = self._activity(frame, points, code, bands["iops"].value, fraction, operating)
        self._watts(frame, bands, activity, half, only, operating)
        if not set(_HOST_WORK).isdisjoint(only):
            found = host_work.bands(
                points,
                activity.busy_cores,
                np.asarray(activity.drawn.wakeups_per_second),
                half / NORMAL_90,
                self.performance.paths.relative_sd[code],
            )
            for name, (value, sd) in found.items():
                wide = np.exp(NORMAL_90 * sd)
                bands[name] = Band(value, value / wide, value * wide, mixed.evidence)
        asked = [name for name in GAP_QUANTITIES if name in only]
        if asked:
            bands |= aftermath.bands(self.profile, self.performance.state, frame, bands, waits)
        return Prediction(
            {name: bands[name] for name in (*QUANTITIES, *asked) if name in bands},
            mixed.evidence,
            activity,
        )

    def _wake(self, frame: Frame, mixed: Direction) -> idle_gaps.Wake | None:
        """Add what the first requests after a gap wait; None where no gap is stated."""
        if self.profile.idle is None or not np.isfinite(frame.gap_seconds).any():
            return None
        waits = idle_gaps.wake(self.profile.idle, frame)
        idle_gaps.delay(waits, mixed.log_value, mixed.half_width)
        known = waits.mean_seconds() > 0
        mixed.evidence[known] = np.maximum(mixed.evidence[known], PUBLISHED)
        return waits

    def _operating_point(self, frame: Frame, runs: int) -> OperatingPoint | None:
        """What the host's settings do; those that follow the load take it from a first pass."""
        point = operating_point(self.profile.host_operation, frame.host)
        if point is None or not point.follows_load:
            return point
        points, code = self.performance.points(frame, point)
        mixed, _ = self._directions(frame, points, code, runs, ("latency",))
        iops = np.exp(points.log_requests - mixed.log_value["latency"]) * 1e9
        return point.at_load(self._load(frame, code, iops, point))

    def _load(
        self, frame: Frame, code: Codes, iops: Floats, operating: OperatingPoint | None
    ) -> Load:
        """Cores busy and woken."""
        paths = self.performance.paths
        request, woken = paths.core_ns[code], paths.wakeup_ns[code]
        if operating is not None:
            request, woken = operating.core_ns(request), woken * operating.core_factor
        return host_work.load(self.profile, frame, iops, request, woken)

    def _link_floor(self, frame: Frame, points: Points) -> Floats:
        """Log of the least mean latency that the link leaves: no bytes pass faster than it."""
        link = self.profile.link_bytes_per_second
        if link is None:
            return np.full(len(frame), -np.inf)
        busier = np.maximum(frame.read_fraction, 1.0 - frame.read_fraction)  # full duplex
        load = points.log_requests + np.log(frame.request_bytes * busier)
        return np.asarray(load - np.log(link.value * 1e-9))

    def directions(
        self, frame: Frame, points: Points, code: Codes, names: Sequence[str]
    ) -> tuple[Direction, Floats]:
        """Throughput and latency of the rows, mixed where they mix, and their read fractions."""
        return self._directions(frame, points, code, 1, names)

    def _directions(
        self, frame: Frame, points: Points, code: Codes, runs: int, names: Sequence[str]
    ) -> tuple[Direction, Floats]:
        fraction = frame.read_fraction
        if (fraction == 1.0).all():
            return self.performance.direction(frame, points, code, "read", runs, names), fraction
        if (fraction == 0.0).all():
            return self.performance.direction(frame, points, code, "write", runs, names), fraction
        read = self.performance.direction(frame, points, code, "read", runs, names)
        write = self.performance.direction(frame, points, code, "write", runs, names)
        return self._mix(frame, read, write), fraction

    def _mix(self, frame: Frame, read: Direction, write: Direction) -> Direction:
        """Take turns: the mean latency is weighted by requests, times a published factor."""
        fraction = frame.read_fraction
        interleaved = (fraction > 0) & (fraction < 1)
        factors = np.zeros((4, len(PATTERNS)))
        for effect in self.profile.mixed:
            factors[:, PATTERNS.index(effect.pattern.value)] = (
                np.log(effect.latency_factor.value),
                effect.latency_factor.sd,
                np.log(effect.tail_factor.value),
                effect.tail_factor.sd,
            )
        slower, slower_sd, tail, tail_sd = np.take(factors, frame.pattern, axis=1) * interleaved
        latency = np.log(
            fraction * np.exp(read.log_value["latency"])
            + (1.0 - fraction) * np.exp(write.log_value["latency"])
        )
        value = {"latency": latency + slower}
        half = {}
        own, heavier = (NORMAL_90 * slower_sd) ** 2, (NORMAL_90 * tail_sd) ** 2
        for name in read.half_width:
            half[name] = np.sqrt(
                fraction * read.half_width[name] ** 2
                + (1 - fraction) * write.half_width[name] ** 2
                + own
                + (heavier if name in ("p99", "p999") else 0.0)
            )
        for name in [name for name in read.log_value if name != "latency"]:
            pure = np.where(
                fraction >= 0.5,
                read.log_value[name] - read.log_value["latency"],
                write.log_value[name] - write.log_value["latency"],
            )
            value[name] = value["latency"] + pure + (0.0 if name == "p50" else tail)
        evidence = np.where(
            fraction == 1.0,
            read.evidence,
            np.where(
                fraction == 0.0,
                write.evidence,
                np.maximum(np.maximum(read.evidence, write.evidence), PUBLISHED),
            ),
        )
        return Direction(value, half, evidence.astype(np.intp))

    def _activity(
        self,
        frame: Frame,
        points: Points,
        code: Codes,
        iops: Floats,
        fraction: Floats,
        operating: OperatingPoint | None,
    ) -> Activity:
        paths = self.performance.paths
        load = self._load(frame, code, iops, operating)
        commands = iops * points.commands
        x = device_power.regressors(
            iops * fraction * frame.request_bytes,
            commands * fraction,
            iops * (1 - fraction) * frame.request_bytes,
            commands * (1 - fraction),
            self.performance.state.collecting(frame) * (fraction < 1),
        )
        return Activity(
            x,
            load.busy_cores,
            load.active_cores,
            paths.power_factor[code],
            paths.power_factor_sd[code],
            frame.engine == ENGINES.index(Engine.SPDK),
            host_work.drawn(self.profile, load, operating),
        )

    def _watts(
        self,
        frame: Frame,
        bands: dict[str, Band],
        activity: Activity,
        half: Floats,
        only: Collection[str],
        operating: OperatingPoint | None,
    ) -> None:
        unknown = np.full(len(frame), np.nan)
        for name in QUANTITIES[6:]:
            bands[name] = Band(unknown, unknown, unknown, bands["iops"].evidence)
        profile = self.profile
        device = device_sd = cpu = cpu_sd = dram = None
        if profile.device_power is not None and DEVICE_VALUE in only:
            device = device_power.active_value(
                profile.device_power, activity.device_x, frame.power_state
            )
            bands["device_power_watts"] = Band(device, unknown, unknown, bands["iops"].evidence)
        elif profile.device_power is not None:
            device, device_sd = self._device_watts(profile.device_power, frame, activity, half)
            said = _power_evidence(profile.device_power, frame, bands["iops"].evidence, activity)
            bands["device_power_watts"] = (
                _expected_watts(profile.device_power, frame, device, device_sd)
                if device_power.is_expected(profile.device_power)
                else linear_band(device, device_sd, said)
            )
        if device is not None and self.performance.simulated:
            device, device_sd = self._simulated_watts(frame, bands, device, device_sd)
        if profile.host_power is not None and not _HOST_POWER.isdisjoint(only):
            cpu, cpu_sd = host_power.watts(
                profile.host_power,
                activity.busy_cores,
                activity.active_cores,
                activity.factor,
                activity.factor_sd,
                activity.drawn,
            )
            told = host_work.power_evidence(profile.host_power, operating, len(frame))
            bands["cpu_power_watts"] = linear_band(cpu, cpu_sd, told)
            iops = bands["iops"].value
            bands["cpu_joules_per_operation"] = linear_band(
                cpu / iops, np.hypot(cpu_sd / iops, cpu / iops * half / NORMAL_90), told
            )
            dram = host_power.dram_watts(
                profile.host_power, bands["throughput_bytes_per_second"].value
            )
            if dram is not None:
                bands["dram_power_watts"] = linear_band(*dram, told)
        if (
            profile.system_power is not None
            and device is not None
            and cpu is not None
            and device_sd is not None
            and cpu_sd is not None
        ):
            parts, parts_sd = device + cpu, np.hypot(device_sd, cpu_sd)
            if dram is not None:
                parts, parts_sd = parts + dram[0], np.hypot(parts_sd, dram[1])
            wall, wall_sd = system_power.watts(profile.system_power, parts, parts_sd)
            told = host_work.wall_evidence(profile.system_power, bands["cpu_power_watts"].evidence)
            bands["system_power_watts"] = linear_band(wall, wall_sd, told)

    def _simulated_watts(
        self, frame: Frame, bands: dict[str, Band], device: Floats, device_sd: Floats | None
    ) -> tuple[Floats, Floats | None]:
        """Watts with those rows from the calibrated simulator whose performance is from it.

        They are the simulated ones at the predicted rate: what is above the base goes with it.
        """
        points, code = self.performance.points(frame)
        rate = bands["iops"]
        device, device_sd = device.copy(), None if device_sd is None else device_sd.copy()
        base = self.performance.simulated.base_watts
        evidence = bands["device_power_watts"].evidence.copy()
        serving = self.performance.state.collecting(frame) == 0.0
        for operation, share in (("read", 1.0), ("write", 0.0)):
            wanted = (rate.evidence == SIMULATED) & (frame.read_fraction == share)
            wanted &= serving if operation == "write" else True
            for told in self.performance.simulated.answer(frame, points, code, operation, wanted):
                if "watts" not in told.log_value or base is None:
                    continue
                rows = told.rows
                watts = np.exp(told.log_value["watts"])
                slower = np.exp(
                    told.log_value["latency"] - np.log(bands["latency_mean_ns"].value[rows])
                )
                device[rows] = base + (watts - base) * slower
                evidence[rows] = SIMULATED
                if device_sd is not None:
                    own = told.half_width["watts"] / NORMAL_90 * watts
                    device_sd[rows] = np.hypot(own, self._between * watts)
        known = bands["device_power_watts"]
        bands["device_power_watts"] = (
            Band(device, known.low, known.high, evidence)
            if device_sd is None
            else linear_band(device, device_sd, evidence)
        )
        return device, device_sd

    def _device_watts(
        self, power: DevicePower, frame: Frame, activity: Activity, half: Floats
    ) -> tuple[Floats, Floats]:
        """Active device power and its sd, the uncertainty of the throughput included."""
        value, sd = device_power.active_watts(power, activity.device_x, frame.power_state)
        base = power.parameters[0].value
        from_rate = np.maximum(value - base, 0.0) * half / NORMAL_90
        unsure = self.performance.state.collecting_sd(frame) * (frame.read_fraction < 1)
        from_state = power.parameters[5].value * unsure
        return value, np.hypot(np.hypot(sd, from_rate), np.hypot(from_state, self._between * value))


def _power_evidence(
    power: DevicePower, frame: Frame, performance: Codes, activity: Activity
) -> Codes:
    """Evidence of the device power; never stronger than that of the performance it rests on."""
    x = activity.device_x
    rates = x[:, 2] + x[:, 4]
    known = (rates <= power.measured_read_operations_per_second_max) & (
        x[:, 1] + x[:, 3] <= power.measured_bytes_per_second_max
    )
    evidence = np.where(known, INTERPOLATED, EXTRAPOLATED)
    evidence = np.where(frame.power_state > 0, np.maximum(evidence, PUBLISHED), evidence)
    return np.maximum(evidence, performance * (performance > INTERPOLATED)).astype(np.intp)


def _joined(parts: Iterable[Prediction], rows: int) -> Prediction:
    """Predictions below each other; every part is let go once it is copied."""
    whole: Prediction | None = None
    start = 0
    for part in parts:
        whole = whole or _roomy(part, rows)
        for target, source in zip(_arrays(whole), _arrays(part), strict=True):
            target[start : start + len(source)] = source
        start += len(part.evidence)
    assert whole is not None
    return whole


def _roomy(part: Prediction, rows: int) -> Prediction:
    """A prediction like `part` with room for `rows` rows."""

    def room(array: NDArray[Any]) -> NDArray[Any]:
        return np.empty((rows, *array.shape[1:]), array.dtype)

    def roomy(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return room(item)
        return type(item)(*[roomy(getattr(item, field.name)) for field in fields(item)])

    bands = {name: roomy(band) for name, band in part.bands.items()}
    return Prediction(bands, room(part.evidence), roomy(part.activity))


def _arrays(prediction: Prediction) -> Iterator[NDArray[Any]]:
    """Every array of a prediction, always in one order."""

    def within(item: Any) -> Iterator[NDArray[Any]]:
        if isinstance(item, np.ndarray):
            yield item
            return
        for field in fields(item):
            yield from within(getattr(item, field.name))

    for item in (*prediction.bands.values(), prediction.activity, prediction.evidence):
        yield from within(item)


def _expected_watts(power: DevicePower, frame: Frame, value: Floats, sd: Floats) -> Band:
    """Power of a drive that nobody measured: wide, so in ratios; never above the declared cap."""
    ratio = np.exp(NORMAL_90 * np.sqrt(np.log1p((sd / value) ** 2)))
    cap = np.array(power.cap_watts)[frame.power_state]
    evidence = np.full(len(frame), DATASHEET, dtype=np.intp)
    return Band(value, value / ratio, np.maximum(np.minimum(value * ratio, cap), value), evidence)


def _band(log_value: Floats, log_low: Floats, log_high: Floats, evidence: Codes) -> Band:
    return Band(np.exp(log_value), np.exp(log_low), np.exp(log_high), evidence)
