"""Quantities of device state and gaps: work after writes, runs past the cache, waking up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import Parameter
from iojoule.model.evaluate.bands import EVIDENCE, Interval
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, NORMAL_90, QUANTITIES
from iojoule.model.evaluate.timeline import Phase, Trajectory, follow
from iojoule.recommender.findings.estimate import Estimate
from iojoule.recommender.findings.estimator import ARGUMENTS, UnansweredError

Point = dict[str, Any]


def predicted(quantity: str) -> Callable[[Predictor, Sequence[Point]], Estimate]:
    """Who answers one of `GAP_QUANTITIES` at the first setting."""

    def answer(predictor: Predictor, points: Sequence[Point]) -> Estimate:
        frame, _ = make_frame(predictor.profile, _columns(points), 1)
        band = predictor.predict(frame, only=(*QUANTITIES, *GAP_QUANTITIES))[quantity]
        value, high = float(band.value[0]), float(band.high[0])
        if not value > 0:
            raise UnansweredError(quantity)
        return Estimate(value, None, np.log(high / value) / NORMAL_90, int(band.evidence[0]))

    return answer


def gap_power(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Mean power of the gap alone, without bursts: the cycle's less the burst's share."""
    frame, _ = make_frame(predictor.profile, _columns(points), 1)
    found = predictor.predict(frame, only=(*QUANTITIES, *GAP_QUANTITIES))
    cycle, active = found["cycle_power_watts"], found["device_power_watts"]
    gap = float(frame.gap_seconds[0])
    requests = float(frame.burst_bytes[0] / frame.request_bytes[0])
    burst = max(requests, 1.0) / float(found["iops"].value[0])
    if not gap > 0 or not np.isfinite(requests):
        raise UnansweredError("a gap and the bytes between two gaps")
    work = float(np.nan_to_num(found["background_energy_joules"].value)[0])
    joules = cycle.value[0] * (burst + gap) - active.value[0] * burst - work
    own = np.log(cycle.high[0] / cycle.value[0]) / NORMAL_90
    return Estimate(float(joules) / gap, None, float(own), int(cycle.evidence[0]))


def background(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Work after a burst of stated bytes, else after a run of stated seconds."""
    if "elapsed_seconds" not in points[0]:
        return predicted("background_seconds")(predictor, points)
    return _of(_run(predictor, points).background_seconds, 1.0, predictor)


def run_bytes(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Bytes that a drive with an empty cache takes in a stated time."""
    story = _run(predictor, points)
    return _of(story.bytes_written, 1.0, predictor)


def run_rate(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Mean throughput of the same run."""
    story = _run(predictor, points)
    return _of(story.bytes_written, 1.0 / float(points[0]["elapsed_seconds"]), predictor)


def collecting(quantity: str) -> Callable[[Predictor, Sequence[Point]], Estimate]:
    """Who answers how collecting comes and goes in a run of stated seconds."""

    def answer(predictor: Predictor, points: Sequence[Point]) -> Estimate:
        found: Interval | None = getattr(_run(predictor, points).episodes, quantity)
        if found is None or not found.value > 0:
            raise UnansweredError(f"collecting that comes back within the time ({quantity})")
        return _of(found, 1.0, predictor)

    return answer


def apst_idle(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Idle time before an autonomous transition."""
    idle = predictor.profile.idle
    if idle is None or idle.apst_idle_seconds is None:
        raise UnansweredError("apst_idle_seconds")
    one: Parameter = idle.apst_idle_seconds
    sd = one.sd / one.value
    return Estimate(one.value, None, sd, EVIDENCE.index(one.evidence.value))


def _run(predictor: Predictor, points: Sequence[Point]) -> Trajectory:
    seconds = float(points[0]["elapsed_seconds"])
    try:
        return follow(predictor, _columns(points), [Phase(seconds, write=True)])
    except InputError as error:
        raise UnansweredError(str(error)) from None


def _columns(points: Sequence[Point]) -> Point:
    return {name: value for name, value in points[0].items() if name not in ARGUMENTS}


def _of(found: Interval, scale: float, predictor: Predictor) -> Estimate:
    state = predictor.profile.write_state
    assert state is not None
    own = float(np.log(found.high / max(found.low, LEAST_SHARE * found.value))) / (2 * NORMAL_90)
    code = EVIDENCE.index(state.transition_bytes.evidence.value)
    return Estimate(found.value * scale, None, own, max(code, EVIDENCE.index("published")))


LEAST_SHARE = 0.1
"""Of a value stands for none at the low end of an interval, where a logarithm is taken."""

STATE_ANSWERS: dict[str, Callable[[Predictor, Sequence[Point]], Estimate]] = {
    "background_seconds": background,
    "wake_latency_ns": predicted("wake_latency_ns"),
    "gap_power_watts": gap_power,
    "bytes_written": run_bytes,
    "mean_throughput_bytes_per_second": run_rate,
    "collecting_pauses": collecting("pauses"),
    "collecting_pause_seconds": collecting("pause_seconds"),
    "second_collecting_start_seconds": collecting("second_start_seconds"),
    "second_collecting_seconds": collecting("second_seconds"),
    "apst_idle_seconds": apst_idle,
}
"""Quantities by name."""
