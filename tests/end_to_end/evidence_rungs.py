"""What is recommended on a drive with hidden physics, rung by rung of the evidence ladder.

From what the drive says of itself, over a handful of runs, to a full campaign. On each rung a
profile is fitted as `iojoule fit` does, and asked as `iojoule recommend` does; where the runs were
chosen adaptively, the advisor of `iojoule measure run --adaptive` answers too.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from iojoule.api.application.fit import fit_datasets
from iojoule.datasets.errors import IojouleError
from iojoule.datasets.measured_drive import FILE_NAME
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.provenance import Provenance
from iojoule.datasets.schema import Configuration, Measurement
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.measure.campaign.adaptive import FIRST_BESIDES, FIRST_PER_KNOB
from iojoule.measure.campaign.folder import CampaignState, RunRecord
from iojoule.measure.campaign.runs import OVERHEAD_SECONDS, Run, run_seconds, space_filling
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.fit.gaussian_process import coordinates
from iojoule.recommender.adaptive.advisor import CandidateAdvisor
from iojoule.recommender.adaptive.aims import Candidate
from iojoule.recommender.recommend import Recommender
from tests.end_to_end.hidden_physics import HiddenCase
from tests.end_to_end.rehearsal import SimulatedBench
from tests.end_to_end.simulated_drives import Case, regret_of

Floats = NDArray[np.float64]

QUANTITIES = ("device_power_watts", "throughput_bytes_per_second", "latency_mean_ns")


class HiddenBench(SimulatedBench):
    """A bench whose drive remembers what was run before."""

    def __init__(self, hidden: HiddenCase, seed: int) -> None:
        super().__init__(hidden.case, seed)
        self._physics = hidden.physics()
        self._pause = hidden.case.plan.settle.seconds + OVERHEAD_SECONDS

    def shown(self, row: int) -> Mapping[str, float]:
        """A ramp, of which nothing is seen, and the run."""
        timing = self._case.plan.run
        self._physics.run(row, timing.ramp_seconds)
        return self._physics.run(row, timing.seconds)

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        """The run and the pause after it; housekeeping after writes is work, and no rest."""
        record = super().perform(run, folder, state)
        self._physics.idle(self._pause)
        return record


@dataclass(frozen=True)
class Rung:
    """What one rung says.

    Attributes:
        evidence: What it rests on.
        answer: Who recommends: profile or advisor.
        runs: That were made.
        hours: That they took.
        regret: True cost of the recommendation over that of the best, minus 1; 1 where it breaks
            the SLA, or where nothing is answered.
        feasible: Whether it keeps the SLA in truth.
        half_width: By quantity, mean over the candidates of half the log of high over low.
        covered: By quantity, share of the candidates whose truth lies inside the 90 % interval.
    """

    evidence: str
    answer: str
    runs: int
    hours: float
    regret: float
    feasible: bool
    half_width: Mapping[str, float] = field(default_factory=dict)
    covered: Mapping[str, float] = field(default_factory=dict)


def datasheet_rung(hidden: HiddenCase, folder: Path) -> Rung | None:
    """What is expected of a drive that says what it is; None where nothing can be."""
    if importlib.util.find_spec("iojoule.api.application.build_profile") is None:
        return None
    from iojoule.api.application.build_profile import profile_from_identify

    path = folder / FILE_NAME
    path.write_text(hidden.drive.model_dump_json(), encoding="utf-8")
    return _by_profile(hidden.case, profile_from_identify(path), "datasheet", 0, 0.0)


def adaptive_rungs(
    hidden: HiddenCase, counts: Sequence[int], seed: int, folder: Path
) -> Iterator[Rung]:
    """Runs that the advisor asks for, looked at after so many."""
    for runs, hours, measured in _campaign(hidden, counts, seed, adaptive=True):
        yield _by_advisor(hidden.case, measured, "adaptive", runs, hours)
        yield _fitted(hidden, measured, "adaptive", (runs, hours), folder)


def spread_rungs(
    hidden: HiddenCase, counts: Sequence[int], seed: int, folder: Path
) -> Iterator[Rung]:
    """Runs that fill the space of the candidates evenly; all of them are the full factorial."""
    for runs, hours, measured in _campaign(hidden, counts, seed, adaptive=False):
        name = "every point" if runs == len(hidden.case.points) else "spread"
        yield _by_advisor(hidden.case, measured, name, runs, hours)
        yield _fitted(hidden, measured, name, (runs, hours), folder)


def _campaign(
    hidden: HiddenCase, counts: Sequence[int], seed: int, *, adaptive: bool
) -> Iterator[tuple[int, float, list[Measurement]]]:
    """Runs so far, hours they took, and what they showed, at each of the counts."""
    one, bench, state = hidden.case, HiddenBench(hidden, seed), CampaignState()
    _, knobs = coordinates([point.configuration for point in one.points])
    first = FIRST_PER_KNOB * len(knobs) + FIRST_BESIDES if adaptive else max(counts)
    queue = space_filling(one.points, first, seed)
    advisor = CandidateAdvisor(one.question, _candidates(one), seed=seed)
    measured: list[Measurement] = []
    bench.prepare(state, lambda _: None)
    while len(measured) < max(counts):
        if not queue:
            advice = advisor.propose(_dataset(measured))
            assert advice is not None
            queue = [advisor.aims.candidates.index(each) for each in advice.candidates]
        timing = one.plan.run
        point = one.points[queue.pop(0)]
        run = Run(len(measured) + 1, "all", point, 0, timing.seconds, timing.ramp_seconds)
        bench.before(run, state, lambda _: None)
        record = bench.perform(run, Path(), state)
        assert record.measurement is not None
        measured.append(record.measurement)
        if len(measured) in counts:
            yield len(measured), bench.seconds / 3600, list(measured)


def _candidates(one: Case) -> list[Candidate]:
    timing = one.plan.run
    return [
        Candidate(
            point.workload,
            point.configuration,
            run_seconds(one.plan, Run(1, "all", point, 0, timing.seconds, timing.ramp_seconds)),
        )
        for point in one.points
    ]


def _dataset(measured: Sequence[Measurement]) -> Dataset:
    return Dataset.from_measurements(list(measured), Provenance(importer="rehearsal"))


def _by_advisor(
    one: Case, measured: Sequence[Measurement], evidence: str, runs: int, hours: float
) -> Rung:
    """The advisor's own answer and intervals; it knows of watts, rate and the bounded latency."""
    advisor = CandidateAdvisor(one.question, _candidates(one))
    beliefs = advisor.beliefs(_dataset(measured))
    if beliefs is None:
        return Rung(evidence, "advisor", runs, hours, 1.0, feasible=False)
    regret, feasible = regret_of(one, beliefs.choice().row)
    width, covered = {}, {}
    names = {"watts": "device_power_watts", "iops": "throughput_bytes_per_second"}
    for place, output in enumerate(advisor.aims.outputs):
        if output not in names:
            continue
        truth = one.truth["iops" if output == "iops" else names[output]]
        half = NORMAL_90 * np.sqrt(beliefs.variances[place])
        width[names[output]] = float(half.mean())
        covered[names[output]] = float(
            np.mean(np.abs(np.log(truth) - beliefs.means[place]) <= half)
        )
    return Rung(evidence, "advisor", runs, hours, regret, feasible, width, covered)


