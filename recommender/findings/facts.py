"""Quantities that are no prediction at a configuration: idle, states, caches, saturation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from iojoule.datasets.catalogue import Drive
from iojoule.datasets.profile import DeviceProfile, Parameter
from iojoule.model.evaluate.bands import DATASHEET, EVIDENCE
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.prior.cache import FOLDED_SHARE, expected_cache
from iojoule.recommender.findings import peers, sata_link
from iojoule.recommender.findings.estimate import Estimate, ratio
from iojoule.recommender.findings.estimator import ARGUMENTS, Estimator, UnansweredError
from iojoule.recommender.findings.profiles import by_author
from iojoule.recommender.findings.state_facts import STATE_ANSWERS

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
        return sata_link.at(found, points[0].get("sata_link_state"))

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
            own = sata_link.with_port(own)
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
        return self._of_relatives(peers.cap(state))

    def state_count(self, points: Sequence[Point]) -> Estimate:
        """Declared states, operational and not."""
        states = self.drive.power_states if self.drive else ()
        if not states or any(self._rests_on_it(one.source) for one in states):
            return self._of_relatives(peers.state_count)
        return Estimate(float(len(states)), None, 0.0, DATASHEET)

    def _of_relatives(self, figure: Callable[[Drive], float | None]) -> Estimate:
        found = peers.typical(self.drive, figure) if self.drive else None
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
            ["throughput_bytes_per_second"] * len(DEPTHS), None,
        )  # fmt: skip
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
    "standby_transition_seconds": lambda facts, points: sata_link.transition(),
}
"""Quantities by name; a further one is one line here."""


def _of(parameter: Parameter) -> Estimate:
    code = EVIDENCE.index(parameter.evidence.value)
    return Estimate(parameter.value, None, parameter.sd / parameter.value, code)


def _only(known: set[str], points: Sequence[Point]) -> None:
    unknown = sorted({name for point in points for name in point} - known - ARGUMENTS)
    # what a run would do changes nothing while the drive is idle
    serving = {
        "operation", "pattern", "request_bytes", "queue_depth", "jobs", "engine",
        "think_time_ns", "burst_bytes",
    }  # fmt: skip
    if set(unknown) - serving:
        raise UnansweredError(", ".join(sorted(set(unknown) - serving)))
