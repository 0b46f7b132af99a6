"""Every fault that a campaign may meet, played on the virtual drive: what the user sees, what is
restored, and that nothing measured is lost. `pytest -s` prints the table.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from iojoule.api.application.fit import fit_datasets
from iojoule.measure.campaign.folder import CampaignFolder, RunRecord, Status
from iojoule.measure.lab import life
from iojoule.measure.lab.client import LabClient
from iojoule.measure.lab.comparison import compare
from iojoule.model.evaluate.predictor import Predictor
from tests.measure.lab.conftest import missing_for_a_disk
from tests.pressure import SHARE_MAX, CpuPressure

IOJOULE = Path(sys.executable).with_name("iojoule")
PLAN = """
schema_version = 1
name = "faults"
repeats = 1
failures_in_a_row_max = {in_a_row}
[run]
seconds = 1
ramp_seconds = 0
[settle]
baseline_seconds = 0.5
seconds = 0.1
after_writes_seconds_max = 0
[[sweep]]
name = "s"
operation = "{operation}"
request_bytes = "4KiB"
queue_depth = [1, 4, 8]
engine = "{engine}"
scheduler = "mq-deadline"
power_state = 1
"""
LONGEST_SECONDS = 90


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "what was waited for does not come"
        time.sleep(0.02)


@dataclass
class Bed:
    """The lab and what is needed to campaign on it."""

    lab: LabClient
    folder: Path
    table: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def drive(self) -> str:
        return str(self.lab.state["drive"])

    def command(self, name: str, *options: str, plan: str = "", **changed: str) -> list[str]:
        values = {"in_a_row": "2", "operation": "read", "engine": "io_uring", **changed}
        file = self.folder / f"{name}.toml"
        file.write_text(plan or PLAN.format(**values))
        state = self.lab.state
        return [
            str(IOJOULE), "measure", "run", "--drive", self.drive, "--controller",
            str(state["controller"]), "--power", f"powersensor3:{state['powersensor3']}",
            "--plan", str(file), "--out", str(self.folder / name), *options,
        ]  # fmt: skip

    def environment(self, **extra: str) -> dict[str, str]:
        return {
            **os.environ,
            **self.lab.environment(),
            "IOJOULE_JOURNALS": str(self.folder / "state"),
            **extra,
        }

    def start(self, command: list[str], **extra: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            env=self.environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, name: str, *options: str, plan: str = "", **changed: str) -> tuple[int, str]:
        return self.ended(self.start(self.command(name, *options, plan=plan, **changed)))

    def ended(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        try:
            said, _ = process.communicate(timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            pytest.fail(f"the campaign hangs: {said[-1000:]}")
        lines = [one for one in said.splitlines() if not one.startswith("note: run ")]
        return process.returncode, "\n".join(lines)

    def resume(self, name: str) -> tuple[int, str]:
        return self.ended(self.start([str(IOJOULE), "measure", "resume", str(self.folder / name)]))

    def at_second_run(
        self, name: str, act: Callable[[], object], *, after_requests: int = 0
    ) -> None:
        """Wait until the second run's fio is at it, and has done so many requests, then act."""
        until((self.folder / name / "runs" / "00002-s" / "fio.messages").exists)
        before = self.requests()
        time.sleep(0.3)
        until(lambda: self.requests() >= before + after_requests)
        act()

    def requests(self) -> int:
        """Reads that the drive completed."""
        counters = Path("/sys/class/block") / Path(self.drive).name / "stat"
        return int(counters.read_text().split()[0])

    def done(self, name: str) -> int:
        records = CampaignFolder(self.folder / name).records()
        return sum(one.status is Status.DONE for one in records)

    def require_restored(self) -> None:
        queue = Path("/sys/class/block") / Path(self.drive).name / "queue" / "scheduler"
        assert "[none]" in queue.read_text()
        assert self.lab.status()["disk"]["power_state"] != 1
        assert not list((self.folder / "state").glob("restore-*"))

    def saw(self, fault: str, said: str, restored: str = "all") -> None:
        marks = ("error: ", "note: SIG")
        found = [said.rindex(mark) for mark in marks if mark in said]
        told = said[max(found) :] if found else said
        private = told.replace(str(self.folder), "...")
        self.table.append((fault, " ".join(private.split())[:400], restored))


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    if reason := missing_for_a_disk():
        pytest.skip(reason)
    for program in ("fio", "nvme", "mkfs.ext4"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("faults")
    with life.up(folder / "lab") as client:
        client.disk.ask("moves")
        one = Bed(client, folder)
        yield one
    life.down(folder / "lab")
    for row in one.table:
        sys.stdout.write("\n| " + " | ".join(row) + " |")


@pytest.fixture(autouse=True)
def healthy(bed: Bed) -> Iterator[None]:
    yield
    for part in ("disk", "controller", "powersensor3"):
        bed.lab.fault(part, "none")
    bed.require_restored()


class TestBeforeAnythingIsChanged:
    def test_a_partition(self, bed: Bed, tmp_path: Path) -> None:
        image = tmp_path / "image"
        with image.open("wb") as stream:
            stream.truncate(16 << 20)
        loop = subprocess.check_output(["losetup", "-f", "--show", image], text=True).strip()
        try:
            subprocess.run(["addpart", loop, "1", "2048", "16384"], check=True)
            command = bed.command("partition")
            command[command.index("--drive") + 1] = f"{loop}p1"
            code, said = bed.ended(bed.start(command))
            subprocess.run(["delpart", loop, "1"], check=True)
        finally:
            subprocess.run(["losetup", "-d", loop], check=True)
        bed.saw("a partition instead of a drive", said, "nothing was changed")
        assert (code, f"name {loop}" in said) == (20, True), said

    def test_a_mounted_drive(self, bed: Bed, tmp_path: Path) -> None:
        image, point = tmp_path / "image", tmp_path / "mounted"
        point.mkdir()
        with image.open("wb") as stream:
            stream.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        loop = subprocess.check_output(["losetup", "-f", "--show", image], text=True).strip()
        try:
            subprocess.run(["mount", loop, point], check=True)
            try:
                command = bed.command("mounted")
                command[command.index("--drive") + 1] = loop
                code, said = bed.ended(bed.start(command))
            finally:
                subprocess.run(["umount", point], check=True)
            bed.saw("a mounted drive", said, "nothing was changed")
            assert (code, f"is mounted on {point}" in said) == (20, True), said
            # unmounted it still holds a file system, so that it is not overwritten unasked
            command = bed.command("signature", "--serial", loop, operation="write")
            command[command.index("--drive") + 1] = loop
            at = command.index("--controller")
            del command[at : at + 2]
            plan = bed.folder / "signature.toml"
            plan.write_text(plan.read_text().replace("power_state = 1\n", ""))
            code, said = bed.ended(bed.start(command))
            bed.saw("a drive that holds a file system", said, "nothing was changed")
            assert (code, "--overwrite ext4" in said) == (20, True), said
        finally:
            subprocess.run(["losetup", "-d", loop], check=True)

    def test_a_wrong_serial_number(self, bed: Bed) -> None:
        code, said = bed.run("serial", "--serial", "S123", operation="write")
        assert (code, "not S123; nothing was done" in said) == (20, True), said
        bed.saw("a wrong serial number", said, "nothing was changed")

    def test_no_serial_number(self, bed: Bed) -> None:
        code, said = bed.run("no-serial", operation="write")
        assert (code, "type out its serial number" in said) == (20, True), said
        bed.saw("a destructive plan without consent", said, "nothing was changed")

    def test_no_permission(self, bed: Bed, tmp_path: Path) -> None:
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            pytest.skip("only root can become somebody else")
        command = bed.command("permission")
        # a user who may read the program but not the drive
        readable = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", str(IOJOULE), "--version"],
            capture_output=True, check=False,
        )  # fmt: skip
        if readable.returncode != 0:
            pytest.skip("another user may not run this checkout")
        shared = tmp_path / "plan.toml"
        shutil.copy(bed.folder / "permission.toml", shared)
        for folder in (tmp_path, *tmp_path.parents):
            if "pytest-of-" in str(folder):  # one level more where several workers run
                folder.chmod(0o755)
        command[command.index("--plan") + 1] = str(shared)
        code, said = bed.ended(
            bed.start(["setpriv", "--reuid=65534", "--clear-groups", *command], HOME=str(tmp_path))
        )
        assert (code, "udev rule" in said) == (22, True), said
        bed.saw("no permission on the drive", said, "nothing was changed")

    def test_fio_missing_or_too_old(self, bed: Bed, tmp_path: Path) -> None:
        command = bed.command("fio")
        code, said = bed.ended(bed.start(command, IOJOULE_FIO=str(tmp_path / "absent")))
        assert (code, "no such program" in said) == (23, True), said
        bed.saw("fio missing", said, "nothing was changed")
        old = tmp_path / "fio"
        old.write_text("#!/bin/sh\necho fio-2.21\n")
        old.chmod(0o755)
        code, said = bed.ended(bed.start(command, IOJOULE_FIO=str(old)))
        assert (code, "is fio 2.21; 3.20 or newer" in said) == (23, True), said
        bed.saw("fio too old", said, "nothing was changed")

    @pytest.mark.parametrize("kind", ["stall", "silent", "disconnect"])
    def test_a_sensor_that_does_not_answer(self, bed: Bed, kind: str) -> None:
        bed.lab.fault("powersensor3", kind)
        code, said = bed.run(f"sensor-{kind}")
        assert code == 24, said
        bed.saw(f"PowerSensor3 {kind} before the campaign", said, "nothing was changed")


