"""Quantities that are no prediction at a configuration: idle, states, caches, saturation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.datasets.catalogue import Drive, load_catalogue
from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DevicePower, DeviceProfile, Parameter
from iojoule.model.evaluate.bands import DATASHEET, EVIDENCE, Interval
from iojoule.model.evaluate.frame import make_frame
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import GAP_QUANTITIES, NORMAL_90, QUANTITIES
from iojoule.model.evaluate.sata_link import PORT_WATTS, SLUMBER_SHARE
from iojoule.model.evaluate.timeline import Phase, Trajectory, follow
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.cache import FOLDED_SHARE, expected_cache
from iojoule.model.prior.facts import DriveFacts, facts_of
from iojoule.model.prior.host import with_expected_host
from iojoule.model.prior.power import with_published_caps
from iojoule.recommender.validation.finding_estimates import (
    ARGUMENTS,
    Estimate,
    Estimator,
    UnansweredError,
    ratio,
)

Point = dict[str, Any]

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Depths and jobs among which saturation is looked for, as in the papers' sweeps."""

SATURATED = (0.80, 0.90, 0.98)
"""Shares of the highest throughput: least, meant and most that "saturated" may mean."""


class Facts:
    """Answers about one drive beside its predictions.

    Args:
        estimator: Of its profile.
        drive: What the catalogue knows of it.
        without: Findings that must not answer.
    """

    def __init__(self, estimator: Estimator, drive: Drive | None, without: Collection[str]) -> None:
        self.estimator, self.drive = estimator, drive
        self.profile: DeviceProfile = estimator.profile
        self._without = frozenset(without)

    def estimate(self, quantity: str, points: Sequence[Point]) -> Estimate:
        """One quantity; several settings only where its extremes are asked.

        Raises:
            UnansweredError: Nothing is known of it.
        """
        if quantity in STATE_ANSWERS:
            standing = [self.estimator.standing | point for point in points]
            return STATE_ANSWERS[quantity](self.estimator.predictor, standing)
        answer = ANSWERS.get(quantity)
        if answer is None:
            raise UnansweredError(quantity)
        return answer(self, points)

    def idle(self, points: Sequence[Point]) -> Estimate:
        """Idle power of a power state."""
        _only({"power_state", "sata_link_state"}, points)
        power = self.profile.device_power
        state = int(points[0].get("power_state") or 0)
        if power is None or state >= len(power.idle_watts):
            raise UnansweredError("idle power")
        found = _of(power.idle_watts[state])
        return at(found, points[0].get("sata_link_state"))

    def standby(self, points: Sequence[Point]) -> Estimate:
        """Power of a disk whose platters stand still."""
        idle = self.profile.idle
        if idle is None or idle.standby is None:
            raise UnansweredError("standby of a disk")
        return _of(idle.standby.watts)

    def spin_transition(self, points: Sequence[Point]) -> Estimate:
        """Seconds that the slower of stopping and starting takes a disk."""
        idle = self.profile.idle
        if idle is None or idle.standby is None:
            raise UnansweredError("standby of a disk")
        slower = max((idle.standby.entry_seconds, idle.standby.exit_seconds), key=lambda p: p.value)
        return replace(_of(slower), own=slower.sd)  # the sd is in log units

    def idle_at_the_wall(self, points: Sequence[Point]) -> Estimate:
        """What the plug draws less without the idle drive: its watts, its port's and the losses."""
        own = self.idle(points)
        if self.drive is not None and self.drive.interface == "sata":
            own = with_port(own)
        slope = self.profile.system_power.slope if self.profile.system_power else None
        if slope is None:
            raise UnansweredError("power of system")
        spread = float(np.hypot(own.own, slope.sd / slope.value))
        return replace(own, value=slope.value * own.value, own=spread)

    def cap(self, points: Sequence[Point]) -> Estimate:
        """Declared cap of a power state, unless the judged paper is who told."""
        state = int(points[0].get("power_state") or 0)
        for one in self.drive.power_states if self.drive else ():
            if one.index == state and not self._rests_on_it(one.source):
                return Estimate(one.max_power_watts, None, 0.05, DATASHEET)
        return self._of_relatives(cap(state))

    def state_count(self, points: Sequence[Point]) -> Estimate:
        """Declared states, operational and not."""
        states = self.drive.power_states if self.drive else ()
        if not states or any(self._rests_on_it(one.source) for one in states):
            return self._of_relatives(state_count)
        return Estimate(float(len(states)), None, 0.0, DATASHEET)

    def _of_relatives(self, figure: Callable[[Drive], float | None]) -> Estimate:
        found = typical(self.drive, figure) if self.drive else None
        if found is None:
            raise UnansweredError("declared power states from another source")
        return found

    def dynamic_range(self, points: Sequence[Point]) -> Estimate:
        """1 - idle over the highest mean power of the settings, the lowest idle state counting."""
        power = self.profile.device_power
        if power is None:
            raise UnansweredError("power of device")
        lowest = _of(min(power.idle_watts, key=lambda one: one.value))
        found = [
            self.estimator.estimates([point], ["device_power_watts"], None)[0] for point in points
        ]
        highest = max(found, key=lambda one: one.value)
        share = lowest.value / highest.value
        spread = highest.spread()
        sd = np.hypot(lowest.own, np.log(spread.high / spread.value) / NORMAL_90)
        return Estimate(1.0 - share, None, float(share / (1.0 - share) * sd), highest.evidence)

    def until_full(self, points: Sequence[Point]) -> Estimate:
        """Seconds of writing at full speed until the cache for writes is full."""
        cached = self.cached(points)
        rate = self.estimator.estimates(points[:1], ["throughput_bytes_per_second"], None)[0]
        own = float(np.hypot(cached.own, np.log(rate.spread().high / rate.value) / NORMAL_90))
        return Estimate(cached.value / rate.value, None, own, max(cached.evidence, rate.evidence))

    def cached(self, points: Sequence[Point]) -> Estimate:
        """Bytes that the cache for writes takes, at the fill that is said."""
        state = self.profile.write_state
        if state is None:
            return _of(expected_cache(self.profile.capacity_bytes, self._generation))
        empty = _of(state.cached_bytes)
        said = (self.estimator.standing | points[0]).get("fill_fraction")
        fill = np.array([np.nan if said is None else float(said)])
        model = self.estimator.predictor.performance.state
        share, sd = model.cache_share(fill)[0], model.cache_share_sd(fill)[0]
        return replace(empty, value=empty.value * share, own=float(np.hypot(empty.own, sd)))

    @property
    def _generation(self) -> int | None:
        """PCIe generation of the link; 0 for SATA, None where nobody says."""
        if self.drive is None or self.drive.interface == "sata":
            return None if self.drive is None else 0
        fact = self.drive.fact("pcie_generation")
        return None if fact is None else int(float(fact.value))

    def cache_share(self, points: Sequence[Point]) -> Estimate:
        """The cache for writes as a share of the capacity."""
        cached, capacity = self.cached(points), self.profile.capacity_bytes
        if capacity is None:
            raise UnansweredError("capacity")
        return Estimate(cached.value / capacity, None, cached.own, cached.evidence)

    def saturation(self, knob: str, points: Sequence[Point]) -> Estimate:
        """Smallest depth or number of jobs that reaches 90 % of the highest throughput."""
        point = points[0]
        if self.estimator.unmeasured and knob == "queue_depth":
            point = {"engine": SHORTEST_PATH, **point}
        rates = self.estimator.estimates(
            [{**point, knob: depth} for depth in DEPTHS],
            ["throughput_bytes_per_second"] * len(DEPTHS),
            None,
        )
        most = max(one.value for one in rates)
        low, value, high = (
            next(d for d, one in zip(DEPTHS, rates, strict=True) if one.value >= share * most)
            for share in SATURATED
        )
        # half a step of the papers' grids to each side
        width = max(np.log(high / value), np.log(value / low)) + 0.5 * np.log(2.0)
        return Estimate(
            float(value), None, float(width / NORMAL_90), max(r.evidence for r in rates)
        )

    def tail_range(self, points: Sequence[Point]) -> Estimate:
        """95th percentile once the cache is full over that before: the rates', inverted.

        With the queue full, both latencies are what is in flight over the rate.
        """
        share, log_sd = self._folded(points)
        return Estimate(1.0 / share, None, log_sd, DATASHEET)

    def tail_when_full(self, points: Sequence[Point]) -> Estimate:
        """95th percentile of writes to a full cache."""
        share, log_sd = self._folded(points)
        names = ["latency_mean_ns", "latency_p99_ns"]
        mean, p99 = (self.estimator.estimates(points[:1], [name], None)[0] for name in names)
        # between the two, as the logarithm of a log-normal tail goes: 1.645 of 2.326 sigmas
        value = mean.value * max(p99.value / mean.value, 1.0) ** P95_OF_P99
        own = float(np.hypot(p99.own, log_sd))
        return Estimate(value / share, None, own, p99.evidence)

    def _folded(self, points: Sequence[Point]) -> tuple[float, float]:
        """What is left of the rate once the cache is full, and its log sd."""
        if self.profile.write_state is None:
            return FOLDED_SHARE
        states = [{**points[0], "device_state": state} for state in ("collecting", "cached")]
        one, other = self.estimator.estimates(states, ["throughput_bytes_per_second"] * 2, None)
        left = ratio(one, other)
        return left.value, float(np.log(left.high / left.value)) / NORMAL_90

    def access_unit(self, points: Sequence[Point]) -> Estimate:
        """Bytes that the drive reads and writes as one."""
        surface = self.profile.surfaces[0]
        return Estimate(float(surface.access_unit_bytes), None, 0.35, DATASHEET)

    def apst_rules(self, points: Sequence[Point]) -> Estimate:
        """Transitions that Linux sets up: every state above the deepest idle one has one.

        `nvme_configure_apst` fills the table from the deepest state that it allows upwards.
        """
        idle = self.profile.idle
        if idle is not None and any(not one.operational for one in idle.transitions):
            deepest = max(one.power_state for one in idle.transitions if not one.operational)
            return Estimate(float(deepest), None, APST_RULES_SD, DATASHEET)
        count = self.state_count(points)
        return replace(count, value=max(count.value - 1.0, 0.0))

    def apst_wait(self, points: Sequence[Point]) -> Estimate:
        """Idle time before an autonomous transition over the entry and exit latency."""
        return Estimate(APST_LATENCIES[0], None, APST_LATENCIES[1], DATASHEET)

    def rated_write(self, points: Sequence[Point]) -> Estimate:
        """What a data sheet would say of sequential writes: large, deep, into free space."""
        rated = {"operation": "write", "pattern": "sequential", "request_bytes": 131072}
        point = {**rated, "queue_depth": 32}
        return self.estimator.estimates([point], ["throughput_bytes_per_second"], None)[0]

    def system_range(self, points: Sequence[Point]) -> Estimate:
        """1 - idle over the highest wall power of the settings."""
        watts = "system_power_watts"
        idle = self.estimator.estimates(
            [{**points[0], "demand_operations_per_second": 0}], [watts], None
        )[0]
        found = [self.estimator.estimates([point], [watts], None)[0] for point in points]
        highest = max(found, key=lambda one: one.value)
        share = ratio(idle, highest)
        sd = np.log(share.high / share.value) / NORMAL_90
        return Estimate(
            1.0 - share.value, None, float(share.value / (1.0 - share.value) * sd), highest.evidence
        )

    def _rests_on_it(self, source: str) -> bool:
        """Whether a fact of the catalogue is from a paper whose finding is judged."""
        named = set(re.findall(r"\d{3}-\d{3}", source))
        return bool(named & self._without) or by_author(source, self._without)