def _fitted(
    hidden: HiddenCase,
    measured: Sequence[Measurement],
    evidence: str,
    cost: tuple[int, float],
    folder: Path,
) -> Rung:
    runs, hours = cost
    own = folder / f"{evidence}-{runs}"
    own.mkdir()
    (own / FILE_NAME).write_text(hidden.drive.model_dump_json(), encoding="utf-8")
    write_dataset(_dataset(measured), own / "runs")
    try:
        profile = fit_datasets([own], hidden.drive.model).profile
    except IojouleError:
        return Rung(evidence, "profile", runs, hours, 1.0, feasible=False)
    return _by_profile(hidden.case, profile, evidence, runs, hours)


def _by_profile(one: Case, profile: DeviceProfile, evidence: str, runs: int, hours: float) -> Rung:
    answer = Recommender(profile).recommend(one.question)
    row = answer.recommended or (answer.nearest_misses[0].row if answer.nearest_misses else None)
    places = {_key(point.configuration): place for place, point in enumerate(one.points)}
    place = None if row is None else places[_key(row.configuration)]
    regret, feasible = regret_of(one, place)
    width, covered = _intervals(one, profile)
    return Rung(evidence, "profile", runs, hours, regret, feasible, width, covered)


def _key(chosen: Configuration) -> tuple[object, ...]:
    return (
        chosen.request_bytes,
        chosen.queue_depth,
        chosen.jobs,
        str(chosen.completion),
        chosen.power_state or 0,
    )


def _intervals(one: Case, profile: DeviceProfile) -> tuple[dict[str, float], dict[str, float]]:
    """Mean log half width of the profile's intervals over all candidates, and their coverage."""
    rows = len(one.points)
    columns = {
        name: [getattr(point.configuration, name) for point in one.points]
        for name in ("request_bytes", "queue_depth", "jobs", "engine", "completion", "power_state")
    } | {
        name: [getattr(one.question.workload, name)] * rows
        for name in ("operation", "pattern", "read_fraction")
    }
    answer, _ = Predictor(profile).predict_columns(columns, rows)
    width, covered = {}, {}
    for name in QUANTITIES:
        band, truth = answer[name], one.truth[name]
        if np.isnan(band.value).all():
            continue
        low = np.maximum(band.low, 0.01 * band.value)  # watts may reach down to nothing
        width[name] = float(np.mean(np.log(band.high / low) / 2))
        covered[name] = float(np.mean((band.low <= truth) & (truth <= band.high)))
    return width, covered
