"""A calibration as a profile holds it: parameters, tables, and how far it errs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import (
    CalibratedParameter,
    Simulated,
    SimulatedError,
    SimulatedTable,
)
from iojoule.datasets.vocabulary import Evidence
from iojoule.sim.calibration.calibrate import Timing
from iojoule.sim.calibration.energy import EnergyFit
from iojoule.sim.calibration.estimate import indistinct
from iojoule.sim.calibration.judge import Judged, Row
from iojoule.sim.calibration.observations import Excluded

_UNITS = {"watts": "W", "joules": "J", "byte": "J/B", "command": "J"}


def make_section(
    timing: Timing,
    judged: Judged,
    tables: list[SimulatedTable],
    excluded: Sequence[Excluded],
    *,
    engine: str,
    drive: str,
    source: str,
) -> Simulated:
    """Put the section together; arguments as the parts that were made."""
    reasons = Counter(each.reason for each in excluded)
    energy = judged.energy
    base = None
    if energy is not None:
        base = rounded(float(energy.values[energy.fields.index("controller_active_watts")]))
    told = indistinct(timing.posterior, timing.space.names)
    told += energy.indistinct() if energy is not None else []
    paths = sorted({path for one in tables for path in one.table.paths})
    return Simulated(
        engine=engine,  # type: ignore[arg-type]
        drive=drive,
        condition="; ".join(
            [f"host paths and power states: {', '.join(paths)}"] if paths else ["no tables"]
        ),
        base_watts=base,
        parameters=_parameters(timing, source),
        energy=_energy(energy, source) if energy is not None else [],
        tables=tables,
        discrepancy_sd=rounded(timing.estimate.discrepancy_sd),
        indistinct=[sentence for _, sentence in told],
        excluded=[f"{count} measurements: {reason}" for reason, count in reasons.items()],
        errors=error_table(judged.rows),
    )


def rounded(value: float) -> float:
    """To six significant digits, as all of a profile."""
    return float(f"{value:.6g}")


def _parameters(timing: Timing, source: str) -> list[CalibratedParameter]:
    found = []
    for index, each in enumerate(timing.space.parameters):
        share, sd = float(timing.cube[index]), float(timing.posterior.sd[index])
        ends = [each.value(min(max(share + by * sd, 0.0), 1.0)) for by in (-1, 1)]
        found.append(
            CalibratedParameter(
                name=each.name,
                value=rounded(each.value(share)),
                sd=rounded((ends[1] - ends[0]) / 2),
                unit=each.kind.unit,
                evidence=Evidence.SIMULATED,
                source=f"{each.kind.meaning}; {source}",
                prior_low=rounded(each.low),
                prior_high=rounded(each.high),
            )
        )
    return found


def _energy(energy: EnergyFit, source: str) -> list[CalibratedParameter]:
    return [
        CalibratedParameter(
            name=name,
            value=rounded(float(energy.values[i])),
            sd=rounded(float(energy.sd[i])),
            unit=next(unit for word, unit in _UNITS.items() if name.endswith(word)),
            evidence=Evidence.SIMULATED,
            source=source,
            prior_low=0.0,
            prior_high=rounded(float(energy.prior[i] + 2 * energy.prior_sd[i])),
        )
        for i, name in enumerate(energy.fields)
    ]


def error_table(rows: Sequence[Row]) -> list[SimulatedError]:
    """Medians of absolute errors by quantity and where: each size, each depth, series, all."""
    found = []
    for held_out in (False, True):
        own = [row for row in rows if row.held_out == held_out]
        points = [row for row in own if not row.series]
        groups: list[tuple[str, list[Row]]] = [
            (f"{row[0]} B", [each for each in points if each.request_bytes == row[0]])
            for row in sorted({(each.request_bytes,) for each in points})
            if sum(each.request_bytes == row[0] for each in points) > 1
        ]
        groups += [
            (f"depth {depth}", [each for each in points if each.queue_depth == depth])
            for depth in sorted({each.queue_depth for each in points})
        ]
        groups += [("series of writes", [each for each in own if each.series]), ("all", own)]
        for quantity in ("throughput", "latency", "watts"):
            found += [
                one
                for where, some in groups
                if (one := _error(quantity, where, held_out, some)) is not None
            ]
    return found


def _error(quantity: str, where: str, held_out: bool, rows: Sequence[Row]) -> SimulatedError | None:
    errors = np.abs(np.array([getattr(row, quantity) for row in rows]).reshape(-1, 3))
    known = np.isfinite(errors[:, :2]).any(axis=1)
    if not known.any():
        return None

    def median(column: np.ndarray) -> float | None:
        seen = column[np.isfinite(column)]
        return rounded(float(np.median(seen))) if seen.size else None

    linear = None
    if quantity == "watts":
        linear = median(np.abs(np.array([row.linear_watts for row in rows]))[known])
    covered = None
    if quantity == "throughput":
        holds = [row.interval_holds for row in rows if row.interval_holds is not None]
        covered = rounded(sum(holds) / len(holds)) if holds else None
    before, calibrated, residual = (median(errors[known, column]) for column in range(3))
    return SimulatedError(
        quantity=quantity,
        where=where,
        held_out=held_out,
        rows=int(known.sum()),
        before=before,
        calibrated=calibrated,
        residual=residual,
        linear_law=linear,
        covered=covered,
    )