SHORTEST_PATH = "spdk"
"""Engine through which a drive is asked where it saturates, if the finding names none and its host
is assumed: the one that takes a core least, so that the drive saturates and not the core."""

P95_OF_P99 = 1.645 / 2.326
"""Standard deviations of a normal distribution at both percentiles."""

APST_LATENCIES = (50.0, 0.4)
"""Linux' nvme driver waits fifty times entry and exit latency, "at most 2% of the time
transitioning" (`nvme_configure_apst` in drivers/nvme/host/core.c), and log sd for kernels since
5.14 (commit ebd8a93aa4f5), which do so only where their fixed times of 100 ms and 2 s are 0."""

APST_RULES_SD = 0.15
"""Log sd: a state may be left out by the host's limit of latency, or by a quirk."""

ANSWERS: dict[str, Callable[[Facts, Sequence[Point]], Estimate]] = {
    "idle_power_watts": Facts.idle,
    "wall_idle_power_watts": Facts.idle_at_the_wall,
    "cap_watts": Facts.cap,
    "power_states": Facts.state_count,
    "dynamic_power_range": Facts.dynamic_range,
    "seconds_to_collecting": Facts.until_full,
    "bytes_before_collecting": Facts.cached,
    "cache_share_of_capacity": Facts.cache_share,
    "saturation_queue_depth": lambda facts, points: facts.saturation("queue_depth", points),
    "saturation_jobs": lambda facts, points: facts.saturation("jobs", points),
    "access_unit_bytes": Facts.access_unit,
    "latency_p95_ns_variation": Facts.tail_range,
    "latency_p95_ns": Facts.tail_when_full,
    "apst_rules": Facts.apst_rules,
    "apst_idle_over_transition_latency": Facts.apst_wait,
    "rated_write_bytes_per_second": Facts.rated_write,
    "system_dynamic_power_range": Facts.system_range,
    "standby_power_watts": Facts.standby,
    "spin_transition_seconds": Facts.spin_transition,
    "standby_transition_seconds": lambda facts, points: transition(),
}
"""Quantities by name; a further one is one line here."""


