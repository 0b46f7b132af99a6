"""One run from its first setting to its record: clocks, health of the drive, power, conditions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from iojoule.datasets.vocabulary import BYPASSING_ENGINES
from iojoule.measure.campaign import idle
from iojoule.measure.campaign.folder import CampaignState, IdleBaseline
from iojoule.measure.campaign.plan import Plan
from iojoule.measure.campaign.points import Run
from iojoule.measure.campaign.rig import Rig
from iojoule.measure.campaign.settings import power_state
from iojoule.measure.drive.block_device import SECTOR_BYTES
from iojoule.measure.drive.nvme import POWER_STATE_MASK, VOLATILE_WRITE_CACHE, Smart
from iojoule.measure.errors import DriveError
from iojoule.measure.recording import Recorder, Recording

_LOOK_AT_TEMPERATURE_SECONDS = 5.0


@dataclass(frozen=True)
class Clocks:
    """How far two clocks of the host are ahead of its monotonic one.

    Attributes:
        wall_ns: The wall clock, which can be set.
        boot_ns: The boot-time clock, which goes on while the host is suspended.
    """

    wall_ns: int
    boot_ns: int

    @classmethod
    def now(cls) -> Clocks:
        """Read all three."""
        monotonic = time.monotonic_ns()
        return cls(
            time.time_ns() - monotonic, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - monotonic
        )


class Watched:
    """Gathers everything about one run while it is made.

    Args:
        run: The run.
        folder: Its folder.
        rig: What it works with.
        plan: The plan.
        state: What was done to the drive.
        last_write: When this process last wrote to it, monotonic seconds.
    """

    def __init__(
        self,
        run: Run,
        folder: Path,
        rig: Rig,
        plan: Plan,
        state: CampaignState,
        last_write: float | None,
    ) -> None:
        self.run = run
        self.folder = folder
        self.rig = rig
        self.plan = plan
        self.state = state
        self.last_write = last_write
        self.recording: Recording | None = None
        self.notes: list[str] = []
        self.started_utc = datetime.now(UTC)
        self.started = time.monotonic()
        self.fio_seconds = 0.0
        self.waited_seconds = 0.0
        self.fio_began_ns = 0
        self.fio_ended_ns = 0
        self.clocks_before = self.clocks_after = Clocks(0, 0)
        self.idle_is_back: bool | None = None
        self.smart_before: Smart | None = None
        self.smart_after: Smart | None = None
        self.state_held: bool | None = None
        self.write_cache_enabled: bool | None = None
        self._sectors_before = 0

    @property
    def baselines(self) -> list[IdleBaseline]:
        """Idle power in the run's power state, in order of time."""
        return self.state.idle_in(self.run.point.configuration.power_state)

    @property
    def baseline(self) -> IdleBaseline | None:
        """The latest of them."""
        return self.baselines[-1] if self.baselines else None

    def cool_down(self) -> None:
        """Wait until the drive is as cool as the plan wants it.

        Raises:
            DriveError: It stays too hot.
        """
        limit = self.plan.settle.temperature_celsius_max
        if limit is None or self.rig.controller is None:
            return
        began = time.monotonic()
        while True:
            health = self._smart()
            now = health.temperature_celsius if health is not None else None
            if now is None or now <= limit:
                break
            if time.monotonic() - began > self.plan.settle.temperature_seconds_max:
                raise DriveError(
                    f"{self.rig.drive.device.path}: stays at {now:g} degrees Celsius, above the "
                    f"plan's {limit:g}; improve the cooling or raise temperature_celsius_max"
                )
            time.sleep(_LOOK_AT_TEMPERATURE_SECONDS)
        self.waited_seconds += time.monotonic() - began

    def look_before(self) -> None:
        """Look at the drive's health and counters before the run."""
        self.smart_before = self._smart()
        if self.rig.controller is not None:
            self.write_cache_enabled = self._write_cache_enabled()
        self._sectors_before = self.rig.drive.device.sectors_written()

    def look_after(self) -> None:
        """Look again, and whether the power state is still the one that was set."""
        self.smart_after = self._smart()
        self.state.bytes_written += self._written()
        if self.rig.controller is None:
            return
        wanted = self.run.point.configuration.power_state
        if wanted is not None:
            change = power_state(self.rig.controller)
            now = int(change.get()) & POWER_STATE_MASK
            self.state_held = now == wanted
            if not self.state_held:
                self.rig.state.forget(change)
                raise DriveError(
                    f"{self.rig.controller.node}: was set to power state {wanted} but was in "
                    f"{now} after the run; the drive or somebody else changed it"
                )

    def _write_cache_enabled(self) -> bool | None:
        """Whether the drive's cache is on; None where it does not say."""
        told = self.rig.drive.controller
        if self.rig.controller is None or told is None or not told.volatile_write_cache:
            return None
        try:
            return bool(self.rig.controller.feature(VOLATILE_WRITE_CACHE) & 1)
        except DriveError:
            return None

    def _written(self) -> int:
        """Bytes written during the run; what bypasses the block layer only the drive counts."""
        sectors = self.rig.drive.device.sectors_written() - self._sectors_before
        if (
            self.run.point.configuration.engine in BYPASSING_ENGINES
            and self.smart_before is not None
            and self.smart_after is not None
        ):
            counted = self.smart_after.host_bytes_written - self.smart_before.host_bytes_written
            return max(SECTOR_BYTES * sectors, counted)
        return SECTOR_BYTES * sectors

    @contextmanager
    def timing_fio(self) -> Iterator[None]:
        """Take the time that fio takes."""
        self.clocks_before = Clocks.now()
        self.fio_began_ns = time.monotonic_ns()
        try:
            yield
        finally:
            self.fio_ended_ns = time.monotonic_ns()
            self.fio_seconds = (self.fio_ended_ns - self.fio_began_ns) * 1e-9
            self.clocks_after = Clocks.now()

    def wait_for_idle(self, recorder: Recorder) -> None:
        """Wait after a run that wrote until its housekeeping is over."""
        longest = self.plan.settle.after_writes_seconds_max
        waited = idle.wait_until_back(recorder, self.baseline, self.plan.settle, longest)
        self.waited_seconds += waited.seconds
        self.idle_is_back = waited.is_back
        if not waited.is_back:
            self.notes.append(
                f"idle power was not back {waited.seconds:.0f} s after the run: background energy "
                "and duration are lower bounds, and the next run may suffer"
            )

    def _smart(self) -> Smart | None:
        """The SMART log; None, with a note, where the drive does not give it."""
        if self.rig.controller is None:
            return None
        try:
            return self.rig.controller.smart()
        except DriveError as error:
            self.notes.append(f"temperature and wear are unknown: {error.message}")
            return None
