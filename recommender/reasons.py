"""Why an answer is what it is, and how to be surer: the parts of an answer that say so."""

from __future__ import annotations

from typing import Any, Literal

from iojoule.datasets.schema import Configuration, Section
from iojoule.recommender.estimate import Ending, Estimate


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
        last_percent: What it adds to all the others; None likewise.
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
        below_demand: How many in between do not carry the demand; their energy is that of the
            work that they do.
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
        reached: The interval bound that is held against it; None where nothing comes near, as
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