def _of(parameter: Parameter) -> Estimate:
    code = EVIDENCE.index(parameter.evidence.value)
    return Estimate(parameter.value, None, parameter.sd / parameter.value, code)


def _only(known: set[str], points: Sequence[Point]) -> None:
    unknown = sorted({name for point in points for name in point} - known - ARGUMENTS)
    # what a run would do changes nothing while the drive is idle
    serving = {
        "operation",
        "pattern",
        "request_bytes",
        "queue_depth",
        "jobs",
        "engine",
        "think_time_ns",
        "burst_bytes",
    }
    if set(unknown) - serving:
        raise UnansweredError(", ".join(sorted(set(unknown) - serving)))


def predicted(quantity: str) -> Callable[[Predictor, Sequence[Point]], Estimate]:
    """Who answers one of `GAP_QUANTITIES` at the first setting."""

    def answer(predictor: Predictor, points: Sequence[Point]) -> Estimate:
        frame, _ = make_frame(predictor.profile, _columns(points), 1)
        band = predictor.predict(frame, only=(*QUANTITIES, *GAP_QUANTITIES))[quantity]
        value, high = float(band.value[0]), float(band.high[0])
        if not value > 0:
            raise UnansweredError(quantity)
        return Estimate(value, None, np.log(high / value) / NORMAL_90, int(band.evidence[0]))

    return answer


