"""Where a profile holds: conditions that are unknown or differ widen its answers.

Model, specimen, firmware, link, temperature and host are nested effects. What a profile was fitted
on is one draw of each; an answer for a drive under unknown conditions carries the spread of all
that is not known to be the same (stated priors, model/prior/assumptions.toml). A condition that is
known to differ from what was measured widens more, and leaves no answer better than extrapolated.
Asked about the very drive that was measured, nothing is left of the spread between specimens. What
the drive cannot be (a later link, more lanes, temperatures beyond its rating) is refused.

What an interval is about (`interval_for`) decides which of these spreads it carries:

* same-host: that of single runs, and of answers between them; what nobody stated is as measured;
* another-host: also that between sessions, hosts and specimens, and of all that nobody stated;
* another-drive: also that between drive models, unless the profile rests on facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iojoule.datasets.errors import InputError
from iojoule.datasets.links import GENERAL_CELSIUS, LANE_BYTES_PER_SECOND, LINK_LANES, LINK_WIDTHS
from iojoule.datasets.profile import DATASETS_RECIPE, FACTS_RECIPE, DeviceProfile, Parameter
from iojoule.datasets.schema import AskedConditions, Conditions
from iojoule.datasets.vocabulary import Evidence, IntervalFor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.prior.document import load_assumptions

WORN_OUT_PERCENT = 100.0
"""Rated endurance used up: beyond it nobody rates a drive (NVM Express Base Specification 2.1,
SMART / Health Information log, Percentage Used)."""

DIFFERENT_OVER_UNKNOWN = 3.0
"""Log sd of a condition that is known to differ over that of one that nobody stated: assumption.
Most hosts of which nothing is known have the condition that was measured; of those that state
another one, none has."""

USUAL_CELSIUS = (20.0, 70.0)
"""Assumption: temperatures between which drives are measured where a profile does not state them,
from a room's to the upper end of the commercial range, above which drives throttle."""


@dataclass(frozen=True)
class Verdict:
    """One condition of a question against the profile.

    Attributes:
        field: The condition.
        standing: same | unknown | different.
        sd: What it adds, log sd; 0 where it is the same.
        said: In words.
    """

    field: str
    standing: str
    sd: float
    said: str


SPECIMEN = "device_serial_hash"

SESSION = "session_id"

INTERVAL_FOR = "interval_for"

