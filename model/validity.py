"""Where a profile holds: conditions nobody stated widen its answers, others make them stale.

Model, specimen, firmware, link, temperature and host are nested effects. What a profile was fitted
on is one draw of each; an answer for a drive under unknown conditions carries the spread of all
that is not known to be the same (stated priors, model/prior/assumptions.toml). Under a condition
that is known to be another, measurements do not speak: the answer is "stale: recalibrate". Asked
about the very drive that was measured, nothing is left of the spread between specimens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iojoule.datasets.errors import StaleProfileError
from iojoule.datasets.profile import FACTS_RECIPE, DeviceProfile, Parameter
from iojoule.datasets.schema import Conditions
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.prior.document import load_assumptions
from iojoule.model.prior.facts import LANE_BYTES_PER_SECOND

WORN_OUT_PERCENT = 100.0
"""Rated endurance used up: beyond it nobody rates a drive (NVM Express Base Specification 2.1,
SMART / Health Information log, Percentage Used)."""

LINK_LANES = 4
"""Lanes of the NVMe drives that profiles are of, where they do not say."""


@dataclass(frozen=True)
class Verdict:
    """One condition of a question against the profile.

    Attributes:
        field: The condition.
        standing: same | unknown | stale.
        sd: What it adds, log sd; 0 where it is the same.
        said: In words.
    """

    field: str
    standing: str
    sd: float
    said: str


SPECIMEN = "device_serial_hash"

FIELDS = (
    SPECIMEN,
    "firmware",
    "pcie_generation",
    "pcie_lanes",
    "temperature_celsius_mean",
    "temperature_celsius_max",
    "aspm_policy",
    "power_loss_protection",
    "percentage_used",
    "host_id",
)
"""Conditions that are judged; the schema's others change nothing."""


def judge(profile: DeviceProfile, asked: Conditions) -> list[Verdict]:
    """Every condition against what the profile was measured under."""
    return [_specimen(profile, asked), *(_with_prior(*one) for one in _standings(profile, asked))]


def under(profile: DeviceProfile, asked: Conditions) -> DeviceProfile:
    """The profile as it answers under some conditions: wider by what is unknown.

    Another specimen than the measured one is the rule: only a stated `device_serial_hash` that is
    the measured drive's takes the spread between specimens away. The spread is shared by all
    configurations: it cancels in their differences.

    Raises:
        StaleProfileError: A condition lies outside what the profile is valid for; names it.
    """
    verdicts = judge(profile, asked)
    stale = [one for one in verdicts if one.standing == "stale"]
    if stale:
        raise StaleProfileError(
            f"stale: recalibrate: {'; '.join(one.said for one in stale)}. Measure the drive under "
            "these conditions (iojoule measure plan --plan quick), fit, and use --profile",
            field=stale[0].field,
        )
    profile = _on_link(profile, asked)
    between = profile.between_drives_relative_sd
    sd = math.sqrt(sum(one.sd**2 for one in verdicts))
    specimen, *others = verdicts
    unknown = [one.field for one in others if one.standing == "unknown"]
    source = specimen.said if specimen.standing == "same" else between.source
    source += f"; unknown: {', '.join(unknown)}" if unknown else ""
    widened = between.model_copy(update={"value": sd, "source": source})
    return profile.model_copy(update={"between_drives_relative_sd": widened})


def _on_link(profile: DeviceProfile, asked: Conditions) -> DeviceProfile:
    """A drive that nobody measured is no faster than the link that is stated."""
    if profile.recipe != FACTS_RECIPE or asked.pcie_generation not in LANE_BYTES_PER_SECOND:
        return profile
    lane = LANE_BYTES_PER_SECOND[asked.pcie_generation]
    rate = lane * min(asked.pcie_lanes or LINK_LANES, LINK_LANES)
    link = profile.link_bytes_per_second
    if link is not None and link.value <= rate:
        return profile
    stated = Parameter(
        name="link_bytes_per_second",
        value=rate,
        sd=0.0,
        unit="bytes/s",
        evidence=Evidence.DATASHEET,
        source=f"PCIe {asked.pcie_generation}.0 as stated",
    )
    return profile.model_copy(update={"link_bytes_per_second": stated})


