"""Where the width of a prediction comes from, part by part, for one configuration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iojoule.datasets.profile import DeviceProfile, LadderEntry
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.device_power import PARAMETERS
from iojoule.model.evaluate.device_state import DeviceState
from iojoule.model.evaluate.frame import PATTERNS, Frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.prior.ladder import what_next

LATENCY_OF = ("throughput_bytes_per_second", "iops", "latency_mean_ns")
"""Quantities that Little's law ties to the mean latency: equal widths in log units."""


@dataclass(frozen=True)
class Part:
    """One source of a prediction's variance.

    Attributes:
        source: What it is.
        share: Of the whole variance, 0 to 1.
        relative_sd: Its own standard deviation, in log units (of the value for watts).
    """

    source: str
    share: float
    relative_sd: float


@dataclass(frozen=True)
class Explanation:
    """One predicted quantity: value, 90 % interval, evidence, the parts of its variance."""

    quantity: str
    value: float
    low: float
    high: float
    evidence: str
    parts: tuple[Part, ...]


def explain(predictor: Predictor, frame: Frame) -> list[Explanation]:
    """Explain every known quantity of one configuration.

    Raises:
        ValueError: More than one row.
    """
    if len(frame) != 1:
        raise ValueError("one configuration is explained at a time")
    prediction = predictor.predict(frame)
    out = []
    for name, band in prediction.bands.items():
        if not np.isfinite(band.value[0]):
            continue
        if name.startswith("latency_p"):
            parts = _latency(predictor, frame, name.removeprefix("latency_").removesuffix("_ns"))
        elif name in LATENCY_OF:
            parts = _latency(predictor, frame, "latency")
        elif name == "device_power_watts":
            parts = _device_watts(predictor, frame)
        else:
            sd = (band.high[0] - band.value[0]) / NORMAL_90 / max(band.value[0], 1e-12)
            parts = {"power law of the host": float(sd) ** 2}
        out.append(
            Explanation(
                name,
                float(band.value[0]),
                float(band.low[0]),
                float(band.high[0]),
                prediction.evidence_words(name)[0],
                _shares(parts),
            )
        )
    return out


def _shares(variances: dict[str, float]) -> tuple[Part, ...]:
    total = sum(max(variance, 0.0) for variance in variances.values())
    parts = [
        Part(source, max(variance, 0.0) / total, float(np.sqrt(max(variance, 0.0))))
        for source, variance in variances.items()
        if total > 0 and variance > 1e-4 * total
    ]
    return tuple(sorted(parts, key=lambda part: -part.share))


def _latency(predictor: Predictor, frame: Frame, name: str) -> dict[str, float]:
    """Variances in log units: the surfaces' own parts, then what conditions add."""
    performance = predictor.performance
    points, code = performance.points(frame)
    fraction = float(frame.read_fraction[0])
    pattern = PATTERNS[int(frame.pattern[0])]
    parts: dict[str, float] = {}
    for operation, weight in (("read", fraction), ("write", 1.0 - fraction)):
        if weight <= 0.0:
            continue
        for source, variance in performance.variances(operation, pattern, points, code, name):
            label = source if fraction in (0.0, 1.0) else f"{operation}s: {source}"
            parts[label] = parts.get(label, 0.0) + weight * variance
    total = sum(parts.values())
    both = predictor.directions(frame, points, code, ("latency", name))
    whole = (float(both.half_width[name][0]) / NORMAL_90) ** 2
    parts["power state, device state and mixing"] = whole - total if whole > 1.001 * total else 0.0
    parts["specimen and unknown conditions"] = predictor.profile.between_drives_relative_sd.value**2
    return parts


def _device_watts(predictor: Predictor, frame: Frame) -> dict[str, float]:
    """Variances relative to the value: the law's parameters, the rate, the specimen."""
    power = predictor.profile.device_power
    assert power is not None, "a band of watts needs a law"
    prediction = predictor.predict(frame)
    value = float(prediction["device_power_watts"].value[0])
    x = prediction.activity.device_x
    covariance = np.array(power.covariance)
    by_parameter = (x @ covariance * x)[0]
    free = float(device_power.law_watts(power, x, frame.power_state)[0])
    parts = {
        name.replace("_", " "): float(part) / value**2
        for name, part in zip(PARAMETERS, by_parameter, strict=True)
    }
    parts["lack of fit of the power law"] = (power.relative_sd * free / value) ** 2
    iops = prediction["iops"]
    half = float(np.log(iops.high[0] / iops.low[0])) / 2.0
    work = max(value - power.parameters[0].value, 0.0) / value
    parts["throughput"] = (work * half / NORMAL_90) ** 2
    parts["specimen and unknown conditions"] = predictor.profile.between_drives_relative_sd.value**2
    return parts


def narrowing(frame: Frame, explanation: Explanation) -> str:
    """What to measure so that the largest part of a prediction's width shrinks."""
    source = explanation.parts[0].source if explanation.parts else ""
    operation = "read" if float(frame.read_fraction[0]) >= 0.5 else "write"
    flow = f"{operation}_{PATTERNS[int(frame.pattern[0])]}"
    large = float(frame.request_bytes[0]) >= LARGE_BYTES
    if source.endswith("capacity") or source == "throughput":
        return what_next(f"{flow}_{'bytes' if large else 'operations'}_per_second")
    if source.endswith("unloaded latency"):
        return what_next(f"{flow}_{'transfer_bytes_per_second' if large else 'latency_ns'}")
    if source.endswith("bend of the curve"):
        return what_next(f"{flow}_sharpness")
    if explanation.quantity == "device_power_watts" and not source.startswith("specimen"):
        return what_next("idle_watts" if source.startswith("base") else f"{operation}_watts")
    if source.startswith("specimen"):
        return "state firmware, link, temperature and wear, or measure your own drive"
    if source.startswith(("unknown host", "host path", "power law of the host")):
        return "this host: 4 KiB at depths 1 to 256 with the same engine"
    return "this configuration and its neighbours"


LARGE_BYTES = 32768
"""From about here on bytes a second bound a drive, below it operations a second."""


def entries_for(profile: DeviceProfile, frame: Frame, quantity: str) -> list[LadderEntry]:
    """The ladder's entries that one predicted quantity rests on."""
    if profile.ladder is None:
        return []
    fraction = float(frame.read_fraction[0])
    directions = [name for name, share in (("read", fraction), ("write", 1 - fraction)) if share]
    if quantity == "device_power_watts":
        wanted = ("base_watts", "idle_watts", *(f"{direction}_joules" for direction in directions))
        wanted += tuple(f"{direction}_watts" for direction in directions)
    else:
        pattern = PATTERNS[int(frame.pattern[0])]
        wanted = tuple(f"{direction}_{pattern}" for direction in directions)
        if "write_random" in wanted and DeviceState(profile).collecting(frame)[0] > 0.0:
            wanted += ("write_steady_share",)
    return [entry for entry in profile.ladder.entries if entry.quantity.startswith(wanted)]
