"""Reads one upload and writes it as a dataset; run by `checking` as a process of its own.

It may use so much memory and time and no more, set before anything is read: a small file can
unfold to more than any machine holds, and no table of sizes inside it is to be believed.
"""

from __future__ import annotations

import json
import resource
import sys

MEMORY_BYTES = 3 << 30
CPU_SECONDS = 60
FILE_BYTES = 1 << 30

if __name__ == "__main__":
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    # a second more before the kernel kills: what is killed was killed by somebody else
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))

    from iojoule.api.uploads.reading import read

    json.dump(read(json.load(sys.stdin)), sys.stdout)
