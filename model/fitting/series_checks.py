"""A write series predicted with parts of it left out and its state not given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.model.fitting.build import fit_profile
from iojoule.model.fitting.memory import SurfaceMemory
from iojoule.model.fitting.power_checks import series_watts
from iojoule.model.fitting.recipe import Recipe
from iojoule.model.fitting.write_state import Series, cliff_of, write_series
from iojoule.model.interval import Interval
from iojoule.model.normal import NORMAL_90
from iojoule.model.predictor import Predictor
from iojoule.model.trajectory import Phase, follow

Floats = NDArray[np.float64]


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
    rows = [one for one in measurements if _of(one, series)]
    one = rows[0]
    columns = {
        "pattern": one.workload.pattern.value,
        **one.configuration.model_dump(mode="json", exclude_none=True),
    }
    bytes_half = int(np.searchsorted(series.bytes_written, series.bytes_written[-1] / 2))
    found = []
    memory = SurfaceMemory()
    for name, seen in (
        ("second half of the time", len(series.watts) // 2),
        ("second half of the bytes", bytes_half),
        ("last third of the time", len(series.watts) * 2 // 3),
        ("last quarter of the time", len(series.watts) * 3 // 4),
        ("the whole series", 0),
    ):
        cut = series.bytes_written[seen] if seen else -1.0
        kept = [
            m
            for m in measurements
            if not _of(m, series) or (m.state.host_bytes_written_since_purge or 0.0) < cut
        ]
        profile = fit_profile(recipe, kept, [], memory)
        if profile.write_state is None or profile.device_power is None:
            continue
        found.append(
            _followed(profile, series, columns, name, seen)
            if seen
            else _given_bytes(profile, series, name)
        )
    return found


def _of(one: Measurement, series: Series) -> bool:
    written = one.state.host_bytes_written_since_purge
    return (
        one.workload.operation is Operation.WRITE
        and written is not None
        and one.observations.device_power_watts is not None
        and one.configuration.request_bytes == series.request_bytes
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
    # as `model.device_state` has it: the rate falls in the last fifth of the transition
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
