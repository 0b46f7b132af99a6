"""What can be wrong with a simulation: its configuration, a trace, a limit, the simulated drive.

The native core (`iojoule.sim._core`) raises these classes itself.
"""

from __future__ import annotations

from iojoule.datasets.errors import InputError, IojouleError


class ConfigError(InputError):
    """A drive or flow that cannot be simulated; `field` names the parameter."""

    exit_code = 9
    title = "This configuration cannot be simulated"


class TraceError(InputError):
    """A trace file that cannot be replayed.

    Args:
        message: What is wrong and the remedy.
        path: The file.
        line: Counted from 1; 0 when the whole file is meant.
    """

    exit_code = 10
    title = "Invalid trace"

    def __init__(
        self, message: str, *, path: str = "", line: int = 0, field: str | None = None
    ) -> None:
        place = f"{path}, line {line}: " if line else f"{path}: " if path else ""
        super().__init__(place + message, field=field)
        self.path = path
        self.line = line


class LimitError(IojouleError):
    """A run went past what it may use; `limit` names the field of `Limits`."""

    exit_code = 11
    http_status = 422
    title = "A limit of the run is exceeded"

    def __init__(self, message: str, *, limit: str = "", field: str | None = None) -> None:
        super().__init__(message, field=field)
        self.limit = limit


class ModelError(IojouleError):
    """The simulated drive came into a state from which it cannot go on."""

    exit_code = 12
    http_status = 422
    title = "The simulated drive cannot go on"


class CancelledError(IojouleError):
    """Whoever asked for the run called it off."""

    exit_code = 13
    http_status = 503
    title = "The run was cancelled"


class EngineMissingError(InputError):
    """The program that should simulate is not there."""

    exit_code = 14
    title = "The simulator is not found"


class EngineError(IojouleError):
    """A simulator outside iojoule failed, or what it says cannot be true.

    Args:
        message: What happened and the remedy.
        name: Short fixed name of the failure, such as `gc_policy_unsafe`.
    """

    exit_code = 15
    http_status = 422
    title = "The external simulator failed"

    def __init__(self, message: str, *, name: str = "", field: str | None = None) -> None:
        super().__init__(f"{message} [{name}]" if name else message, field=field)
        self.name = name


class WorkersLostError(IojouleError):
    """The processes or machines that computed are gone, and what they had is not done."""

    exit_code = 35
    http_status = 503
    title = "The workers are lost"


class WorkerDiffersError(InputError):
    """A worker runs another build of iojoule, whose results may differ in the last digit."""

    exit_code = 36
    http_status = 409
    title = "A worker runs another build"
