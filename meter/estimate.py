"""Watts of drives from what they were asked to do in an interval, by their profile.

The block counters give rates of the drive's own commands, so its law of power (`model.evaluate
.device_power`) is taken at these rates as they are: mean watts are linear in them, whatever the
bursts. What counters do not give is found as follows.

* Busy share u: the depth while it serves is that at which the profile's latency is the measured
  one, depth = (mean in flight) / u with u = rate / (full speed at that depth). A drive that has
  requests in flight nearly all the time is busy; slower than its profile says, it works as hard on
  fewer commands (data that lie scattered).
* Random or sequential: both are evaluated and weighed, what they differ by is uncertainty. A
  pattern is less likely in which the drive would have been done sooner than it was in use, or in
  which its commands take another time than they took.
* How long the drive rests between requests: as if they came at random (Poisson), between the two
  extremes of coming all at once and evenly, which are uncertainty. Without requests the gap goes on
  from interval to interval, so the settle time and the fall asleep are those of one long gap.
* The state: bytes that the cache holds and work that is owed, as along a time line
  (`model.evaluate.timeline`); at the beginning nothing is owed. Such work keeps a drive awake, and
  the way to its sleep begins anew when it is done. A cache that ran full is emptied without delay
  and beside requests, where the profile knows what that takes.

Nothing here reads a clock or a file: the same intervals give the same joules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np

from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import Evidence
from iojoule.meter.counters import Amounts
from iojoule.meter.idle import Descent
from iojoule.model.evaluate import device_power, host_work, idle_gaps, linear_law
from iojoule.model.evaluate.background_work import delay_seconds
from iojoule.model.evaluate.bands import Floats
from iojoule.model.evaluate.device_state import left_after
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.host_work import HostCosts
from iojoule.model.evaluate.prediction import Prediction, joined
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.quantities import NORMAL_90
from iojoule.model.evaluate.surface import Indices

PATTERNS = ("random", "sequential")
DEPTH_STEPS = 2
"""How often depth and busy share are brought in line with each other after the first evaluation."""
DEPTH_MAX = 4096
SIZES = (4096, 65536)
"""Where the profile is asked how long a command and a byte take."""

SURELY_IDLE, SURELY_BUSY = 0.5, 0.9
"""Shares of time in use below which the kernel's samples say nothing, and above which they count;
an assumption."""
PATTERN_LOG_SD = 0.5
"""How far times may be from a profile's, as a logarithm; an assumption."""
LEAST_LIKELY = 1e-3
SEEN = (Evidence.MEASURED, Evidence.PUBLISHED)
UNKNOWN_SECONDS = 1e-4
"""Of a command where neither profile nor counters tell; an assumption."""
HARDER_MOST = 4.0
"""How much more work a command may be than in the profile's runs; an assumption."""
BESIDE_READS = 0.25
"""Share of the time that a drive whose cache ran full works on its own behalf beside reads that
leave it no rest; an assumption."""
LEAST_WATTS = 1e-3
"""Of work on the drive's own behalf, so that it ends."""
WORKLOAD_SHARE = 0.1
"""What a fitted profile is wrong by in a workload, as a share of the watts, sd: where its data lie
is not to be seen. An assumption; an instrument teaches it (`Correction`)."""
ASLEEP_SHARE = 0.5
"""Of idle power; a rest that takes less was spent in a state of sleep."""
SIZE_MAX = 1 << 30
QUIET_MAX_SECONDS = 1e6
"""A gap of days has gone through every level."""

_DEVICE = frozenset({"device_power_watts"})


class _Columns:
    """Arrays with a row for each drive."""

    def put(self, rows: Any, own: Self) -> None:
        """Set the rows of some drives."""
        for column, values in zip(vars(self).values(), vars(own).values(), strict=True):
            column[rows] = values


