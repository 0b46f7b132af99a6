"""Stands in for fio: runs it, and counts the interrupts of the drive's I/O queues meanwhile.

The product's record has all interrupts of the machine, of which the clocks of a slow emulated one
are the most.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

COUNT_FILE = "nvme_interrupts"
JOB_FILE = "job.fio"


def interrupts(controller: str) -> int:
    """Of all queues but the admin queue, which always interrupts."""
    first, *lines = Path("/proc/interrupts").read_text().splitlines()
    own = [line.split() for line in lines if re.search(rf"nvme{controller}q[1-9]", line)]
    return sum(int(count) for words in own for count in words[1 : 1 + len(first.split())])


def main() -> int:
    command = [shutil.which("fio") or "fio", *sys.argv[1:]]
    if JOB_FILE not in command:
        return subprocess.call(command)
    found = re.search(r"^filename=/dev/n(?:vme|g)(\d+)n", Path(JOB_FILE).read_text(), re.MULTILINE)
    controller = found[1] if found else ""
    before = interrupts(controller)
    code = subprocess.call(command)
    Path(COUNT_FILE).write_text(str(interrupts(controller) - before))
    return code


if __name__ == "__main__":
    sys.exit(main())
