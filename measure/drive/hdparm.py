"""SATA drives through the `hdparm` command: spin state and standby timer.

The state comes from CHECK POWER MODE, which never wakes a drive (ATA Command Set, ACS-4, 7.2).
The standby timer can be set but not read: ATA has no command that returns it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from iojoule.datasets.errors import InputError
from iojoule.datasets.programs import find_program, run_program
from iojoule.measure.errors import DriveError, HostStateError

_TIMEOUT_SECONDS = 60.0
"""A command to a disk that stands still waits for its platters."""

_STATE = re.compile(r"drive state is:\s*(.+)")
_LEVEL = re.compile(r"APM_level\s*=\s*(.+)")

FIVE_SECONDS_MOST, HALF_HOURS_MOST = 240, 11
"""Largest counts of 5 s and of 30 min that the timer takes (hdparm(8), -S)."""


class SpinState(StrEnum):
    """What a drive says of itself, in hdparm's words."""

    ACTIVE = "active/idle"
    STANDBY = "standby"
    SLEEPING = "sleeping"
    UNKNOWN = "unknown"


def timer_code(seconds: float) -> int:
    """The code of a standby timer (hdparm(8), -S), 0 = off.

    Raises InputError for an impossible time.
    """
    if seconds == 0:
        return 0
    if seconds % 5 == 0 and 5 <= seconds <= 5 * FIVE_SECONDS_MOST:
        return round(seconds / 5)
    if seconds % 1800 == 0 and 1800 <= seconds <= 1800 * HALF_HOURS_MOST:
        return 240 + round(seconds / 1800)
    raise InputError(
        f"standby_timer_seconds: {seconds:g} is no time of a standby timer; it takes 0 (off), "
        "multiples of 5 s up to 1200 s, and multiples of 1800 s up to 19800 s",
        field="standby_timer_seconds",
    )


@dataclass(frozen=True)
class SataDrive:
    """A drive node such as /dev/sda, asked through hdparm."""

    node: Path

    def state(self) -> SpinState:
        """Whether it spins; does not wake it.

        Raises:
            DriveError: It does not answer, or is no ATA drive.
            HostStateError: hdparm is missing or not permitted; names the remedy.
        """
        match = _STATE.search(self._run("-C"))
        if match is None:
            raise DriveError(f"{self.node}: `hdparm -C` names no state; is it an ATA drive?")
        word = match[1].strip()
        # drives with several idle conditions say which, such as active/idle_b (ACS-3, EPC)
        known = next((state for state in SpinState if word.startswith(state.value)), None)
        return known or SpinState.UNKNOWN

    def set_timer(self, seconds: float) -> None:
        """Set the standby timer; raises as `state`, and where the drive refuses."""
        output = self._run("-S", str(timer_code(seconds)))
        if "failed" in output.lower():
            raise DriveError(
                f"{self.node}: refuses a standby timer of {seconds:g} s: {_line(output)}"
            )

    def stop(self) -> None:
        """Stop the platters now; raises as `state`."""
        self._run("-y")

    def power_level(self) -> int | None:
        """Level of Advanced Power Management, 255 = off; None where it has none.

        Raises as `state`.
        """
        match = _LEVEL.search(self._run("-B"))
        word = match[1].strip() if match else "not supported"
        if word.startswith("off"):
            return 255
        return int(word) if word.isdigit() else None

    def set_power_level(self, level: int) -> None:
        """Set that level and read it back; raises as `power_level`."""
        self._run("-B", str(level))
        now = self.power_level()
        if now != level:
            raise DriveError(
                f"{self.node}: was set to the power management level {level} but is at {now}"
            )

    def command(self, *options: str) -> str:
        """A command line, for people."""
        return f"hdparm {' '.join(options)} {self.node}"

    def _run(self, *options: str) -> str:
        program = find_program(
            "hdparm",
            "apt-get install hdparm, or leave standby timers and power management levels out",
            HostStateError,
        )
        hangs = DriveError(
            f"{self.node}: `hdparm {options[0]}` did not answer within {_TIMEOUT_SECONDS:g} s"
        )
        command = [program, *options, str(self.node)]
        done = run_program(command, seconds=_TIMEOUT_SECONDS, hangs=hangs)
        output = b"\n".join((done.stdout, done.stderr)).decode(errors="replace")
        if done.returncode == 0:
            return output
        if "permission" in output.lower() or "not permitted" in output.lower():
            raise HostStateError(
                f"{self.node}: `hdparm {options[0]}` may not ({_line(output)}); it needs root or "
                "CAP_SYS_RAWIO and write access to the node"
            )
        raise DriveError(f"{self.node}: `hdparm {options[0]}` failed: {_line(output)}")


def _line(output: str) -> str:
    return " ".join(output.split()) or "it said nothing"