class TestDuringTheCampaign:
    @pytest.mark.parametrize(
        ("kind", "words"),
        [("refuse", "Feature Not Changeable"), ("ignore", "ignores")],
    )
    def test_a_power_state_that_is_refused_or_ignored(
        self, bed: Bed, kind: str, words: str
    ) -> None:
        bed.lab.fault("controller", kind)
        code, said = bed.run(f"state-{kind}")
        assert (code, words in said) == (21, True), said
        bed.saw(f"the drive {kind}s to change its power state", said)

    @pytest.mark.parametrize("kind", ["stall", "disconnect", "only-garbage"])
    def test_a_sensor_that_fails_during_a_run(self, bed: Bed, kind: str) -> None:
        name = f"during-{kind}"
        process = bed.start(bed.command(name))
        bed.at_second_run(name, lambda: bed.lab.fault("powersensor3", kind))
        code, said = bed.ended(process)
        assert (code, "1 of 3 runs are done" in said) == (26, True), said
        bed.saw(f"PowerSensor3: {kind} during run 2 of 3", said)
        bed.lab.fault("powersensor3", "none")
        bed.require_restored()
        assert bed.resume(name)[0] == 0
        assert bed.done(name) == 3

    def test_a_drive_that_reports_errors(self, bed: Bed) -> None:
        process = bed.start(bed.command("eio"))
        bed.at_second_run("eio", lambda: bed.lab.fault("disk", "eio", 1))
        code, said = bed.ended(process)
        assert (code, bed.done("eio")) == (0, 3), said
        assert "Input/output error" in said
        bed.saw("an I/O error in run 2 of 3", said)

    def test_a_drive_that_vanishes(self, bed: Bed) -> None:
        process = bed.start(bed.command("vanish"))
        bed.at_second_run("vanish", lambda: bed.lab.fault("disk", "vanish"))
        code, said = bed.ended(process)
        assert code in (21, 26), said
        bed.saw("the drive vanishes in run 2 of 3", said)
        bed.lab.fault("disk", "none")
        assert bed.done("vanish") == 1
        assert bed.resume("vanish")[0] == 0

    def test_an_engine_that_the_kernel_refuses(self, bed: Bed, tmp_path: Path) -> None:
        command = bed.command("engine")
        refuse = Path(__file__).with_name("without_io_uring.py")
        code, said = bed.ended(bed.start([sys.executable, str(refuse), *command]))
        assert (code, "choose another one" in said) == (26, True), said
        bed.saw("an engine that the kernel refuses (io_uring_setup: ENOSYS)", said)

    def test_a_full_disk(self, bed: Bed, tmp_path: Path) -> None:
        small = tmp_path / "small"
        small.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=False
        )
        if mounted.returncode != 0:
            pytest.skip("a small file system cannot be mounted")
        try:
            command = bed.command("full")
            command[command.index("--out") + 1] = str(small / "campaign")
            code, said = bed.ended(bed.start(command))
            assert code in (24, 25, 26), said
            assert "space" in said, said
            bed.saw("the disk is full while recording", said)
            bed.require_restored()
            subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
            process = bed.start([str(IOJOULE), "measure", "resume", str(small / "campaign")])
            code, said = bed.ended(process)
            assert code == 0, said
        finally:
            subprocess.run(["umount", small], check=True)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_signals(self, bed: Bed, number: signal.Signals) -> None:
        name = f"signal-{number.name}"
        process = bed.start(bed.command(name))

        def twice() -> None:
            process.send_signal(number)
            time.sleep(0.05)
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

        bed.at_second_run(name, twice)
        code, said = bed.ended(process)
        assert (code, "measure resume" in said) == (130, True), said
        bed.saw(f"{number.name}, twice, in run 2 of 3", said)
        bed.require_restored()
        assert bed.done(name) == 1
        assert bed.resume(name)[0] == 0
        assert bed.done(name) == 3

    @pytest.mark.parametrize(
        ("name", "knob", "state"),
        [("killed", "power_state = 1", 1), ("limited", "power_limit_watts = 3.5", 2)],
    )
    def test_kill(self, bed: Bed, name: str, knob: str, state: int) -> None:
        plan = PLAN.format(in_a_row=2, operation="read", engine="io_uring")
        process = bed.start(bed.command(name, plan=plan.replace("power_state = 1", knob)))
        bed.at_second_run(name, process.kill)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        assert bed.lab.status()["disk"]["power_state"] == state, "nobody could restore it"
        code, said = bed.resume(name)
        assert (code, said.count("restored after a crash") >= 2) == (0, True), said
        assert bed.done(name) == 3
        assert bed.lab.status()["disk"]["power_state"] == 0
        bed.table.append((f"kill -9, {knob}", "(dead)", "by the next start, then all"))


