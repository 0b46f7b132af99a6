"""A calibration of this host: inspection, loads, recording, host profile."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from iojoule.datasets.profile import HostProfile
from iojoule.measure.errors import HostStateError, SensorError
from iojoule.measure.fio import find_fio
from iojoule.measure.host.changes import Change
from iojoule.measure.host.facts import HostControls, host_facts
from iojoule.measure.host.guard import guarded
from iojoule.measure.host.host_files import PROC
from iojoule.measure.host.journal import HostState, restore_abandoned
from iojoule.measure.host_calibration.host_profile import (
    CalibrationResults,
    LoadReading,
    host_profile,
)
from iojoule.measure.host_calibration.loads import (
    Bench,
    LoadPlan,
    LoadResult,
    plan_loads,
    target_file,
)
from iojoule.measure.recording import Recording
from iojoule.measure.recording.recorder import Recorder
from iojoule.measure.sensors import open_sensor
from iojoule.measure.sensors.cpu import Cpu
from iojoule.measure.sensors.protocol import Scope, Sensor
from iojoule.measure.sensors.rapl import ROOT

_CPU_SENSOR = "cpu"


@dataclass(frozen=True)
class CalibrationRequest:
    """Options of a calibration.

    Attributes:
        rapl_root: Root of the powercap tree; None: the system's, where it exists.
        power: Meters, in the syntax of `open_sensor`.
        folder: Where a file for real engines may be made; None: no real engine.
        others_cores: Busy cores of others that are tolerated.
    """

    rapl_root: Path | None = None
    power: Sequence[str] = ()
    minutes: float = 5.0
    folder: Path | None = None
    others_cores: float = 0.1
    controls: HostControls = field(default_factory=HostControls)
    proc: Path = PROC


@dataclass(frozen=True)
class Prepared:
    """What will be done, and with which instruments."""

    request: CalibrationRequest
    sensors: list[Sensor]
    cpus: list[int]
    plan: LoadPlan
    gaps: list[str]

    def commands(self) -> Iterator[str]:
        """Every load and the settings it changes, for people."""
        for governor, name in self.request.controls.governor("performance"):
            yield governor.command(name)
        for number, load in enumerate(self.plan.loads, 1):
            yield f"# {number}. {load.words}, {self.plan.window_seconds:.0f} s"
            for change, value in _settings(self.request.controls, load.hertz, load.sleep_limit):
                yield change.command(value)


def prepare(request: CalibrationRequest) -> Prepared:
    """Inspect sensors and settings; changes nothing.

    Raises:
        SensorError: Neither RAPL nor a wall meter can be read; the message names the remedy.
        InputError: The time is too short.
    """
    sensors, gaps = _sensors(request)
    cpus = sorted(os.sched_getaffinity(0))
    controls = request.controls
    if controls.frequency_range_hertz() is None:
        gaps.append("frequency: this host has no cpufreq (a virtual machine?)")
    elif not controls.may_set_frequency():
        gaps.append("frequency: may not be set by this user; run as root")
    if not controls.may_set_sleep():
        gaps.append("sleep states: cannot be switched off here; run as root on a host with cpuidle")
    elif (deepest := controls.deepest_sleep() or 0) < len(states := controls.sleep_states()) - 1:
        gaps.append(
            f"sleep states: this host keeps its CPUs from {states[-1].name}, so idle power is that "
            f"of {states[deepest].name}; allow all of them (cpuidle/*/disable) and start again"
        )
    if request.folder is None:
        gaps.append("paths: no --folder was named, so no engine was run against a file")
    hertz = [sensor.probe().nominal_hertz for sensor in sensors if sensor.name != _CPU_SENSOR]
    chosen = plan_loads(
        len(cpus), controls, request.minutes, min(hertz), target=request.folder is not None
    )
    return Prepared(request, sensors, cpus, chosen, gaps)


def calibrate(prepared: Prepared, say: Callable[[str], None] = lambda _: None) -> HostProfile:
    """Run every load and fit; must be called in the main thread. The host is restored.

    Raises:
        HostStateError: Others keep the host busy, or something cannot be set or restored.
        SensorError: A sensor failed.
        FioError: fio failed.
        Interrupted: A signal ended it.
    """
    for line in restore_abandoned():
        say(line)
    fio = find_fio()
    with (
        tempfile.TemporaryDirectory(prefix="iojoule-host-") as scratch,
        target_file(prepared.request.folder) as target,
    ):
        folder = Path(scratch)
        bench = Bench(prepared.cpus, fio, folder, target)

        def work(state: HostState) -> tuple[list[LoadResult], Recording]:
            return _record(prepared, bench, folder, state, say)

        done, recording = guarded(None, say, "the host is restored; start again", work)
        if recording.failures:
            sensor, why = next(iter(recording.failures.items()))
            raise SensorError(f"{sensor} failed on the way: {why}; start again")
        readings = [_reading(record, recording) for record in done]
    return host_profile(
        CalibrationResults(
            facts=host_facts(),
            controls=prepared.request.controls,
            cpus=len(prepared.cpus),
            readings=readings,
            sensors=[sensor.name for sensor in prepared.sensors],
            gaps=prepared.gaps,
            measured_utc=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        )
    )


def _record(
    prepared: Prepared,
    bench: Bench,
    folder: Path,
    state: HostState,
    say: Callable[[str], None],
) -> tuple[list[LoadResult], Recording]:
    recorder = Recorder(prepared.sensors, folder / "recording")
    recorder.start()
    try:
        done = []
        cpu = Cpu(prepared.request.proc.parent)
        controls = prepared.request.controls
        for change, value in controls.governor("performance"):
            state.set(change, value)
        for number, load in enumerate(prepared.plan.loads, 1):
            say(f"{number} of {len(prepared.plan.loads)}: {load.words}")
            before, began = cpu.poll()[0], time.monotonic()
            own = list(_settings(controls, load.hertz, load.sleep_limit))
            for change, value in own:
                state.set(change, value)
            done.append(bench.run(number, load, prepared.plan.window_seconds))
            for change, _ in own:
                state.put_back(change)
            if number == 1:  # idle: whatever is busy is not ours
                company = (cpu.poll()[0] - before) / (time.monotonic() - began)
                _require_idle_host(company, prepared.request.others_cores)
            if recorder.failed():
                raise SensorError(f"{recorder.failed()}; start again")
        return done, recorder.stop()
    except BaseException:
        with suppress(SensorError):
            recorder.stop()
        raise


def _require_idle_host(busy_cores: float, allowed: float) -> None:
    if busy_cores > allowed:
        raise HostStateError(
            f"others keep {busy_cores:.2f} cores of this host busy, and {allowed:g} are allowed: "
            "their power would be taken for that of the loads; stop them (`top` shows who), or "
            "allow more with --others-cores, at the price of wider intervals"
        )


def _reading(done: LoadResult, recording: Recording) -> LoadReading:
    begin, end = done.begin_ns, done.end_ns

    def watts(scope: Scope) -> tuple[float, float] | None:
        seen = recording.power(scope, begin, end)
        if seen is None or seen.mean_watts is None:
            return None
        error = seen.standard_error_watts or 0.0
        return seen.mean_watts, error if math.isfinite(error) else 0.0

    busy = recording.counter("cpu-busy-seconds", begin, end, sensor=_CPU_SENSOR)
    rails = {rail.name for rail in recording.rails(_CPU_SENSOR)}
    hertz = (
        recording.gauge("cpu-frequency-max", begin, end, sensor=_CPU_SENSOR)
        if "cpu-frequency-max" in rails
        else None
    )
    if busy is None:
        raise SensorError(f"the CPU time of {done.load.words} was not recorded; start again")
    return LoadReading(
        done=done,
        busy_cores=busy.per_second,
        hertz=hertz.mean if hertz is not None else None,
        cpu_watts=watts(Scope.CPU),
        dram_watts=watts(Scope.DRAM),
        wall_watts=watts(Scope.SYSTEM),
    )


def _settings(
    controls: HostControls, hertz: float | None, sleep_limit: int | None
) -> Iterator[tuple[Change, str]]:
    if hertz is not None:
        yield from controls.frequency(hertz)
    if sleep_limit is not None:
        yield from controls.sleep_limit(sleep_limit)


def _sensors(request: CalibrationRequest) -> tuple[list[Sensor], list[str]]:
    """The sensors that answer, and the gaps.

    Raises SensorError if a named one fails or none is left.
    """
    names = [f"cpu:{request.proc.parent}"]
    gaps: list[str] = []
    if request.rapl_root is not None:
        names.append(f"rapl:{request.rapl_root}")
    elif not any(meter.startswith("rapl") for meter in request.power):
        try:
            open_sensor("rapl").probe()
            names.append("rapl")
        except SensorError as error:
            gaps.append(f"CPU power: {error.message}")
    sensors = [open_sensor(name) for name in [*names, *request.power]]
    scopes = {rail.scope for sensor in sensors for rail in sensor.probe().rails if rail.counts}
    if not scopes & {Scope.CPU, Scope.SYSTEM}:
        raise SensorError(
            f"nothing here measures the processors or the wall ({'; '.join(gaps) or ROOT}); name a "
            "powercap tree with --rapl-root, or a meter at the wall with --power, for instance "
            "--power netio:pdu.example:80,outlet=1"
        )
    if Scope.SYSTEM not in scopes:
        gaps.append("wall power: no --power meter was named")
    if Scope.DRAM not in scopes:
        gaps.append("memory power: no counter of its own, so it is part of the wall's floor")
    return sensors, gaps
