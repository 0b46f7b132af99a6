"""What the exit codes of the command line mean, read off the error classes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from iojoule.datasets.errors import IojouleError

_DEFINED_IN = (
    "iojoule.api.acting.errors",
    "iojoule.api.client.errors",
    "iojoule.api.state.errors",
    "iojoule.measure.errors",
    "iojoule.sim.errors",
)
"""Modules of error classes besides `datasets.errors`; imported when the classes are listed."""

DONE = 0
DIFFERENT = 1
USAGE = 2
UNEXPECTED = 70
INTERRUPTED = 130
OUTPUT_CLOSED = 141

_OWN = {
    DONE: "Done",
    DIFFERENT: "Results differ from their reference (`sim verify`, `sim compare`, "
    "`validate findings`, `validate laws`, `validate recommendations`)",
    USAGE: "The command line is not understood",
    UNEXPECTED: "A fault of iojoule itself; please report it",
    INTERRUPTED: "Interrupted",
    OUTPUT_CLOSED: "Whoever read the output went away",
}


def exit_codes() -> dict[int, str]:
    """Every exit code and what it says, in ascending order."""
    own = {kind.exit_code: kind.title for kind in error_classes()}
    return dict(sorted((own | _OWN).items()))


def error_classes(root: type[IojouleError] = IojouleError) -> Iterator[type[IojouleError]]:
    """Every error class of iojoule, bases first."""
    for module in _DEFINED_IN:
        import_module(module)
    yield root
    for kind in root.__subclasses__():
        yield from error_classes(kind)