@dataclass
class States(_Columns):
    """What is carried from interval to interval; arrays have shape (n,).

    Attributes:
        cache_bytes: Written bytes that the cache holds.
        owed_bytes: Written bytes whose background work is still to be done.
        ran_full: Whether the cache did since all was done, so that this work does not wait; 0 or 1.
        quiet_seconds: Since the last request.
        rest_seconds: Since that, or since the end of work on the drive's own behalf.
    """

    cache_bytes: Floats
    owed_bytes: Floats
    ran_full: Floats
    quiet_seconds: Floats
    rest_seconds: Floats

    @classmethod
    def fresh(cls, drives: int) -> States:
        """Of drives that have rested long and owe nothing."""
        ever = np.full(drives, np.inf)
        nothing = np.zeros((3, drives))
        return cls(nothing[0], nothing[1], nothing[2], ever, ever.copy())

    def take(self, rows: Any) -> States:
        """Those of some drives."""
        return States(*(np.array(part[rows]) for part in vars(self).values()))

    def and_fresh(self, drives: int) -> States:
        """These, and those of more drives that have rested long and owe nothing."""
        both = zip(vars(self).values(), vars(States.fresh(drives)).values(), strict=True)
        return States(*map(np.concatenate, both))


@dataclass(frozen=True)
class Estimate(_Columns):
    """Watts of n drives in one interval; arrays have shape (n,) where no other is stated.

    Attributes:
        idle: W that are drawn without any request.
        awake: W above that which keep the drive awake, whoever does.
        read: W beside that which reads cause; `write` likewise, `background` of work on the drive's
            own behalf. The five add up to the drive's mean power.
        sd: Standard deviation of the mean power, W. It is mostly that of the profile, so it is the
            same in one interval and the next.
        profile_sd: The same without what no profile knows of a workload (`WORKLOAD_SHARE`).
        joules: What one read command, read byte, write command and written byte takes beside
            keeping the drive awake, shape (n, 4).
        load: How far one of each keeps it awake, shape (n, 4): requests that come at random leave
            it asleep with probability exp(-sum of load x count).
        core_seconds: Core time of the host that each takes, shape (n, 4).
        own_watts: What work on the drive's own behalf draws where there may be any, else 0.
        asleep: Whether it spent the interval in a state of sleep; 0 or 1.
    """

    idle: Floats
    awake: Floats
    read: Floats
    write: Floats
    background: Floats
    sd: Floats
    profile_sd: Floats
    joules: Floats
    load: Floats
    core_seconds: Floats
    own_watts: Floats
    asleep: Floats

    @classmethod
    def nothing(cls, drives: int) -> Estimate:
        """All zero."""
        return cls(*np.zeros((7, drives)), *np.zeros((3, drives, 4)), *np.zeros((2, drives)))

    @property
    def watts(self) -> Floats:
        """Mean power."""
        return np.asarray(self.idle + self.awake + self.read + self.write + self.background)


