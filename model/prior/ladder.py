"""Writing down what each quantity of a profile rests on."""

from __future__ import annotations

import numpy as np

from iojoule.datasets.profile import DevicePower, LadderEntry
from iojoule.datasets.profile.drive import FactUsed, Rung
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.prior.document import CURVE, EFFECTS, FLOWS, load_assumptions, six_digits
from iojoule.model.prior.posterior import Posterior
from iojoule.model.prior.surfaces import FACTOR

TELLING_SHARE = 0.02
"""A fact is listed with a quantity where it takes at least this share off its variance."""


def prior_entries(posterior: Posterior, flows: tuple[str, ...] = FLOWS) -> list[LadderEntry]:
    """One entry a quantity of the prior: its value, its interval and the facts that moved it."""
    units = {name: quantity.unit for name, quantity in load_assumptions().quantities.items()}
    wanted = [f"{flow}_{name}" for flow in flows for name in CURVE]
    wanted += ["write_steady_share", "idle_watts", "read_watts", "write_watts"]
    facts_by_quantity = _facts_by_quantity(posterior, wanted)
    return [
        LadderEntry(
            quantity=name,
            rung="datasheet",
            evidence=Evidence.DATASHEET,
            unit=units[name],
            value=six_digits([posterior.value(name)])[0],
            relative_half_width=six_digits([FACTOR * posterior.sd(name)])[0],
            facts=[*facts_by_quantity[name], *_group_facts(posterior, name)],
            prior_drives=posterior.prior.drives[posterior.index(name)],
            next=what_next(name),
        )
        for name in wanted
    ]


def power_entries(power: DevicePower, rows: int) -> list[LadderEntry]:
    """The parameters of a power law that was fitted or taken from publications."""
    measured = rows > 0
    return [
        LadderEntry(
            quantity=parameter.name,
            rung="datasheet"
            if parameter.evidence in (Evidence.DATASHEET, Evidence.ASSUMED) and not measured
            else rung_of(rows)
            if measured
            else "published",
            evidence=parameter.evidence,
            unit=parameter.unit,
            value=parameter.value,
            relative_half_width=six_digits([NORMAL_90 * parameter.sd / parameter.value])[0]
            if parameter.value > 0
            else None,
            rows=rows,
            facts=[]
            if measured
            else [_as_fact(parameter.name, parameter.value, parameter.unit, parameter.source)],
            next=what_next(parameter.name),
        )
        for parameter in [*power.parameters, *power.idle_watts]
    ]


CAMPAIGN_ROWS = 20
"""So many measurements of a flow are no handful any more: left-out rows suffice for intervals."""


def rung_of(rows: int) -> Rung:
    """The rung of a quantity by its measurements."""
    return "campaign" if rows >= CAMPAIGN_ROWS else "few_measurements" if rows else "datasheet"


def what_next(quantity: str) -> str:
    """The measurement that narrows a quantity most."""
    if quantity == "write_steady_share":
        return "random writes of 4 KiB until the rate settles, for at least the drive's capacity"
    if quantity.startswith("idle"):
        return "ten minutes idle with a power sensor (iojoule measure characterise)"
    if quantity.endswith(("watts", "joules_per_byte", "joules_per_operation")):
        work = "writes" if quantity.startswith("write") else "reads"
        return f"{work} of 4 KiB and 128 KiB at full rate, with a power sensor"
    for flow in FLOWS:
        if quantity.startswith(flow):
            operation, pattern = flow.split("_")
            return f"{pattern} {operation}s: {_POINTS[quantity.removeprefix(flow + '_')]}"
    return "a campaign: iojoule measure plan --plan quick"


_POINTS = {
    "latency_ns": "4 KiB at depth 1",
    "transfer_bytes_per_second": "64 KiB and 1 MiB at depth 1",
    "operations_per_second": "4 KiB at depth 256, several jobs",
    "bytes_per_second": "128 KiB at depth 64",
    "sharpness": "4 KiB at depths 8 and 32",
}


TELLING_EFFECT = 0.05
"""A group is listed with a quantity where it moves it by at least so much (log units)."""

_GROUPS = {
    "sata": "SATA instead of NVMe",
    "datacentre": "data-centre class instead of consumer",
    "xpoint": "memory without flash",
    "generation": "PCIe generation, against 3.0",
    "qlc": "four bits a cell instead of three",
    "sata_datacentre": "SATA and data-centre class together",
}


def _group_facts(posterior: Posterior, quantity: str) -> list[FactUsed]:
    """What the drive's group makes of a quantity, as factors; an unsure group counts in part."""
    effects = posterior.prior.effects[posterior.index(quantity)]
    shares = zip(EFFECTS, effects, posterior.group, strict=True)
    return [
        FactUsed(
            name=f"factor_{name}",
            value=six_digits([float(np.exp(effect * share))])[0],
            unit="1",
            source=f"learned over the catalogue: {_GROUPS[name]}",
        )
        for name, effect, share in shares
        if name in _GROUPS and abs(effect * share) >= TELLING_EFFECT
    ]


def _facts_by_quantity(posterior: Posterior, names: list[str]) -> dict[str, list[FactUsed]]:
    """Facts that alone would take a visible share off a quantity's variance."""
    spread = np.array(posterior.prior.spread)
    facts: dict[str, list[FactUsed]] = {name: [] for name in names}
    for observation in posterior.observations:
        h = np.zeros(len(spread))
        for name, weight in observation.weights.items():
            h[posterior.index(name)] = weight
        offset_sd = posterior.prior.offsets[observation.kind][1]
        total = float(h @ spread @ h) + observation.sd**2 + offset_sd**2
        gone = (spread @ h) ** 2 / total / np.diag(spread)
        for name in names:
            if gone[posterior.index(name)] >= TELLING_SHARE:
                facts[name].append(observation.fact)
    return facts


def _as_fact(name: str, value: float, unit: str, source: str) -> FactUsed:
    return FactUsed(name=name, value=value, unit=unit, source=source)