FIELDS = (
    INTERVAL_FOR,
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


def judge(profile: DeviceProfile, conditions: Conditions) -> list[Verdict]:
    """Every condition against what the profile was measured under."""
    about = interval_for(profile, conditions)
    return [
        _specimen(profile, conditions, about),
        _session(profile, about),
        *_model(profile, about),
        *(
            _with_prior(profile, conditions, about, *standing)
            for standing in _standings(profile, conditions)
        ),
    ]


def interval_for(profile: DeviceProfile, conditions: Conditions) -> IntervalFor:
    """What the intervals are about: as stated, else by what profile and question say.

    The measured drive on the measured host is the same host, and so is whatever a profile that a
    user fitted is asked about, unless it is stated to be another drive or host. A profile that
    ships was measured elsewhere; one that rests on facts, on no such drive.
    """
    if isinstance(conditions, AskedConditions) and conditions.interval_for is not None:
        return conditions.interval_for
    if profile.recipe == FACTS_RECIPE:
        return IntervalFor.ANOTHER_DRIVE
    measured = profile.host.host_id, profile.valid_for.device_serial_hash
    stated = conditions.host_id, conditions.device_serial_hash
    if None not in measured and stated == measured:
        return IntervalFor.SAME_HOST
    own = profile.recipe == DATASETS_RECIPE and not profile.host.calibrated_apart
    pairs = zip(stated, measured, strict=True)
    if own and all(pair is None or pair == known for pair, known in pairs):
        return IntervalFor.SAME_HOST
    return IntervalFor.ANOTHER_HOST


def refuse_impossible(profile: DeviceProfile, conditions: Conditions) -> None:
    """Refuse conditions that this drive cannot be under.

    Raises:
        InputError: Names the condition and the remedy.
    """
    rating = profile.rating
    generation, lanes = conditions.pcie_generation, conditions.pcie_lanes
    for field, value in (("pcie_generation", generation), ("pcie_lanes", lanes)):
        if value is not None and profile.interface in ("sata", "sas"):
            raise InputError(
                f"{field}: {profile.model_name} is a {profile.interface.upper()} drive and has no "
                "PCIe link; leave it out",
                field=field,
            )
    latest = rating.pcie_generation or max(LANE_BYTES_PER_SECOND)
    if generation is not None and generation > latest:
        whose = (
            f"{profile.model_name} has PCIe {latest}.0"
            if rating.pcie_generation
            else f"no drive of a generation after PCIe {latest}.0 is known"
        )
        raise InputError(
            f"pcie_generation: {generation} is not possible, {whose}; state the generation that "
            "the link runs at",
            field="pcie_generation",
        )
    most = rating.pcie_lanes or LINK_LANES
    if lanes is not None and (lanes > most or lanes not in LINK_WIDTHS):
        widths = ", ".join(str(width) for width in LINK_WIDTHS if width <= most)
        raise InputError(
            f"pcie_lanes: {lanes} is not possible for {profile.model_name}, whose link has "
            f"{widths} lanes; state the lanes that the link runs with",
            field="pcie_lanes",
        )
    low, high = rating.temperature_celsius or GENERAL_CELSIUS
    whose = "the drive's rating" if rating.temperature_celsius else "the range of such drives"
    for field, degrees in _temperatures(conditions):
        if not low <= degrees <= high:
            raise InputError(
                f"{field}: {degrees:g} °C lies outside {whose}, {low:g} to {high:g} °C; state the "
                "temperature that the drive reports (nvme smart-log)",
                field=field,
            )


def under(profile: DeviceProfile, conditions: Conditions) -> DeviceProfile:
    """The profile as it answers under some conditions: wider by what is unknown or differs.

    Another specimen than the measured one is the rule: only a stated `device_serial_hash` that is
    the measured drive's takes the spread between specimens away. The spread is shared by all
    configurations: it cancels in their differences. Power-loss protection that is stated is that of
    the drive that is asked about: it decides what a flush costs.

    Raises:
        InputError: The drive cannot be under a condition; names it.
    """
    refuse_impossible(profile, conditions)
    verdicts = judge(profile, conditions)
    profile = _on_link(profile, conditions)
    valid_for = profile.valid_for
    if conditions.power_loss_protection is not None:
        protected = {"power_loss_protection": conditions.power_loss_protection}
        valid_for = valid_for.model_copy(update=protected)
    between = profile.between_drives_relative_sd
    sd = math.sqrt(sum(verdict.sd**2 for verdict in verdicts))
    specimen, *others = verdicts
    unknown = [other.field for other in others if other.standing == "unknown" and other.sd > 0.0]
    other = [other for other in others if other.standing == "different"]
    source = specimen.said if specimen.standing == "same" else between.source
    source += f"; for {interval_for(profile, conditions).value.replace('-', ' ')}"
    source += f"; unknown: {', '.join(unknown)}" if unknown else ""
    source += f"; not as measured: {'; '.join(verdict.said for verdict in other)}" if other else ""
    widened = between.model_copy(update={"value": sd, "source": source})
    return profile.model_copy(
        update={
            "between_drives_relative_sd": widened,
            "valid_for": valid_for,
            "other_conditions": [verdict.field for verdict in other],
        }
    )


def _link_rate(profile: DeviceProfile, conditions: Conditions) -> float | None:
    """Rate of the stated link, bytes a second; None where none is stated."""
    generation = conditions.pcie_generation
    if generation is None and conditions.pcie_lanes is not None:
        generation = profile.rating.pcie_generation or max(
            profile.valid_for.pcie_generation, default=None
        )
    if generation not in LANE_BYTES_PER_SECOND:
        return None
    own = profile.rating.pcie_lanes or LINK_LANES
    return LANE_BYTES_PER_SECOND[generation] * min(conditions.pcie_lanes or own, own)


def _on_link(profile: DeviceProfile, conditions: Conditions) -> DeviceProfile:
    """No drive is faster than the link that is stated; a faster link than its own is allowed for.

    A drive that was measured on a slower link than the stated one may pass more: its answers are
    not bound by the old link, and wider (`_with_prior`).
    """
    rate, link = _link_rate(profile, conditions), profile.link_bytes_per_second
    if rate is None or (link is not None and link.value == rate):
        return profile
    if link is not None and link.value <= rate and not _measured_on_link(profile, conditions):
        return profile
    stated = Parameter(
        name="link_bytes_per_second",
        value=rate,
        sd=0.0,
        unit="bytes/s",
        evidence=Evidence.DATASHEET,
        source=(
            f"PCIe {conditions.pcie_generation or 'of the drive'}, "
            f"{conditions.pcie_lanes or 'all'} lanes"
        ),
    )
    return profile.model_copy(update={"link_bytes_per_second": stated})


def _measured_on_link(profile: DeviceProfile, conditions: Conditions) -> bool:
    """Whether measurements on another generation of the link carry the profile."""
    known = profile.valid_for.pcie_generation
    return (
        bool(known)
        and conditions.pcie_generation is not None
        and conditions.pcie_generation not in known
    )


def _specimen(profile: DeviceProfile, conditions: Conditions, about: IntervalFor) -> Verdict:
    """Whether the drive is the one that was measured; if not, they differ as specimens do."""
    measured = profile.valid_for.device_serial_hash
    known = measured is not None and conditions.device_serial_hash == measured
    if known or about is IntervalFor.SAME_HOST:
        return Verdict(SPECIMEN, "same", 0.0, "the drive is the one that was measured")
    sd = profile.between_drives_relative_sd.value
    return Verdict(SPECIMEN, "unknown", sd, "another drive than the measured one, or nobody said")


def _session(profile: DeviceProfile, about: IntervalFor) -> Verdict:
    """Another session than the measured ones, on another day or host."""
    if about is IntervalFor.SAME_HOST or profile.recipe == FACTS_RECIPE:
        return Verdict(SESSION, "same", 0.0, "as in the sessions that were measured")
    between = profile.between_sessions_relative_sd
    # one session lies as far from the mean as the other does
    sd = math.sqrt(2.0) * load_assumptions().conditions["session"].sd
    return Verdict(
        SESSION, "unknown", sd if between is None else between.value, "another day or host"
    )


def _model(profile: DeviceProfile, about: IntervalFor) -> Iterator[Verdict]:
    """Another drive model; what rests on facts was expected of drives that nobody measured."""
    if about is IntervalFor.ANOTHER_DRIVE and profile.recipe != FACTS_RECIPE:
        sd = math.sqrt(2.0) * load_assumptions().conditions["drive"].sd
        yield Verdict("device_model", "unknown", sd, "a drive of another model")


def _with_prior(
    profile: DeviceProfile,
    conditions: Conditions,
    about: IntervalFor,
    field: str,
    standing: str,
    text: str,
) -> Verdict:
    """The verdict with its log sd: the prior's where unknown, more where the condition differs."""
    priors = load_assumptions().conditions
    name = field if field in priors else {"host_id": "host"}.get(field, "temperature")
    sd = {"same": 0.0, "unknown": 1.0, "different": DIFFERENT_OVER_UNKNOWN}[standing]
    sd *= priors[name].sd
    if standing == "unknown" and about is IntervalFor.SAME_HOST:
        sd = 0.0
    if field == "pcie_generation" and standing == "different":
        rate, link = _link_rate(profile, conditions), profile.link_bytes_per_second
        if rate is not None and link is not None and rate > link.value:
            # the 90 % interval reaches what the faster link lets through
            sd = max(sd, math.log(rate / link.value) / NORMAL_90)
    return Verdict(field, standing, sd, text)


def _standings(profile: DeviceProfile, conditions: Conditions) -> Iterator[tuple[str, str, str]]:
    valid = profile.valid_for
    yield _listed("firmware", conditions.firmware, valid.firmware)
    yield _listed("pcie_generation", conditions.pcie_generation, valid.pcie_generation)
    yield _lanes(profile, conditions)
    yield _temperature(valid.temperature_celsius, conditions)
    for field, has in (
        ("aspm_policy", valid.aspm_policy),
        ("power_loss_protection", valid.power_loss_protection),
    ):
        yield _listed(field, getattr(conditions, field), [] if has is None else [has])
    yield _worn(conditions.percentage_used)
    host = profile.host.host_id
    same = conditions.host_id is not None and conditions.host_id == host
    yield "host_id", "same" if same else "unknown", f"performance was measured on host {host}"


def _listed(field: str, value: object, known: Sequence[object]) -> tuple[str, str, str]:
    if value is None:
        return field, "unknown", f"{field} is not stated"
    if not known:
        return field, "unknown", f"the profile does not state its {field}"
    if value in known:
        return field, "same", f"{field} {value} is what was measured"
    has = " or ".join(str(item) for item in known)
    return field, "different", f"{field} is {value}, the profile was measured with {has}"


def _lanes(profile: DeviceProfile, conditions: Conditions) -> tuple[str, str, str]:
    """Fewer lanes make a link that was not measured."""
    if conditions.pcie_lanes is None:
        return "pcie_lanes", "unknown", "pcie_lanes is not stated"
    own = profile.rating.pcie_lanes or LINK_LANES
    if conditions.pcie_lanes < own:
        return (
            "pcie_lanes",
            "different",
            f"pcie_lanes is {conditions.pcie_lanes}, the drive has {own}",
        )
    return "pcie_lanes", "same", "the drive has all its lanes"


def _temperatures(conditions: Conditions) -> list[tuple[str, float]]:
    """Stated temperatures of the drive by field."""
    fields = ("temperature_celsius_mean", "temperature_celsius_max")
    return [
        (name, degrees) for name in fields if (degrees := getattr(conditions, name)) is not None
    ]


def _temperature(valid: tuple[float, float] | None, conditions: Conditions) -> tuple[str, str, str]:
    stated = _temperatures(conditions)
    if not stated:
        return "temperature_celsius_mean", "unknown", "the temperature is not stated"
    low, high = valid or USUAL_CELSIUS
    for field, degrees in stated:
        if not low <= degrees <= high:
            measured = "was measured" if valid else "does not state its temperatures, taken to be"
            measured = f"the profile {measured} from {low:g} to {high:g} °C"
            return field, "different", f"the drive is at {degrees:g} °C, {measured}"
    if valid is None:
        return stated[0][0], "unknown", "the profile does not state its temperatures"
    return stated[0][0], "same", "the temperature is one that was measured"


def _worn(percent: float | None) -> tuple[str, str, str]:
    if percent is None:
        return "percentage_used", "unknown", "percentage_used is not stated"
    if percent > WORN_OUT_PERCENT:
        return (
            "percentage_used",
            "different",
            f"percentage_used is {percent:g}: the rated endurance is used up",
        )
    return "percentage_used", "same", "within the rated endurance"