def _specimen(profile: DeviceProfile, asked: Conditions) -> Verdict:
    """Whether the drive is the one that was measured; if not, they differ as specimens do."""
    measured = profile.valid_for.device_serial_hash
    if measured is not None and asked.device_serial_hash == measured:
        return Verdict(SPECIMEN, "same", 0.0, "the drive is the one that was measured")
    sd = profile.between_drives_relative_sd.value
    return Verdict(SPECIMEN, "unknown", sd, "another drive than the measured one, or nobody said")


def _with_prior(field: str, standing: str, said: str) -> Verdict:
    priors = load_assumptions().conditions
    name = field if field in priors else {"host_id": "host"}.get(field, "temperature")
    return Verdict(field, standing, priors[name].sd if standing == "unknown" else 0.0, said)


def _standings(profile: DeviceProfile, asked: Conditions) -> Iterator[tuple[str, str, str]]:
    valid = profile.valid_for
    yield _listed("firmware", asked.firmware, valid.firmware)
    yield _listed("pcie_generation", asked.pcie_generation, valid.pcie_generation)
    yield _lanes(profile, asked)
    yield _temperature(valid.temperature_celsius, asked)
    for field, has in (
        ("aspm_policy", valid.aspm_policy),
        ("power_loss_protection", valid.power_loss_protection),
    ):
        yield _listed(field, getattr(asked, field), [] if has is None else [has])
    yield _worn(asked.percentage_used)
    host = profile.host.host_id
    same = asked.host_id is not None and asked.host_id == host
    yield "host_id", "same" if same else "unknown", f"performance was measured on host {host}"


def _listed(field: str, asked: object, known: Sequence[object]) -> tuple[str, str, str]:
    if asked is None:
        return field, "unknown", f"{field} is not stated"
    if not known:
        return field, "unknown", f"the profile does not state its {field}"
    if asked in known:
        return field, "same", f"{field} {asked} is what was measured"
    has = " or ".join(str(one) for one in known)
    return field, "stale", f"{field} is {asked}, the profile was measured with {has}"


def _lanes(profile: DeviceProfile, asked: Conditions) -> tuple[str, str, str]:
    """Fewer lanes make a link that was not measured; more than the drive has change nothing."""
    if asked.pcie_lanes is None:
        return "pcie_lanes", "unknown", "pcie_lanes is not stated"
    if asked.pcie_lanes < LINK_LANES and profile.recipe != FACTS_RECIPE:
        return (
            "pcie_lanes",
            "stale",
            f"pcie_lanes is {asked.pcie_lanes}, the profile was measured with {LINK_LANES}",
        )
    return "pcie_lanes", "same", "the drive has all its lanes"


def _temperature(valid: tuple[float, float] | None, asked: Conditions) -> tuple[str, str, str]:
    stated = {
        field: degrees
        for field in ("temperature_celsius_mean", "temperature_celsius_max")
        if (degrees := getattr(asked, field)) is not None
    }
    if not stated:
        return "temperature_celsius_mean", "unknown", "the temperature is not stated"
    if valid is None:
        return next(iter(stated)), "unknown", "the profile does not state its temperatures"
    for field, degrees in stated.items():
        if not valid[0] <= degrees <= valid[1]:
            measured = f"the profile was measured from {valid[0]:g} to {valid[1]:g} °C"
            return field, "stale", f"the drive is at {degrees:g} °C, {measured}"
    return next(iter(stated)), "same", "the temperature is one that was measured"


def _worn(percent: float | None) -> tuple[str, str, str]:
    if percent is None:
        return "percentage_used", "unknown", "percentage_used is not stated"
    if percent > WORN_OUT_PERCENT:
        return (
            "percentage_used",
            "stale",
            f"percentage_used is {percent:g}: the rated endurance is used up",
        )
    return "percentage_used", "same", "within the rated endurance"
