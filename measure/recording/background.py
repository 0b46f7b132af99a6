"""What a drive still does when the work is over: energy above idle until idle power is back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEPS_PER_WINDOW = 10


@dataclass(frozen=True)
class IdlePower:
    """The idle power that is to come back.

    Attributes:
        mean_watts: Measured before the work.
        sd_watts: Standard deviation of its means over `window_seconds`.
        window_seconds: Width of the moving mean.
        deviations: Back at idle is who is at most so many `sd_watts` above the mean
        windows: in so many windows in a row, side by side.
    """

    mean_watts: float
    sd_watts: float
    window_seconds: float = 1.0
    deviations: float = 3.0
    windows: int = 5

    @property
    def threshold_watts(self) -> float:
        """The highest moving mean that counts as idle."""
        return self.mean_watts + self.deviations * self.sd_watts


@dataclass(frozen=True)
class Background:
    """The time between the end of the work and the return of idle power.

    Attributes:
        energy_joules: Integral of power minus idle power over `seconds`.
        seconds: Until idle is back, or the end of the recording.
        returned: Whether idle came back; if not, both numbers are lower bounds.
    """

    energy_joules: float
    seconds: float
    returned: bool


def background(
    times_ns: NDArray[np.int64], watts: NDArray[np.float64], after_ns: int, idle: IdlePower
) -> Background | None:
    """Energy above idle and time until it is back.

    The rule: means over `window_seconds`, moving by a tenth of it. Idle is back at the begin of
    the first window from which on the means of `windows` windows side by side (and all in between)
    stay at or below `threshold_watts`.

    Args:
        times_ns: Of the samples, shape (n,).
        watts: Shape (n,).
        after_ns: The end of the work.
        idle: What to wait for.

    Returns:
        None with less than one window of samples.
    """
    later = times_ns >= after_ns
    times_ns, watts = times_ns[later], watts[later]
    step_ns = round(idle.window_seconds * 1e9 / STEPS_PER_WINDOW)
    if len(times_ns) < 2 or times_ns[-1] - after_ns < idle.window_seconds * 1e9:
        return None
    bins = int((times_ns[-1] - after_ns) // step_ns)
    places = (times_ns - after_ns) // step_ns
    inside = places < bins
    counts = np.bincount(places[inside], minlength=bins)
    sums = np.bincount(places[inside], weights=watts[inside], minlength=bins)
    kernel = np.ones(STEPS_PER_WINDOW)
    many = np.convolve(counts, kernel, "valid")
    means = np.convolve(sums, kernel, "valid") / np.maximum(many, 1)
    quiet = (many > 0) & (means <= idle.threshold_watts)
    # quiet from the begin of the first window to that of the last one
    needed = (idle.windows - 1) * STEPS_PER_WINDOW + 1
    runs = np.convolve(quiet, np.ones(needed), "valid") if len(quiet) >= needed else np.empty(0)
    starts = np.flatnonzero(runs >= needed - 0.5)
    returned = len(starts) > 0
    end_ns = after_ns + int(starts[0]) * step_ns if returned else int(times_ns[-1])
    use = times_ns <= end_ns
    excess = watts[use] - idle.mean_watts
    joules = float(np.trapezoid(excess, times_ns[use] * 1e-9)) if len(excess) > 1 else 0.0
    return Background(joules, (end_ns - after_ns) * 1e-9, returned)
