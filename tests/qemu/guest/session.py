"""What is done in the guest: campaigns, refusals, and a look at the drive before and after.

Arguments: the checkout, and the drives' kernel names as JSON. Importing takes a quarter of a minute
on an emulated processor, so it is done once, and every command runs in a fork.
"""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

RESULTS = Path("/run/results")
LAB = Path("/run/lab")
TRACING = Path("/run/tracing")
SENSOR = f"powersensor3:{LAB / 'ttyACM0'},pairs=0"
RUNS_FAILED, RESUMES = 26, 3
"""On a busy host the emulated sensor is late now and then; the product then fails the run."""
NOTHING: Mapping[str, str] = {}
PATTERN = b"\xa5" * 65536
FAR_BYTES = 256 << 20
"""Outside the plan's target, so that only formatting clears it."""
_FLUSH_BUFFERS = 0x1261  # linux/fs.h: BLKFLSBUF


def main() -> None:
    root, drives = Path(sys.argv[1]), json.loads(sys.argv[2])
    plans = root / "tests/qemu/plans"
    target, system = f"/dev/{drives['target']}", f"/dev/{drives['system']}"
    LAB.mkdir()
    helper = subprocess.Popen(
        [sys.executable, root / "tests/qemu/guest/admin.py", controller(target), LAB],
        stdout=(RESULTS / "commands.txt").open("wb"),
    )
    command = commands()
    (queue(target) / "scheduler").write_text("mq-deadline")
    write_pattern(target)
    look(target, "before")
    while not (LAB / "ttyACM0").exists() and helper.poll() is None:
        time.sleep(0.1)
    with_states = {
        "LD_PRELOAD": str(root / "measure/lab/built/iojoule-lab-nvme.so"),
        "IOJOULE_LAB_NODES": f"{controller(target)}::",
        "IOJOULE_LAB_CONTROLLER": str(LAB / "controller.sock"),
        "IOJOULE_FIO": str(counting_fio(root)),
    }
    states = ("--drive", target, "--plan", str(plans / "true-driver.toml"))
    words = (*states, "--serial", "iojoule-qemu-target", "--out", str(RESULTS / "true-driver"))
    code = command("true-driver", "run", *words, "--power", SENSOR, environment=with_states)
    for _ in range(RESUMES):
        if code == RUNS_FAILED:
            again = ("resume", str(RESULTS / "true-driver"))
            code = command("true-driver", *again, environment=with_states)
    helper.send_signal(signal.SIGTERM)
    helper.wait(60)
    look(target, "after")

    reads = ("--plan", str(plans / "reads.toml"))
    command("partition", "plan", "--drive", f"{system}p1", *reads)
    command("mounted", "run", "--drive", system, *reads, "--out", "/run/never")
    command("character-node", "plan", "--drive", target.replace("nvme", "ng"), *reads)
    overwrite = ("--drive", target, "--plan", str(plans / "overwrites.toml"), "--out", "/run/never")
    command("no-serial", "run", *overwrite)
    command("wrong-serial", "run", *overwrite, "--serial", "iojoule-qemu-system")
    command("no-such-state", "plan", *states)
    shared = ("--drive", f"/dev/{drives['shared']}", *reads)
    command("shared", "run", *shared, "--out", str(RESULTS / "shared"))
    with commands_counted("idle"):
        command("idle", "--watch", "3", "-o", "json", group=("idle",))
    asked = ("--drive", target, "--ask-drive", "--watch", "1", "-o", "json")
    with commands_counted("idle-asked"):
        command("idle-asked", *asked, group=("idle",))
    for samples in RESULTS.glob("*/runs/*/*.parquet"):
        samples.unlink()  # many, and nothing is asserted of them


def commands() -> Callable[..., int]:
    """Runs a command of iojoule; its exit code and what it says are kept under a name."""
    # What the commands import by themselves.
    import iojoule.api.cli.idle
    import iojoule.api.cli.measure
    import iojoule.datasets.store
    import iojoule.measure.campaign.session  # noqa: F401
    from iojoule.api.cli import main as cli

    def command(
        name: str,
        *words: str,
        environment: Mapping[str, str] = NOTHING,
        group: tuple[str, ...] = ("measure",),
    ) -> int:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            code = 70
            try:
                for number, handle in enumerate((os.open(os.devnull, os.O_RDONLY), theirs, theirs)):
                    os.dup2(handle, number)
                os.environ.update(environment)
                sys.argv = ["iojoule", *group, *words]
                cli()
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
            except BaseException:  # noqa: BLE001 - the fork must end here, whatever came
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        os.close(theirs)
        with os.fdopen(ours) as pipe, (RESULTS / f"{name}.log").open("a") as log:
            for line in pipe:
                log.write(line)
                said(f"{name}: {line.rstrip()}")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        (RESULTS / f"{name}.exit").write_text(str(code))
        said(f"{name}: exit {code}")
        return code

    return command


@contextmanager
def commands_counted(name: str) -> Iterator[None]:
    """Keeps the commands to NVMe drives meanwhile, as the driver traces them."""
    TRACING.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)
    try:
        switch = TRACING / "events/nvme/nvme_setup_cmd/enable"
        (TRACING / "trace").write_text("")
        switch.write_text("1")
        yield
        switch.write_text("0")
        (RESULTS / f"{name}.trace").write_text((TRACING / "trace").read_text())
    finally:
        subprocess.run(["umount", TRACING], check=True)


def counting_fio(root: Path) -> Path:
    path = LAB / "fio"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I {root}/tests/qemu/guest/fio.py "$@"\n')
    path.chmod(0o755)
    return path


def queue(drive: str) -> Path:
    return Path("/sys/class/block", Path(drive).name, "queue")


def controller(drive: str) -> str:
    return re.sub(r"n\d+$", "", drive)


def write_pattern(drive: str) -> None:
    with Path(drive).open("r+b", buffering=0) as node:
        for place in (0, FAR_BYTES):
            node.seek(place)
            node.write(PATTERN)
        os.fsync(node.fileno())


def look(drive: str, when: str) -> None:
    """What is on the drive, and how it is set."""
    with Path(drive).open("rb", buffering=0) as node:
        fcntl.ioctl(node, _FLUSH_BUFFERS)  # what is read now comes from the drive
        node.seek(FAR_BYTES)
        data = node.read(len(PATTERN))
    asked = ["nvme", "get-feature", controller(drive), "--feature-id=6"]
    found = {
        "pattern_bytes": data.count(PATTERN[0]),
        "zero_bytes": data.count(0),
        "write_cache": subprocess.run(asked, capture_output=True, text=True, check=False).stdout,
    }
    for name in ("scheduler", "nomerges", "io_poll", "max_hw_sectors_kb"):
        found[name] = (queue(drive) / name).read_text().strip()
    (RESULTS / f"{when}.json").write_text(json.dumps(found, indent=1))


def said(text: str) -> None:
    sys.stdout.write(f"[{time.monotonic():.1f}] session: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