def gap_power(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Mean power of the gap alone, without bursts: the cycle's less the burst's share."""
    frame, _ = make_frame(predictor.profile, _columns(points), 1)
    found = predictor.predict(frame, only=(*QUANTITIES, *GAP_QUANTITIES))
    cycle, active = found["cycle_power_watts"], found["device_power_watts"]
    gap = float(frame.gap_seconds[0])
    requests = float(frame.burst_bytes[0] / frame.request_bytes[0])
    burst = max(requests, 1.0) / float(found["iops"].value[0])
    if not gap > 0 or not np.isfinite(requests):
        raise UnansweredError("a gap and the bytes between two gaps")
    work = float(np.nan_to_num(found["background_energy_joules"].value)[0])
    joules = cycle.value[0] * (burst + gap) - active.value[0] * burst - work
    own = np.log(cycle.high[0] / cycle.value[0]) / NORMAL_90
    return Estimate(float(joules) / gap, None, float(own), int(cycle.evidence[0]))


def background(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Work after a burst of stated bytes, else after a run of stated seconds."""
    if "elapsed_seconds" not in points[0]:
        return predicted("background_seconds")(predictor, points)
    return _of_state_facts(_run(predictor, points).background_seconds, 1.0, predictor)


def run_bytes(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Bytes that a drive with an empty cache takes in a stated time."""
    story = _run(predictor, points)
    return _of_state_facts(story.bytes_written, 1.0, predictor)


def run_rate(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Mean throughput of the same run."""
    story = _run(predictor, points)
    return _of_state_facts(
        story.bytes_written, 1.0 / float(points[0]["elapsed_seconds"]), predictor
    )


def collecting(quantity: str) -> Callable[[Predictor, Sequence[Point]], Estimate]:
    """Who answers how collecting comes and goes in a run of stated seconds."""

    def answer(predictor: Predictor, points: Sequence[Point]) -> Estimate:
        found: Interval | None = getattr(_run(predictor, points).episodes, quantity)
        if found is None or not found.value > 0:
            raise UnansweredError(f"collecting that comes back within the time ({quantity})")
        return _of_state_facts(found, 1.0, predictor)

    return answer


def apst_idle(predictor: Predictor, points: Sequence[Point]) -> Estimate:
    """Idle time before an autonomous transition."""
    idle = predictor.profile.idle
    if idle is None or idle.apst_idle_seconds is None:
        raise UnansweredError("apst_idle_seconds")
    one: Parameter = idle.apst_idle_seconds
    sd = one.sd / one.value
    return Estimate(one.value, None, sd, EVIDENCE.index(one.evidence.value))


def _run(predictor: Predictor, points: Sequence[Point]) -> Trajectory:
    seconds = float(points[0]["elapsed_seconds"])
    try:
        return follow(predictor, _columns(points), [Phase(seconds, write=True)])
    except InputError as error:
        raise UnansweredError(str(error)) from None


def _columns(points: Sequence[Point]) -> Point:
    return {name: value for name, value in points[0].items() if name not in ARGUMENTS}


def _of_state_facts(found: Interval, scale: float, predictor: Predictor) -> Estimate:
    state = predictor.profile.write_state
    assert state is not None
    own = float(np.log(found.high / max(found.low, LEAST_SHARE * found.value))) / (2 * NORMAL_90)
    code = EVIDENCE.index(state.transition_bytes.evidence.value)
    return Estimate(found.value * scale, None, own, max(code, EVIDENCE.index("published")))


LEAST_SHARE = 0.1
"""Of a value stands for none at the low end of an interval, where a logarithm is taken."""

STATE_ANSWERS: dict[str, Callable[[Predictor, Sequence[Point]], Estimate]] = {
    "background_seconds": background,
    "wake_latency_ns": predicted("wake_latency_ns"),
    "gap_power_watts": gap_power,
    "bytes_written": run_bytes,
    "mean_throughput_bytes_per_second": run_rate,
    "collecting_pauses": collecting("pauses"),
    "collecting_pause_seconds": collecting("pause_seconds"),
    "second_collecting_start_seconds": collecting("second_start_seconds"),
    "second_collecting_seconds": collecting("second_seconds"),
    "apst_idle_seconds": apst_idle,
}
"""Quantities by name."""


TRANSITION_SECONDS = (0.1, 1.2)
"""Into or out of Slumber: the link leaves it within 10 ms
(`model.evaluate.sata_link.EXIT_SECONDS`), the drive enters once its own work is done, up to a
second (assumption)."""


def at(idle: Estimate, state: Any) -> Estimate:
    """Idle power in a link state; an active link where none is stated."""
    if state != "slumber":
        return idle
    share, log_sd = SLUMBER_SHARE
    own = float(np.hypot(idle.own, log_sd))
    return replace(idle, value=share * idle.value, own=own)


def with_port(idle: Estimate) -> Estimate:
    """Idle power of the drive and of the port that it is plugged into, link active."""
    watts, log_sd = PORT_WATTS
    value = idle.value + watts
    own = float(np.hypot(idle.own * idle.value, log_sd * watts)) / value
    return replace(idle, value=value, own=own)


def transition() -> Estimate:
    """Seconds of a transition between the active link and Slumber."""
    seconds, log_sd = TRANSITION_SECONDS
    return Estimate(seconds, None, log_sd, DATASHEET)


LEAST_SD = 0.15
"""Log sd of a declared figure among relatives, at the least."""


def typical(drive: Drive, figure: Callable[[Drive], float | None]) -> Estimate | None:
    """A declared figure as the drive's relatives have it; None where it has none."""
    family = [one for one in load_catalogue() if _related(one, drive) and one.id != drive.id]
    for relatives in ([one for one in family if one.vendor == drive.vendor], family):
        found = [value for one in relatives if (value := figure(one))]
        if found:
            logs = np.log(found)
            sd = float(np.hypot(np.std(logs), LEAST_SD) * np.sqrt(1.0 + 1.0 / len(logs)))
            return Estimate(float(np.exp(np.median(logs))), None, sd, DATASHEET)
    return None


def cap(state: int) -> Callable[[Drive], float | None]:
    """Cap of one operational state, W."""

    def of(drive: Drive) -> float | None:
        return next(
            (one.max_power_watts for one in drive.operational_states if one.index == state), None
        )

    return of


def state_count(drive: Drive) -> float | None:
    """Declared states, operational and not."""
    return float(len(drive.power_states)) or None


def _related(one: Drive, drive: Drive) -> bool:
    told = drive.fact("sleep_states")
    alike = told is None or _asleep(one) == int(float(told.value))
    return one.interface == drive.interface and one.drive_class == drive.drive_class and alike


def _asleep(drive: Drive) -> int | None:
    """Declared states that serve nothing; None where none are declared at all."""
    return len(drive.power_states) - len(drive.operational_states) if drive.power_states else None


MOST_STATES = 3
"""Operational states of a usual drive: full power and two lower ones."""

NO_DRIVE = "none"
"""Device of a finding about a host without any drive."""


def expected_of(
    device: str, drive: Drive | None, without: frozenset[str] = frozenset()
) -> DeviceProfile | None:
    """What drives with these facts do, on a host that nobody measured.

    Args:
        device: Id; a drive that the catalogue does not know is one of its kind in general.
        drive: The catalogue's entry, less what is the finding.
        without: Findings that must not help.
    """
    if drive is not None and drive.drive_class == "emulated":
        return None
    if drive is None:
        facts = DriveFacts(device=device, model=device, sata=False, datacentre=None, xpoint=None)
    else:
        facts = facts_of(drive)
        if drive.interface == "nvme" and not drive.power_states:
            facts = replace(facts, caps_watts=_usual_caps(drive))
    profile = with_expected_host(build_profile(facts))
    if device == NO_DRIVE:
        return _without_drive(profile)
    return with_published_caps(profile, facts, without)


def _usual_caps(drive: Drive) -> list[float]:
    """Caps of the states that its relatives declare, where the drive's own are not known."""
    caps: list[float] = []
    for state in range(MOST_STATES):
        found = typical(drive, cap(state))
        if found is None:
            break
        caps.append(min([found.value, *caps]))
    return caps


def _without_drive(profile: DeviceProfile) -> DeviceProfile:
    """The host alone: a drive that draws nothing."""
    power = profile.device_power
    if power is None:
        return profile
    nothing = DevicePower.model_validate(
        power.model_dump()
        | {
            "parameters": [_none(one) for one in power.parameters],
            "covariance": [[0.0] * len(row) for row in power.covariance],
            "idle_watts": [_none(one) for one in power.idle_watts],
        }
    )
    return profile.model_copy(update={"device_power": nothing})


def _none(one: Parameter) -> Parameter:
    return one.model_copy(update={"value": LEAST_WATTS, "sd": 0.0, "source": "no drive"})


LEAST_WATTS = 1e-9
"""Stands for no power where a logarithm is taken."""


def by_author(source: str, facts: Collection[str]) -> bool:
    """Whether a source of the catalogue is the paper of one of the findings."""
    papers = {fact[:3] for fact in facts}
    return any(word in source for paper in papers for word in AUTHORS.get(paper, ()))


AUTHORS = {
    "000": ("Kanichai", "thesis"),
    "001": ("Pavan",),
    "002": ("Bohner",),
    "003": ("Harris",),
    "004": ("Xie",),
}
"""How sources of the catalogue name the papers."""
