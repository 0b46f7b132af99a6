"""What measurements must be before iojoule takes them into itself: every check with its limit.

`gates` refuses what contradicts itself when somebody fits a profile of their own. A contribution
must also be of one drive and one host, come from instruments that were not stuck or at full scale,
from runs that were steady, and from the drive whose identify data it carries.

How far measurements agree with what a profile answered before it knew them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from scipy.stats import linregress

from iojoule.datasets.catalogue import Drive
from iojoule.datasets.contribution import Check, Instrument, RunSamples, Verdict
from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.datasets.links import LANE_BYTES_PER_SECOND, LINK_LANES
from iojoule.datasets.littles_law import FAIL_ABOVE
from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.schema import Measurement, Section
from iojoule.datasets.steady_state import EXCURSION_MAX, SLOPE_MAX
from iojoule.datasets.verdict import COVERAGE_DOUBTFUL, FULL_SCALE_SECONDS, usable
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.fit import selection as gates
from iojoule.model.fit.host_power import LEAST_SLOPE
from iojoule.model.fit.selection import named

ONE_A_CONTRIBUTION = {"device_model": "models of drives", **gates.ONE_A_SESSION}
"""Conditions that are the same in all runs of a contribution."""

ONE_A_SITTING = (
    "cpu_model",
    "kernel_version",
    "pcie_generation",
    "pcie_lanes",
    "max_transfer_bytes",
    "device_numa_node",
    "smt_enabled",
)
"""Conditions that do not change while a host runs: other values are of another session."""

OVERLAP_SECONDS = 1.0
"""Runs of one drive do not overlap; clocks of one host may be set by so much meanwhile."""

UNSTEADY_SHARE = 1 / 3
"""Assumption: writes to a purged drive pass from its cache to its flash within a run, so some runs
are unsteady by nature (they stand apart in the fit); more than a third of all are a plan with too
short runs, or a drive that was not left alone."""

CONSTANT_SECONDS = 0.1
"""Samples with noise do not repeat for so long: 2,000 of a PowerSensor3 would have to be equal."""

CONSTANT_SHARE = 0.5
"""Of a run: so long may a slow meter of coarse steps show one value."""

LOST_SCATTER = 0.1
"""A run whose usual scatter is below this share of the median run's has a channel that is stuck."""

LOST_STEPS = 0.2
"""Where the meter's step is known, the scatter must also be below this share of it: a drive that
fluctuates less than in other runs leaves the noise of the meter, which is about a step."""

CAP_EXCEEDED = 1.25
"""Mean power over the declared cap of its state. A drive keeps the cap on the mean of 10 s (NVM
Express Base Specification 2.1, figure 313, MP); meters err by a few percent; beyond a quarter a
unit, a scale or the state is another one."""

BELOW_IDLE = 0.9
"""Power of a busy drive over its idle power in the same state: it never draws less, but for what
the two means err."""

METERS_APART = 0.1
"""Two meters of one drive; `measure run` notes from here on that they disagree."""

WALL_SLOPE_MOST = 2.0
"""Watts at the wall for one watt behind the supply: assumption. Supplies are at least half
efficient at any load worth measuring; what rises more has another consumer in it."""

FEWEST_POINTS = 5
"""Fewer runs with every power tell no slope."""

STANDARD_ERRORS = 2.0
"""So many standard errors a slope may lie outside its bounds."""

CAPACITY_APART = 0.1
"""Between capacity as sold and as identified: 1 TB is 1.0002e12 bytes, or 0.96e12 of enterprise
models; the next model of a series has at least a quarter more."""

CAPS_APART = 0.02
"""Between caps of a power state in two tables, which states round to 10 mW."""


def contribution_checks(
    measurements: Sequence[Measurement],
    runs: Sequence[RunSamples],
    drive: MeasuredDrive | None,
    known: Drive | None,
    instruments: Sequence[Instrument],
) -> list[Check]:
    """Every check, in the order in which a refusal is best explained.

    Args:
        measurements: Of the contribution.
        runs: What the raw samples say of each; empty = not kept.
        drive: What the drive says of itself; None = nobody asked it.
        known: The catalogue's entry of the model; None = it has none.
        instruments: Those of power; empty = nobody says.
    """
    rows = list(measurements)
    return [
        _one_drive(rows),
        _identify(rows, drive, known),
        _one_session(rows, runs),
        _judged(rows),
        _littles_law(rows),
        _repeats(rows),
        _stuck_sensor(runs, instruments),
        _clipped_sensor(runs),
        _coverage(runs),
        _steady(runs),
        _link(rows),
        _declared_cap(rows, drive),
        _above_idle(rows),
        _second_meter(runs),
        _wall(rows, instruments),
        _gates(rows),
    ]


