"""What a question is: the seam at which new ones are added.

A new question is one module in `questions/` with a class that has these members, and one line in
`registry.py`. Its `measure` is also its plan: played on a bench that only notes what it is asked,
it tells runs, bytes and time beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from iojoule.datasets.characteristics import Estimate, Evidence, Row
from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.measure.characterise.scope import Scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Estimates = dict[str, Estimate]


@dataclass(frozen=True)
class Job:
    """One run of fio.

    Attributes:
        label: Names it within the question.
        operation: read or write.
        request_bytes: Size of a request.
        queue_depth: Requests in flight.
        pattern: Order of addresses, where `order` does not say it.
        seconds: Measured time of a run that reads.
        bytes_total: What a run transfers that ends by bytes; runs that write have it always.
        offset_bytes: Where it begins within the area.
        window_bytes: How much of the area it uses; None = all behind the offset.
        operations_per_second: The rate it is held to; None = as fast as it goes.
        order: The numbers of the requests in the order in which they are made, counted from
            the offset in units of `request_bytes`; None = by the pattern.
        trace: Whether bytes and watts over time are kept, from its begin to the end of the
            rest that follows.
        effects: What a reader of the dataset would not see in its fields: the row stays out of it.
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


class Question(Protocol):
    """One question."""

    @property
    def name(self) -> str:
        """Names it on the command line and in files."""

    @property
    def title(self) -> str:
        """For people."""

    @property
    def purpose(self) -> str:
        """What the answer is good for."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it comes from, with sections."""

    @property
    def writes(self) -> bool:
        """Whether it changes what is on the drive."""

    @property
    def needs_power(self) -> bool:
        """Whether it says nothing without a power meter."""

    @property
    def needs_controller(self) -> bool:
        """Whether it sets power states."""

    def measure(self, bench: Bench, scope: Scope) -> list[Row]:
        """Make the observations."""

    def answer(self, evidence: Evidence) -> Estimates:
        """Estimate; a pure function of the evidence."""

    def draw(self, axes: Axes, evidence: Evidence, estimates: Mapping[str, Estimate]) -> None:
        """Draw evidence and estimates."""
