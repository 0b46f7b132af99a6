"""The response: pydantic models of a recommendation, which are its JSON form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from iojoule.datasets.schema import Configuration, Section
from iojoule.datasets.vocabulary import UNBOUNDED, Evidence, documented, number_of
from iojoule.recommender.factors import Factors, Objective
from iojoule.recommender.request import Scope
from iojoule.recommender.sla import Sla


class PowerCut(Section):
    """The most that a power cut takes of what was acknowledged; None: nothing bounds it.

    Attributes:
        writes: Requests of the configuration.
        written_bytes: Their bytes.
        seconds: The time in which they are written at the work that is served.
    """

    writes: float | None
    written_bytes: float | None
    seconds: float | None


class Weaker(Section):
    """A setting that would weaken durability.

    Attributes:
        setting: What would change, and to what.
        loses: What a power cut could take then.
        known: What is known of its effect on energy and speed, and from where.
    """

    setting: str
    loses: PowerCut
    known: str


class DurabilityAnswer(Section):
    """What a recommendation does to durability.

    Attributes:
        weaker_allowed: Whether the SLA says so.
        weakened: Whether the recommended configuration needs it.
        flush_every_writes: With the recommended configuration, as the workload profile counts it.
        power_cut: What a power cut takes then; `power_cut_today` what it takes
            today, None where nothing was said about today.
        options: Weaker settings: not considered, or considered and what came of it.
        reason: All that in words.
    """

    weaker_allowed: bool
    weakened: bool
    flush_every_writes: int | None
    power_cut: PowerCut
    power_cut_today: PowerCut | None
    options: list[Weaker]
    reason: str


Ending = Annotated[
    float,
    Field(allow_inf_nan=True),
    BeforeValidator(number_of),
    PlainSerializer(documented, when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"const": UNBOUNDED, "type": "string"}]}),
]
"""A number, infinite where nothing bounds it; in JSON then the word `unbounded`."""


class Estimate(Section):
    """A quantity in the unit of its field's name, with its 90 % interval and evidence.

    `value` and `high` are unbounded where a demand is, or may be, more than can be served.
    """

    value: Ending
    low: Ending
    high: Ending
    evidence: Evidence


class KnobEffect(Section):
    """What one knob brings of the saving, or several that only change together.

    Attributes:
        knobs: Fields of the configuration.
        before: Their values today.
        after: Their values in the recommended configuration.
        share_percent: Its fair share of the saving (Shapley value), in percent of today's energy;
            the shares of all knobs add up to the saving.
        share_joules_per_useful_gb: Likewise in joules for 10^9 useful bytes.
        alone_percent: What it saves if it is the only one that is changed; None where that
            configuration cannot exist.
        last_percent: What it adds to all the others; None likewise. More than 100 where the others
            alone cost more than today's configuration.
    """

    knobs: list[str]
    before: dict[str, Any]
    after: dict[str, Any]
    share_percent: Estimate
    share_joules_per_useful_gb: Estimate
    alone_percent: Estimate | None
    last_percent: Estimate | None


class Attribution(Section):
    """Why the recommended configuration saves.

    Attributes:
        knobs: Largest share first.
        together_percent: Of all of them, the saving.
        orders: In how many orders they can be changed one after the other; shares average them.
        impossible: How many configurations in between cannot exist, by reason.
        below_demand: How many in between carry neither the demand nor what today's does of it;
            their energy is that of the work that they do.
    """

    knobs: list[KnobEffect]
    together_percent: Estimate
    orders: int
    impossible: dict[str, int]
    below_demand: int


class BoundStep(Section):
    """The least objective if one bound were another.

    Attributes:
        limit: The other limit; None where the bound is left out.
        configuration: What would have the least objective; None where nothing keeps the bounds.
        objective_change_percent: Of the least objective, below zero where it brings something.
        saves_percent: Energy that it saves against the least as it is; below zero it costs.
    """

    limit: float | None
    configuration: Configuration | None
    objective_change_percent: float | None
    saves_percent: Estimate | None


class BoundSlack(Section):
    """How the recommended configuration stands to one bound, and what the bound costs.

    Attributes:
        bound: Field of the SLA, or the demand.
        limit: The bound.
        confidence: One-sided probability with which it is to hold.
        preferred: Whether it is only preferred.
        reached: The interval bound that is compared with it; None where nothing comes near, as
            wear without writes.
        slack_percent: What is left, relative to the limit; below zero it is missed.
        binds: Whether the least objective would be smaller without it, by 0.1 % at least; None
            for the demand, which is the work itself.
        looser: With a limit one step (10 %) looser; None for the demand.
        tighter: With a limit one step tighter.
        without: Without the bound.
    """

    bound: str
    limit: float
    confidence: float
    preferred: bool
    reached: float | None
    slack_percent: float | None
    binds: bool | None
    looser: BoundStep | None
    tighter: BoundStep | None
    without: BoundStep | None


class Relaxation(Section):
    """One bound that makes the SLA feasible if it alone is relaxed.

    Attributes:
        bound: Field of the SLA, or the demand.
        limit: The bound.
        needed: The limit from which on something keeps all bounds.
        by_percent: How far that is away, relative to the limit.
        configuration: What then keeps them.
    """

    bound: str
    limit: float
    needed: Ending
    by_percent: Ending
    configuration: Configuration


class Runs(Section):
    """A configuration worth measuring.

    Attributes:
        configuration: What to measure, at the demanded work.
        role: Today's, the candidate that would save, or a rival from the front.
        alone_half_percent: Half the interval of the saving, in percent of today's energy, that is
            expected after measuring this one only.
        half_percent: After measuring this one and those before it.
        proves: Whether it then saves with a probability of 0.9, if it turns out as expected.
    """

    configuration: Configuration
    role: Literal["today", "candidate", "rival"]
    alone_half_percent: float
    half_percent: float
    proves: bool


class MeasureNext(Section):
    """What to measure to be surer of the saving.

    Attributes:
        saving_percent: Expected saving.
        half_percent: Half its 90 % interval as it is, in percent of today's energy.
        runs: In this order; each narrows the interval most, given those before it. Empty where
            measuring energies hardly narrows it.
        repeats: Runs of each.
        run_relative_sd: Error of one run's energy that is reckoned with.
        command: What measures them; `--measure-plan next.toml` writes the plan.
    """

    saving_percent: float
    half_percent: float
    runs: list[Runs]
    repeats: int
    run_relative_sd: float
    command: str


Verdict = Literal["proven", "expected", "measure first", "costs more", "no change"]
"""`proven`: it saves with a probability of 0.9, and both configurations were measured, or lie
between measured neighbours, on this drive model and this kind of host; `expected`: it saves with
that probability, on weaker evidence; `measure first`: it saves in expectation only; `costs more`:
it takes more, to keep the bounds; `no change`: today's configuration stays."""

