"""NVMe controllers through the `nvme` command, and the binary data structures that they return.

Layouts: NVM Express Base Specification 2.1, figures 312 (Identify Controller), 313 (power state
descriptor) and 207 (SMART / Health Information); NVM Command Set Specification 1.1, figure 114
(Identify Namespace): unchanged since version 1.2, unlike the JSON of nvme-cli. Of nvme-cli only
what is stable from 1.x to 3.x is used: `--raw-binary`, long options, the value after the colon of
`get-feature`.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from iojoule.datasets.measured_drive import DeclaredState
from iojoule.datasets.programs import find_program, run_program
from iojoule.measure.errors import DriveError, HostStateError

IDENTIFY_BYTES = 4096
SMART_BYTES = 512

WATTS_BY_SCALE = {1: 0.0001, 2: 0.01}
"""Unit by a two-bit power scale; 0: the value is not reported, 3: reserved."""
_KELVIN_AT_ZERO_CELSIUS = 273
_SMART_UNIT_BYTES = 512_000  # "in thousands of 512-byte units"


@dataclass(frozen=True)
class Controller:
    """Identify Controller.

    Attributes:
        mdts_exponent: Largest transfer as a power of two of the least memory page; 0 = no limit.
        format_erases_all: Whether `format` erases every namespace, whichever is named (FNA, bits
            0 and 1; NVM Express Base Specification 2.1, Identify Controller).
        limits_power: Whether it takes a Power Limit (CTRATT bit 20 of version 2.3).
        measures_power: Whether it has Power Measurement (bit 21, likewise).
    """

    serial: str
    model: str
    firmware: str
    mdts_exponent: int
    volatile_write_cache: bool
    has_apst: bool
    format_erases_all: bool
    limits_power: bool
    measures_power: bool
    power_states: tuple[DeclaredState, ...]

    @property
    def max_transfer_bytes(self) -> int | None:
        """Largest transfer with the least memory page of 4 KiB; None = no limit."""
        return (4096 << self.mdts_exponent) if self.mdts_exponent else None

    @property
    def operational_states(self) -> tuple[DeclaredState, ...]:
        """The states in which it serves I/O."""
        return tuple(state for state in self.power_states if state.operational)


@dataclass(frozen=True)
class Namespace:
    """Identify Namespace.

    Attributes:
        used_blocks: Blocks in use, where the drive keeps count.
        counts_used: Whether it certainly does: it provisions thinly.
    """

    size_blocks: int
    used_blocks: int
    counts_used: bool

    @property
    def fill_fraction(self) -> float | None:
        """Share in use; None where the drive keeps no count.

        Without thin provisioning a drive may always report full use (NVM Command Set Specification
        1.1, figure 114, NUSE).
        """
        if not self.size_blocks or (self.used_blocks >= self.size_blocks and not self.counts_used):
            return None
        return self.used_blocks / self.size_blocks


@dataclass(frozen=True)
class Smart:
    """The SMART / Health Information log.

    Attributes:
        temperature_celsius: Composite temperature; None = not reported.
        percentage_used: Of the rated endurance; may exceed 100.
        throttle_seconds: Time in both thermal management temperatures.
    """

    temperature_celsius: float | None
    percentage_used: int
    host_bytes_written: int
    throttle_seconds: int


def parse_controller(data: bytes) -> Controller:
    """Read Identify Controller. Raises DriveError if it is empty or has not 4,096 bytes."""
    require_bytes(data, IDENTIFY_BYTES, "Identify Controller")
    states = data[263] + 1
    attributes = _int(data, 96, 4)
    return Controller(
        serial=_text(data[4:24]),
        model=_text(data[24:64]),
        firmware=_text(data[64:72]),
        mdts_exponent=data[77],
        volatile_write_cache=bool(data[525] & 1),
        has_apst=bool(data[265] & 1),
        format_erases_all=bool(data[524] & 3),
        limits_power=bool(attributes >> 20 & 1),
        measures_power=bool(attributes >> 21 & 1),
        power_states=tuple(
            _power_state(index, data[2048 + 32 * index : 2080 + 32 * index])
            for index in range(min(states, 32))
        ),
    )


def parse_namespace(data: bytes) -> Namespace:
    """Read Identify Namespace; raises as `parse_controller`."""
    require_bytes(data, IDENTIFY_BYTES, "Identify Namespace")
    size, _, used = struct.unpack_from("<QQQ", data, 0)
    return Namespace(size, used, bool(data[24] & 1))


def parse_smart(data: bytes) -> Smart:
    """Read the SMART log; raises as `parse_controller`, but for 512 bytes."""
    require_bytes(data, SMART_BYTES, "SMART log")
    kelvin = _int(data, 1, 2)
    return Smart(
        temperature_celsius=float(kelvin - _KELVIN_AT_ZERO_CELSIUS) if kelvin else None,
        percentage_used=data[5],
        host_bytes_written=_int(data, 48, 16) * _SMART_UNIT_BYTES,
        throttle_seconds=_int(data, 224, 4) + _int(data, 228, 4),
    )


def _power_state(index: int, data: bytes) -> DeclaredState:
    flags = data[3]
    scale = WATTS_BY_SCALE[1 if flags & 1 else 2]
    entry, exit_ = struct.unpack_from("<II", data, 4)
    return DeclaredState(
        index=index,
        max_power_watts=_int(data, 0, 2) * scale,
        operational=not flags & 2,
        entry_latency_us=entry,
        exit_latency_us=exit_,
        idle_power_watts=_scaled(data, 16, 18),
        active_power_watts=_scaled(data, 20, 22),
    )


_OCP_SMART = 0xC0
"""Log page SMART / Health of the OCP Datacenter NVMe SSD Specification: vendor space on other
drives, so that only a page with the GUID of that specification is read."""

_OCP_SMART_BYTES = 512
_OCP_GUID = 0xAFD514C97C6F4F9CA4F2BFEA2810AFC5
_OCP_CHANGES_FROM_VERSION = 2
"""Log page version from which bytes 200 to 207 hold the power state change count."""


def parse_power_state_changes(data: bytes) -> int | None:
    """The count of log page C0h; None where the page does not hold it."""
    if len(data) != _OCP_SMART_BYTES or _int(data, 496, 16) != _OCP_GUID:
        return None
    count = _int(data, 200, 8)
    # all bits set: not implemented
    known = _int(data, 494, 2) >= _OCP_CHANGES_FROM_VERSION and count != 2**64 - 1
    return count if known else None


def _scaled(data: bytes, value_at: int, scale_at: int) -> float | None:
    scale = WATTS_BY_SCALE.get(data[scale_at] >> 6)
    return _int(data, value_at, 2) * scale if scale else None


def _int(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little")


def _text(data: bytes) -> str:
    """ASCII, padded with blanks; some drives pad with zeros or leave other bytes."""
    return "".join(chr(byte) for byte in data if 32 <= byte < 127).strip()


def require_bytes(data: bytes, size: int, what: str) -> None:
    """Raises DriveError if a structure has another size or holds only zeros."""
    if len(data) != size:
        raise DriveError(f"{what} has {len(data)} bytes instead of {size}; is this an NVMe drive?")
    if not any(data):
        raise DriveError(f"{what} holds only zeros; the controller does not answer")


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
    """A controller node such as /dev/nvme0, or a stand-in that the nvme command understands."""

    node: Path
    namespace: int = 1

    def identify(self) -> Controller:
        """Identify Controller.

        Raises:
            DriveError: It does not answer.
            HostStateError: nvme-cli is missing or not permitted; names the remedy.
        """
        return parse_controller(self._run("id-ctrl", "--raw-binary"))

    def identify_namespace(self) -> Namespace:
        """What its namespace is; raises as `identify`."""
        return parse_namespace(
            self._run("id-ns", f"--namespace-id={self.namespace}", "--raw-binary")
        )

    def smart(self) -> Smart:
        """Its SMART log; raises as `identify`."""
        return parse_smart(self.smart_bytes())

    def smart_bytes(self) -> bytes:
        """The SMART log as it is; raises as `identify`."""
        return self._run("smart-log", "--raw-binary")

    def log(self, identifier: int, size: int) -> bytes:
        """The first bytes of a log page; raises as `identify`, also where it is not supported."""
        return self._run(
            "get-log", f"--log-id={identifier:#x}", f"--log-len={size}", "--raw-binary"
        )

    def power_state_changes(self) -> int | None:
        """Power state changes since manufacture; None where the drive has no count of them."""
        try:
            return parse_power_state_changes(self.log(_OCP_SMART, _OCP_SMART_BYTES))
        except DriveError:
            return None  # the log is optional

    def feature(self, identifier: int) -> int:
        """The current value of a feature; raises as `identify`."""
        output = self._run("get-feature", f"--feature-id={identifier:#x}")
        match = _CURRENT_VALUE.search(output.lower())
        if match is None:
            raise DriveError(
                f"{self.node}: get-feature {identifier:#x} gave no value: {_line(output)}"
            )
        return int(match[2], 16)

    def set_feature(self, identifier: int, value: int) -> None:
        """Set a feature without data.

        Raises DriveError with the status if the controller refuses.
        """
        self._run("set-feature", f"--feature-id={identifier:#x}", f"--value={value:#x}")

    def set_feature_command(self, identifier: int, value: int) -> str:
        """The command line that `set_feature` runs, for people."""
        return f"nvme set-feature {self.node} --feature-id={identifier:#x} --value={value:#x}"

    def transitions(self) -> bytes:
        """The table of autonomous transitions, 256 bytes; raises as `identify`."""
        output = self._run(
            "get-feature",
            f"--feature-id={AUTONOMOUS_TRANSITIONS:#x}",
            f"--data-len={_APST_BYTES}",
            "--raw-binary",
        )
        if len(output) == _APST_BYTES:
            return output
        rows = _HEX_LINE.findall(output.decode("ascii", "replace"))
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

    def format(self) -> None:
        """Erase all data of the namespace; raises as `set_feature`."""
        self._run(*_format_words(self.namespace), timeout_seconds=_FORMAT_TIMEOUT_SECONDS)

    def format_command(self) -> str:
        """The command line that `format` runs, for people."""
        verb, *options = _format_words(self.namespace)
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
        hangs = DriveError(
            f"{self.node}: `nvme {verb}` did not answer within {timeout_seconds:g} s; the drive "
            "hangs or has vanished"
        )
        done = run_program(command, seconds=timeout_seconds, hangs=hangs, stdin=stdin or b"")
        if done.returncode == 0:
            return done.stdout
        raise self._failure(verb, _line(done.stderr or done.stdout))

    def _failure(self, verb: str, output: str) -> DriveError | HostStateError:
        lower = output.lower()
        if "permission" in lower or "not permitted" in lower:
            return HostStateError(
                f"{self.node}: `nvme {verb}` may not ({output}); admin commands need root or "
                "CAP_SYS_ADMIN and write access to the node"
            )
        if "no such" in lower or not self.node.exists():
            return DriveError(
                f"{self.node}: is gone or never was there ({output}); name the controller with "
                "--controller"
            )
        return DriveError(f"{self.node}: `nvme {verb}` failed: {output}")


def _format_words(namespace: int) -> list[str]:
    return ["format", f"--namespace-id={namespace}", "--ses=1", "--force"]


def _line(output: bytes) -> str:
    text = output.decode("utf-8", "replace").strip()
    return " ".join(text.split()) or "it said nothing"