class DriveModel:
    """What one profile says of drives of its model.

    Args:
        profile: It must know the drive's power.
        power_state: Power state that the drives are held in.
        sleep: Levels they fall through at rest; None where it is not known that they sleep, which
            leaves it to the profile.
        settings: Other columns of `make_frame` that hold for them, `apst_enabled` among them.

    Raises:
        NoProfileError: It does not.
    """

    def __init__(
        self,
        profile: DeviceProfile,
        *,
        power_state: int = 0,
        sleep: Descent | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if profile.device_power is None:
            raise NoProfileError(
                f"{profile.device}: this profile knows no watts of the drive; measure it with a "
                "power meter, or name another: --profile DRIVE=FILE"
            )
        self.profile, self.power = profile, profile.device_power
        self.predictor = Predictor(profile)
        self._columns = {**(settings or {}), "power_state": power_state}
        self._settle = idle_gaps.settle_seconds(profile.idle)
        # what nobody looked at is good for the mean watts of a gap, not for who pays them
        self._settle_known = self._settle * bool(
            profile.idle and profile.idle.settle_seconds.evidence in SEEN
        )
        self._sleep = sleep
        self._between = profile.between_drives_relative_sd.value
        self._covariance = np.array(self.power.covariance)
        self._state = self.predictor.performance.state
        # no counter tells how the bytes were written: both patterns count, as while it serves
        written = self._frame(2, {"operation": ["write"] * 2, "pattern": list(PATTERNS)})
        self._base = float(device_power.base_watts(self.power, written.power_state)[0])
        without_work = np.eye(1, len(self.power.parameters))
        _, base_sd = device_power.active_watts(self.power, without_work, written.power_state[:1])
        self._base_sd = float(np.hypot(base_sd[0], self._between * self._base))
        seconds, _ = self._state.seconds_per_byte(written)
        if not np.nan_to_num(seconds).any():  # nobody saw this state work: as the first one does
            written = replace(written, background_state=np.zeros_like(written.background_state))
            seconds, _ = self._state.seconds_per_byte(written)
        joules, joules_sd = self._state.joules_per_byte(written)
        limit = device_power.limit_watts(self.power, written.power_state)[0]
        idle, _ = device_power.idle_watts(self.power, written.power_state)
        # what a power state does not leave for it makes it slower
        self._work_watts = max(float(limit - idle[0]), LEAST_WATTS)
        self._seconds_per_byte = float(np.nan_to_num(seconds).mean())
        if self._seconds_per_byte > 0:
            own = float(joules.mean()) / self._seconds_per_byte
            self._work_watts = min(max(own, LEAST_WATTS), self._work_watts)
            self._seconds_per_byte = float(joules.mean()) / self._work_watts
        self._background = (
            float(joules.mean()),
            float(np.hypot(joules_sd.mean(), np.ptp(joules) / 2.0)),
        )
        self._delay = delay_seconds(profile)

    def step(self, amounts: Amounts, states: States) -> Estimate:
        """Estimate one interval and carry the states on, in place."""
        active = amounts.commands > 0
        estimate = Estimate.nothing(len(active))
        for rows, evaluate in ((active, self._serving), (~active, self._quiet)):
            if rows.any():
                own = states.take(rows)
                part = evaluate(amounts.take(rows), own)
                states.put(rows, own)
                estimate.put(rows, part)
        return estimate

    def _frame(self, rows: int, columns: Mapping[str, Any]) -> Frame:
        said = {name: [value] * rows for name, value in self._columns.items()}
        frame, _ = make_frame(self.profile, {**said, **columns}, rows)
        return frame

    def _quiet(self, amounts: Amounts, states: States) -> Estimate:
        """Nothing was asked: one gap goes on."""
        rows, step = len(states.quiet_seconds), amounts.seconds
        frame = self._frame(rows, {"operation": ["read"] * rows})
        at = idle_gaps.levels(self.profile, frame, np.full(rows, self._base))
        assert at is not None, "the profile knows the drive's power"
        quiet = np.minimum(states.quiet_seconds, QUIET_MAX_SECONDS)
        rest = np.minimum(states.rest_seconds, QUIET_MAX_SECONDS)
        levels = self._levels(at)
        # a drive that works on its own behalf stays awake, and comes to rest anew when it is done
        waits = np.clip(self._delay - quiet, 0.0, step) * (1.0 - states.ran_full)
        works = np.minimum(step - waits, states.owed_bytes * self._work(states)[0])
        own = self._own_watts(states)
        after = np.where(works > 0, self._settle, rest + waits)
        left = step - waits - works
        idle, idle_sd = (
            (told(rest + waits) - told(rest) + level * works + told(after + left) - told(after))
            / step
            for told, level in ((levels.joules, at.idle), (levels.sd_joules, at.idle_sd))
        )
        background, background_sd = self._fold(states, works, step)
        states.quiet_seconds[:] = states.quiet_seconds + step
        states.rest_seconds[:] = after + left
        sd = np.hypot(np.hypot(idle_sd, background_sd), self.power.session_sd_watts)
        return replace(
            Estimate.nothing(rows),
            idle=idle,
            background=background,
            sd=sd,
            profile_sd=sd,
            own_watts=own,
            asleep=(idle < ASLEEP_SHARE * at.idle).astype(float),
        )

    def _fold(self, states: States, working: Floats, step: float) -> tuple[Floats, Floats]:
        """Background watts over a step with so much time for it, and their sd; folds the cache."""
        seconds, joules, joules_sd = self._work(states)
        left = left_after(states.owed_bytes, working, seconds)
        done = states.owed_bytes * (1.0 - left)
        states.owed_bytes[:] *= left
        states.cache_bytes[:] *= left
        states.ran_full[left == 0.0] = 0.0
        return done * joules / step, done * joules_sd / step

    def _own_watts(self, states: States) -> Floats:
        """What work on its own behalf draws, where there is any to do."""
        _, joules, _ = self._work(states)
        return np.where(joules * states.owed_bytes > 0, self._work_watts, 0.0)

    def _work(self, states: States) -> tuple[Floats, Floats, Floats]:
        """Seconds and joules of background work for a byte that is owed, and the sd of these."""
        more = np.where(states.ran_full > 0, self._state.full_work, 1.0)
        joules, joules_sd = self._background
        return more * self._seconds_per_byte, more * joules, more * joules_sd

    def _serving(self, amounts: Amounts, states: States) -> Estimate:
        """Requests came."""
        step, drives = amounts.seconds, np.arange(len(amounts.read_commands))
        # one evaluation of both patterns takes little longer than of one
        rows, pattern = np.tile(drives, len(PATTERNS)), np.repeat(range(len(PATTERNS)), len(drives))
        values = {
            name: value.reshape(len(PATTERNS), len(drives), *value.shape[1:])
            for name, value in vars(
                self._evaluated(pattern, amounts.take(rows), states.take(rows))
            ).items()
        }
        likely = values["likelihood"]
        both = likely.prod(axis=2)
        both /= both.sum(axis=0)
        likely = likely / likely.sum(axis=0)
        weights = {"read": likely[:, :, 0], "write": likely[:, :, 1], "likelihood": likely}
        of_command = np.repeat(likely, 2, axis=2)
        weights |= dict.fromkeys(("joules", "alone_seconds", "core_seconds"), of_command)
        serving = _Serving(
            **{
                name: (weights.get(name, both) * value).sum(axis=0)
                for name, value in values.items()
            }
        )
        random, sequential = values["watts"]
        apart = np.abs(random - sequential) * np.sqrt(both.prod(axis=0))
        states.cache_bytes += amounts.write_bytes
        states.owed_bytes[:] = np.minimum(
            states.owed_bytes + amounts.write_bytes, self._state.owed_most
        )
        states.ran_full[self._state.ran_full(states.cache_bytes)] = 1.0
        quiet = (1.0 - serving.busy) * step
        rate = amounts.commands / step
        # gaps long enough for it, less the wait in each (`model.evaluate.background_work`)
        working = quiet * np.exp(-self._delay * rate)
        beside = np.where(amounts.write_commands > 0, 0.0, BESIDE_READS * step)
        at_once = np.minimum(np.maximum(quiet, beside), serving.room_seconds)
        own = self._own_watts(states)
        later, later_sd = self._fold(states, np.where(states.ran_full > 0, at_once, working), step)
        states.quiet_seconds[:] = states.rest_seconds[:] = np.minimum(quiet, 1.0 / rate)
        room, work = serving.watts - serving.idle, serving.read + serving.write + serving.background
        kept = np.minimum(1.0, room / np.where(work > 0, work, 1.0))
        profile_sd = np.sqrt(serving.sd**2 + apart**2 + later_sd**2)
        return Estimate(
            idle=serving.idle,
            awake=np.maximum(room - work, 0.0),
            read=kept * serving.read,
            write=kept * serving.write,
            background=kept * serving.background + later,
            sd=np.hypot(profile_sd, WORKLOAD_SHARE * (serving.watts + later)),
            profile_sd=profile_sd,
            joules=serving.joules,
            load=self._load(amounts, serving.alone_seconds),
            core_seconds=serving.core_seconds,
            own_watts=own,
            asleep=np.zeros(len(drives)),
        )

    def _load(self, amounts: Amounts, alone_seconds: Floats) -> Floats:
        """How far one command or byte of each direction keeps the drive awake, shape (n, 4).

        Reads together do so for the time they were in flight, a settle time after each command, and
        likewise writes; within a direction the times are those that its commands take alone.
        """
        counts = amounts.counts
        writes = amounts.write_in_flight_seconds
        load = np.zeros_like(alone_seconds)
        for columns, took in (
            (slice(0, 2), amounts.in_flight_seconds - writes),
            (slice(2, 4), writes),
        ):
            own = alone_seconds[:, columns].copy()
            own[:, 0] = np.where(own.sum(axis=1) > 0, own[:, 0], UNKNOWN_SECONDS)
            times = (own * counts[:, columns]).sum(axis=1)
            scale = np.divide(took, times, where=times > 0, out=np.zeros_like(times))
            load[:, columns] = own * (np.where(scale > 0, scale, 1.0) / amounts.seconds)[:, None]
        load[:, [0, 2]] += self._settle_known / amounts.seconds
        return load

    def _evaluated(self, pattern: Indices, amounts: Amounts, states: States) -> _Serving:
        """Each row as one of `PATTERNS`."""
        step = amounts.seconds
        rates = {
            "read_bytes": amounts.read_bytes / step,
            "read_operations": amounts.read_commands / step,
            "write_bytes": amounts.write_bytes / step,
            "write_commands": amounts.write_commands / step,
        }
        frame, prediction, busy, likelihood = self._operating_point(pattern, amounts, states)
        own = amounts.commands / step / prediction["iops"].value
        never_idle = np.clip((_in_use(amounts) - SURELY_BUSY) / (1.0 - SURELY_BUSY), 0.0, 1.0)
        # what slows down a drive whose cache ran full is work of its own
        cleans_up = np.where(amounts.write_commands > 0, never_idle * states.ran_full, 0.0)
        never_idle = never_idle * (1.0 - states.ran_full)
        harder = 1.0 + never_idle * (np.clip(busy / own, 1.0, HARDER_MOST) - 1.0)
        power, activity = self.power, prediction.activity
        sequential = pattern == PATTERNS.index("sequential")
        x = device_power.regressors(
            rates["read_bytes"],
            rates["read_operations"],
            rates["write_bytes"],
            device_power.write_operations(rates["write_commands"], sequential),
            np.maximum(busy * activity.device_x[:, 5], cleans_up * (1.0 - np.minimum(own, 1.0))),
        )
        x[:, 0] = busy
        x[:, 1:5] *= harder[:, None]
        factor = activity.watts_factor
        law = factor * device_power.law_watts(power, x, frame.power_state)
        at = idle_gaps.levels(
            self.profile, frame, prediction["device_power_watts"].value, activity.awake_factor
        )
        assert at is not None, "the profile knows the drive's power"
        gap, gap_sd = self._gap(at, amounts, busy)
        limit = device_power.limit_watts(power, frame.power_state)
        # a limit holds for what the drive draws at the rate that is served, not at full speed
        watts = np.minimum(law + (1.0 - busy) * gap, np.maximum(limit, gap))
        idle = np.minimum(at.idle, watts)
        theta = np.array([parameter.value for parameter in power.parameters])
        read = factor * (theta[1] * x[:, 1] + theta[2] * x[:, 2])
        write = factor * (theta[3] * x[:, 3] + theta[4] * x[:, 4])
        background = factor * device_power.background_watts(power, x, frame.power_state)
        # what a limit takes away, it takes from all alike
        above = watts - idle
        parts = read + write + background
        kept = np.where(parts > above, above / np.where(parts > 0, parts, 1.0), 1.0)
        seen = np.isfinite(activity.watts_factor_sd)
        law_sd = np.sqrt(
            linear_law.variances(x, self._covariance)
            + (power.relative_sd * law) ** 2
            + (power.session_sd_watts * busy) ** 2
        )
        law_sd = np.minimum(law_sd, device_power.MOST_RELATIVE_SD * watts)
        law_sd = np.where(seen, np.nan_to_num(activity.watts_factor_sd) * law, law_sd)
        state_sd = device_power.state_sd_watts(power, frame.power_state, x[:, 5], law)
        sd = np.sqrt(
            law_sd**2
            + (self._between * law) ** 2
            + state_sd**2
            + ((1.0 - busy) * np.hypot(gap_sd, at.idle_sd)) ** 2
        )
        each = np.tile(theta[[2, 1, 4, 3]], (len(frame), 1))
        each[sequential, 2] *= device_power.SEQUENTIAL_WRITE_OPERATION
        return _Serving(
            watts=watts,
            idle=idle,
            read=kept * read,
            write=kept * write,
            background=kept * background,
            busy=busy,
            room_seconds=(limit - watts) * amounts.seconds / self._work_watts,
            sd=sd,
            likelihood=likelihood,
            alone_seconds=self._alone_seconds[pattern],
            joules=(kept * factor * harder)[:, None] * each,
            core_seconds=self._core_seconds(amounts, activity.costs),
        )

    def _core_seconds(self, amounts: Amounts, costs: HostCosts) -> Floats:
        """Core time of the host that a read command, read byte, write command, written byte takes.

        Of reads and writes alike, by the profile's path to the drive; shape (n, 4).
        """
        commands = amounts.commands
        load = host_work.activity(costs, commands / amounts.seconds)
        each = load.busy_cores * amounts.seconds / commands
        mean = (amounts.read_bytes + amounts.write_bytes) / commands
        of_bytes = np.minimum(1e-9 * host_work.bytes_ns(self.profile.host, mean), each)
        byte = of_bytes / np.maximum(mean, 1.0)
        return np.stack([each - of_bytes, byte, each - of_bytes, byte], axis=1)

    @cached_property
    def _alone_seconds(self) -> Floats:
        """Seconds a read command, read byte, write command, written byte take alone, by pattern.

        From two sizes one at a time; 0 where the profile knows none. Shape (`PATTERNS`, 4).
        """
        rows = []
        for pattern, operation in product(PATTERNS, ("read", "write")):
            columns = {
                "operation": [operation] * len(SIZES),
                "pattern": [pattern] * len(SIZES),
                "request_bytes": list(SIZES),
                "queue_depth": [1] * len(SIZES),
                "jobs": [1] * len(SIZES),
            }
            told = self.predictor.predict(self._frame(len(SIZES), columns), only=())["iops"]
            small, large = 1.0 / told.value
            byte = max(large - small, 0.0) / (SIZES[1] - SIZES[0])
            rows += [max(small - SIZES[0] * byte, 0.0), byte]
        known = np.asarray(np.nan_to_num(np.array(rows), posinf=0.0))
        return known.reshape(len(PATTERNS), 4)

    def _operating_point(
        self, pattern: Indices, amounts: Amounts, states: States
    ) -> tuple[Frame, Prediction, Floats, Floats]:
        """The configuration while it serves, its prediction, the busy share, the likelihood."""
        commands = amounts.commands
        rate, depth = commands / amounts.seconds, amounts.in_flight_seconds / amounts.seconds
        size = np.clip((amounts.read_bytes + amounts.write_bytes) / commands, 512, SIZE_MAX)
        used = _in_use(amounts)
        frame = self._frame(
            len(commands),
            {
                "operation": ["mixed"] * len(commands),
                "read_fraction": amounts.read_commands / commands,
                "pattern": np.array(PATTERNS)[pattern],
                "request_bytes": 512 * np.rint(size / 512).astype(int),
                "queue_depth": np.clip(np.rint(depth), 1, DEPTH_MAX).astype(int),
                "jobs": np.ones(len(commands), dtype=int),
                "host_bytes_written_since_purge": states.cache_bytes,
            },
        )
        prediction = self.predictor.predict(frame, only=_DEVICE)
        for _ in range(DEPTH_STEPS):
            share = np.minimum(rate / prediction["iops"].value, 1.0)
            asked = np.clip(np.rint(depth / np.maximum(share, used)), 1, DEPTH_MAX)
            other = np.flatnonzero(asked != frame.queue_depth)
            if not len(other):
                break
            frame = replace(frame, queue_depth=asked)
            again = self.predictor.predict(frame.take(other), only=_DEVICE)
            prediction = joined([(slice(None), prediction), (other, again)], len(frame))
        share = np.minimum(rate / prediction["iops"].value, 1.0)
        later = np.log(np.maximum(used / share, 1.0))
        away = np.stack([self._away(pattern, amounts, write=write) for write in (False, True)], 1)
        likelihood = np.exp(-0.5 * (later[:, None] ** 2 + away**2) / PATTERN_LOG_SD**2)
        likelihood = np.maximum(likelihood, LEAST_LIKELY)
        return frame, prediction, np.maximum(share, used), likelihood

    def _away(self, pattern: Indices, amounts: Amounts, *, write: bool) -> Floats:
        """How far the time that reads, or writes, took is from a pattern's, as a logarithm.

        It lies between what they take alone and what they take one after the other.
        """
        seconds = self._alone_seconds[pattern].T
        if write:
            alone = amounts.write_commands * seconds[2] + amounts.write_bytes * seconds[3]
            took = amounts.write_in_flight_seconds
        else:
            alone = amounts.read_commands * seconds[0] + amounts.read_bytes * seconds[1]
            took = amounts.in_flight_seconds - amounts.write_in_flight_seconds
        known = (alone > 0) & (took > 0)
        ratio = np.where(known, took, 1.0) / np.where(known, alone, 1.0)
        in_turn = np.maximum(amounts.in_flight_seconds / amounts.seconds, 1.0)
        return np.asarray(np.log(np.maximum(np.maximum(ratio / in_turn, 1.0 / ratio), 1.0)))

    def _gap(self, at: idle_gaps.Levels, amounts: Amounts, busy: Floats) -> tuple[Floats, Floats]:
        """Mean watts between requests, and the sd of not knowing how these come."""
        quiet = np.maximum((1.0 - busy) * amounts.seconds, 1e-9)
        mean = quiet / amounts.commands
        levels = self._levels(at)
        watts = levels.mean_watts(mean)
        even, once = levels.joules(mean) / mean, levels.joules(quiet) / quiet
        apart = np.maximum(np.abs(even - watts), np.abs(once - watts))
        return watts, apart / 2.0

    def _levels(self, at: idle_gaps.Levels) -> _Descent:
        """What the drives draw without requests, level by level."""
        awake_sd = np.full_like(at.idle_sd, self._base_sd)
        if self._sleep is None:
            return _Descent(
                (at.awake, at.idle, at.asleep),
                (self._settle, np.maximum(at.sleeps_after, self._settle)),
                (awake_sd, at.idle_sd, at.idle_sd),
            )
        asleep = self._sleep.watts[2:]
        sds = ((one.high - one.low) / (2.0 * NORMAL_90) for one in asleep)
        rows = np.ones_like(at.idle)
        return _Descent(
            (at.awake, at.idle, *(np.minimum(one.value * rows, at.idle) for one in asleep)),
            self._sleep.after,
            (awake_sd, at.idle_sd, *(sd * rows for sd in sds)),
        )


@dataclass(frozen=True)
class _Descent:
    """Watts of levels, seconds after which each but the first is reached, and standard deviations.

    Each array has shape (n,).
    """

    watts: Sequence[Floats]
    after: Sequence[Floats | float]
    sd: Sequence[Floats]

    def joules(self, gap: Floats) -> Floats:
        """Energy of a gap."""
        return idle_gaps.descent_joules(self.watts, self.after, gap)

    def sd_joules(self, gap: Floats) -> Floats:
        """Its uncertainty, which is that of each level for as long as it lasts."""
        return idle_gaps.descent_joules(self.sd, self.after, gap)

    def mean_watts(self, mean_gap: Floats) -> Floats:
        """Of gaps with an exponential distribution: exp(-t / mean) of their time is beyond t."""
        ones = np.ones_like(mean_gap)
        beyond = [ones, *(np.exp(-after / mean_gap) for after in self.after), 0.0 * ones]
        total = 0.0 * ones
        for watts, share, later in zip(self.watts, beyond, beyond[1:], strict=False):
            total += watts * (share - later)
        return total


@dataclass(frozen=True)
class _Serving:
    """Mean watts over the interval, parts, and what one command or byte takes.

    `room_seconds` is how long the drive's own work may go on before it is at its limit.
    `likelihood`, shape (n, 2), is that of the times that reads and writes took. `alone_seconds`,
    `joules` and `core_seconds`, shape (n, 4), are what a read command, read byte, write command and
    written byte take alone, beside keeping the drive awake, and of the host's cores.
    """

    watts: Floats
    idle: Floats
    read: Floats
    write: Floats
    background: Floats
    busy: Floats
    room_seconds: Floats
    sd: Floats
    likelihood: Floats
    alone_seconds: Floats
    joules: Floats
    core_seconds: Floats


def _in_use(amounts: Amounts) -> Floats:
    """Share of time in which the drive surely had a command in flight, shape (n,).

    The kernel counts a tick for each request at least, so that its share is no more than a bound,
    as the sum of all times in flight is another; where both are high it is that share.
    """
    share = np.minimum(amounts.in_use_seconds, amounts.in_flight_seconds) / amounts.seconds
    surely = np.clip((share - SURELY_IDLE) / (SURELY_BUSY - SURELY_IDLE), 0.0, 1.0)
    return np.asarray(np.minimum(share, 1.0) * surely)