JUDGED = """
schema_version = 1
name = "judged"
repeats = 1
repeats_of_doubtful_max = 9
[run]
seconds = 3
ramp_seconds = 0
[settle]
baseline_seconds = 1
seconds = 0.5
after_writes_seconds_max = 0
[[sweep]]
name = "s"
operation = "read"
request_bytes = "4KiB"
queue_depth = [1, 4, 8]
engine = "io_uring"
scheduler = "mq-deadline"
power_state = 0
"""
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
TRUE_WITHIN = {"throughput_bytes_per_second": 0.03, "device_power_watts": 0.03}
"""How far a run that is fitted may lie from what the virtual drive did, others at work or not."""

WITHIN = {"iops": 0.1, "device_power_watts": 0.04}
"""How far predictions of two campaigns without a fault lie apart; the faults that are played move
the one by 40 % and more, the other by 10 % and more."""


def predicted(folder: Path) -> dict[str, list[float]]:
    """What the profile of a campaign predicts at the depths that were measured."""
    profile = fit_datasets([folder], None).profile
    columns = {
        "operation": ["read"] * 3, "pattern": ["random"] * 3, "request_bytes": [4096] * 3,
        "queue_depth": [1, 4, 8], "engine": ["io_uring"] * 3, "scheduler": ["mq-deadline"] * 3,
        "power_state": [0] * 3,
    }  # fmt: skip
    rows = Predictor(profile).predict_columns(columns, 3)[0]
    return {name: list(np.asarray(rows[name].value, dtype=float)) for name in WITHIN}


