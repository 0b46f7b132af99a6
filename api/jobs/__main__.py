"""A worker that a service has started: `python -m iojoule.api.jobs FOLDER NAME`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from iojoule.api.jobs.process import work
from iojoule.api.jobs.worker import Worker


def _stop_with_parent(worker: Worker) -> None:
    sys.stdin.buffer.read()  # returns when whoever started this closes it, or is gone
    worker.stopping.set()


if __name__ == "__main__":
    folder, name = sys.argv[1:]
    work(
        Path(folder),
        None,
        name,
        lambda worker: threading.Thread(
            target=_stop_with_parent, args=(worker,), daemon=True
        ).start(),
    )
