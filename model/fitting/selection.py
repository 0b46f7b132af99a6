"""Which measurements a profile is fitted on, and which tell of something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iojoule.datasets.errors import DataQualityError
from iojoule.datasets.profile import FlushCost
from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import usable
from iojoule.model.fitting.flushes import fit_flush, waits_for_flushes
from iojoule.model.fitting.gates import check


@dataclass(frozen=True)
class Selected:
    """Measurements that may be fitted together.

    Attributes:
        measurements: These.
        flush: What a flush costs, by those that waited for one; None = they do not say.
        notes: What was left out, and what its reader should know.
    """

    measurements: list[Measurement]
    flush: FlushCost | None
    notes: list[str]


def select(measurements: Sequence[Measurement], *, with_doubtful: bool = False) -> Selected:
    """Choose what may be fitted: good runs of one size, no flushes, a verified power state.

    Args:
        measurements: All there are.
        with_doubtful: Whether to take runs that their campaign calls doubtful.

    Raises:
        DataQualityError: They contradict themselves (`gates`).
        InputError: There are too few; says what to measure next.
    """
    judged = usable(measurements, with_doubtful=with_doubtful)
    kept, notes = judged.measurements, list(judged.notes)
    if measurements and not kept:
        raise DataQualityError(f"nothing is left to fit: {'; '.join(notes)}", field="verdict")
    sizes = [one for one in kept if one.workload.request_bytes_mix is not None]
    if sizes:
        kept = [one for one in kept if one.workload.request_bytes_mix is None]
        notes.append(f"{len(sizes)} measurements of several sizes at once are left out")
    flush = fit_flush(kept)
    flushing = [one for one in kept if waits_for_flushes(one)]
    if flushing:
        kept = [one for one in kept if not waits_for_flushes(one)]
        found_out = (
            "they have no twins without flushes" if flush is None
            else f"a flush takes {1e3 * flush.seconds.value:.3g} ms"
        )  # fmt: skip
        notes.append(
            f"{len(flushing)} measurements with flushes say what a flush costs, nothing else: "
            f"{found_out}"
        )
    unverified = [one for one in kept if one.conditions.power_state_verified is False]
    if unverified:
        kept = [one for one in kept if one.conditions.power_state_verified is not False]
        notes.append(
            f"{len(unverified)} measurements are left out: nobody verified their power state"
        )
    checked = check(kept)
    return Selected(checked.measurements, flush, notes + checked.notes)
