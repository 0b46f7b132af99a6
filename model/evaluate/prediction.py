"""What a prediction holds: bands by quantity, evidence, and what drive and host do for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iojoule.model.evaluate.bands import EVIDENCE, Band, Codes, Floats
from iojoule.model.evaluate.host_power import Drawn
from iojoule.model.evaluate.host_work import HostCosts
from iojoule.model.evaluate.operating_point import Load
from iojoule.model.evaluate.quantities import GAP_QUANTITIES as GAP_QUANTITIES
from iojoule.model.evaluate.quantities import QUANTITIES as QUANTITIES

DEVICE_VALUE = "device_power_watts without interval"
"""Among the quantities wanted: spares the interval of the drive's power, and its evidence."""


@dataclass(frozen=True)
class Activity:
    """What the drive and the host do at full speed; each array has shape (n,).

    Attributes:
        device_x: Regressors of the device-power law, shape (n, 6).
        sharpness: k of the curve over the requests in flight.
        load: What the host does for it.
        drawn: What the host's settings do to the law of CPU power.
        costs: What a request costs the host; with it `host_work.activity` finds the load at any
            other rate.
        write_share: Share of the busy time that writes take, 0 to 1.
        collecting: Share of the writes that go past the cache, beside collecting, 0 to 1.
        cleared_most: Written bytes a second of which gaps, at the most, let the drive clear its
            cache; infinite where nobody knows.
        own_work: What the drive's own work draws while it serves, as written bytes a second whose
            later background work draws as much.
        buffer_requests: Requests, reads of a mix among them, that come while the drive's write
            buffer fills; NaN where nobody knows its size, 0 for reads.
        watts_factor: Drive's power over what its law says, where runs in several power states
            showed it; else 1.
        awake_factor: The same where next to nothing is asked: the least of the power state.
        watts_factor_sd: Log standard deviation of that; NaN where the law stands alone.
    """

    device_x: Floats
    sharpness: Floats
    load: Load
    drawn: Drawn
    costs: HostCosts
    write_share: Floats
    collecting: Floats
    cleared_most: Floats
    own_work: Floats
    buffer_requests: Floats
    watts_factor: Floats
    awake_factor: Floats
    watts_factor_sd: Floats


@dataclass(frozen=True)
class Prediction:
    """Bands by quantity name, and the evidence of throughput and latency."""

    bands: dict[str, Band]
    evidence: Codes
    activity: Activity

    def __getitem__(self, name: str) -> Band:
        return self.bands[name]

    def rows(self, rows: Any) -> Prediction:
        """Some rows of everything."""

        def some(item: Any) -> Any:
            if isinstance(item, np.ndarray):
                return item[rows]
            return type(item)(*map(some, vars(item).values()))

        bands = {name: some(band) for name, band in self.bands.items()}
        return Prediction(bands, self.evidence[rows], some(self.activity))

    def take(self, rows: Any, names: Iterable[str]) -> Prediction:
        """Some rows of some quantities; the activity is left as it is."""
        bands = {
            name: Band(*(part[rows] for part in vars(self.bands[name]).values()))
            for name in {*names, "latency_mean_ns"}
        }
        return Prediction(bands, self.evidence[rows], self.activity)

    def evidence_words(self, name: str | None = None) -> list[str]:
        """Evidence as words; of throughput and latency where no quantity is named."""
        codes = self.evidence if name is None else self.bands[name].evidence
        return [EVIDENCE[code] for code in codes]


def below(parts: Sequence[Prediction], *, activity: bool = True) -> Prediction:
    """Predictions below each other, of the quantities that the last one has.

    Without `activity` that of the last is left as it is.
    """

    def under(*items: Any) -> Any:
        if isinstance(items[-1], np.ndarray):
            return np.concatenate(items)
        return type(items[-1])(*map(under, *(vars(item).values() for item in items)))

    last = parts[-1]
    return Prediction(
        {name: under(*(part.bands[name] for part in parts)) for name in last.bands},
        np.concatenate([part.evidence for part in parts]),
        under(*(part.activity for part in parts)) if activity else last.activity,
    )


def joined(parts: Iterable[tuple[Any, Prediction]], rows: int) -> Prediction:
    """One prediction of `rows` rows from parts, each with the rows that it answers for.

    Every part is let go once it is copied.
    """
    whole: Prediction | None = None
    for indices, part in parts:
        whole = whole or _roomy(part, rows)
        for target, source in zip(_arrays(whole), _arrays(part), strict=True):
            target[indices] = source
    assert whole is not None
    return whole


def _roomy(part: Prediction, rows: int) -> Prediction:
    """A prediction like `part` with room for `rows` rows."""

    def room(array: NDArray[Any]) -> NDArray[Any]:
        return np.empty((rows, *array.shape[1:]), array.dtype)

    def roomy(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return room(item)
        return type(item)(*[roomy(getattr(item, field.name)) for field in fields(item)])

    bands = {name: roomy(band) for name, band in part.bands.items()}
    return Prediction(bands, room(part.evidence), roomy(part.activity))


def _arrays(prediction: Prediction) -> Iterator[NDArray[Any]]:
    """Every array of a prediction, always in one order."""

    def within(item: Any) -> Iterator[NDArray[Any]]:
        if isinstance(item, np.ndarray):
            yield item
            return
        for field in fields(item):
            yield from within(getattr(item, field.name))

    for item in (*prediction.bands.values(), prediction.activity, prediction.evidence):
        yield from within(item)
