"""What a reader of a what-if has to know before acting on it."""

from __future__ import annotations

from collections.abc import Iterator

from iojoule.datasets.vocabulary import HostStanding
from iojoule.recommender.what_if.outcome import Side
from iojoule.recommender.what_if.situation import Situation
from iojoule.recommender.workload import Scope


def notes(base: Situation, situation: Situation, side: Side, host: HostStanding) -> list[str]:
    """In the order of weight."""
    return [
        *_of_geometry(situation),
        *_of_host(base, situation, host),
        *_of_drives(base, situation),
        *_of_cost(situation),
    ]


def _of_geometry(situation: Situation) -> Iterator[str]:
    if not situation.geometry:
        return
    yield (
        "nobody measured this drive: what was predicted of the one that was measured is multiplied "
        "by what the simulator says changes (evidence: simulated), and its intervals are widened "
        "by what such ratios erred on drives that were simulated as a truth"
    )
    yield "idle power, power states' caps and mixes' interference are those of the measured drive"
    if situation.workload.read_fraction < 1.0:
        yield (
            "writes are simulated while the drive takes them without collecting garbage; how fast "
            "it collects is that of the measured drive"
        )


def _of_host(base: Situation, situation: Situation, host: HostStanding) -> Iterator[str]:
    if base.profile.device == situation.profile.device:
        return
    if host != "known":
        yield (
            f"the power of the host of {base.profile.model_name} is {host}: only the power of the "
            "drives is compared. Measure the host (iojoule measure host) and pass --host"
        )
        return
    power = base.profile.host_power
    yield (
        f"both drives stand on the host {power.host_id if power else base.profile.host.host_id}, "
        f"that of {base.profile.model_name}: its settings and its law of CPU power are the same"
    )


def _of_drives(base: Situation, situation: Situation) -> Iterator[str]:
    if situation.drives > 1 or base.drives > 1:
        yield (
            "the drives share the load evenly and stand in one host, whose processors serve all "
            "of them: its power is that of the whole rate; the answer's rows are those of one drive"
        )


def _of_cost(situation: Situation) -> Iterator[str]:
    if (
        situation.workload.factors.electricity_price_per_kwh is not None
        and situation.workload.scope is Scope.DEVICE
    ):
        yield "cost is that of the drives' energy alone; a scope of device_cpu adds the processors"