def refuse_failed(checks: Sequence[Check]) -> None:
    """Refuse a contribution by the name of the first check that failed.

    Raises:
        DataQualityError: Its field is the name; the message names all that failed.
    """
    failed = [check for check in checks if check.verdict == "failed"]
    if failed:
        raise DataQualityError(
            "the contribution is refused: "
            + "; ".join(f"{check.name}: {check.said}" for check in failed),
            field=failed[0].name,
        )


def unsteady_runs(runs: Sequence[RunSamples]) -> set[int]:
    """Places (from 0) of the runs whose power or throughput was not steady."""
    return {place for place, run in enumerate(runs) if _is_unsteady(run)}


def _verdict(holds: bool | None) -> Verdict:
    if holds is None:
        return "not known"
    return "passed" if holds else "failed"


def _few(items: Iterable[object]) -> str:
    listed = [str(item) for item in items]
    return ", ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")


def _values(rows: Iterable[Measurement], field: str) -> dict[Any, int]:
    """Known values of a condition and the first run of each, from 1."""
    values: dict[Any, int] = {}
    for number, measurement in enumerate(rows, 1):
        value = getattr(measurement.conditions, field)
        if value is not None:
            values.setdefault(value, number)
    return values


def _none_of(name: str, wrong: Sequence[str], refused: str, passed: str) -> Check:
    """A check that counts what is wrong, and lets nothing pass."""
    return Check(
        name=name,
        verdict=_verdict(not wrong),
        value=float(len(wrong)),
        limit=0.0,
        said=refused if wrong else passed,
    )


def _one_drive(rows: list[Measurement]) -> Check:
    """One model, one specimen, one firmware, one host."""
    mixed = []
    for field, many in ONE_A_CONTRIBUTION.items():
        values = _values(rows, field)
        if len(values) > 1:
            first, second = list(values.values())[:2]
            mixed.append(f"{len(values)} {many} (runs {first} and {second} differ)")
    return _none_of(
        "one_drive_one_host",
        mixed,
        f"{'; '.join(mixed)}; contribute each for itself",
        "one drive, one host",
    )


def _one_session(rows: list[Measurement], runs: Sequence[RunSamples]) -> Check:
    """Runs of one session share what cannot change in it, and do not overlap."""
    sessions: dict[str, list[Measurement]] = {}
    for measurement in rows:
        sessions.setdefault(measurement.conditions.session_id or "", []).append(measurement)
    wrong = [
        f"{field} changes within {session or 'runs without session_id'}"
        for session, own in sessions.items()
        for field in ONE_A_SITTING
        if len(_values(own, field)) > 1
    ]
    overlaps = list(_overlaps(runs))
    if overlaps:
        wrong.append(f"runs overlap in time ({_few(overlaps)}), and one drive makes one at a time")
    return _none_of(
        "one_session",
        wrong,
        f"{_few(wrong)}; give the runs of each session their own session_id",
        f"{len(sessions)} sessions, each of one piece",
    )


def _overlaps(runs: Sequence[RunSamples]) -> Iterator[str]:
    known = sorted(
        (run.started_seconds, run.wall_seconds, run.row)
        for run in runs
        if run.started_seconds is not None and run.wall_seconds is not None
    )
    latest: tuple[float, int] | None = None
    for began, lasted, row in known:
        if latest is not None and began < latest[0] - OVERLAP_SECONDS:
            yield f"{latest[1]} and {row}"
        if latest is None or began + lasted > latest[0]:
            latest = began + lasted, row


def _identify(rows: list[Measurement], drive: MeasuredDrive | None, known: Drive | None) -> Check:
    """Identify data are of the drive that was measured, and of the catalogue's model."""
    if drive is None:
        return Check(name="identify", verdict="not known", said="no identify data are given")
    wrong = [*_against_runs(rows, drive), *_against_catalogue(drive, known)]
    return _none_of(
        "identify",
        wrong,
        f"the identify data are of another drive: {'; '.join(wrong)}",
        "identify data, runs and catalogue agree",
    )


