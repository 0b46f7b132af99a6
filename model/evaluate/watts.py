"""Watts of drive, processors and wall while the work is served, with what they rest on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DevicePower, DeviceProfile
from iojoule.model.evaluate import device_power, host_power, host_work, power_limit, system_power
from iojoule.model.evaluate.bands import (
    DATASHEET,
    EXTRAPOLATED,
    INTERPOLATED,
    PUBLISHED,
    SIMULATED,
    Band,
    Codes,
    Floats,
    linear_band,
)
from iojoule.model.evaluate.frame import Frame
from iojoule.model.evaluate.operating_point import OperatingPoint
from iojoule.model.evaluate.performance import PerformanceModel, Rows
from iojoule.model.evaluate.prediction import DEVICE_VALUE, Activity
from iojoule.model.evaluate.quantities import NORMAL_90, QUANTITIES
from iojoule.model.evaluate.surface import Points
from iojoule.model.evaluate.terms import TERMS

_HOST_POWER = frozenset(
    {"cpu_power_watts", "dram_power_watts", "system_power_watts", "cpu_joules_per_operation"}
)


@dataclass(frozen=True)
class RatedPoints:
    """Where the rates of a frame were answered.

    Attributes:
        points: Coordinates of its rows, the host set as they say.
        code: Their host paths.
        simulated: Rows whose rate the calibrated simulator answered, shape (n,).
    """

    points: Points
    code: Codes
    simulated: NDArray[np.bool_]


class PowerModel:
    """Adds the watts to a prediction; built once from a profile."""

    def __init__(self, profile: DeviceProfile, performance: PerformanceModel) -> None:
        self.profile = profile
        self.performance = performance
        self._between = profile.between_drives_relative_sd.value

    def add(
        self,
        frame: Frame,
        rated: RatedPoints,
        bands: dict[str, Band],
        activity: Activity,
        half: Floats,
        only: Collection[str],
        operating: OperatingPoint | None,
    ) -> None:
        """Add power to `bands`; NaN where the profile knows none.

        Args:
            frame: The questions.
            rated: Where their rates were answered.
            bands: Throughput and latency of them; watts come beside.
            activity: What drive and host do.
            half: Half width of the rate's 90 % interval, log units.
            only: Quantities wanted.
            operating: What the host's settings do; None on the reference host.
        """
        unknown = np.full(len(frame), np.nan)
        for name in QUANTITIES[6:]:
            bands[name] = Band(unknown, unknown, unknown, bands["iops"].evidence)
        profile = self.profile
        device = device_sd = cpu = cpu_sd = dram = None
        if profile.device_power is not None and DEVICE_VALUE in only:
            device = device_power.active_value(
                profile.device_power, activity.device_x, frame.power_state
            )
            device = _beside_runs(profile.device_power, frame, activity, device)
            bands["device_power_watts"] = Band(device, unknown, unknown, bands["iops"].evidence)
        elif profile.device_power is not None:
            device, device_sd = self._device(profile.device_power, frame, activity, half)
            evidence = _power_evidence(profile, frame, bands["iops"].evidence, activity)
            seen = np.isfinite(activity.watts_factor_sd)
            evidence = np.where(seen, np.maximum(bands["iops"].evidence, INTERPOLATED), evidence)
            bands["device_power_watts"] = _within_cap(
                profile.device_power,
                frame,
                _expected_watts(device, device_sd)
                if profile.device_power.is_expected
                else linear_band(device, device_sd, evidence),
            )
        if device is not None and rated.simulated.any():
            device, device_sd = self._simulated(frame, rated, bands, device, device_sd)
        if profile.host_power is not None and not _HOST_POWER.isdisjoint(only):
            cpu, cpu_sd = host_power.watts(
                profile.host_power, activity.load, activity.drawn, activity.costs.busy_log_sd
            )
            host_evidence = _at_rate(
                host_work.power_evidence(profile.host_power, operating, len(frame)),
                bands["iops"].evidence,
            )
            bands["cpu_power_watts"] = linear_band(cpu, cpu_sd, host_evidence)
            iops = bands["iops"].value
            bands["cpu_joules_per_operation"] = linear_band(
                cpu / iops, np.hypot(cpu_sd / iops, cpu / iops * half / NORMAL_90), host_evidence
            )
            dram = host_power.dram_watts(
                profile.host_power, bands["throughput_bytes_per_second"].value
            )
            if dram is not None:
                bands["dram_power_watts"] = linear_band(*dram, host_evidence)
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
            below = [bands[f"{part}_power_watts"].evidence for part in ("device", "cpu")]
            evidence = host_work.wall_evidence(profile.system_power, *below)
            bands["system_power_watts"] = linear_band(wall, wall_sd, evidence)

    def beside_the_law(
        self, frame: Frame, points: Points, code: Codes, x: Floats
    ) -> tuple[Floats, Floats]:
        """Power over that of the law, and its log sd: 1 and NaN where no term knows it.

        `x` are the regressors of the law, shape (n, 6).
        """
        rows = Rows(frame, points, code, x)
        factor, sd = np.ones(len(frame)), np.full(len(frame), np.nan)
        for term in TERMS:
            if term.power_factor is not None:
                factor, sd = term.power_factor(self.performance, rows, factor, sd)
        return factor, sd

    def _simulated(
        self,
        frame: Frame,
        rated: RatedPoints,
        bands: dict[str, Band],
        device: Floats,
        device_sd: Floats | None,
    ) -> tuple[Floats, Floats | None]:
        """Watts with those rows from the calibrated simulator whose performance is from it.

        They are the simulated ones at the predicted rate: what is above the base goes with it.
        Where the host's settings made the rate less sure, they are no surer.
        """
        device, device_sd = device.copy(), None if device_sd is None else device_sd.copy()
        base = self.performance.simulated.base_watts
        evidence = bands["device_power_watts"].evidence.copy()
        serving = self.performance.state.collecting(frame) == 0.0
        for operation, share in (("read", 1.0), ("write", 0.0)):
            wanted = rated.simulated & (frame.read_fraction == share)
            wanted &= serving if operation == "write" else True
            for simulated in self.performance.simulated.answer(
                frame, rated.points, rated.code, operation, wanted
            ):
                if "watts" not in simulated.log_value or base is None:
                    continue
                rows = simulated.rows
                watts = np.exp(simulated.log_value["watts"])
                slower = np.exp(
                    simulated.log_value["latency"] - np.log(bands["latency_mean_ns"].value[rows])
                )
                device[rows] = base + (watts - base) * slower
                evidence[rows] = np.maximum(bands["iops"].evidence[rows], SIMULATED)
                if device_sd is not None:
                    own = simulated.half_width["watts"] / NORMAL_90 * watts
                    device_sd[rows] = np.hypot(own, self._between * watts)
        known = bands["device_power_watts"]
        bands["device_power_watts"] = (
            Band(device, known.low, known.high, evidence)
            if device_sd is None
            else linear_band(device, device_sd, evidence)
        )
        return device, device_sd

    def _device(
        self, power: DevicePower, frame: Frame, activity: Activity, half: Floats
    ) -> tuple[Floats, Floats]:
        """Active device power and its sd, the uncertainty of the throughput included."""
        value, sd = device_power.active_watts(power, activity.device_x, frame.power_state)
        value = _beside_runs(power, frame, activity, value)
        # what runs nearby showed knows more of a place than the law's parameters do
        seen = np.isfinite(activity.watts_factor_sd)
        sd = np.where(seen, activity.watts_factor_sd * value, sd)
        fixed = device_power.fixed_watts(power, activity.device_x, frame.power_state)
        from_rate = np.maximum(value - fixed, 0.0) * half / NORMAL_90
        unsure = self.performance.state.collecting_sd(frame) * activity.write_share
        from_state = power.parameters[5].value * unsure
        return value, np.hypot(np.hypot(sd, from_rate), np.hypot(from_state, self._between * value))


def _beside_runs(power: DevicePower, frame: Frame, activity: Activity, value: Floats) -> Floats:
    """Watts with what runs nearby showed; those were free of a limit, which then holds."""
    beside = value * activity.watts_factor
    if not (frame.power_limit_watts > 0).any():
        return beside
    free = device_power.law_watts(power, activity.device_x, frame.power_state)
    limit = device_power.limit_watts(power, frame.power_state)
    limited = np.minimum(free * activity.watts_factor, limit)
    return np.where(frame.power_limit_watts > 0, limited, beside)


def _power_evidence(
    profile: DeviceProfile, frame: Frame, performance: Codes, activity: Activity
) -> Codes:
    """Evidence of the device power."""
    power, x = profile.device_power, activity.device_x
    assert power is not None
    rates = x[:, 2] + x[:, 4]
    known = (rates <= power.measured_read_operations_per_second_max) & (
        x[:, 1] + x[:, 3] <= power.measured_bytes_per_second_max
    )
    evidence = np.where(known, INTERPOLATED, EXTRAPOLATED)
    lower = ~np.isin(frame.power_state, [0, *power_limit.as_first_state(profile)])
    evidence = np.where(lower, np.maximum(evidence, PUBLISHED), evidence)
    return _at_rate(evidence, performance)


def _at_rate(evidence: Codes, performance: Codes) -> Codes:
    """Evidence of watts; never stronger than that of the rate at which they are drawn.

    A rate that was measured makes no watts measured: it leaves them as they are.
    """
    return np.maximum(evidence, performance * (performance > INTERPOLATED)).astype(np.intp)


def _expected_watts(value: Floats, sd: Floats) -> Band:
    """Power of a drive that nobody measured: wide, so in ratios."""
    ratio = np.exp(NORMAL_90 * np.sqrt(np.log1p((sd / value) ** 2)))
    evidence = np.full(len(value), DATASHEET, dtype=np.intp)
    return Band(value, value / ratio, value * ratio, evidence)


def _within_cap(power: DevicePower, frame: Frame, band: Band) -> Band:
    """The interval ends at the cap of the power state, or at the value where that is above."""
    cap = np.maximum(np.array(power.cap_watts)[frame.power_state], band.value)
    return Band(band.value, band.low, np.minimum(band.high, cap), band.evidence)
