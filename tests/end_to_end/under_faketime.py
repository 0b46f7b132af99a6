"""Runs iojoule under libfaketime, whose clock_nanosleep (0.9.10) takes the absolute times of a
monotonic clock that it does not fake for faked ones; Python's sleep then fails or never ends.

    LD_PRELOAD=.../libfaketimeMT.so.1 python under_faketime.py measure run ...
"""

import select
import time


def sleep(seconds: float) -> None:
    """As time.sleep, by another system call."""
    select.select([], [], [], max(seconds, 0.0))


time.sleep = sleep  # type: ignore[assignment]

if __name__ == "__main__":
    from iojoule.api.cli.app import main

    main()
