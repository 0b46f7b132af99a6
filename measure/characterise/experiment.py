"""The interface of a characterisation experiment, and the jobs and extent that it works with.

A new experiment is one module in `experiments/` with a class of these members, and one line in
its `__init__.py`. `measure` is also its plan: played on a bench that only records jobs, it tells
runs, bytes and time in advance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation, Pattern

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MEBIBYTE = 1 << 20


class ScaleName(StrEnum):
    """How thoroughly: `quick` shows the big effects, `full` has intervals to rely on."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Extent:
    """Times, sizes and steps of one characterisation.

    Attributes:
        quiet_seconds: Idle power for this long counts as quiet; later background work is missed.
        shares: Of the peak rate, for energy over load.
        permuted_windows: Lengths of shuffled stretches, in requests.
    """

    scale: ScaleName
    area_bytes: int
    run_seconds: float
    ramp_seconds: float
    idle_seconds: float
    settle_seconds: float
    quiet_seconds: float
    quiet_seconds_max: float
    repeats: int
    request_sizes: tuple[int, ...]
    depths: tuple[int, ...]
    shares: tuple[float, ...]
    permuted_windows: tuple[int, ...]

    def share_bytes(self, share: float) -> int:
        """A share of the area in whole mebibytes, at least one."""
        return _whole(int(self.area_bytes * share))


def extent_of(scale: ScaleName, capacity_bytes: int) -> Extent:
    """The extent for a drive: an eighth of it is used in `quick`, half of it in `full`."""
    if scale is ScaleName.QUICK:
        return Extent(
            scale=scale,
            area_bytes=_whole(capacity_bytes // 8),
            run_seconds=0.5,
            ramp_seconds=0.1,
            idle_seconds=1.2,
            settle_seconds=0.2,
            quiet_seconds=3.0,
            quiet_seconds_max=30.0,
            repeats=1,
            request_sizes=(4096, 65536),
            depths=(1, 4, 16, 64),
            shares=(0.25, 0.5, 1.0),
            permuted_windows=(8,),
        )
    return Extent(
        scale=scale,
        area_bytes=_whole(capacity_bytes // 2),
        run_seconds=10.0,
        ramp_seconds=2.0,
        idle_seconds=60.0,
        settle_seconds=5.0,
        quiet_seconds=20.0,
        quiet_seconds_max=600.0,
        repeats=3,
        request_sizes=(4096, 16384, 65536, 262144, 1048576),
        depths=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        shares=(0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0),
        permuted_windows=(2, 4, 8, 16),
    )


def _whole(size: int) -> int:
    return max(MEBIBYTE, size // MEBIBYTE * MEBIBYTE)


Estimates = dict[str, Estimate]
Plot: TypeAlias = "Axes"


@dataclass(frozen=True)
class Job:
    """One run of fio.

    Attributes:
        bytes_total: What a run transfers that ends by bytes; required of runs that write.
        offset_bytes: Start within the area.
        window_bytes: Part of the area that is used; None = all behind the offset.
        operations_per_second: Demand; None = as fast as possible.
        order: Request numbers in submission order, from the offset in units of `request_bytes`;
            None = by the pattern.
        trace: Whether bytes and watts over time are kept, until the end of the following rest.
        effects: Whether the result depends on more than a dataset's fields; the row stays out.
    """

    label: str
    operation: Operation
    request_bytes: int
    queue_depth: int = 1
    pattern: Pattern = Pattern.RANDOM
    seconds: float = 0.0
    bytes_total: int | None = None
    offset_bytes: int = 0
    window_bytes: int | None = None
    operations_per_second: float | None = None
    order: Sequence[int] | None = None
    trace: bool = False
    effects: bool = False

    @property
    def bytes_written(self) -> int:
        """What it writes, exactly."""
        if self.operation is Operation.READ:
            return 0
        if self.order is not None:
            return len(self.order) * self.request_bytes
        assert self.bytes_total is not None, f"{self.label}: a run that writes ends by bytes"
        return self.bytes_total


class Bench(Protocol):
    """Makes the observations; every one returns its row at once, with watts only at the end."""

    @property
    def power_states(self) -> Sequence[int]:
        """Every power state the drive declares, non-operational ones too; empty = unknown."""

    def run(self, job: Job) -> Row:
        """Run fio."""

    def rest(self, label: str, seconds: float) -> Row:
        """Do nothing for so long."""

    def quiet(self, label: str) -> Row:
        """Wait until the drive's housekeeping is over; `quiet` in the row is 1 where it is."""

    def power_state(self, number: int) -> None:
        """Set a power state."""

    def wake(self, label: str) -> Row:
        """Read one block and take the time (`latency_ns`)."""


class Experiment(Protocol):
    """One experiment."""

    name: str  # on the command line and in files
    title: str
    purpose: str
    writes: bool  # whether it changes data on the drive
    needs_power: bool  # whether it is useless without a power meter
    needs_controller: bool  # whether it sets power states

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it comes from, with sections."""

    def measure(self, bench: Bench, extent: Extent) -> list[Row]:
        """Make the observations."""

    def estimate(self, evidence: Evidence) -> Estimates:
        """Estimate; a pure function of the evidence."""

    def draw(self, axes: Plot, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
