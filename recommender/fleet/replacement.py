"""Whether servers of another kind would do the same work for less power.

The rule of Boito et al. (001, section 7): one server of bandwidth B_old and power P_old is
replaced by B_old / B_new others, which pays in watts if (B_old / B_new) P_new < P_old. A fleet
plan answers the same for drives with a choice of modes; this is its special case of one mode each.
"""

from __future__ import annotations

from math import ceil, exp, hypot, log
from typing import Annotated, Self

from pydantic import Field, model_validator

from iojoule.datasets.schema import Positive, Section
from iojoule.model.evaluate.quantities import NORMAL_90

Amount = Annotated[Positive, Field(ge=1e-9)]
"""Less would make quotients of amounts too large for a number."""


class Server(Section):
    """One kind of server under the workload in question.

    Attributes:
        throughput_bytes_per_second: What it serves; `_low` and `_high` a 90 % interval.
        system_power_watts: What it draws meanwhile; likewise.
    """

    throughput_bytes_per_second: Amount
    throughput_bytes_per_second_low: Amount | None = None
    throughput_bytes_per_second_high: Amount | None = None
    system_power_watts: Amount
    system_power_watts_low: Amount | None = None
    system_power_watts_high: Amount | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for name in ("throughput_bytes_per_second", "system_power_watts"):
            value = getattr(self, name)
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            if (low is None) != (high is None):
                raise ValueError(f"{name}: an interval has both ends; state _low and _high")
            if low is not None and not low <= value <= high:
                raise ValueError(f"{name}: {value:g} is outside its interval {low:g} to {high:g}")
        return self

    def log_sd(self, name: str) -> float:
        """Standard deviation of the log of a quantity; 0 where no interval is stated."""
        low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
        return 0.0 if low is None else log(high / low) / (2.0 * NORMAL_90)


class Replacement(Section):
    """One old server against as many new ones as do its work.

    Attributes:
        servers: New ones for one old one, B_old / B_new; where many are replaced at once it need
            not be whole.
        servers_whole: Where one is replaced alone.
        power_ratio: Watts of the new ones over watts of the old one, at `servers`; below 1 it
            pays. `_low` and `_high` are its 90 % interval.
        power_ratio_whole: Likewise at `servers_whole`.
        pays: Whether the interval lies below 1 (yes), above (no), or holds it (not proven).
    """

    servers: float
    servers_whole: int
    power_ratio: float
    power_ratio_low: float
    power_ratio_high: float
    power_ratio_whole: float
    pays: str


def replace(old: Server, new: Server) -> Replacement:
    """Compare; the errors of both servers are taken as independent."""
    servers = old.throughput_bytes_per_second / new.throughput_bytes_per_second
    each = new.system_power_watts / old.system_power_watts
    sds = (
        one.log_sd(name)
        for one in (old, new)
        for name in ("throughput_bytes_per_second", "system_power_watts")
    )
    half = NORMAL_90 * hypot(*sds)
    ratio = servers * each
    low, high = ratio * exp(-half), ratio * exp(half)
    whole = max(1, ceil(servers - 1e-9))
    return Replacement(
        servers=servers,
        servers_whole=whole,
        power_ratio=ratio,
        power_ratio_low=low,
        power_ratio_high=high,
        power_ratio_whole=whole * each,
        pays="yes" if high < 1.0 else "no" if low > 1.0 else "not proven",
    )
