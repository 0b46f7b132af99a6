"""Process 1 of the guest: mounts, measures, writes the results to a disk, and switches off.

The kernel's command line names the checkout (`iojoule.root=`). Drives are told by their serial
numbers, for the kernel numbers them as it likes.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
import traceback
from pathlib import Path

RESULTS = Path("/run/results")
PREFIX = "iojoule-qemu-"
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
    "HOME": "/run",
    "TMPDIR": "/run",
    "IOJOULE_JOURNALS": "/run/state",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "COLUMNS": "200",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def main() -> None:
    mount("proc", "/proc")
    mount("sysfs", "/sys")
    mount("devtmpfs", "/dev")
    console = os.open("/dev/console", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(console, number)
    for kind, place in (("devpts", "/dev/pts"), ("tmpfs", "/dev/shm"), ("tmpfs", "/run")):
        Path(place).mkdir(exist_ok=True)
        mount(kind, place)
    os.environ.update(_ENVIRONMENT)
    words = Path("/proc/cmdline").read_text().split()
    root = Path(next(word for word in words if word.startswith("iojoule.root=")).partition("=")[2])
    RESULTS.mkdir()
    drives = find_drives()
    say(f"drives: {drives}")
    done = subprocess.run(
        [
            root / ".venv/bin/python",
            root / "tests/qemu/guest/session.py",
            root,
            json.dumps(drives),
        ],
        check=False,
    )
    say(f"session ended with {done.returncode}")
    (RESULTS / "session.exit").write_text(str(done.returncode))
    store(Path("/dev") / drives["results"])


def mount(kind: str, place: str) -> None:
    subprocess.run(["/usr/bin/mount", "-t", kind, kind, place], check=True)


def find_drives() -> dict[str, str]:
    """Kernel names of the drives by what follows PREFIX in their serial numbers."""
    found = {}
    for folder in Path("/sys/class/block").glob("nvme*n*"):
        serial = folder / "device" / "serial"
        if serial.exists() and (folder / "hidden").read_text().strip() == "0":
            found[serial.read_text().strip().removeprefix(PREFIX)] = folder.name
    return found


def store(drive: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(RESULTS, arcname=".")
    with drive.open("wb") as stream:
        stream.write(data.getvalue())
        stream.flush()
        os.fsync(stream.fileno())


def say(text: str) -> None:
    sys.stdout.write(f"[{time.monotonic():.1f}] guest: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 - process 1 must switch the machine off, whatever came
        traceback.print_exc()
    Path("/proc/sysrq-trigger").write_text("o")
    time.sleep(60)
