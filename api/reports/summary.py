"""A recommendation in brief: what to change, what it saves, whether it is safe, what to do next."""

from __future__ import annotations

import math
from typing import Literal

from iojoule.api.reports.configurations import (
    KNOBS,
    OF_HOST,
    first_word,
    is_tied,
    knob,
    plain_name,
    setting,
    target,
)
from iojoule.api.reports.quantities import digits, quantity
from iojoule.api.reports.sentences import why_nothing
from iojoule.datasets.links import Interface
from iojoule.datasets.schema import Configuration, Section
from iojoule.datasets.vocabulary import Completion, Engine
from iojoule.recommender.request import Scope
from iojoule.recommender.response import (
    TIE,
    Estimate,
    Recommendation,
    Relaxation,
    Row,
    Saving,
)

SummaryVerdict = Literal[
    "proven",
    "expected",
    "measure_first",
    "costs_more",
    "unquantified",
    "no_change",
    "ranking",
    "not_shown_to_hold",
    "demand_exceeds_capacity",
    "infeasible",
]
"""`proven` to `costs_more`: change, with the verdict on its saving; `unquantified`: change, its
saving is unknown; `no_change`: today's stays; `ranking`: today's is not stated; the others: nothing
is recommended, for this reason."""


class BriefSaving(Section):
    """What a change saves, with 90 % intervals.

    Attributes:
        watts: Difference of mean power.
        percent: Its share of `percent_of`.
        percent_of: What the percentage is a share of.
        probability: That anything is saved.
    """

    watts: Estimate
    percent: Estimate
    percent_of: str
    probability: float


class NextStep(Section):
    """What to do next: a sentence, and the command to type; FILE stands for the workload."""

    sentence: str
    command: str


class Summary(Section):
    """The answer in brief.

    Attributes:
        verdict: Its kind.
        sentence: What to do, and what that saves.
        saving: Of the recommended change; where none is recommended, of the best one that was not
            taken. None where no saving is known.
        safe: Whether the recommended configuration keeps durability and leaves the drive to the
            kernel; None where nothing is recommended.
        safety: That in words, with what else has to be known before the change.
        would_change: The one thing that would change the answer; None for a change.
        next: What to do next.
    """

    verdict: SummaryVerdict
    sentence: str
    saving: BriefSaving | None
    safe: bool | None
    safety: str
    would_change: str | None
    next: NextStep


SCOPE_NAMES = {
    Scope.DEVICE: "drive power",
    Scope.DEVICE_CPU: "drive and CPU power",
    Scope.SYSTEM: "system power",
}
"""Scope -> whose power a percentage is about, in words."""

KNOB_NAMES = {
    "request_bytes": "request size",
    "jobs": "jobs",
    "power_state": "power state",
    "power_limit_watts": "power limit",
    "submission_polling": "submission queue polling",
}
"""Knob -> its name in a sentence, where that is not its field's name."""

CHOICES = ("power_state", "queue_depth", "jobs", "engine", "completion", "scheduler")
"""Knobs that may be set free, in the order in which that is proposed."""

REQUIRED = 0.9
"""Probability with which a change must save to be recommended."""


def command_for(device: str) -> str:
    """The command that asks again, without options; `with_command` replaces it."""
    return f"iojoule recommend --device {device} --workload FILE"


def with_command(summary: Summary, device: str, typed: str) -> Summary:
    """The summary with the command that was typed in the place of the general one."""
    command = summary.next.command.replace(command_for(device), typed)
    return summary.model_copy(
        update={"next": NextStep(sentence=summary.next.sentence, command=command)}
    )


def changes(today: Configuration, best: Configuration) -> str:
    """What changes between two configurations, in words; empty where nothing does."""
    changed = [
        f"{KNOB_NAMES.get(name, name.replace('_', ' '))} from {knob(today, name)} to "
        f"{knob(best, name)}"
        for name in KNOBS
        if getattr(today, name) != getattr(best, name) and knob(today, name) != knob(best, name)
    ]
    *most, last = changed or [""]
    return f"{', '.join(most)} and {last}" if most else last


