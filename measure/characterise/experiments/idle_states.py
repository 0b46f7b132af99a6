"""Idle power of every power state, and wake-up times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean, stdev

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.measure.characterise.experiment import Bench, Estimates, Extent, Plot
from iojoule.measure.characterise.intervals import Z, between, estimated, mean_of, missing

_WATTS = "mean over the rest, standard error by batch means, autonomous transitions off"
_WAKE = "time of the first read less that of a read in state 0"


class IdleStates:
    """Idle and standby power of every state."""

    name = "idle"
    title = "Idle and standby power of every power state"
    purpose = (
        "what an idle hour costs, and whether a sleep state keeps the promise of its table: the "
        "980 PRO draws 1.2 W where it declares 0.4 and 0.05"
    )
    sources = ("thesis 5.1.1", "003 Observation 1")
    writes = False
    needs_power = True
    needs_controller = True

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""
        rows = []
        for state in bench.power_states:
            for repeat in range(extent.repeats):
                bench.power_state(state)
                rows.append(bench.rest(f"state {state} repeat {repeat}", extent.idle_seconds))
                rows.append(bench.wake(f"wake {state} repeat {repeat}"))
                rows.append(bench.wake(f"awake {state} repeat {repeat}"))
        if bench.power_states:
            bench.power_state(bench.power_states[0])
        return rows

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        states = sorted({int(row.label.split()[1]) for row in evidence.named("state ")})
        estimates: Estimates = {}
        base = [row["latency_ns"] for row in evidence.named("awake ")]
        for state in states:
            rests = evidence.named(f"state {state} ")
            estimates[f"idle_watts_ps{state}"] = _watts(rests)
            wakes = [row["latency_ns"] for row in evidence.named(f"wake {state} ")]
            estimates[f"wake_seconds_ps{state}"] = _wake(wakes, base)
        return estimates

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        known = [
            (name.removeprefix("idle_watts_ps"), estimate)
            for name, estimate in estimates.items()
            if name.startswith("idle_watts_ps") and estimate.value is not None
        ]
        values = [estimate.value or 0.0 for _, estimate in known]
        low = [(estimate.value or 0.0) - (estimate.low or 0.0) for _, estimate in known]
        high = [(estimate.high or 0.0) - (estimate.value or 0.0) for _, estimate in known]
        axes.bar([f"PS{state}" for state, _ in known], values, yerr=[low, high], color="#0072B2")
        axes.set_ylabel("idle power (W)")


def _watts(rests: list[Row]) -> Estimate:
    if any(row.get("state_held") == 0.0 for row in rests):
        return missing("the drive left the state while it was measured", "W", _WATTS)
    known = [row for row in rests if "power_watts" in row.values]
    if not known:
        return missing("no power meter said a mean", "W", _WATTS)
    watts, error = mean_of(
        [row["power_watts"] for row in known], [row["power_error_watts"] for row in known]
    )
    return estimated(watts, error, "W", _WATTS, least=0.0)


def _wake(wakes: list[float], base: list[float]) -> Estimate:
    """The spread of reads that did not wake anything is what a single time may be off by."""
    if not wakes or len(base) < 2:
        return missing("no read was timed", "s", _WAKE)
    centre = mean(base)
    extra = (mean(wakes) - centre) * 1e-9
    half = Z * stdev(base) * 1e-9 * math.sqrt(1 / len(wakes) + 1 / len(base))
    if extra - half <= 0:
        return missing(
            "the first read took no longer than any other", "s", _WAKE, high=max(extra + half, 0.0)
        )
    return between(extra, max(extra - half, 0.0), extra + half, "s", _WAKE)
