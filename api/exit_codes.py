"""What the exit codes of the command line mean, read off the error classes."""

from __future__ import annotations

from collections.abc import Iterator

import iojoule.api.acting.errors
import iojoule.api.client.errors
import iojoule.api.state.errors
import iojoule.measure.errors
import iojoule.sim.errors  # noqa: F401
from iojoule.datasets.errors import IojouleError

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
    yield root
    for kind in root.__subclasses__():
        yield from error_classes(kind)
