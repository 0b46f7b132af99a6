"""Talks to a controller through the real `nvme` command, in its binary forms.

Only what has been stable over versions 1.x to 3.x is used: `--raw-binary` output, long options,
and the text of `get-feature`, of which only the value after the colon counts.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.programs import find_program, program_environment
from iojoule.measure.drive.identify import (
    Controller,
    Namespace,
    Smart,
    parse_controller,
    parse_namespace,
    parse_smart,
)
from iojoule.measure.errors import DriveError, HostStateError

POWER_MANAGEMENT = 0x02
POWER_STATE_MASK = 0x1F
"""Bits of that feature which are the power state; above are hints on the workload, which a drive
may keep (NVM Express Base Specification 2.1, Power Management)."""
VOLATILE_WRITE_CACHE = 0x06
AUTONOMOUS_TRANSITIONS = 0x0C

_TIMEOUT_SECONDS = 20.0
_FORMAT_TIMEOUT_SECONDS = 1800.0
_APST_BYTES = 256
_CURRENT_VALUE = re.compile(rb"value:\s*(0x)?([0-9a-fA-F]+)")
_HEX_LINE = re.compile(r"^[0-9a-f]{4}:((?: [0-9a-f]{2})+)", flags=re.MULTILINE)


@dataclass(frozen=True)
class NvmeController:
    """A controller node such as /dev/nvme0, asked through nvme-cli.

    Attributes:
        node: The node; a stand-in serves where the command on the PATH understands it.
        namespace: Identifier of the namespace that is measured.
    """

    node: Path
    namespace: int = 1

    def identify(self) -> Controller:
        """What the controller is.

        Raises:
            DriveError: It does not answer.
            HostStateError: nvme-cli is missing or may not be used; names the remedy.
        """
        return parse_controller(self._run("id-ctrl", "--raw-binary"))

    def identify_namespace(self) -> Namespace:
        """What its namespace is; raises as `identify`."""
        return parse_namespace(
            self._run("id-ns", f"--namespace-id={self.namespace}", "--raw-binary")
        )

    def smart(self) -> Smart:
        """Its SMART log; raises as `identify`."""
        return parse_smart(self._run("smart-log", "--raw-binary"))

    def feature(self, identifier: int) -> int:
        """The current value of a feature; raises as `identify`."""
        said = self._run("get-feature", f"--feature-id={identifier:#x}")
        found = _CURRENT_VALUE.search(said.lower())
        if found is None:
            raise DriveError(
                f"{self.node}: get-feature {identifier:#x} gave no value: {_line(said)}"
            )
        return int(found[2], 16)

    def set_feature(self, identifier: int, value: int) -> None:
        """Set a feature that needs no data.

        Raises:
            DriveError: The controller refuses; the message holds its status.
        """
        self._run("set-feature", f"--feature-id={identifier:#x}", f"--value={value:#x}")

    def set_feature_command(self, identifier: int, value: int) -> str:
        """The command line that `set_feature` runs, for people."""
        return f"nvme set-feature {self.node} --feature-id={identifier:#x} --value={value:#x}"

    def transitions(self) -> bytes:
        """The table of autonomous transitions, 256 bytes; raises as `identify`."""
        said = self._run(
            "get-feature",
            f"--feature-id={AUTONOMOUS_TRANSITIONS:#x}",
            f"--data-len={_APST_BYTES}",
            "--raw-binary",
        )
        if len(said) == _APST_BYTES:
            return said
        rows = _HEX_LINE.findall(said.decode("ascii", "replace"))
        table = b"".join(bytes.fromhex(row) for row in rows)
        if len(table) != _APST_BYTES:
            raise DriveError(f"{self.node}: the table of autonomous transitions is not readable")
        return table

    def set_transitions(self, enabled: bool, table: bytes) -> None:
        """Switch autonomous transitions; raises as `set_feature`."""
        self._run(
            "set-feature",
            f"--feature-id={AUTONOMOUS_TRANSITIONS:#x}",
            f"--value={int(enabled):#x}",
            f"--data-len={_APST_BYTES}",
            stdin=table,
        )

    def format(self, *, crypto: bool = False) -> None:
        """Erase all data of the namespace; raises as `set_feature`."""
        self._run(*_format_words(self.namespace, crypto), timeout_seconds=_FORMAT_TIMEOUT_SECONDS)

    def format_command(self, *, crypto: bool = False) -> str:
        """The command line that `format` runs, for people."""
        verb, *options = _format_words(self.namespace, crypto)
        return f"nvme {verb} {self.node} {' '.join(options)}"

    def _run(
        self,
        verb: str,
        *options: str,
        stdin: bytes | None = None,
        timeout_seconds: float = _TIMEOUT_SECONDS,
    ) -> bytes:
        program = find_program(
            "nvme",
            "apt-get install nvme-cli, or name no --controller and measure without power states",
            HostStateError,
        )
        command = [program, verb, str(self.node), *options]
        try:
            # a session of its own: Ctrl-C is for iojoule, which has to restore through this command
            done = subprocess.run(
                command,
                input=stdin if stdin is not None else b"",
                capture_output=True,
                timeout=timeout_seconds,
                check=False,
                start_new_session=True,
                env=program_environment(),
            )
        except subprocess.TimeoutExpired:
            raise DriveError(
                f"{self.node}: `nvme {verb}` did not answer within {timeout_seconds:g} s; the "
                "drive hangs or has vanished"
            ) from None
        if done.returncode == 0:
            return done.stdout
        raise self._failure(verb, _line(done.stderr or done.stdout))

    def _failure(self, verb: str, said: str) -> DriveError | HostStateError:
        lower = said.lower()
        if "permission" in lower or "not permitted" in lower:
            return HostStateError(
                f"{self.node}: `nvme {verb}` may not ({said}); admin commands need root or "
                "CAP_SYS_ADMIN and write access to the node"
            )
        if "no such" in lower or not self.node.exists():
            return DriveError(
                f"{self.node}: is gone or never was there ({said}); name the controller with "
                "--controller"
            )
        return DriveError(f"{self.node}: `nvme {verb}` failed: {said}")


def _format_words(namespace: int, crypto: bool) -> list[str]:
    return ["format", f"--namespace-id={namespace}", f"--ses={2 if crypto else 1}", "--force"]


def _line(said: bytes) -> str:
    text = said.decode("utf-8", "replace").strip()
    return " ".join(text.split()) or "it said nothing"