Action = Literal["change", "no change", "ranking", "none"]
"""`change`: replace today's configuration; `no change`: it stays; `ranking`: nothing was said about
today, so the first row is the one of the lowest expected objective; `none`: nothing is recommended,
for the reason in `reason_code`."""

TIE = 0.01
"""Objective values within 1 % are one: no profile tells them apart."""

ReasonCode = Literal["not_shown_to_hold", "demand_exceeds_capacity", "infeasible"]
"""Why nothing is recommended. `not_shown_to_hold`: some bound depends on something that nobody
knows, or holds only in expectation; `demand_exceeds_capacity`: no candidate can serve the demand,
not even in expectation; `infeasible`: no candidate keeps every bound, not even in expectation."""

ANSWER_VERSION = 3
"""Version of the answer's JSON layout."""


class Row(Section):
    """One configuration at the demanded work; None where the profile does not know.

    Attributes:
        configuration: What the host sets.
        throughput_bytes_per_second: Useful bytes served.
        capacity_bytes_per_second: Useful bytes that it could serve at full speed.
        iops: Requests served.
        concurrency: Requests of the application in flight that it needs.
        busy_share: Share of the time in which it serves, 0 to 1.
        latency_mean_ns: From the arrival of a request at the demanded rate; as fast as possible,
            with the queue full. Unbounded where the demand may exceed the capacity. Likewise the
            percentiles.
        device_power_watts: Mean power of the drive over busy time and gaps; likewise the others.
        device_cpu_power_watts: Drive and CPU together.
        joules_per_useful_gb: Energy of the answer's scope for 10^9 useful bytes.
        edp_joule_seconds: Energy of the scope for one operation of the application x mean
            latency.
        kwh_per_year: Energy of the scope for a year of the work: that of the demand, or what
            today's configuration does in a year; likewise money (in the factors' currency) and
            CO2, overhead and wear included, where the factors tell.
        host_bytes_written_per_second: Written by the host.
        meets_sla: Whether demand and every bound hold with the stated confidence; bounds that are
            only preferred apart.
    """

    configuration: Configuration
    throughput_bytes_per_second: Estimate
    capacity_bytes_per_second: Estimate
    iops: Estimate
    concurrency: int
    busy_share: float
    latency_mean_ns: Estimate
    latency_p50_ns: Estimate | None
    latency_p99_ns: Estimate | None
    latency_p999_ns: Estimate | None
    device_power_watts: Estimate | None
    cpu_power_watts: Estimate | None
    device_cpu_power_watts: Estimate | None
    system_power_watts: Estimate | None
    joules_per_useful_gb: Estimate | None
    edp_joule_seconds: Estimate | None
    kwh_per_year: Estimate | None = None
    cost_per_year: Estimate | None = None
    co2_kilograms_per_year: Estimate | None = None
    host_bytes_written_per_second: float
    meets_sla: bool


