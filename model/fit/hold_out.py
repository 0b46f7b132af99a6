"""Mixes of reads and writes predicted with a whole share of reads left out, beside taking turns.

A write series predicted with parts of it left out and its state not given.

Checking the power laws on what they did not see: larger requests, later seconds.

Whole sessions left out: a figure, a day, a host, predicted from everything else.

Harder than depths and sizes left out within a session: what differs between days, hosts and setups
counts, rates that watts rest on are predicted too, and power states may be seen nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.datasets.importers.column_map import public_map
from iojoule.datasets.importers.csv import import_csv
from iojoule.datasets.profile import DevicePower, DeviceProfile, WriteState
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.model.evaluate import device_power
from iojoule.model.evaluate.bands import Band, Floats, Interval
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.timeline import Phase, follow
from iojoule.model.fit.build import fit_profile
from iojoule.model.fit.performance import FittedSurface, fit_surface
from iojoule.model.fit.power import fit_device_power, power_rows
from iojoule.model.fit.rows import SETTINGS, rows_of
from iojoule.model.fit.state_residual import with_state_residuals
from iojoule.model.fit.surfaces import SurfaceMemory
from iojoule.model.fit.write_state import Series, cliff_of, write_series
from iojoule.model.recipe import DevicePowerRecipe, Recipe, generic_recipe

MIXES = "mixratio"
"""The public set of mixes (`datasets/public/mixratio.toml`)."""

_CORNER = 4.0
"""Sharpness of the corner between the unloaded writes and their ceiling in the baseline."""


@dataclass(frozen=True)
class MixOutcome:
    """One share of reads of one drive left out; arrays of shape (n,), one value a depth.

    Attributes:
        drive: Its name in the set.
        read_fraction: The share.
        depth: Requests in flight.
        error: Log of the predicted over the measured rate.
        inside: Whether the measured rate lies in the 90 % interval.
        width: High over low of it.
        untaught: As `error`, where no mix was measured.
        turns: As `error`, of taking turns: reads alone as measured, writes alone, which this set
            does not have, with an unloaded latency and a ceiling fitted to the other shares.
        untaught_turns: Likewise with the reads and writes that the profile predicts.
    """

    drive: str
    read_fraction: float
    depth: Floats
    error: Floats
    inside: NDArray[np.bool_]
    width: Floats
    untaught: Floats
    turns: Floats
    untaught_turns: Floats


def mix_outcomes(folder: Path) -> list[MixOutcome]:
    """Leave out every share of reads of every drive of the set in turn.

    Depths at which reads alone were not measured are left out: turns cannot answer them.

    Raises:
        InputError: The file is missing or not what it was.
    """
    measured = import_csv(folder / f"{MIXES}.csv", public_map(MIXES)).measurements()
    outcomes = []
    for drive in sorted({str(run.conditions.device_model) for run in measured}):
        own = [run for run in measured if run.conditions.device_model == drive]
        pure = [run for run in own if run.workload.operation is Operation.READ]
        alone = {run.configuration.queue_depth: run.observations.iops or np.nan for run in pure}
        mixes = [
            run
            for run in own
            if run.workload.operation is Operation.MIXED and run.configuration.queue_depth in alone
        ]
        base = fit_profile(generic_recipe(drive, drive), pure, [])
        for share in sorted({mix.workload.read_fraction or 0.0 for mix in mixes}):
            training = [mix for mix in mixes if mix.workload.read_fraction != share]
            left = [mix for mix in mixes if mix.workload.read_fraction == share]
            outcomes.append(_outcome(drive, share, base, training, left, alone))
    return outcomes


def _outcome(
    drive: str,
    share: float,
    base: DeviceProfile,
    training: Sequence[Measurement],
    left: Sequence[Measurement],
    alone: dict[int, float],
) -> MixOutcome:
    log_rate = np.log([measurement.observations.iops or np.nan for measurement in left])
    predicted_rates = _rates(with_state_residuals(base, training), left)
    before = _rates(base, left)[0]
    reads, writes = (_rates(base, left, pure)[0] for pure in (1.0, 0.0))
    by_turns = np.log(share * np.exp(-reads) + (1.0 - share) * np.exp(-writes))
    return MixOutcome(
        drive=drive,
        read_fraction=share,
        depth=np.array(
            [measurement.configuration.queue_depth for measurement in left], dtype=float
        ),
        error=predicted_rates[0] - log_rate,
        inside=(predicted_rates[1] <= log_rate) & (log_rate <= predicted_rates[2]),
        width=np.exp(predicted_rates[2] - predicted_rates[1]),
        untaught=before - log_rate,
        turns=_turns(training, left, alone) - log_rate,
        untaught_turns=-by_turns - log_rate,
    )


def _rates(
    profile: DeviceProfile, runs: Sequence[Measurement], read_fraction: float | None = None
) -> tuple[Floats, Floats, Floats]:
    """Log rates at the places of runs, at their or another share, and the ends of intervals."""
    shares = [
        measurement.workload.read_fraction if read_fraction is None else read_fraction
        for measurement in runs
    ]
    word = {1.0: "read", 0.0: "write"}
    columns: dict[str, object] = {
        "operation": [word.get(share or 0.0, "mixed") for share in shares],
        "read_fraction": shares,
        "pattern": [measurement.workload.pattern.value for measurement in runs],
    }
    for name in ("request_bytes", "queue_depth", "jobs", "engine", "completion"):
        columns[name] = [getattr(measurement.configuration, name) for measurement in runs]
    columns["submission_polling"] = [
        bool(measurement.configuration.submission_polling) for measurement in runs
    ]
    band = Predictor(profile).predict_columns(columns, len(runs))[0]["iops"]
    return np.log(band.value), np.log(band.low), np.log(band.high)


def _turns(
    training: Sequence[Measurement], left: Sequence[Measurement], alone: dict[int, float]
) -> Floats:
    """Log rates by turns at `left`; the writes' curve is fitted to `training`."""

    def log_rate(parameters: Floats, runs: Sequence[Measurement]) -> Floats:
        share = np.array([measurement.workload.read_fraction for measurement in runs], dtype=float)
        depth = np.array(
            [measurement.configuration.queue_depth for measurement in runs], dtype=float
        )
        unloaded, ceiling = np.exp(parameters)
        write = (unloaded**_CORNER + (depth / ceiling) ** _CORNER) ** (1.0 / _CORNER)
        read = depth / np.array([alone[int(count)] for count in depth])
        return np.asarray(np.log(depth / (share * read + (1.0 - share) * write)))

    seen = np.log([measurement.observations.iops or np.nan for measurement in training])

    def misses(parameters: Floats) -> Floats:
        return log_rate(parameters, training) - seen

    start = np.log([1.5e-5, 1.5e5])  # s and 1/s: a write into a buffer, and what flash may take
    fitted = least_squares(misses, start, loss="soft_l1", f_scale=0.1)
    return log_rate(fitted.x, left)