def children(pid: int, name: str) -> list[int]:
    """Processes of a name below another one."""
    parents: dict[int, int] = {}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            parents[int(folder.name)] = int(rest.split()[1])
            if head.endswith(f"({name}"):
                found.append(int(folder.name))
    below = []
    for one in found:
        above = one
        while above not in (0, pid):
            above = parents.get(above, 0)
        if above == pid:
            below.append(one)
    return below


def stopped(pids: list[int], seconds: float) -> None:
    """Stop processes and let them go on."""
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@dataclass(frozen=True)
class Played:
    """A fault in the second run of three.

    Attributes:
        verdict: Of the run.
        codes: Reasons, one of which at least is given.
        act: Plays it: lab, process, the campaign's folder.
        repeated: First attempts of the runs that are made again.
    """

    verdict: str
    codes: set[str]
    act: Callable[[Bed, subprocess.Popen[str], Path], object]
    repeated: tuple[str, ...] = ("00002-s.1",)


def garbage(bed: Bed, _: subprocess.Popen[str], folder: Path) -> None:
    bed.lab.fault("powersensor3", "only-garbage")
    until((folder / "runs" / "00002-s" / "run.json").exists)
    bed.lab.fault("powersensor3", "none")


def drift(bed: Bed, _: subprocess.Popen[str], folder: Path) -> None:
    bed.lab.fault("powersensor3", "drift", 0.3)
    until(lambda: len(CampaignFolder(folder).state().idle["0"]) == 2)
    bed.lab.fault("powersensor3", "none")