class Saving(Section):
    """What the recommended configuration saves against today's; negative means it costs more.

    Both do the same work in the same time; where one of them is faster, it draws idle power for the
    rest of that time, for nothing would switch it off.

    Attributes:
        watts: Difference of mean power at the demanded rate; where none is stated, or one of both
            cannot serve it, at that of the slower one.
        joules_per_useful_gb: Difference of the energy for 10^9 useful bytes.
        kwh_per_year: For the work of a year (8766 h) at that rate.
        cost_per_year: Of the same work in the factors' currency, overhead and wear included; None
            where no price is stated. `co2_kilograms_per_year` likewise.
        percent: Share of what today's configuration draws for this work (`percent_of`).
        percent_of: What the percentage is a share of.
        probability: That anything is saved: of energy, or of money or CO2 where that is the
            objective.
        verdict: What that and the evidence amount to.
    """

    watts: Estimate
    joules_per_useful_gb: Estimate
    kwh_per_year: Estimate
    cost_per_year: Estimate | None = None
    co2_kilograms_per_year: Estimate | None = None
    percent: Estimate
    percent_of: str
    probability: float
    verdict: Verdict


class NotTaken(Section):
    """The best candidate in expectation, where no change is recommended.

    Attributes:
        row: The candidate.
        objective_saved_percent: How much less of the objective it takes than today's.
        saving: Its energy against today's; None where no power is known.
    """

    row: Row
    objective_saved_percent: float
    saving: Saving | None


class Place(Section):
    """Where today's configuration stands.

    Attributes:
        on_front: Whether it keeps the SLA and no candidate of the front beats it.
        beaten_by: How many rows of the whole front are no worse in objective, capacity and tail
            latency, and better in one of them.
        beaten_by_rows: Those of them that are in `pareto`, by place from 0.
    """

    on_front: bool
    beaten_by: int
    beaten_by_rows: list[int]


class Endurance(Section):
    """What the recommended configuration writes.

    Attributes:
        host_bytes_per_year: Written by the host in a year of this work.
        change_host_bytes_per_year: Against today's configuration; None where none is stated.
        nand_bytes_per_year: Written to flash; None where no write amplification is known.
        years_left: Until the rated endurance is used up; None where the profile has no rating.
        cost_per_year: Share of the drive's price that a year's writes use up, in the factors'
            currency; `change_cost_per_year` against today's configuration. None where no price of
            the drive is stated; likewise its CO2.
        reason: What is known and what is not.
    """

    host_bytes_per_year: float
    change_host_bytes_per_year: float | None
    nand_bytes_per_year: float | None
    years_left: float | None
    cost_per_year: float | None = None
    change_cost_per_year: float | None = None
    co2_kilograms_per_year: float | None = None
    change_co2_kilograms_per_year: float | None = None
    reason: str


