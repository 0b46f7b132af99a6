"""What is to be said about an input: a name, how bad it is, where it stands, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from iojoule.datasets.errors import InputError


class Severity(StrEnum):
    """error: the run is refused; warning: doubt the result; note: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing to be said about an input.

    Attributes:
        name: Short fixed name, the same for every engine.
        severity: How bad it is.
        field: The field of the model, such as `io_queue_depth` or `flows[1].read_percent`; empty
            where the file as a whole is meant.
        message: What is wrong and what to do.
        place: File and tag (or key) as the user wrote them, where there is a file.
    """

    name: str
    severity: Severity
    field: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        where = self.place or self.field or "input"
        return (
            f"{where}: {self.message} [{self.name}]" if where else f"{self.message} [{self.name}]"
        )

    def at(self, place: str) -> Finding:
        """The same, found at a place in a file."""
        return replace(self, place=place)


class RefusedError(InputError):
    """An input that is refused for a reason with a short fixed `name`, as a finding has it."""

    def __init__(self, message: str, *, field: str | None = None, name: str = "") -> None:
        super().__init__(message, field=field)
        self.name = name

    @classmethod
    def of(cls, finding: Finding) -> RefusedError:
        """The error that a finding of severity ERROR is."""
        return cls(str(finding), field=finding.field or None, name=finding.name)


Tell = Callable[[Finding], None]
"""Takes what does not stop a reader: warnings and notes."""


def refuse_errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the warnings and notes.

    Raises:
        RefusedError: One of the findings is an error; the first one.
    """
    findings = tuple(findings)
    for finding in findings:
        if finding.severity is Severity.ERROR:
            raise RefusedError.of(finding)
    return findings
