"""What `measure command` keeps: one JSON file for all repeats."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Section
from iojoule.measure.command.block_io import DriveIo
from iojoule.measure.errors import ProgramError, SensorError

RESULT = "result.json"


class Interval(Section):
    """A figure and the range that holds its true value in 90 of 100 cases.

    Attributes:
        value: The figure.
        low: None = the range is unknown.
        high: Likewise.
        calibration: How much of each side of the range is the instruments' calibration; None = it
            is unknown and not in the range.
        runs: From how many runs.
    """

    value: float
    low: float | None = None
    high: float | None = None
    calibration: float | None = None
    runs: int = 1


class EnergyRecord(Section):
    """Power and energy of one scope during one run.

    Attributes:
        sensor: Whose samples these are.
        rails: Which of its rails were added up.
        mean_watts: None where there is no number to be trusted, with the `reason`.
        standard_error_watts: Of the mean, by chance alone.
        calibration_uncertainty_watts: Which averaging does not remove; None = unknown.
        p99_10_ms_watts: Of means over 10 ms; None where the sensor is too slow.
        maximum_10_ms_watts: Likewise.
        energy_joules: Mean watts times the time.
        above_idle_joules: The same less what idle power would have taken; None without idle power.
        samples: Received meanwhile.
        lost: Samples lost.
        coverage: Share of the time that samples cover.
        reason: Why there is no number.
    """

    sensor: str
    rails: list[str]
    mean_watts: float | None
    standard_error_watts: float | None = None
    calibration_uncertainty_watts: float | None = None
    p99_10_ms_watts: float | None = None
    maximum_10_ms_watts: float | None = None
    energy_joules: float | None = None
    above_idle_joules: float | None = None
    samples: int = 0
    lost: int = 0
    coverage: float = 0.0
    reason: str | None = None


class CommandRun(Section):
    """One run of the program.

    Attributes:
        number: From 1.
        started_utc: When.
        seconds: Run time of the program.
        window_seconds: What power and I/O are of: the same, and the wait for the page cache where
            it was asked for.
        begin_monotonic_ns: Of the window, to find it in the series.
        end_monotonic_ns: Likewise.
        exit_status: What the program returned; None where a signal ended it.
        killed_by: That signal.
        interrupted: Somebody interrupted it.
        metrics: What was found in its output; None = not found.
        work: Units of work.
        power: By scope.
        joules_per_unit: By scope, and of drive and CPU together.
        shares: Of drive, CPU and DRAM in their sum, where drive and CPU are known.
        drive_io: What reached the drive.
        unwritten_bytes: By how much the page cache held more for later at the end.
        program_cpu_seconds: Of the program and the children it waited for.
        host_cpu_seconds: Of everything on the machine.
        failures: Why sensors failed, by name.
        notes: What is to be known of it.
    """

    number: int
    started_utc: datetime
    seconds: float
    window_seconds: float
    begin_monotonic_ns: int
    end_monotonic_ns: int
    exit_status: int | None
    killed_by: str | None = None
    interrupted: bool = False
    metrics: dict[str, float | None] = Field(default_factory=dict)
    work: float | None = None
    power: dict[str, EnergyRecord] = Field(default_factory=dict)
    joules_per_unit: dict[str, Interval] = Field(default_factory=dict)
    shares: dict[str, float] = Field(default_factory=dict)
    drive_io: DriveIo | None = None
    unwritten_bytes: int | None = None
    program_cpu_seconds: float
    host_cpu_seconds: float | None = None
    failures: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether it counts: the program ended by itself and well."""
        return self.exit_status == 0 and not self.interrupted


class IdleRecord(Section):
    """The time before the first run.

    Attributes:
        seconds: How long.
        power: By scope.
        drive_io: What reached the drive all the same.
        failures: Why sensors failed, by name.
    """

    seconds: float
    power: dict[str, EnergyRecord]
    drive_io: DriveIo | None = None
    failures: dict[str, str] = Field(default_factory=dict)


class CommandResult(Section):
    """All there is to say.

    Attributes:
        command: The program and its arguments.
        unit: What work is counted in.
        work_metric: Which metric counts as work; None = none.
        work_is_rate: Whether it is a rate, to be multiplied by the run time.
        drive: The drive's node.
        sensors: Which were recorded.
        idle: Before the first run; None = not measured.
        runs: In their order.
        summary: Over the runs that count: `seconds`, `work`, `work_per_second`, and by scope
            `<scope>_watts`, `<scope>_joules`, `<scope>_joules_above_idle` and
            `<scope>_joules_per_unit`.
        interrupted: Somebody ended it early.
        failure: Why it ended early otherwise.
        notes: What is to be known of all of it.
    """

    schema_version: Literal[1] = 1
    iojoule_version: str
    command: list[str]
    unit: str | None = None
    work_metric: str | None = None
    work_is_rate: bool = False
    drive: str | None = None
    sensors: list[str] = Field(default_factory=list)
    idle: IdleRecord | None = None
    runs: list[CommandRun] = Field(default_factory=list)
    summary: dict[str, Interval] = Field(default_factory=dict)
    interrupted: bool = False
    failure: str | None = None
    notes: list[str] = Field(default_factory=list)

    def require_success(self) -> None:
        """Nothing, where the program did its work and every figure asked for is there.

        Raises:
            ProgramError: The program failed.
            SensorError: A sensor failed.
            InputError: The work was not found in the program's output.
        """
        last = self.runs[-1] if self.runs else None
        if last is not None and not last.whole:
            how = (
                f"was killed by {last.killed_by}"
                if last.killed_by
                else f"returned {last.exit_status}"
            )
            raise ProgramError(
                f"{self.command[0]} {how}; stdout.txt and stderr.txt of run {last.number} say why"
            )
        if self.failure is not None:
            raise SensorError(self.failure)
        for run in self.runs:
            for reason in run.failures.values():
                raise SensorError(f"run {run.number}: {reason}")
        if self.work_metric and any(run.work is None for run in self.runs):
            raise InputError(
                f"no work was found in the output: --metric {self.work_metric} matched nothing or "
                "no positive number; everything else is kept"
            )
