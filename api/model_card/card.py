"""Puts a model card together from a profile; every number is the profile's own."""

from __future__ import annotations

from iojoule.api.documents.content import Document, Points, Section, Table, Text, percent
from iojoule.api.model_card.data import data_section, evidence_section, validity_section
from iojoule.api.model_card.errors import errors_section, residuals_section
from iojoule.api.model_card.findings import FindingsSummary, findings_section
from iojoule.api.model_card.host import host_section
from iojoule.api.model_card.performance import curves_section, states_section
from iojoule.api.model_card.points import points_section
from iojoule.api.model_card.power import idle_section, power_section, writes_section
from iojoule.api.words.quantities import size
from iojoule.datasets.profile import DeviceProfile

PERFORMANCE = (
    "Performance: a saturation curve by request size, robust least squares in log latency; what it "
    "misses is learned by a Gaussian process where there are rows enough; percentiles follow from "
    "the mean."
)
POWER = "Power: a linear law with non-negative parameters and stated priors."
REPEATABLE = (
    "This card holds nothing but what the profile says: `iojoule profile report` writes it again, "
    "the same to the byte."
)
NO_LIMIT_BYTES = 1 << 40
"""A limit of transfers that no request reaches stands for none."""


def build_card(profile: DeviceProfile, findings: FindingsSummary | None = None) -> Document:
    """The model card of a profile.

    Args:
        profile: Any profile; what it does not know is said so.
        findings: How it did on published findings; None leaves the section out.
    """
    sections = [
        _summary(profile),
        data_section(profile),
        validity_section(profile),
        _gaps(profile),
        evidence_section(profile),
        errors_section(profile),
        residuals_section(profile),
        *([findings_section(findings)] if findings else []),
        curves_section(profile),
        states_section(profile),
        power_section(profile),
        idle_section(profile),
        writes_section(profile),
        host_section(profile),
        _making(profile),
        points_section(profile),
    ]
    return Document(
        "Model card", profile.device, profile.model_name, _lead(profile), tuple(sections)
    )


def _lead(profile: DeviceProfile) -> tuple[tuple[str, str], ...]:
    used = sum(source.rows_used for source in profile.sources)
    return (
        ("Profile", f"{profile.device}, version {profile.profile_version}"),
        ("Made by", profile.generator),
        ("Measurements", f"{used:,} rows of {len(profile.sources)} sources"),
        ("Host measured on", profile.host.host_id),
        ("Performance", _surfaces(profile)),
        ("Power", _powers(profile)),
    )


def _surfaces(profile: DeviceProfile) -> str:
    told = [f"{one.pattern} {one.operation}s ({one.evidence})" for one in profile.surfaces]
    return ", ".join(told) or "not known"


def _powers(profile: DeviceProfile) -> str:
    parts = {
        "drive": profile.device_power,
        "CPU": profile.host_power,
        "whole system": profile.system_power,
    }
    return ", ".join(name for name, law in parts.items() if law is not None) or "not known"


def _summary(profile: DeviceProfile) -> Section:
    return Section(
        "What this is for",
        (
            Text(
                f"The profile predicts throughput, latency and watts of a {profile.model_name} for "
                "a configuration of the host, each with a 90 % interval and the evidence it rests "
                "on. It is meant for choosing settings that save energy within an SLA, and not for "
                "comparing vendors, for guarantees, or for drives of another model."
            ),
        ),
    )


def _gaps(profile: DeviceProfile) -> Section:
    if not profile.gaps:
        return Section("Known gaps", (Text("The recipe of this profile names none."),))
    return Section("Known gaps", (Points(tuple(profile.gaps)),))


def _making(profile: DeviceProfile) -> Section:
    between = profile.between_drives_relative_sd
    limit = profile.max_transfer_bytes
    made = (
        f"Fitted by {profile.generator} after the recipe {profile.recipe}; profile version "
        f"{profile.profile_version}, layout {profile.schema_version}."
    )
    intervals = (
        "Intervals: conformal, from whole depths and sizes left out; across drives of one model "
        f"{percent(between.value)} is added ({between.source})."
    )
    split = f"Requests above {size(limit)} are split into several commands."
    if limit >= NO_LIMIT_BYTES:
        split = "Requests are taken as one command each, whatever their size."
    told = (made, PERFORMANCE, POWER, intervals, split, REPEATABLE)
    return Section("How it was made", (Points(told), _defaults(profile)))


def _defaults(profile: DeviceProfile) -> Table:
    rows = [
        (name, str(value), profile.default_sources.get(name, "not stated"))
        for name, value in profile.defaults.items()
    ]
    return Table.of(("where left out", "is taken as", "because"), rows)