def summarise(found: Recommendation, interface: Interface | None = None) -> Summary:
    """The summary of a recommendation; `interface` of the drive decides the node in commands."""
    node = "/dev/sda" if interface in ("sata", "sas") else "/dev/nvme0n1"
    best = found.recommended
    if best is None:
        return _nothing(found)
    if found.action == "no change":
        return _no_change(found, best)
    safe, safety = _safety(found, best)
    if found.action == "ranking":
        lowest = f"{first_word(found).capitalize()} {target(found)}"
        within = f", within {100.0 * TIE:.3g} %" if is_tied(found) else ""
        sentence = f"{lowest}{within}: {setting(best.configuration)}."
        command = f"{command_for(found.device)} --set current.queue_depth=N --set current.jobs=N"
        would, step = _power_to_know(found, best) or (
            "State what runs today ([current]): then the saving is known.",
            NextStep(sentence="state what runs today, to see what a change saves", command=command),
        )
        return Summary(
            verdict="ranking",
            sentence=sentence,
            saving=None,
            safe=safe,
            safety=safety,
            would_change=would,
            next=step,
        )
    return Summary(
        verdict=_verdict(found.saving),
        sentence=_change(found, best),
        saving=_brief(found.saving),
        safe=safe,
        safety=safety,
        would_change=None,
        next=NextStep(
            sentence="see what would be set; --run sets it",
            command=f"{command_for(found.device)} -o json | iojoule apply --recommendation - "
            f"--drive {node}",
        ),
    )


def _verdict(saving: Saving | None) -> SummaryVerdict:
    if saving is None:
        return "unquantified"
    verdicts: dict[str, SummaryVerdict] = {
        "proven": "proven",
        "expected": "expected",
        "measure first": "measure_first",
        "costs more": "costs_more",
        "no change": "no_change",
    }
    return verdicts[saving.verdict]


def _brief(saving: Saving | None) -> BriefSaving | None:
    if saving is None:
        return None
    return BriefSaving(
        watts=saving.watts,
        percent=saving.percent,
        percent_of=saving.percent_of,
        probability=saving.probability,
    )


def _change(found: Recommendation, best: Row) -> str:
    """What to change and what that saves."""
    if found.current is None:
        return f"Use {setting(best.configuration)}."
    what = f"Change {changes(found.current.configuration, best.configuration)}"
    if found.saving is None:
        return f"{what}. {_unknown_power(found, best)}"
    amount = _amount(found.saving, found)
    sure = f"with a probability of {_probability(found.saving)}"
    all_or_most = "all that must hold" if found.preferred_missed else "all"
    breaks = f"today's breaks a bound, this keeps {all_or_most}"
    why = "" if found.current.meets_sla else f"{breaks}; "
    if found.saving.verdict == "costs more":
        if found.current.meets_sla:
            kept = "misses it by less" if found.preferred_missed else "keeps it"
            breaks = f"today's misses a preferred bound, this {kept}"
        return f"{what}: {breaks} and costs {amount} more."
    if found.saving.verdict == "measure first":
        return f"{what}: {why}it may save {amount}, {sure}; measure before acting on it."
    return f"{what}: {why}{found.saving.verdict} to save {amount}, {sure}."


def _amount(saving: Saving, found: Recommendation) -> str:
    """A saving in percent and watts, and in money where that counts; a cost without its sign."""
    percent, watts = saving.percent, saving.watts
    ends = (percent.low, percent.high), (watts.low, watts.high)
    if percent.value < 0.0:
        ends = (-percent.high, -percent.low), (-watts.high, -watts.low)
    share = quantity("percent", abs(percent.value), *ends[0])
    power = quantity("watts", abs(watts.value), *ends[1])
    parts = [f"{share} of {SCOPE_NAMES[found.scope]}", power]
    if found.ranked_by == "cost" and saving.cost_per_year is not None:
        parts.append(f"{digits(abs(saving.cost_per_year.value))} {found.factors.currency} a year")
    elif found.ranked_by == "co2" and saving.co2_kilograms_per_year is not None:
        parts.append(f"{digits(abs(saving.co2_kilograms_per_year.value))} kg CO2 a year")
    return ", ".join(parts)