@dataclass(frozen=True)
class Misfit:
    """Errors of a group of predictions, relative."""

    name: str
    rows: int
    median: float
    largest: float
    bias: float

    @classmethod
    def of(cls, name: str, predicted: Floats, observed: Floats) -> Misfit:
        """Compare arrays of one shape."""
        error = predicted / observed - 1.0
        return cls(
            name,
            len(error),
            float(np.median(np.abs(error))),
            float(np.abs(error).max()),
            float(error.mean()),
        )


def watts(power: DevicePower, x: Floats) -> Floats:
    """Power of the law at PS0."""
    value, _ = device_power.active_watts(power, x, np.zeros(len(x), dtype=np.intp))
    return value


def larger_requests(
    measurements: list[Measurement],
    recipe: DevicePowerRecipe,
    surface: FittedSurface,
    limit_bytes: int = 524_288,
) -> list[Misfit]:
    """Fit read power up to `limit_bytes` and predict 1 to 2 MiB.

    Once with the measured throughput and once with the throughput predicted by a surface that
    never saw requests above the limit either.
    """
    reads = [
        measurement
        for measurement in measurements
        if measurement.workload.operation is Operation.READ
        and measurement.observations.device_power_watts is not None
    ]
    seen = [read for read in reads if read.configuration.request_bytes <= limit_bytes]
    tested = [read for read in reads if read.configuration.request_bytes >= 1 << 20]
    if len(seen) < 5 or not tested:
        return []
    transfer = surface.settings.max_transfer_bytes
    # published points of the full range would leak what lies beyond the limit
    own = recipe.model_copy(update={"points": []})
    power = fit_device_power(power_rows(seen, transfer, None), own)
    performance = [
        measurement
        for measurement in measurements
        if measurement.workload.operation is Operation.READ
        and measurement.workload.pattern == tested[0].workload.pattern
        and measurement.configuration.request_bytes <= limit_bytes
    ]
    fitted = fit_surface(
        rows_of(performance, host_cores=surface.settings.host_cores), surface.settings
    )
    rows = rows_of(tested, host_cores=surface.settings.host_cores)
    requests = rows.queue_depth * rows.jobs
    rate = requests / fitted.evaluate(rows)["latency"] * 1e9 * rows.request_bytes
    observed = np.array([run.observations.device_power_watts for run in tested], dtype=float)
    measured = np.array(
        [run.observations.throughput_bytes_per_second for run in tested], dtype=float
    )
    out = []
    for name, throughput in (("measured throughput", measured), ("predicted throughput", rate)):
        zero = np.zeros(len(tested))
        commands = throughput / np.minimum(rows.request_bytes, transfer)
        x = device_power.regressors(throughput, commands, zero, zero, zero)
        out.append(Misfit.of(f"power at 1 to 2 MiB, {name}", watts(power, x), observed))
    out.append(Misfit.of("throughput at 1 to 2 MiB, depth 1", rate, measured))
    return out


