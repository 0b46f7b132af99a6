"""What a profile's predictions rest on, as the command line hands it out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from iojoule import __version__
from iojoule.api.application.fields import check_names, read_columns
from iojoule.api.application.prediction_facts import carrying_facts
from iojoule.datasets.profile import DeviceProfile, FactUsed, LadderEntry
from iojoule.datasets.schema import AskedConditions
from iojoule.model.evaluate.explain import Explanation, entries_for, explain, narrowing
from iojoule.model.evaluate.frame import USED, make_frame
from iojoule.model.evaluate.power_limit import for_questions
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90, QUANTITIES
from iojoule.model.evaluate.validity import under

_UNITS = {
    "bytes_per_second": "bytes/s",
    "per_second": "1/s",
    "watts": "W",
    "ns": "ns",
    "iops": "IOPS",
    "iops_per_core_max": "IOPS",
    "joules_per_operation": "J",
}
"""Unit by the end of a quantity's name; the longest that fits counts, as it stands first."""


class VariancePart(BaseModel):
    """One source of an interval's width and its share of the variance."""

    source: str
    share: float
    relative_sd: float


class QuantityExplanation(BaseModel):
    """One quantity: value, 90 % interval, and what carries them.

    Attributes:
        rung: Step of the ladder from datasheet to campaign.
        carried: The facts or rows it rests on, in words.
        facts: The facts with their sources.
        variance: Where the interval's width comes from, the largest first; empty for parameters.
        next: What to measure to narrow it.
    """

    quantity: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    rung: str
    evidence: str
    carried: str
    rows: int
    prior_drives: int
    facts: list[FactUsed]
    variance: list[VariancePart]
    next: str

    def sources(self) -> Iterator[tuple[str, float | None, str]]:
        """Parts of the variance, then facts: source, share, fact."""
        for part in self.variance:
            yield part.source, part.share, ""
        for fact in self.facts:
            yield fact.source, None, f"{fact.name} = {fact.value:g} {fact.unit}"
        if not self.variance and not self.facts:
            yield self.carried, None, ""


class ProfileExplanation(BaseModel):
    """The explanation of a profile, or of one configuration of it."""

    device: str
    model_name: str
    profile_version: str
    asked: str
    quantities: list[QuantityExplanation]
    iojoule_version: str = __version__


def explain_profile(profile: DeviceProfile, fields: Mapping[str, str]) -> ProfileExplanation:
    """Explain every quantity, or those predicted at one configuration where fields are stated.

    Raises:
        InputError: An unknown field, an impossible value, or conditions that the drive cannot be
            under.
    """
    asked = ", ".join(f"{name} = {value}" for name, value in fields.items())
    found = _of_configuration(profile, fields) if fields else _of_profile(profile)
    return ProfileExplanation(
        device=profile.device,
        model_name=profile.model_name,
        profile_version=profile.profile_version,
        asked=asked or "what each quantity rests on",
        quantities=found,
    )


def _of_profile(profile: DeviceProfile) -> list[QuantityExplanation]:
    if profile.ladder is not None:
        return [_of_entry(entry) for entry in profile.ladder.entries]
    return list(_without_ladder(profile))


def _of_entry(entry: LadderEntry) -> QuantityExplanation:
    low = high = None
    if entry.value is not None and entry.relative_half_width is not None:
        low = entry.value * math.exp(-entry.relative_half_width)
        high = entry.value * math.exp(entry.relative_half_width)
    return QuantityExplanation(
        quantity=entry.quantity,
        value=entry.value,
        low=low,
        high=high,
        unit=entry.unit,
        rung=entry.rung,
        evidence=entry.evidence.value,
        carried=_carried([entry]),
        rows=entry.rows,
        prior_drives=entry.prior_drives,
        facts=entry.facts,
        variance=[],
        next=entry.next,
    )