def _against_runs(rows: list[Measurement], drive: MeasuredDrive) -> Iterator[str]:
    stated: dict[str, object] = {
        "firmware": drive.firmware,
        "max_transfer_bytes": drive.max_transfer_bytes,
    }
    for field, value in stated.items():
        others = [other for other in _values(rows, field) if value is not None and other != value]
        if others:
            yield f"{field} is {value}, the runs say {others[0]}"
    operational = {state.index for state in drive.power_states if state.operational}
    states = {measurement.configuration.power_state for measurement in rows} - {None}
    if operational and not states <= operational:
        yield f"the runs use power states {_few(sorted(states - operational, key=str))}"


def _against_catalogue(drive: MeasuredDrive, known: Drive | None) -> Iterator[str]:
    if known is None:
        return
    facts = {
        metric: fact.value
        for metric in ("capacity", "max_transfer_size")
        if (fact := known.fact(metric)) is not None and not isinstance(fact.value, str)
    }
    capacity, transfer = facts.get("capacity"), facts.get("max_transfer_size")
    if capacity and abs(drive.capacity_bytes / capacity - 1.0) > CAPACITY_APART:
        yield f"capacity {drive.capacity_bytes:.4g} bytes, {known.id} has {capacity:.4g}"
    if transfer and drive.max_transfer_bytes and drive.max_transfer_bytes != transfer:
        yield f"largest transfer {drive.max_transfer_bytes} bytes, {known.id} has {transfer}"
    declared = {state.index: state.max_power_watts for state in drive.power_states}
    for state in known.power_states:
        # another firmware may declare another table, and that is worth knowing
        if state.firmware is not None and state.firmware != drive.firmware:
            continue
        cap = declared.get(state.index)
        if declared and cap is None:
            yield f"no power state {state.index}, {known.id} has one"
        elif cap is not None and abs(cap - state.max_power_watts) > max(
            CAPS_APART * state.max_power_watts, 0.011
        ):
            yield (
                f"power state {state.index} declares {cap:g} W, that of {known.id} "
                f"{state.max_power_watts:g} W"
            )


def _judged(rows: list[Measurement]) -> Check:
    """No run that its campaign calls doubtful or failed."""
    if all(measurement.judgement.verdict is None for measurement in rows):
        return Check(name="verdicts", verdict="not known", said="nobody judged the runs")
    verdict = usable(rows)
    wrong = tuple(
        number
        for number, measurement in enumerate(rows, 1)
        if not usable([measurement]).measurements
    )
    return Check(
        name="verdicts",
        verdict=_verdict(not wrong),
        value=float(len(wrong)),
        limit=0.0,
        runs=wrong,
        said="; ".join(verdict.notes) or "every run is good",
    )


def _littles_law(rows: list[Measurement]) -> Check:
    """How many runs are off Little's law by more than what `gates` lets into a fit."""
    ratios = {
        number: ratio
        for number, measurement in enumerate(rows, 1)
        if measurement.at_full_speed and (ratio := measurement.littles_ratio()) is not None
    }
    off = tuple(number for number, ratio in ratios.items() if abs(ratio - 1.0) > FAIL_ABOVE)
    if not ratios:
        return Check(name="littles_law", verdict="not known", said="no run states rate and latency")
    share = len(off) / len(ratios)
    worst = max(ratios.values(), key=lambda ratio: abs(ratio - 1.0))
    return Check(
        name="littles_law",
        verdict=_verdict(share <= gates.MOST_FAILING),
        value=share,
        limit=gates.MOST_FAILING,
        runs=off,
        said=(
            f"{len(off)} of {len(ratios)} runs are more than {FAIL_ABOVE:.0%} off; the worst ratio "
            f"is {worst:.3f}"
        ),
    )


def _repeats(rows: list[Measurement]) -> Check:
    """Repeats of one session agree."""
    # how long ago something was written is not what makes two runs the same
    any_time = {"seconds_since_last_write": None}
    alike = [
        measurement.model_copy(update={"state": measurement.state.model_copy(update=any_time)})
        for measurement in rows
    ]
    spreads = [
        (gates.spread_within(sessions), example)
        for example, sessions in gates.repeats(alike)
        if any(len(values) > 1 for values in sessions.values())
    ]
    if not spreads:
        return Check(name="repeats", verdict="not known", said="no run was repeated in its session")
    worst, example = max(spreads, key=lambda spread: spread[0])
    return Check(
        name="repeats",
        verdict=_verdict(worst <= gates.REPEATS_REFUSE),
        value=worst,
        limit=gates.REPEATS_REFUSE,
        said=(
            f"repeats of one session differ by a factor of {worst:.2f} at most, in throughput "
            f"({gates.named(example)})"
        ),
    )