def series_watts(power: DevicePower, state: WriteState, series: Series) -> Floats:
    """Predict a write series from the bytes written alone, second by second."""
    full, over = state.cached_bytes.value, state.transition_bytes.value
    collecting = np.clip((series.bytes_written - full) / (over - full), 0.0, 1.0)
    zero = np.zeros(len(series.watts))
    operations = series.bytes_per_second / series.request_bytes
    return watts(
        power, device_power.regressors(zero, zero, series.bytes_per_second, operations, collecting)
    )


def energy_from_totals(
    power: DevicePower,
    state: WriteState,
    total_bytes: float,
    seconds: float,
    cached_bytes_per_second: float,
    request_bytes: float,
) -> float:
    """Energy in joules of writing `total_bytes` within `seconds` to a purged drive.

    The law is linear, so the energy needs only how long the drive collects: the time left after
    the cache has filled at its own rate.

    Args:
        power: The device-power law.
        state: Where the cache is full.
        total_bytes: Host bytes written.
        seconds: Duration.
        cached_bytes_per_second: Rate at which the cache takes these writes.
        request_bytes: Bytes a request.
    """
    filling = (state.cached_bytes.value + state.transition_bytes.value) / 2
    collecting = max(seconds - filling / cached_bytes_per_second, 0.0)
    if total_bytes <= filling:
        collecting = 0.0
    value = {parameter.name: parameter.value for parameter in power.parameters}
    return (
        value["base_watts"] * seconds
        + value["write_joules_per_byte"] * total_bytes
        + value["write_joules_per_operation"] * total_bytes / request_bytes
        + value["background_watts"] * collecting
    )


@dataclass(frozen=True)
class SeriesOutcome:
    """One way of leaving out.

    Attributes:
        left_out: What the fit did not see.
        seen: Seconds of the series that it saw.
        given: What the prediction was told.
        energy: Predicted energy of the whole series, J, and what was measured.
        unseen: Likewise of the seconds left out.
        written: Likewise bytes of the seconds left out, and `per_byte` joules a byte; None where
            the bytes were given.
        cliff: Predicted place of the cliff, bytes, and where it was.
    """

    left_out: str
    seen: int
    given: str
    energy: tuple[Interval, float]
    unseen: tuple[Interval, float]
    written: tuple[Interval, float] | None
    per_byte: tuple[Interval, float] | None
    cliff: tuple[Interval | None, float]


def measured_cliff(series: Series) -> float:
    """Bytes written when the rate has fallen half way, in logs, from the cache's to the flash's."""
    seen = cliff_of(series)
    if seen is None:
        raise ValueError("the series shows no cliff")
    before = float(np.median(series.bytes_per_second[: seen[0]]))
    after = float(np.median(series.bytes_per_second[seen[1] : seen[1] + 15]))
    low = series.bytes_per_second[seen[0] :] < np.sqrt(before * after)
    return float(series.bytes_written[seen[0] + int(np.argmax(low))])