class Shortfall(Section):
    """By how much one bound is missed at the stated confidence.

    Attributes:
        bound: Field of the SLA, or the demand.
        limit: The bound.
        reached: The interval bound that is compared with it.
        missed_by: Absolute amount, in the unit of the bound.
        missed_by_percent: Relative to the bound.
        preferred: Whether the bound is only preferred.
        unknown: Whether nobody knows if it holds, for it depends on something without a value, as
            the cost of a flush; `reached` then leaves that out.
    """

    bound: str
    limit: float
    reached: Ending
    missed_by: Ending
    missed_by_percent: Ending
    preferred: bool = False
    unknown: bool = False


class Miss(Section):
    """A configuration that comes close, and what it misses."""

    row: Row
    shortfalls: list[Shortfall]


class Counts(Section):
    """How many candidates there were, and what became of them."""

    total: int
    feasible: int
    on_front: int
    shown: int
    excluded: dict[str, int]


class Recommendation(Section):
    """The answer to one workload profile.

    Attributes:
        answer_version: Version of this layout.
        workload: Name of the workload profile.
        device: Catalogue id of the drive; `model_name` its name.
        profile_version: Version of the device profile.
        mode: Whether the work is held equal or runs as fast as possible.
        scope: Whose energy counts.
        objective: What was made small.
        ranked_by: The objective, or `performance` where the scope's power is unknown.
        confidence: One-sided probability with which each bound of the SLA holds that states none.
        factors: What energy and wear cost, as stated.
        demand_bytes_per_second: Useful bytes a second demanded, None for as fast as possible.
        sla: The bounds.
        action: What to do.
        reason_code: Why nothing is recommended; None where something is.
        recommended: The configuration to use: today's where it stays; None where no candidate is
            shown to keep every bound.
        current: Today's configuration; None where nothing was said about it.
        current_place: Of today's configuration beside the Pareto set.
        saving: Of `recommended` against `current`; None without power, without an answer and
            without a stated configuration of today.
        attribution: Which changed knob brings how much of the saving; None without one.
        least_saving_percent: What a change must save of the objective to be recommended.
        not_taken: The best candidate, where it saves less than that; None where it was taken.
        endurance: None for a workload that does not write.
        durability: What a power cut takes; None for a workload that does not write, and without a
            recommendation.
        pareto: Feasible configurations that no other beats in objective, capacity and tail
            latency, by rising objective; thinned, see `counts`.
        preferred_missed: Preferred bounds that the recommended configuration misses.
        measure_next: What to measure to be surer of the saving, or of what was not taken; None
            where nothing is compared or no power is known.
        bounds: Slack and price of every bound; empty where nothing is feasible.
        nearest_misses: Where nothing is feasible.
        relaxations: Where nothing is feasible: bounds of which one alone, if relaxed, makes it so,
            the smallest change first.
        counts: Candidates by what became of them.
        free: The knobs that were varied.
        defaults_used: What the workload profile left out and what was taken.
        evidence: By quantity, of the recommended row (today's where there is none).
        notes: What a reader has to know before acting on it.
    """

    answer_version: int = ANSWER_VERSION
    workload: str
    device: str
    model_name: str
    profile_version: str
    mode: Literal["equal_work", "as_fast_as_possible"]
    scope: Scope
    objective: Objective
    ranked_by: str
    confidence: float
    factors: Factors
    demand_bytes_per_second: float | None
    sla: Sla
    action: Action
    reason_code: ReasonCode | None
    recommended: Row | None
    current: Row | None
    current_place: Place | None
    saving: Saving | None
    attribution: Attribution | None
    least_saving_percent: float
    not_taken: NotTaken | None
    endurance: Endurance | None
    durability: DurabilityAnswer | None = None
    pareto: list[Row]
    measure_next: MeasureNext | None
    bounds: list[BoundSlack]
    preferred_missed: list[Shortfall]
    nearest_misses: list[Miss]
    relaxations: list[Relaxation]
    counts: Counts
    free: list[str]
    defaults_used: dict[str, Any]
    evidence: dict[str, str]
    notes: list[str]
