"""What writes cost after they are over: energy and duration over the bytes written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation
from iojoule.measure.characterise.estimators.housekeeping import (
    Housekeeping,
    fit_line,
    housekeeping,
)
from iojoule.measure.characterise.estimators.intervals import found, missing
from iojoule.measure.characterise.question import Bench, Estimates, Job
from iojoule.measure.characterise.questions.slc_cache import after_writes
from iojoule.measure.characterise.scope import ScaleName, Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARES = {ScaleName.QUICK: (1 / 18, 1 / 6), ScaleName.FULL: (1 / 36, 1 / 18, 1 / 9, 1 / 4)}
"""Of the area: bursts of growing size."""
_ENERGY = "slope of the energy above idle after the last write over the bytes written"
_TIME = "slope of the time until idle power is back over the bytes written"


class Background:
    """Background work after writes."""

    name = "background"
    title = "Background work after writes"
    purpose = "the energy of a write that no meter sees while it is under way"
    sources = ("thesis 5.1", "003 section 'RW asymmetry'", "002 section 2.2")
    writes = True
    needs_power = True
    needs_controller = False

    def measure(self, bench: Bench, scope: Scope) -> list[Row]:
        """Make the observations."""
        rows = []
        for repeat in range(scope.repeats):
            for number, share in enumerate(_SHARES[scope.scale]):
                job = Job(
                    f"burst {number} {repeat}",
                    Operation.WRITE,
                    65536,
                    queue_depth=16,
                    bytes_total=scope.share_bytes(share),
                    trace=True,
                    effects=True,
                )
                rows += [bench.run(job), bench.quiet(f"after {number} {repeat}")]
        return rows

    def answer(self, evidence: Evidence) -> Estimates:
        """Estimate from the evidence."""
        works = _works(evidence)
        if isinstance(works, str):
            return {
                "background_joules_per_byte": missing(works, "J/byte", _ENERGY),
                "background_seconds_per_byte": missing(works, "s/byte", _TIME),
            }
        sizes = np.array([size for size, _ in works])
        joules = np.array([work.joules for _, work in works])
        errors = np.array([max(work.joules_error, 1e-9) for _, work in works])
        seconds = np.array([work.seconds for _, work in works])
        steps = np.array([max(2 * work.step_seconds, 1e-3) for _, work in works])
        energy, time = fit_line(sizes, joules, errors), fit_line(sizes, seconds, steps)
        assert energy is not None
        assert time is not None
        return {
            "background_joules_per_byte": found(
                energy.slope, energy.slope_error, "J/byte", _ENERGY, least=0.0
            ),
            "background_seconds_per_byte": found(
                time.slope, time.slope_error, "s/byte", _TIME, least=0.0
            ),
            "background_seconds_at_once": found(
                time.start, time.start_error, "s", "the same line at no bytes", least=0.0
            ),
        }

    def draw(self, axes: Axes, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
        works = _works(evidence)
        if isinstance(works, str):
            axes.text(0.5, 0.5, works, ha="center", wrap=True)
            return
        sizes = [size / 2**20 for size, _ in works]
        axes.plot(sizes, [work.joules for _, work in works], "o", color="#0072B2", label="energy")
        axes.set_xlabel("written in one burst (MiB)")
        axes.set_ylabel("energy above idle afterwards (J)", color="#0072B2")
        other = axes.twinx()
        other.plot(sizes, [work.seconds for _, work in works], "s", color="#D55E00")
        other.set_ylabel("until idle power is back (s)", color="#D55E00")


def _works(evidence: Evidence) -> list[tuple[float, Housekeeping]] | str:
    """Bytes and work of every burst, or why there is none to be told."""
    idle = evidence.one("idle")
    if idle is None or "power_watts" not in idle.values:
        return "idle power is not known"
    found_work = []
    for row, after in zip(evidence.named("burst "), evidence.named("after "), strict=False):
        since, watts = after_writes(evidence, row)
        if not len(watts):
            return "the power meter is too slow to see it"
        if after.get("quiet") != 1.0:
            continue  # its work is not over, so that it tells only a lower bound
        work = housekeeping(since, watts, idle["power_watts"], idle["power_error_watts"])
        found_work.append((row["bytes_written"], work))
    if len({size for size, _ in found_work}) < 2:
        return "the drive did not come to rest after at least two bursts of different size"
    return found_work