def _of_runs(
    name: str,
    runs: Sequence[RunSamples],
    value: Callable[[RunSamples], float | None],
    limit: float,
    unit: str,
    what: str,
    *,
    least: bool = False,
) -> Check:
    """A figure of each run that must not pass a limit."""
    known = {run.row: number for run in runs if (number := value(run)) is not None}
    if not known:
        return Check(name=name, verdict="not known", said="no raw samples are kept")
    bad = tuple(
        row for row, number in known.items() if (number < limit if least else number > limit)
    )
    worst = min(known.values()) if least else max(known.values())
    which = f"runs {_few(bad)}: " if bad else ""
    return Check(
        name=name,
        verdict=_verdict(not bad),
        value=worst,
        limit=limit,
        unit=unit,
        runs=bad,
        said=f"{which}{what} {worst:.3g}{' ' + unit if unit else ''} at the worst",
    )


def _stuck_sensor(runs: Sequence[RunSamples], instruments: Sequence[Instrument]) -> Check:
    """No stretch of equal samples, and the scatter that the instrument usually has."""
    scatters = [run.scatter_watts for run in runs if run.scatter_watts is not None]
    usual = float(np.median(scatters)) if scatters else 0.0
    steps = [
        instrument.resolution_watts for instrument in instruments if instrument.scope == "device"
    ]
    lost = min([LOST_SCATTER * usual, *(LOST_STEPS * step for step in steps if step)])

    def constant(run: RunSamples) -> float | None:
        """Seconds that samples stay equal; all of the run where the scatter is gone."""
        if run.longest_constant_seconds is None:
            return None
        whole = run.measured_seconds or run.longest_constant_seconds
        if run.scatter_watts is not None and run.scatter_watts < lost:
            return whole
        if usual == 0.0 and run.longest_constant_seconds < CONSTANT_SHARE * whole:
            return 0.0
        return run.longest_constant_seconds

    return _of_runs(
        "stuck_sensor",
        runs,
        constant,
        CONSTANT_SECONDS,
        "s",
        "the drive's power meter shows one value, or has lost its noise, for",
    )


def _clipped_sensor(runs: Sequence[RunSamples]) -> Check:
    check = _of_runs(
        "clipped_sensor",
        runs,
        lambda run: run.clipped_seconds,
        FULL_SCALE_SECONDS,
        "s",
        "the drive's power meter is at its full scale for",
    )
    if check.verdict == "not known":
        return check.model_copy(update={"said": "no meter of the drive says its full scale"})
    return check


def _coverage(runs: Sequence[RunSamples]) -> Check:
    return _of_runs(
        "coverage",
        runs,
        lambda run: run.coverage,
        COVERAGE_DOUBTFUL,
        "",
        "share of the run that samples of power stand for:",
        least=True,
    )


def _second_meter(runs: Sequence[RunSamples]) -> Check:
    ratio = _of_runs(
        "second_meter",
        runs,
        lambda run: None if run.second_meter_ratio is None else abs(run.second_meter_ratio - 1.0),
        METERS_APART,
        "",
        "two meters of the drive differ by a share of",
    )
    if ratio.verdict == "not known":
        return ratio.model_copy(update={"said": "there is no second meter of the drive"})
    return ratio


def _is_unsteady(run: RunSamples) -> bool:
    excursions = (run.watts_excursion or 0.0, run.throughput_excursion or 0.0)
    slopes = (run.watts_slope or 0.0, run.throughput_slope or 0.0)
    return max(excursions) > EXCURSION_MAX or max(slopes) > SLOPE_MAX


def _steady(runs: Sequence[RunSamples]) -> Check:
    """Power and throughput over five parts of each run."""
    judged = [
        run
        for run in runs
        if run.watts_excursion is not None or run.throughput_excursion is not None
    ]
    if not judged:
        return Check(name="steady", verdict="not known", said="no raw samples are kept")
    off = tuple(judged_row.row for judged_row in judged if _is_unsteady(judged_row))
    share = len(off) / len(judged)
    return Check(
        name="steady",
        verdict=_verdict(share <= UNSTEADY_SHARE),
        value=share,
        limit=UNSTEADY_SHARE,
        runs=off,
        said=(
            f"{len(off)} of {len(judged)} runs moved by more than {EXCURSION_MAX:.0%}, or along a "
            f"slope of more than {SLOPE_MAX:.0%}, over their five parts; they stand apart in a fit"
        ),
    )