def series_outcomes(recipe: Recipe, measurements: list[Measurement]) -> list[SeriesOutcome]:
    """Leave out ends of the series, and the whole of it; empty without a cliff.

    Ends are predicted from the configuration, the bytes written until then and the duration, by
    following the drive over time. Without the series nothing says how fast the host writes at that
    configuration, so there the bytes of each second are given; the state never is.
    """
    series = write_series(measurements)
    if series is None or cliff_of(series) is None:
        return []
    rows = [measurement for measurement in measurements if _of(measurement, series)]
    first = rows[0]
    columns = {
        "pattern": first.workload.pattern.value,
        **first.configuration.model_dump(mode="json", exclude_none=True),
    }
    bytes_half = int(np.searchsorted(series.bytes_written, series.bytes_written[-1] / 2))
    outcomes = []
    memory = SurfaceMemory()
    for name, seen in (
        ("second half of the time", len(series.watts) // 2),
        ("second half of the bytes", bytes_half),
        ("last third of the time", len(series.watts) * 2 // 3),
        ("last quarter of the time", len(series.watts) * 3 // 4),
        ("the whole series", 0),
    ):
        cut = series.bytes_written[seen] if seen else -1.0
        training = [
            m
            for m in measurements
            if not _of(m, series) or (m.state.host_bytes_written_since_purge or 0.0) < cut
        ]
        profile = fit_profile(recipe, training, [], memory)
        if profile.write_state is None or profile.device_power is None:
            continue
        outcomes.append(
            _followed(profile, series, columns, name, seen)
            if seen
            else _given_bytes(profile, series, name)
        )
    return outcomes


def _of(measurement: Measurement, series: Series) -> bool:
    written = measurement.state.host_bytes_written_since_purge
    return (
        measurement.workload.operation is Operation.WRITE
        and written is not None
        and measurement.observations.device_power_watts is not None
        and measurement.configuration.request_bytes == series.request_bytes
        and bool(np.isin(written, series.bytes_written))
    )


def _followed(
    profile: DeviceProfile, series: Series, columns: dict[str, object], name: str, seen: int
) -> SeriesOutcome:
    total = len(series.watts)
    predictor = Predictor(profile)
    whole = follow(predictor, columns, [Phase(float(total), write=True)])
    since = {**columns, "host_bytes_written_since_purge": float(series.bytes_written[seen])}
    later = follow(predictor, since, [Phase(float(total - seen), write=True)])
    energy, written = float(series.watts[seen:].sum()), float(series.bytes_per_second[seen:].sum())
    return SeriesOutcome(
        name,
        seen,
        "configuration and duration",
        (whole.energy_joules, float(series.watts.sum())),
        (later.energy_joules, energy),
        (later.bytes_written, written),
        (later.joules_per_byte, energy / written),
        (whole.cliff_bytes, measured_cliff(series)),
    )


def _given_bytes(profile: DeviceProfile, series: Series, name: str) -> SeriesOutcome:
    state, power = profile.write_state, profile.device_power
    assert state is not None
    assert power is not None
    place = state.transition_bytes
    # as `model.evaluate.device_state` has it: the rate falls in the last fifth of the transition
    over, full = place.value, state.cached_bytes.value
    fallen = full + 0.9 * (over - full)
    sd = place.sd / over
    watts = float(series_watts(power, state, series).sum())
    covariance = np.array(power.covariance)
    relative = np.sqrt(np.diag(covariance)[0]) * len(series.watts) / watts
    move = state.transition_bytes.sd / np.median(series.bytes_per_second[: len(series.watts) // 4])
    later = move * power.parameters[5].value / watts
    background = np.sqrt(covariance[5, 5]) * len(series.watts) / 2 / watts
    spread = NORMAL_90 * float(np.sqrt(relative**2 + later**2 + background**2))
    energy = Interval(watts, watts * (1 - spread), watts * (1 + spread))
    measured = float(series.watts.sum())
    cliff = Interval(fallen, fallen * np.exp(-NORMAL_90 * sd), fallen * np.exp(NORMAL_90 * sd))
    return SeriesOutcome(
        name,
        0,
        "bytes of each second",
        (energy, measured),
        (energy, measured),
        None,
        None,
        (cliff, measured_cliff(series)),
    )


OBSERVED = (
    "device_power_watts",
    "cpu_power_watts",
    "throughput_bytes_per_second",
    "latency_p99_ns",
    "operations_per_joule",
)
"""What is compared, by its name in the schema."""


@dataclass(frozen=True)
class LeftOut:
    """One quantity of the runs of a session that the fit did not see; arrays of shape (n,).

    Attributes:
        session: Its `session_id`.
        quantity: One of OBSERVED.
        runs: The runs that state it.
        observed: In the unit of the quantity.
        predicted: The answer and its 90 % interval.
    """

    session: str
    quantity: str
    runs: tuple[Measurement, ...]
    observed: Floats
    predicted: Band

    @property
    def errors(self) -> Floats:
        """Relative errors, without sign."""
        return np.abs(self.predicted.value / self.observed - 1.0)

    @property
    def covered(self) -> int:
        """Of how many the interval holds the truth."""
        low, high = self.predicted.low, self.predicted.high
        return int(((low <= self.observed) & (self.observed <= high)).sum())

    @property
    def width(self) -> float:
        """Median of high over low."""
        return float(np.median(self.predicted.high / self.predicted.low))


def leave_sessions_out(
    measurements: Sequence[Measurement],
    sessions: Sequence[str],
    fit: Callable[[list[Measurement]], DeviceProfile],
) -> Iterator[LeftOut]:
    """Leave each session out, fit the rest, and predict it."""
    for session in sessions:
        test = [
            measurement
            for measurement in measurements
            if measurement.conditions.session_id == session
        ]
        rest = [
            measurement
            for measurement in measurements
            if measurement.conditions.session_id != session
        ]
        if test and rest:
            yield from compared(session, test, predicted(fit(rest), test))


def compared(
    session: str, runs: Sequence[Measurement], prediction: Prediction
) -> Iterator[LeftOut]:
    """What runs observed beside what was answered for them."""
    for quantity in OBSERVED:
        observed = np.array(
            [getattr(measurement.observations, quantity) or np.nan for measurement in runs],
            dtype=float,
        )
        band = efficiency(prediction) if quantity == OBSERVED[-1] else prediction[quantity]
        seen = np.isfinite(observed) & np.isfinite(band.value)
        if seen.any():
            some = Band(band.value[seen], band.low[seen], band.high[seen], band.evidence[seen])
            own = tuple(measurement for measurement, known in zip(runs, seen, strict=True) if known)
            yield LeftOut(session, quantity, own, observed[seen], some)


def efficiency(prediction: Prediction) -> Band:
    """Operations per joule of drive and CPU; rate and watts are taken to err independently."""
    rate, parts = (
        prediction["iops"],
        [prediction["device_power_watts"], prediction["cpu_power_watts"]],
    )
    watts = sum(part.value for part in parts)
    half = np.sqrt(sum(((part.high - part.low) / 2.0) ** 2 for part in parts)) / watts
    spread = np.exp(np.hypot(half, np.log(rate.high / rate.low) / 2.0))
    value = rate.value / watts
    return Band(value, value / spread, value * spread, rate.evidence)


def predicted(
    profile: DeviceProfile, runs: Sequence[Measurement], cores: int | None = None
) -> Prediction:
    """What a profile answers for the configurations of runs, as fast as possible.

    Args:
        profile: Of any drive.
        runs: What is asked.
        cores: Of the runs' host; None: of the profile's.
    """
    columns: dict[str, list[object]] = {
        name: [getattr(measurement.configuration, name) for measurement in runs]
        for name in SETTINGS
    }
    columns["submission_polling"] = [
        bool(measurement.configuration.submission_polling) for measurement in runs
    ]
    columns["power_state"] = [measurement.configuration.power_state or 0 for measurement in runs]
    columns["operation"] = [measurement.workload.operation.value for measurement in runs]
    columns["pattern"] = [measurement.workload.pattern.value for measurement in runs]
    columns["read_fraction"] = [measurement.workload.share_of_reads for measurement in runs]
    if cores is not None:
        columns["cpu_cores_available"] = [cores] * len(runs)
    return Predictor(profile).predict_columns(columns, len(runs))[0]
