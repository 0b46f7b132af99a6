"""Functions that workers of other processes import by their name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from iojoule.sim.errors import ConfigError


def power(shared: int, item: int) -> int:
    return item**shared


def variable(shared: str, item: int) -> str | None:
    """What programs get that are started there."""
    return os.environ.get(shared)


def pid(shared: float, item: int) -> int:
    """Who computes; long enough for others to get something to do."""
    time.sleep(shared)
    return os.getpid()


def once_killed(shared: str, item: int) -> int:
    """The first who computes item 3 is killed."""
    mark = Path(shared) / str(item)
    if item == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def always_killed(shared: None, item: int) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def refused(shared: str, item: int) -> int:
    """Item 2 is refused; the others leave their pid and would take a minute."""
    if item == 2:
        while len(list(Path(shared).iterdir())) < 1:
            time.sleep(0.01)
        raise ConfigError("two", field="seed")
    (Path(shared) / str(os.getpid())).touch()
    time.sleep(60)
    return item


class OddError(Exception):
    """Cannot be put together again from its text."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def odd(shared: None, item: int) -> int:
    raise OddError(item, shared or 0)


def threads(shared: None, item: int) -> list[int]:
    """Threads that numerical libraries would use."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    return [each["num_threads"] for each in threadpool_info()]