def _probability(saving: Saving) -> str:
    """The probability with which it saves; none is certain."""
    return f"{saving.probability:.3g}" if saving.probability < 0.9995 else "more than 0.999"


def _safety(found: Recommendation, best: Row) -> tuple[bool, str]:
    """Whether the configuration is safe, and what has to be known before it is set."""
    new = best.configuration
    old = None if found.current is None else found.current.configuration
    weakened = found.durability is not None and found.durability.weakened
    bypasses = new.engine is Engine.SPDK and (old is None or old.engine is not Engine.SPDK)
    remarks = ["a power cut may take more than today" if weakened else "durability is untouched"]
    if bypasses:
        remarks.append("SPDK takes the drive from the kernel and its file systems")
    elif new.completion is Completion.POLLED and (old is None or old.completion != new.completion):
        remarks.append("polled completions need poll queues (nvme.poll_queues) and direct I/O")
    if found.current is not None:
        remarks += _price(found.current, best)
    if old is not None and any(getattr(new, name) != getattr(old, name) for name in OF_HOST):
        remarks.append("governor, clock and C-state limit hold for all work on those cores")
    safe = not weakened and not bypasses
    return safe, f"{'Safe' if safe else 'Not safe as it is'}: {'; '.join(remarks)}."


def _price(today: Row, best: Row) -> list[str]:
    """What is paid for a saving: latency and concurrency."""
    remarks = []
    if best.concurrency > today.concurrency:
        remarks.append(
            f"the application must keep {best.concurrency} requests in flight instead of "
            f"{today.concurrency}"
        )
    before, after = today.latency_p99_ns, best.latency_p99_ns
    if before and after and after.value > 1.01 * before.value:
        remarks.append(
            f"p99 latency rises from {quantity('latency_p99_ns', before.value)} to "
            f"{quantity('latency_p99_ns', after.value)}"
        )
    return remarks


def _no_change(found: Recommendation, best: Row) -> Summary:
    """Today's configuration stays: what came nearest, and what would decide it."""
    sentence = f"No change: keep {setting(best.configuration)}."
    saving = None if found.not_taken is None else found.not_taken.saving
    if found.not_taken is None or saving is None:
        would, step = _more_choice(found, best)
    else:
        what = changes(best.configuration, found.not_taken.row.configuration)
        sentence += (
            f" The best candidate changes {what}: {_amount(saving, found)} less, with a "
            f"probability of {_probability(saving)}."
        )
        would, step = _proof(found, best, saving)
    return Summary(
        verdict="no_change",
        sentence=sentence,
        saving=_brief(saving),
        safe=True,
        safety="Safe: nothing is changed.",
        would_change=would,
        next=step,
    )


def _more_choice(found: Recommendation, best: Row) -> tuple[str, NextStep]:
    """What would change "no change" where no candidate costs less."""
    unknown = _power_to_know(found, best)
    if unknown is not None:
        return unknown
    asking = command_for(found.device)
    fixed = next((name for name in CHOICES if name not in found.free), None)
    if fixed is None:
        return "Another drive or another workload would change it.", NextStep(
            sentence="compare with another drive", command="iojoule what-if changes"
        )
    would = (
        f"No candidate costs less. More choice may change it: {fixed.replace('_', ' ')} is fixed."
    )
    return would, NextStep(
        sentence="ask with more choice", command=f"{asking} --set free.{fixed}=all"
    )


def _power_to_know(found: Recommendation, best: Row) -> tuple[str, NextStep] | None:
    """Where the power of the scope is unknown: that, and how to compare energy nevertheless."""
    if found.ranked_by != "performance":
        return None
    if found.scope is not Scope.DEVICE and best.device_power_watts is not None:
        return _unknown_power(found, best), NextStep(
            sentence="compare the drive's power, which is known",
            command=f"{command_for(found.device)} --scope device",
        )
    return _unknown_power(found, best), NextStep(
        sentence="measure power beside the runs, then fit", command="iojoule measure run --help"
    )