def _without_ladder(profile: DeviceProfile) -> Iterator[QuantityExplanation]:
    """A profile of a recipe states its sources part by part."""
    rows = sum(source.rows_used for source in profile.sources)
    for surface in profile.surfaces:
        measured = surface.evidence.value == "measured"
        scores = sum(one.scores for one in surface.widths)
        yield QuantityExplanation(
            quantity=f"{surface.operation.value}_{surface.pattern.value}",
            value=None,
            low=None,
            high=None,
            unit="1",
            rung="campaign" if measured else "published",
            evidence=surface.evidence.value,
            carried=f"{surface.source}; intervals from {scores} scores of rows left out",
            rows=rows if measured else 0,
            prior_drives=0,
            facts=[],
            variance=[],
            next="depths, sizes and jobs beyond its hull: see `iojoule devices show`",
        )
    power = profile.device_power
    for one in [*power.parameters, *power.idle_watts, power.peak_watts] if power else []:
        yield QuantityExplanation(
            quantity=one.name,
            value=one.value,
            low=max(one.value - NORMAL_90 * one.sd, 0.0),
            high=one.value + NORMAL_90 * one.sd,
            unit=one.unit,
            rung="campaign" if one.evidence.value == "measured" else "published",
            evidence=one.evidence.value,
            carried=one.source,
            rows=0,
            prior_drives=0,
            facts=[FactUsed(name=one.name, value=one.value, unit=one.unit, source=one.source)],
            variance=[],
            next="reads and writes of 4 KiB and 128 KiB at full rate, with a power sensor",
        )


def _of_configuration(
    profile: DeviceProfile, fields: Mapping[str, str]
) -> list[QuantityExplanation]:
    where = "--configuration"
    names = list(fields)
    check_names(names, where, QUANTITIES)
    columns = read_columns(names, [list(fields.values())], profile, lambda _: where)
    stated = {
        name: values[0] for name, values in columns.items() if name in AskedConditions.model_fields
    }
    known = under(for_questions(profile, columns, 1), AskedConditions.model_validate(stated))
    used = {name: values for name, values in columns.items() if name in USED}
    frame, _ = make_frame(known, used, 1)
    return [
        _of_explanation(
            one,
            entries_for(known, frame, one.quantity),
            [] if known.ladder is not None else carrying_facts(known, frame, one.quantity),
            narrowing(frame, one),
        )
        for one in explain(Predictor(known), frame)
    ]


def _of_explanation(
    one: Explanation,
    entries: Sequence[LadderEntry],
    carrying: Sequence[FactUsed],
    to_measure: str,
) -> QuantityExplanation:
    facts = {(fact.name, fact.source): fact for fact in carrying}
    for entry in entries:
        facts |= {(fact.name, fact.source): fact for fact in entry.facts}
    order = ("datasheet", "published", "simulated", "few_measurements", "campaign")
    rungs = [entry.rung for entry in entries]
    return QuantityExplanation(
        quantity=one.quantity,
        value=one.value,
        low=one.low,
        high=one.high,
        unit=next((unit for end, unit in _UNITS.items() if one.quantity.endswith(end)), "1"),
        rung=min(rungs, key=order.index) if rungs else _RUNG_OF.get(one.evidence, "published"),
        evidence=one.evidence,
        carried=_carried(entries)
        if entries
        else _said_once([fact.source for fact in facts.values()]),
        rows=max((entry.rows for entry in entries), default=0),
        prior_drives=max((entry.prior_drives for entry in entries), default=0),
        facts=list(facts.values()),
        variance=[
            VariancePart(source=part.source, share=part.share, relative_sd=part.relative_sd)
            for part in one.parts
        ],
        next=to_measure,
    )


_RUNG_OF = {
    "measured": "campaign",
    "interpolated": "campaign",
    "extrapolated": "campaign",
    "simulated": "simulated",
    "datasheet": "datasheet",
    "assumed": "datasheet",
}


def _said_once(sources: Sequence[str]) -> str:
    """Sources in one line, what several share said once."""
    return "; ".join(dict.fromkeys(part for source in sources for part in source.split("; ")))


def _carried(entries: Sequence[LadderEntry]) -> str:
    """Facts, rows and drives in one line."""
    names = sorted({fact.name for entry in entries for fact in entry.facts})
    rows = max((entry.rows for entry in entries), default=0)
    drives = max((entry.prior_drives for entry in entries), default=0)
    parts = [f"{rows} measurements"] if rows else []
    parts += [", ".join(names)] if names else []
    parts += [f"{drives} drives of the catalogue"] if drives else []
    return "; ".join(parts) or "the stated prior alone"
