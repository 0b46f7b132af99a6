"""Measures a recommendation against what ran before it: a campaign of interleaved pairs.

Everything that makes a campaign safe and repeatable holds: guards, journal, recorded sensors, one
folder with every run. Only the order of the runs and when they end is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Literal

import tomlkit
from scipy.stats import t as student

from iojoule.api.acting.answer_file import Answer
from iojoule.api.acting.paired_saving import Pair, Trial, Verdict
from iojoule.api.application.measure_plan import sweep_of
from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration, Measurement, Section
from iojoule.measure.campaign.conduct import Bench, Conduct, Conductor, Observer, Summary, counts
from iojoule.measure.campaign.folder import CampaignFolder, RunRecord
from iojoule.measure.campaign.plan import KNOBS, Plan
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.runs import Run
from iojoule.measure.campaign.settings import power_state, wake
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import SensorError
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.protocol import POWER_FIELDS, Kind
from iojoule.measure.sensors.protocol import Scope as Metered
from iojoule.recommender.request import Scope, WorkloadProfile
from iojoule.recommender.sla import LATENCY_MAXIMA, MINIMA, POWER_MAXIMA, Sla

BEFORE, AFTER = "before", "after"
"""Names of the two sweeps."""

PARTS = {
    Scope.DEVICE: (Metered.DEVICE,),
    Scope.DEVICE_CPU: (Metered.DEVICE, Metered.CPU),
    Scope.SYSTEM: (Metered.SYSTEM,),
}
"""Whose watts add up to those of a scope."""

DEMAND = "demand_bytes_per_second"
CARRIED_SHARE = 0.98
"""A demand of which less was served was not met: the work was not equal."""

_POWER_STATE_BITS = 0x1F  # of the feature; the others hint at the workload

_SETTLE = {"baseline_seconds": 5.0, "seconds": 1.0, "after_writes_seconds_max": 60.0}
_FAILURES_IN_A_ROW_MAX = 3


Kept = Literal["yes", "no", "unsure", "not measured"]


class BoundCheck(Section):
    """A bound of the SLA, or the demand, and what was measured with the change.

    Attributes:
        bound: Field of the SLA, or `demand_bytes_per_second`.
        limit: The bound.
        soft: Whether it is only preferred.
        kept: `unsure` where the interval holds the bound, `not measured` where there is no value.
        mean: Mean over the runs; None = it was not measured.
        low: Lower end of the mean's two-sided 90 % interval.
        high: Upper end.
    """

    bound: str
    limit: float
    soft: bool
    kept: Kept
    mean: float | None = None
    low: float | None = None
    high: float | None = None


class Verification(Section):
    """What interleaved runs with and without the change say.

    Attributes:
        scope: Whose energy counts.
        pairs: Pairs of runs that count.
        saving: Share of the energy for the same work that the change saves; None = too few pairs.
        low: Lower end of its interval.
        high: Upper end.
        confidence: With which all intervals of all looks hold together.
        verdict: What is proven.
        before_joules_per_gb: Mean energy for 10^9 bytes of useful work.
        after_joules_per_gb: Likewise.
        bounds: The SLA with the change.
    """

    scope: Scope
    pairs: int
    saving: float | None
    low: float | None
    high: float | None
    confidence: float
    verdict: Verdict
    before_joules_per_gb: float | None
    after_joules_per_gb: float | None
    bounds: list[BoundCheck]

    @property
    def holds(self) -> bool:
        """Whether a saving is shown and no bound is broken."""
        saves = self.verdict in ("proven", "likely")
        return saves and not self.broken

    @property
    def broken(self) -> list[str]:
        """The bounds that are not kept, but for those that are only preferred."""
        return [one.bound for one in self.bounds if one.kept == "no" and not one.soft]


def plan_text(
    answer: Answer,
    question: WorkloadProfile,
    trial: Trial,
    *,
    seconds: float,
    ramp_seconds: float,
    power_states: bool,
    seed: int = 1,
) -> str:
    """The plan of the campaign, as a file of `iojoule measure`.

    Args:
        answer: What ran before and what is recommended.
        question: The workload that it was recommended for.
        trial: How many pairs.
        seconds: Measured time of a run.
        ramp_seconds: Time before it that does not count.
        power_states: Whether the drive's power states are set; else they are left as they are.
        seed: Of the orders and addresses.

    Raises:
        InputError: The two configurations differ in what cannot be measured so.
    """
    configurations = {
        BEFORE: answer.current.configuration,
        AFTER: answer.recommended.configuration,
    }
    _require_measurable(configurations[BEFORE], configurations[AFTER], power_states)
    sweeps = []
    for name, configuration in configurations.items():
        sweep = sweep_of(name, configuration, question)
        if not power_states:
            sweep.pop("power_state", None)
            sweep.pop("power_limit_watts", None)
        sweeps.append(sweep)
    plan = {
        "schema_version": 1,
        "name": "verify",
        "title": f"{answer.workload}: today's configuration against the recommended one",
        "seed": seed,
        "repeats": trial.pairs_max,
        "failures_in_a_row_max": _FAILURES_IN_A_ROW_MAX,
        # a thread that only some engines have would be counted as the change's
        "run": {"seconds": seconds, "ramp_seconds": ramp_seconds, "offload": False},
        "settle": _SETTLE,
        "sweep": sweeps,
    }
    return tomlkit.dumps(plan)


@dataclass(frozen=True)
class Work:
    """What counts as the same work.

    Attributes:
        question: The workload: how much of a request is of use.
        scope: Whose energy counts.
    """

    question: WorkloadProfile
    scope: Scope

    def useful_share(self, configuration: Configuration) -> float:
        """Share of the bytes of a request that the application asked for."""
        size, stated = configuration.request_bytes, self.question.workload
        useful = stated.request_bytes_coalescible or stated.useful_request_bytes or size
        return min(1.0, useful / size)

    def joules_per_byte(self, record: RunRecord) -> float:
        """Energy of a run, with that of the drive's own work after it, over the useful bytes.

        Raises:
            SensorError: The power of the scope is not known.
        """
        measured = record.measurement
        assert measured is not None
        assert record.begin_monotonic_ns is not None
        assert record.end_monotonic_ns is not None
        seen = measured.observations
        watts = 0.0
        for part in PARTS[self.scope]:
            told: float | None = getattr(seen, POWER_FIELDS[part])
            if told is None:
                raise SensorError(f"run {record.number}: {POWER_FIELDS[part]} was not measured")
            watts += told
        seconds = (record.end_monotonic_ns - record.begin_monotonic_ns) * 1e-9
        # whoever measures at the wall sees it in the next run's wait, so that it is no one's
        background = 0.0 if self.scope is Scope.SYSTEM else seen.background_energy_joules or 0.0
        return (watts * seconds + background) / (self.useful_rate(measured) * seconds)

    def useful_rate(self, measured: Measurement) -> float:
        """Useful bytes a second of a run."""
        moved = measured.observations.throughput_bytes_per_second or 0.0
        return moved * self.useful_share(measured.configuration)


def conduct_pairs(trial: Trial, work: Work) -> Conduct:
    """How the campaign is conducted: pair by pair, until it is clear or all pairs are made."""
    return partial(_conduct, trial=trial, work=work)


def sets_power_states(answer: Answer, drive: DriveFacts, controller: NvmeController | None) -> bool:
    """Whether a campaign has to set power states; where not, the drive is left as it is.

    Raises:
        DriveError: The drive does not answer.
    """
    both = [one.configuration for one in (answer.current, answer.recommended)]
    states = {one.power_state or 0 for one in both}
    if controller is None:
        return False
    if any(one.power_limit_watts for one in both):
        return True
    wake(drive.device)
    return states != {int(power_state(controller).get()) & _POWER_STATE_BITS}


def require_meters(scope: Scope, sensors: Sequence[str]) -> None:
    """Refuse to begin without a meter for every part of a scope.

    Raises:
        SensorError: One is missing or cannot be used.
    """
    metered = {
        rail.scope
        for name in sensors
        for rail in open_sensor(name).probe().rails
        if rail.counts and rail.kind in (Kind.POWER, Kind.ENERGY)
    }
    missing = [one.value for one in PARTS[scope] if one not in metered]
    if missing:
        raise SensorError(
            f"the energy of scope {scope.value} needs a meter for {' and '.join(missing)}: name it "
            "with --power or --rapl-root, or say --scope for what is metered"
        )


def verification(
    records: Sequence[RunRecord], answer: Answer, trial: Trial, work: Work
) -> Verification:
    """What the runs of a campaign say."""
    done = [one for one in records if one.is_good]
    pairs = pairs_of(done, work)
    found = trial.saving(pairs)
    after = [one.measurement for one in done if one.sweep == AFTER and one.measurement]
    return Verification(
        scope=work.scope,
        pairs=len(pairs),
        saving=found.value if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        confidence=trial.confidence,
        verdict=found.verdict if found else "not proven",
        before_joules_per_gb=1e9 * fmean(one.before for one in pairs) if pairs else None,
        after_joules_per_gb=1e9 * fmean(one.after for one in pairs) if pairs else None,
        bounds=_bounds(answer, after, work),
    )


def pairs_of(records: Sequence[RunRecord], work: Work) -> list[Pair]:
    """The pairs of which both runs are good, in order of time."""
    known = {(one.sweep, one.repeat): one for one in records if one.is_good}
    found = []
    for (name, repeat), before in known.items():
        after = known.get((AFTER, repeat))
        if name == BEFORE and after is not None:
            first = after.started_utc < before.started_utc
            found.append(Pair(work.joules_per_byte(before), work.joules_per_byte(after), first))
    return found


def _conduct(
    plan: Plan,
    runs: Sequence[Run],
    folder: CampaignFolder,
    bench: Bench,
    observer: Observer,
    *,
    trial: Trial,
    work: Work,
) -> Summary:
    known = {run.number: record for run in runs if (record := folder.record(run)) is not None}
    conductor = Conductor(plan, folder, bench, observer, known, len(runs))
    each = plan.run.seconds + plan.run.ramp_seconds + plan.settle.seconds
    by_place = {(run.sweep, run.repeat): run for run in runs}
    stopped: str | None = None
    made = 0
    conductor.prepare()
    try:
        for repeat, after_first in enumerate(trial.orders(plan.seed)):
            names = (AFTER, BEFORE) if after_first else (BEFORE, AFTER)
            both = [by_place[name, repeat] for name in names]
            for run in both:
                stopped = stopped or conductor.must_stop()
                if stopped is None and not counts(known.get(run.number)):
                    conductor.make(run, len(runs), each * (len(runs) - made))
                made += 1
            made_now = [run for run in both if run.number in known]
            conductor.repeat([run for run in made_now if conductor.ended(run)], len(runs))
            pairs = pairs_of(list(known.values()), work)
            saving = trial.saving(pairs) if repeat + 1 in trial.looks else None
            if stopped or (saving is not None and saving.is_clear):
                break
        conductor.finish()
    finally:
        conductor.write_measurements()
    return conductor.summary(stopped, made, all_needed=False)


def _require_measurable(before: Configuration, after: Configuration, power_states: bool) -> None:
    for name in Configuration.model_fields:
        of_power = name in ("power_state", "power_limit_watts")
        settable = name in KNOBS and (power_states or not of_power)
        if not settable and getattr(before, name) != getattr(after, name):
            what = (
                "the drive's controller is not known: name it with --controller"
                if of_power
                else "it cannot be switched between two runs"
            )
            raise InputError(f"{name} differs before and after, but {what}", field=name)


def _bounds(answer: Answer, after: Sequence[Measurement], work: Work) -> list[BoundCheck]:
    demand = answer.demand_bytes_per_second
    sla = answer.sla
    found = [
        _check(name, limit, [_seen(one, name, sla) for one in after], name in sla.soft)
        for name, limit in sla.bounds().items()
        # what could be carried at full speed is not seen while less is demanded
        if demand is None or name not in MINIMA
    ]
    if demand is not None:
        served = [work.useful_rate(one) for one in after]
        found.append(_check(DEMAND, CARRIED_SHARE * demand, served))
    return found


def _seen(measured: Measurement, bound: str, sla: Sla) -> float | None:
    """What a run says about a bound; None = nothing, as about endurance."""
    seen = measured.observations
    if bound == "device_cpu_power_watts_max":
        drive, cpu = seen.device_power_watts, seen.cpu_power_watts
        return None if drive is None or cpu is None else drive + cpu
    field = {**MINIMA, **LATENCY_MAXIMA, **POWER_MAXIMA}.get(bound)
    directions = {str(name): one for name, one in sla.directions.items()}
    direction = directions.get(bound) if measured.workload.operation == "mixed" else None
    name = f"{direction}_{field}" if direction else field
    value: float | None = None if name is None else getattr(seen, name)
    return value


def _check(
    name: str, limit: float, values: Sequence[float | None], soft: bool = False
) -> BoundCheck:
    known = [one for one in values if one is not None]
    if len(known) < 2:
        return BoundCheck(bound=name, limit=limit, soft=soft, kept="not measured")
    mean, spread = fmean(known), stdev(known) / len(known) ** 0.5
    half = float(student.ppf(0.95, len(known) - 1)) * spread
    low, high = mean - half, mean + half
    if name == DEMAND or name in MINIMA:
        safe, broken = low >= limit, high < limit
    else:
        safe, broken = high <= limit, low > limit
    kept: Kept = "yes" if safe else "no" if broken else "unsure"
    return BoundCheck(bound=name, limit=limit, soft=soft, mean=mean, low=low, high=high, kept=kept)