def _unknown_power(found: Recommendation, best: Row) -> str:
    """Why no saving is stated: whose power of the scope the profile lacks."""
    parts = [("drive", best.device_power_watts)]
    if found.scope is not Scope.DEVICE:
        parts.append(("CPU", best.cpu_power_watts))
    if found.scope is Scope.SYSTEM:
        parts.append(("system", best.system_power_watts))
    missing = " or ".join(name for name, watts in parts if watts is None)
    return f"The saving is unknown: the profile has no {missing} power."


def _proof(found: Recommendation, best: Row, saving: Saving) -> tuple[str, NextStep]:
    """What would change "no change" where a candidate is expected to cost less."""
    asking = command_for(found.device)
    share = found.not_taken.objective_saved_percent if found.not_taken else 0.0
    if share < found.least_saving_percent and saving.probability < REQUIRED:
        would = (
            f"It is not worth a change: {quantity('percent', share)} is below the "
            f"{found.least_saving_percent:g} % that one must save, and the probability below "
            f"{REQUIRED:g}."
        )
        return would, _more_choice(found, best)[1]
    if saving.probability >= REQUIRED:
        would = (
            f"A lower threshold would change it: {quantity('percent', share)} is below the "
            f"{found.least_saving_percent:g} % that a change must save."
        )
        return would, NextStep(
            sentence="accept a smaller saving",
            command=f"{asking} --least-saving {rounded(share, up=False)}%",
        )
    if found.measure_next is None or not found.measure_next.runs:
        would = (
            f"Proof would change it: a change must save with a probability of {REQUIRED:g}; pairs "
            "of runs (iojoule verify) show whether it does."
        )
        return would, NextStep(sentence="see the reasons", command=f"{asking} --explain")
    measures = found.measure_next
    configurations = "1 run" if len(measures.runs) == 1 else f"{len(measures.runs)} runs"
    would = (
        f"A measurement may change it: a change must save with a probability of {REQUIRED:g}, and "
        f"{configurations} narrow the interval from +/- {digits(measures.half_percent)} to +/- "
        f"{digits(measures.runs[-1].half_percent)} %."
    )
    return would, NextStep(
        sentence="measure what decides it",
        command=f"{asking} --measure-plan next.toml && {measures.command}",
    )


def _nothing(found: Recommendation) -> Summary:
    """Nothing is recommended: the one thing that would change that."""
    asking = command_for(found.device)
    short = [one for miss in found.nearest_misses for one in miss.shortfalls]
    unknown = next((one for one in short if one.unknown), None)
    if found.relaxations:
        one = found.relaxations[0]
        field = one.bound.removesuffix("_min").removesuffix("_max")
        would = (
            f"One bound would change it: {plain_name(field)} {quantity(field, one.needed)} instead "
            f"of {quantity(field, one.limit)}; then {setting(one.configuration)} keeps the rest."
        )
        step = NextStep(sentence="ask with that bound", command=f"{asking} {_option(one)}")
    elif unknown is not None:
        field = unknown.bound.removesuffix("_min").removesuffix("_max")
        would = (
            f"A measurement may change it: whether the bound on {plain_name(field)} holds depends "
            "on the cost of a flush, which is not known for this drive. If it has power-loss "
            "protection, state that (--conditions); or leave flushes (flush_every_writes, "
            "force_unit_access) out, to compare all else."
        )
        step = NextStep(
            sentence="choose a plan that measures with and without flushes, then fit",
            command="iojoule measure plans",
        )
    else:
        would = "No bound would change it alone: several have to give."
        step = NextStep(
            sentence="see by how much each bound is missed", command=f"{asking} --explain"
        )
    return Summary(
        verdict=found.reason_code or "infeasible",
        sentence=why_nothing(found),
        saving=None,
        safe=None,
        safety="Nothing is changed.",
        would_change=would,
        next=step,
    )


def _option(one: Relaxation) -> str:
    """The option that states the relaxed bound, rounded to the side on which it holds."""
    section = "workload" if one.bound.startswith("demand") else "sla"
    return f"--set {section}.{one.bound}={rounded(one.needed, up=one.bound.endswith('_max'))}"


def rounded(value: float, *, up: bool) -> str:
    """Three digits, rounded up or down."""
    if value <= 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{(math.ceil if up else math.floor)(value / step) * step:.10g}"