def clock(step: str) -> Callable[[Bed, subprocess.Popen[str], Path], None]:
    """Sets iojoule's wall clock, and sets it back before the next run."""

    def act(bed: Bed, _: subprocess.Popen[str], folder: Path) -> None:
        (bed.folder / "clock").write_text(step)
        until((folder / "runs" / "00002-s" / "run.json").exists)
        (bed.folder / "clock").write_text("+0")

    return act


def under_faketime(bed: Bed, command: list[str]) -> tuple[list[str], dict[str, str]]:
    """A command of iojoule and its environment, under a wall clock that `clock` sets.

    fio does not start under libfaketime 0.9.10, and keeps the machine's clock.
    """
    found = next(iter(Path("/").glob(FAKETIME[1:])), None)
    if found is None:
        pytest.skip("libfaketime is not installed")
    (bed.folder / "clock").write_text("+0")
    preloaded = bed.environment()["LD_PRELOAD"]
    fio = bed.folder / "fio-without-faketime"
    fio.write_text(f'#!/bin/sh\nLD_PRELOAD={preloaded} exec fio "$@"\n')
    fio.chmod(0o755)
    extra = {
        "LD_PRELOAD": f"{preloaded}:{found}",
        "FAKETIME_TIMESTAMP_FILE": str(bed.folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "IOJOULE_FIO": str(fio),
    }
    script = Path(__file__).with_name("under_faketime.py")
    return [sys.executable, str(script), *command[1:]], extra


STEPS = ("+2s", "-2s", "+1h")
FAULTS = {
    "full scale for 0.5 s": Played(
        "failed", {"full_scale"}, lambda bed, *_: bed.lab.fault("powersensor3", "clip", 0.5)
    ),
    "drive stalls for 2 s": Played(
        "doubtful", {"stall"}, lambda bed, *_: bed.lab.fault("disk", "stall", 2)
    ),
    "drive stalls for 20 s": Played(
        "doubtful", {"stall"}, lambda bed, *_: bed.lab.fault("disk", "stall", 20)
    ),
    "fio stopped for 2 s": Played(
        "doubtful", {"fio_slept"}, lambda _, process, __: stopped(children(process.pid, "fio"), 2)
    ),
    "iojoule stopped for 2 s": Played(
        "failed",
        {"iojoule_slept", "low_coverage"},
        lambda _, process, __: stopped([process.pid], 2),
    ),
    "zero of the sensor drifts by 0.3 W": Played(
        "doubtful", {"idle_drift"}, drift, repeated=("00001-s.1", "00002-s.1", "00003-s.1")
    ),
    "no samples for 0.5 s": Played(
        "doubtful", {"low_coverage"}, lambda bed, *_: bed.lab.fault("powersensor3", "gap", 0.5)
    ),
    "garbage instead of samples": Played("failed", {"run_error"}, garbage),
    **{
        f"wall clock set by {step}": Played("failed", {"clock_step"}, clock(step)) for step in STEPS
    },
}
"""Every fault of which a run's evidence tells."""
ALWAYS = {
    "full scale for 0.5 s",
    "drive stalls for 2 s",
    "fio stopped for 2 s",
    "wall clock set by +2s",
}
"""One of each kind, played in continuous integration; all of them in `make test-long`."""


@pytest.fixture(scope="module")
def clean(bed: Bed) -> tuple[dict[str, list[float]], float]:
    """What the profile of a campaign without a fault predicts, and the pressure it ran under."""
    pressure = CpuPressure()
    code, said = bed.run("clean", plan=JUDGED)
    assert code == 0, said
    records = CampaignFolder(bed.folder / "clean").records()
    assert [one.verdict.text for one in records if one.verdict] == ["", "", ""]
    return predicted(bed.folder / "clean"), pressure.share()


class TestVerdicts:
    """Faults in a campaign: each is named, its run repeated, and the profile is the same."""

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(fault, marks=[] if fault in ALWAYS else pytest.mark.soak)
            for fault in FAULTS
        ],
    )
    def test_a_fault_is_named_and_repeated_and_alters_no_profile(
        self, bed: Bed, clean: tuple[dict[str, list[float]], float], fault: str
    ) -> None:
        played = FAULTS[fault]
        name = f"fault-{list(FAULTS).index(fault)}"
        folder, extra = bed.folder / name, {}
        command = bed.command(name, plan=JUDGED)
        if "clock" in fault:
            command, extra = under_faketime(bed, command)
        pressure = CpuPressure()
        process = bed.start(command, **extra)
        bed.at_second_run(name, lambda: played.act(bed, process, folder), after_requests=60)
        code, said = bed.ended(process)
        assert code == 0, said
        first = [
            RunRecord.model_validate_json((folder / "attempts" / one / "run.json").read_bytes())
            for one in played.repeated
        ]
        verdicts = [one.verdict for one in first if one.verdict]
        assert {one.verdict.value for one in verdicts} == {played.verdict}
        found_codes = {reason.code.value for one in verdicts for reason in one.reasons}
        assert found_codes & played.codes, found_codes
        records = CampaignFolder(folder).records()
        assert [one.verdict.text for one in records if one.verdict] == ["", "", ""]
        for one in compare(records, bed.lab):
            for quantity, within in TRUE_WITHIN.items():
                assert abs(one.errors[quantity]) < within, (one.name, quantity)
        found, (unhurt, pressure_unhurt) = predicted(folder), clean
        apart = {
            quantity: max(abs(one / other - 1) for one, other in zip(*both, strict=True))
            for quantity, *both in ((name, found[name], unhurt[name]) for name in WITHIN)
        }
        # then two campaigns without a fault differ as well
        busy = max(pressure.share(), pressure_unhurt) > SHARE_MAX
        assert busy or all(apart[name] < within for name, within in WITHIN.items()), apart
        told = ", ".join(f"{name} {value:.1%}" for name, value in apart.items())
        codes = ", ".join(sorted(found_codes))
        bed.table.append((fault, f"{played.verdict}: {codes}", f"profiles apart: {told}"))
