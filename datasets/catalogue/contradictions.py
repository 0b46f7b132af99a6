"""Facts of one drive that cannot all be true: found before anything is predicted from them.

Only what physics or the meaning of the words rules out counts: a mean that is above a maximum, a
link that cannot carry a rated rate, idle power above active power. Bounds ("up to", "at most") are
compared only with what lies on their other side. Power-state tables are kept as drives declare
them (`drive.PowerState`), so that only their interface and the order of their caps are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iojoule.datasets.catalogue.drive import Drive, Fact
from iojoule.datasets.errors import InputError
from iojoule.datasets.links import LANE_BYTES_PER_SECOND, LINK_LANES, SATA_BYTES_PER_SECOND

IDLE = ("idle_power", "idle_power_typical", "idle_power_apst", "measured_idle_power_ps0")
"""Metrics of mean power without requests, W."""

ASLEEP = ("sleep_power", "slumber_power", "standby_power")
"""Metrics of power in a state that serves nothing, W."""

ACTIVE = (
    "active_power",
    "active_power_typical",
    "active_power_read",
    "active_power_write",
    "typical_read_power",
    "typical_write_power",
    "max_mean_active_write_power",
)
"""Metrics of mean power under load, W."""

CAPS = ("max_power", "max_power_ps0", "declared_ps0_max_power", "tdp")
"""Metrics of power that is never exceeded, W."""

_RATE_UNITS = {"bytes/s": 1.0, "MB/s": 1e6}
_IOPS_BYTES = 4096
_SLACK = 1.001
"""Rounding of published figures."""


def check_consistent(drive: Drive, where: str) -> None:
    """Refuse facts that contradict each other.

    Args:
        drive: As read.
        where: Names the file in the error.

    Raises:
        InputError: Names the first contradiction with the places of both facts and the remedy.
    """
    first = next(contradictions(drive), None)
    if first is not None:
        field, said = first
        raise InputError(f"{where}: {field}: {said}", field=field)


def contradictions(drive: Drive) -> Iterator[tuple[str, str]]:
    """Each contradiction as the place of one of its facts, and what is wrong with the remedy."""
    yield from _interface(drive)
    yield from _link(drive)
    yield from _watts(drive)
    yield from _writes(drive)
    yield from _depths(drive)
    yield from _temperatures(drive)


def _interface(drive: Drive) -> Iterator[tuple[str, str]]:
    if drive.interface in ("sata", "sas") and drive.power_states:
        yield (
            "power_states",
            (
                f"a {drive.interface.upper()} drive has no NVMe power states; remove them, or "
                "correct interface"
            ),
        )
    for index, fact in _of(drive, ("pcie_generation",)):
        if drive.interface in ("sata", "sas"):
            yield (
                _place(index),
                (
                    f"a {drive.interface.upper()} drive has no PCIe generation; remove the fact, "
                    "or correct interface"
                ),
            )
        elif int(float(fact.value)) not in LANE_BYTES_PER_SECOND:
            known = ", ".join(map(str, LANE_BYTES_PER_SECOND))
            yield (
                _place(index),
                f"PCIe generation {fact.value} is not known; write one of {known}",
            )


def _link(drive: Drive) -> Iterator[tuple[str, str]]:
    """Rated figures above what the link moves, whatever the drive behind it can do."""
    generation = next(_of(drive, ("pcie_generation",)), None)
    lanes = next(_of(drive, ("pcie_lanes",)), None)
    if drive.interface == "sata":
        link, name = SATA_BYTES_PER_SECOND, "SATA at 6 Gbit/s"
    elif generation is None or int(float(generation[1].value)) not in LANE_BYTES_PER_SECOND:
        return
    else:
        number = int(float(generation[1].value))
        count = LINK_LANES if lanes is None else int(float(lanes[1].value))
        link, name = LANE_BYTES_PER_SECOND[number] * count, f"PCIe {number}.0 x{count}"
    for index, fact in enumerate(drive.facts):
        rate = _rate(fact)
        if rate is not None and rate > _SLACK * link:
            yield (
                _place(index),
                (
                    f"{fact.metric} of {_shown(fact)} is {rate / 1e9:.4g} GB/s, but {name} carries "
                    f"{link / 1e9:.4g} GB/s at most; correct the figure, or the link"
                ),
            )


def _watts(drive: Drive) -> Iterator[tuple[str, str]]:
    caps = [_PowerCap(f"facts[{index}]", fact.metric, float(fact.value))
            for index, fact in _of(drive, CAPS)]  # fmt: skip
    states = drive.operational_states
    if states and states[0].index == 0:
        place = next(i for i, one in enumerate(drive.power_states) if one.index == 0)
        caps.append(
            _PowerCap(f"power_states[{place}]", "max_power_watts", states[0].max_power_watts)
        )
    for metrics, others, what in (
        (IDLE, ACTIVE, "idle power above active power"),
        (ASLEEP, IDLE, "sleep power above idle power"),
        (ASLEEP, ACTIVE, "sleep power above active power"),
    ):
        yield from _above(drive, metrics, others, what)
    for index, fact in _of(drive, (*IDLE, *ACTIVE)):
        for cap in caps:
            if float(fact.value) > _SLACK * cap.watts:
                yield (
                    _place(index),
                    (
                        f"{fact.metric} of {_shown(fact)} is above {cap.place}, {cap.name} of "
                        f"{cap.watts:g} W, which is never exceeded; correct one of them"
                    ),
                )


class _PowerCap:
    """A declared maximum with its place."""

    def __init__(self, place: str, name: str, watts: float) -> None:
        self.place, self.name, self.watts = place, name, watts


def _writes(drive: Drive) -> Iterator[tuple[str, str]]:
    """A steady rate is what is left of the burst rate."""
    for name in ("sequential_write_throughput", "random_write_4k_iops", "random_write_iops"):
        burst = [f"{name}_burst", f"{name}_max"]
        if drive.drive_class != "datacentre":  # whose sheets rate writes as steady
            burst.append(name)
        yield from _above(drive, (f"{name}_steady",), burst, "steady rate above the burst rate")


def _depths(drive: Drive) -> Iterator[tuple[str, str]]:
    """One request at a time is not faster than many."""
    for name in ("read", "write"):
        many = tuple(f"random_{name}_4k_iops{end}" for end in ("_max", "_burst", ""))
        one = (f"random_{name}_4k_qd1_iops",)
        # a steady rate of many may lie below the burst rate of one
        if name == "write" and drive.drive_class == "datacentre":
            many = many[:2]
        yield from _above(drive, one, many, "rate at depth 1 above the highest rate")


def _temperatures(drive: Drive) -> Iterator[tuple[str, str]]:
    yield from _above(
        drive,
        ("operating_temperature_min",),
        ("operating_temperature_max",),
        "least operating temperature above the highest",
    )


def _above(
    drive: Drive, lower: Sequence[str], upper: Sequence[str], what: str
) -> Iterator[tuple[str, str]]:
    """Facts of `lower` that are above one of `upper`."""
    for index, fact in _of(drive, lower):
        for other, bound in _of(drive, upper):
            if float(fact.value) > _SLACK * float(bound.value):
                yield (
                    _place(index),
                    (
                        f"{what}: {fact.metric} of {_shown(fact)}, but {bound.metric} of "
                        f"{_shown(bound)} (facts[{other}]); correct one of them"
                    ),
                )


def _of(drive: Drive, metrics: Sequence[str]) -> Iterator[tuple[int, Fact]]:
    """Facts of those metrics that are numbers, with their places."""
    for index, fact in enumerate(drive.facts):
        if fact.metric in metrics and not isinstance(fact.value, str):
            yield index, fact


def _rate(fact: Fact) -> float | None:
    """Bytes a second that a rated figure moves; None for other figures and measured ones."""
    if isinstance(fact.value, str) or fact.metric.startswith(("measured_", "linear_cost_")):
        return None
    if fact.unit in _RATE_UNITS and "throughput" in fact.metric:
        return float(fact.value) * _RATE_UNITS[fact.unit]
    if fact.unit == "IOPS" and "_4k_" in fact.metric:
        return float(fact.value) * _IOPS_BYTES
    return None


def _shown(fact: Fact) -> str:
    return f"{float(fact.value):g} {fact.unit}"


def _place(index: int) -> str:
    return f"facts[{index}].value"