def _link(rows: list[Measurement]) -> Check:
    """No throughput above what the link carries."""
    shares = {}
    for number, measurement in enumerate(rows, 1):
        generation, rate = measurement.conditions.pcie_generation, measurement.observations
        lane = LANE_BYTES_PER_SECOND.get(generation or 0)
        if lane and rate.throughput_bytes_per_second:
            lanes = measurement.conditions.pcie_lanes or LINK_LANES
            shares[number] = rate.throughput_bytes_per_second / (lane * lanes)
    if not shares:
        return Check(name="link", verdict="not known", said="the runs do not name the link")
    bad = tuple(number for number, share in shares.items() if share > 1.0)
    worst = max(shares.values())
    return Check(
        name="link",
        verdict=_verdict(not bad),
        value=worst,
        limit=1.0,
        runs=bad,
        said=f"at most {worst:.2f} of what the link carries",
    )


def _declared_cap(rows: list[Measurement], drive: MeasuredDrive | None) -> Check:
    """Mean drive power within the declared cap of the state."""
    caps = {state.index: state.max_power_watts for state in drive.power_states} if drive else {}
    ratios = {}
    for number, measurement in enumerate(rows, 1):
        cap = caps.get(measurement.configuration.power_state or 0)
        if cap and measurement.observations.device_power_watts is not None:
            ratios[number] = measurement.observations.device_power_watts / cap
    if not ratios:
        return Check(name="declared_cap", verdict="not known", said="no cap or no watts are known")
    bad = tuple(number for number, ratio in ratios.items() if ratio > CAP_EXCEEDED)
    worst = max(ratios.values())
    return Check(
        name="declared_cap",
        verdict=_verdict(not bad),
        value=worst,
        limit=CAP_EXCEEDED,
        runs=bad,
        said=f"drive power is at most {worst:.2f} times the declared cap of its power state",
    )


def _above_idle(rows: list[Measurement]) -> Check:
    """A busy drive draws no less than an idle one."""
    ratios = {
        number: seen.device_power_watts / seen.idle_power_watts
        for number, measurement in enumerate(rows, 1)
        if (seen := measurement.observations).idle_power_watts
        and seen.device_power_watts is not None
    }
    if not ratios:
        return Check(name="above_idle", verdict="not known", said="no idle power is known")
    bad = tuple(number for number, ratio in ratios.items() if ratio < BELOW_IDLE)
    least = min(ratios.values())
    return Check(
        name="above_idle",
        verdict=_verdict(not bad),
        value=least,
        limit=BELOW_IDLE,
        runs=bad,
        said=f"drive power is at least {least:.2f} times idle power",
    )


def _wall(rows: list[Measurement], instruments: Sequence[Instrument]) -> Check:
    """What drive and CPU draw more shows at the wall, and not twice over.

    A processor's own counter of the platform (RAPL psys) may contain the drive or not, and so may
    a meter that nobody names: only the rise of CPU and memory must then be seen.
    """
    wall_meter = any(
        instrument.scope == "system" and instrument.kind != "rapl" for instrument in instruments
    )
    points = []
    for measurement in rows:
        seen = measurement.observations
        cpu, drive, wall = seen.cpu_power_watts, seen.device_power_watts, seen.system_power_watts
        if cpu is not None and drive is not None and wall is not None:
            parts = cpu + (seen.dram_power_watts or 0.0) + (drive if wall_meter else 0.0)
            points.append((parts, wall))
    if len(points) < FEWEST_POINTS or np.ptp([parts for parts, _ in points]) == 0.0:
        return Check(
            name="wall_meter", verdict="not known", said="too few runs with drive, CPU and wall"
        )
    line = linregress([parts for parts, _ in points], [wall for _, wall in points])
    slope, doubt = float(line.slope), STANDARD_ERRORS * float(line.stderr)
    most = WALL_SLOPE_MOST if wall_meter else np.inf
    what = "drive and CPU" if wall_meter else "the CPU"
    bounds = f"at least {LEAST_SLOPE:g}" + (f", at most {most:g}" if wall_meter else "")
    return Check(
        name="wall_meter",
        verdict=_verdict(slope + doubt >= LEAST_SLOPE and slope - doubt <= most),
        value=slope,
        limit=WALL_SLOPE_MOST if slope > most else LEAST_SLOPE,
        unit="W/W",
        said=(
            f"for 1 W more of {what} the meter of the whole machine shows {slope:.2f} +- "
            f"{doubt:.2f} W more; it must be {bounds}"
        ),
    )


