"""Predicting throughput, latency and watts, with 90 % intervals and evidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate import background_work as aftermath
from iojoule.model.evaluate import device_power, host_power, host_work, idle_gaps
from iojoule.model.evaluate.bands import (
    DATASHEET,
    EXTRAPOLATED,
    INTERPOLATED,
    PUBLISHED,
    SIMULATED,
    Band,
    Codes,
    Direction,
    Floats,
    merge,
    put_percentiles_in_order,
    with_lower,
)
from iojoule.model.evaluate.device_work import device_work
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.mixes import mix
from iojoule.model.evaluate.operating_point import OperatingPoint, operating_point
from iojoule.model.evaluate.performance import PerformanceModel
from iojoule.model.evaluate.prediction import Activity, Prediction, joined
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, NORMAL_90, QUANTITIES
from iojoule.model.evaluate.surface import Points
from iojoule.model.evaluate.watts import PowerModel, RatedPoints

BLOCK_ROWS = 32_768
"""Rows evaluated at a time: their arrays stay in the caches, which halves the time of many rows."""

_HOST_WORK = ("cpu_utilisation", "context_switches_per_second", "iops_per_core_max")


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
        self.power = PowerModel(profile, self.performance)
        self._between = profile.between_drives_relative_sd.value
        self._gaps = host_power.gaps(profile.host_power)

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
                (at, self.predict(frame.take(at), runs=runs, only=only))
                for at in (slice(start, start + block) for start in starts)
            )
            return joined(parts, len(frame))
        ordered = with_lower(only)
        tails = [name for name in ("p50", "p99", "p999") if f"latency_{name}_ns" in ordered]
        operating = self._operating_point(frame, runs)
        points, code = self.performance.points(frame, operating)
        mixed = self.directions(frame, points, code, ("latency", *tails), runs)
        rated = RatedPoints(points, code, mixed.evidence == SIMULATED)
        if self.performance.rebuilt:
            mixed.evidence[mixed.evidence < DATASHEET] = SIMULATED
        if self.profile.host.calibrated_apart:
            mixed.evidence[:] = np.maximum(mixed.evidence, INTERPOLATED)
        if self.profile.other_conditions:
            mixed.evidence[:] = np.maximum(mixed.evidence, EXTRAPOLATED)
        if operating is not None:
            host_work.unsure(mixed, frame, points, operating)
        waits = self._wake(frame, mixed)
        half = np.hypot(mixed.half_width["latency"], NORMAL_90 * self._between)
        fastest = points.log_requests + self.log_link_ns(frame.request_bytes)
        latency = np.maximum(mixed.log_value["latency"], fastest)
        low, high = np.maximum(latency - half, fastest), latency + half
        rate = points.log_requests + np.log(1e9)
        # requests of a job that wait in the host while the drive has one of it
        queued = np.log(frame.queue_depth) + np.log(frame.jobs) - points.log_requests
        size = np.log(frame.request_bytes)
        bands = {
            "iops": _band(rate - latency, rate - high, rate - low, mixed.evidence),
            "throughput_bytes_per_second": _band(
                rate + size - latency, rate + size - high, rate + size - low, mixed.evidence
            ),
            "latency_mean_ns": _band(latency + queued, low + queued, high + queued, mixed.evidence),
        }
        for name in tails:
            wide = np.hypot(mixed.half_width[name], NORMAL_90 * self._between)
            value = mixed.log_value[name] + queued
            bands[f"latency_{name}_ns"] = _band(value, value - wide, value + wide, mixed.evidence)
        put_percentiles_in_order(bands)
        activity = self._activity(frame, points, code, bands["iops"].value, mixed, operating)
        self.power.add(frame, rated, bands, activity, half, only, operating)
        if not set(_HOST_WORK).isdisjoint(only):
            host_bands = host_work.bands(
                points,
                activity.load.busy_cores,
                activity.load.wakeups_per_second,
                half / NORMAL_90,
                self.performance.paths.relative_sd[code],
            )
            for name, (value, sd) in host_bands.items():
                wide = np.exp(NORMAL_90 * sd)
                bands[name] = Band(value, value / wide, value * wide, mixed.evidence)
        gap_names = [name for name in GAP_QUANTITIES if name in only]
        if gap_names:
            bands |= aftermath.bands(
                self.profile, self.performance.state, frame, bands, waits, activity.awake_factor
            )
        return Prediction(
            {name: bands[name] for name in (*QUANTITIES, *gap_names) if name in bands},
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
        mixed = self.directions(frame, points, code, ("latency",), runs)
        iops = np.exp(points.log_requests - mixed.log_value["latency"]) * 1e9
        costs = self._costs(frame, code, point)
        return point.at_load(host_work.activity(costs, iops, None, self._gaps))

    def _costs(
        self, frame: Frame, code: Codes, operating: OperatingPoint | None
    ) -> host_work.HostCosts:
        """What a request costs the host."""
        paths = self.performance.paths
        request, woken = paths.core_ns[code], paths.wakeup_ns[code]
        if operating is not None:
            request, woken = operating.core_ns(request), woken * operating.core_factor
        return host_work.costs(self.profile, frame, request, woken, paths.relative_sd[code])

    def log_link_ns(self, request_bytes: Floats) -> Floats:
        """Log of the least time that the link takes for a request: no bytes pass faster than it.

        Both directions of a mix share one direction's rate. SATA is half duplex. PCIe is not, yet
        a drive's own buffer is taken to pass no more than one direction: an assumption.
        """
        link = self.profile.link_bytes_per_second
        if link is None:
            return np.full(len(request_bytes), -np.inf)
        return np.asarray(np.log(request_bytes) - np.log(link.value * 1e-9))

    def directions(
        self, frame: Frame, points: Points, code: Codes, names: Sequence[str], runs: int = 1
    ) -> Direction:
        """Throughput and latency of the rows, mixed where they mix."""
        fraction = frame.read_fraction
        direction = self.performance.direction
        if (fraction == 1.0).all():
            return direction(frame, points, code, "read", runs, names)
        if (fraction == 0.0).all():
            return direction(frame, points, code, "write", runs, names)
        alone = (fraction == 0.0) | (fraction == 1.0)
        if runs == 1 and alone.any():  # each direction only for the rows that have it
            kinds = (fraction == 1.0, fraction == 0.0, ~alone)
            parts = [
                (at, self.directions(frame.take(at), points.take(at), code[at], names))
                for at in map(np.flatnonzero, kinds)
                if len(at)
            ]
            return merge(parts, len(frame))
        read = direction(frame, points, code, "read", runs, names)
        write = direction(frame, points, code, "write", runs, names)
        ready = write
        if self.performance.state.overwriting(frame)[0].any():
            ready = direction(frame, points, code, "write", runs, ("latency",), waits=False)
        mixed = mix(self.profile.mixed, frame, read, write, ready)
        if self.performance.state_residuals:
            self.performance.state_residuals.correct_mix(mixed, frame, points, code)
        return mixed

    def _activity(
        self,
        frame: Frame,
        points: Points,
        code: Codes,
        iops: Floats,
        mixed: Direction,
        operating: OperatingPoint | None,
    ) -> Activity:
        fraction = frame.read_fraction
        writes = _write_share(mixed, fraction)
        costs = self._costs(frame, code, operating)
        host_load, drawn = host_work.at_rate(self.profile, frame, costs, iops, None)
        work = device_work(self.performance, frame, points, iops, fraction, writes)
        x = work.regressors
        factor, factor_sd = self.power.beside_the_law(frame, points, code, x)
        return Activity(
            device_x=x,
            sharpness=mixed.sharpness,
            load=host_load,
            drawn=drawn,
            costs=costs,
            write_share=writes,
            collecting=work.collecting,
            cleared_most=work.cleared_most,
            own_work=self._own_work(frame, x),
            buffer_requests=self._buffer_requests(frame),
            watts_factor=factor,
            awake_factor=np.exp(self.performance.state_residuals.least("watts", frame)),
            watts_factor_sd=factor_sd,
        )

    def _own_work(self, frame: Frame, x: Floats) -> Floats:
        """Background watts while serving, as written bytes a second, shape (n,)."""
        joules, _ = self.performance.state.joules_per_byte(frame)
        if self.profile.device_power is None:
            return np.zeros(len(frame))
        watts = device_power.background_watts(self.profile.device_power, x, frame.power_state)
        return np.divide(watts, joules, out=np.zeros(len(frame)), where=joules > 0.0)

    def _buffer_requests(self, frame: Frame) -> Floats:
        buffer = self.profile.write_buffer_bytes
        size = np.nan if buffer is None else buffer.value
        written = frame.request_bytes * (1.0 - frame.read_fraction)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(written > 0.0, size / written, 0.0))


def _write_share(mixed: Direction, fraction: Floats) -> Floats:
    """Share of the busy time that writes take; that of the requests where nobody says."""
    of_requests = 1.0 - fraction
    if mixed.write_share is None:
        return np.asarray(of_requests)
    return np.where((fraction > 0.0) & (fraction < 1.0), mixed.write_share, of_requests)


def _band(log_value: Floats, log_low: Floats, log_high: Floats, evidence: Codes) -> Band:
    return Band(np.exp(log_value), np.exp(log_low), np.exp(log_high), evidence)