def _gates(rows: list[Measurement]) -> Check:
    """The gates that every fit asks."""
    try:
        notes = gates.check(rows).notes
    except InputError as error:
        return Check(name=error.field or "gates", verdict="failed", said=error.message)
    return Check(name="gates", verdict="passed", value=float(len(notes)), said="; ".join(notes))


QUANTITIES = (
    "throughput_bytes_per_second",
    "latency_mean_ns",
    "latency_p99_ns",
    "device_power_watts",
    "cpu_power_watts",
    "system_power_watts",
)

LARGEST_SHOWN = 10
"""Of the disagreements, over all quantities."""


class QuantityAgreement(Section):
    """Predictions of one quantity beside what was measured.

    Attributes:
        quantity: Which.
        rows: Measurements that state it, of a profile that answers it.
        median_error: Median of |predicted / measured - 1|.
        p90_error: Its 90th percentile.
        bias: Median of predicted / measured - 1.
        covered: Share of measurements inside their 90 % interval.
        width: Median of the interval's upper over its lower end; None where an end is 0.
    """

    quantity: str
    rows: int
    median_error: float
    p90_error: float
    bias: float
    covered: float
    width: float | None


class Disagreement(Section):
    """One measurement far from its prediction."""

    run: int
    what: str
    quantity: str
    measured: float
    predicted: float
    low: float
    high: float
    error: float


class Agreement(Section):
    """`agreement.json`: a profile against measurements that it has not seen.

    Attributes:
        compared_with: Whether that profile rests on measurements of the drive, or on its facts.
        profile: Its device.
        quantities: One each that can be compared.
        largest: The largest disagreements, the worst first.
        not_predicted: Runs that the profile refuses to answer, and why.
    """

    schema_version: Literal[1] = 1
    compared_with: Literal["measured profile", "facts of the drive"]
    profile: str
    quantities: tuple[QuantityAgreement, ...]
    largest: tuple[Disagreement, ...]
    not_predicted: tuple[str, ...] = ()


def agreement(
    measurements: Sequence[Measurement], numbers: Sequence[int], predicted: Prediction | None
) -> tuple[tuple[QuantityAgreement, ...], tuple[Disagreement, ...]]:
    """Compare measurements with their predictions.

    Args:
        measurements: One a row of `predicted`.
        numbers: Their lines, the first run being 1.
        predicted: Bands of the quantities; None where no row is predicted.
    """
    compared, largest = [], []
    for quantity in QUANTITIES:
        if predicted is None or quantity not in predicted.bands:
            continue
        band = predicted[quantity]
        seen = np.array(
            [getattr(measurement.observations, quantity) or np.nan for measurement in measurements],
            dtype=float,
        )
        indices = np.flatnonzero(np.isfinite(seen) & np.isfinite(band.value)).tolist()
        if not indices:
            continue
        error = band.value[indices] / seen[indices] - 1.0
        low, high = band.low[indices], band.high[indices]
        inside = (low <= seen[indices]) & (seen[indices] <= high)
        wide = np.median(high / low) if (low > 0).all() else np.nan
        compared.append(
            QuantityAgreement(
                quantity=quantity,
                rows=len(indices),
                median_error=_short(np.median(np.abs(error))),
                p90_error=_short(np.quantile(np.abs(error), 0.9)),
                bias=_short(np.median(error)),
                covered=_short(inside.mean()),
                width=_short(wide) if np.isfinite(wide) else None,
            )
        )
        largest += [
            Disagreement(
                run=numbers[place],
                what=named(measurements[place]),
                quantity=quantity,
                measured=_short(seen[place]),
                predicted=_short(band.value[place]),
                low=_short(band.low[place]),
                high=_short(band.high[place]),
                error=_short(band.value[place] / seen[place] - 1.0),
            )
            for place in indices
        ]
    # by factor, so that half as much counts like twice as much
    largest.sort(key=lambda point: (-abs(np.log(point.predicted / point.measured)), point.run))
    return tuple(compared), tuple(largest[:LARGEST_SHOWN])


def _short(value: float | np.floating) -> float:
    """Four significant digits: errors are not known better."""
    return float(f"{float(value):.4g}")
