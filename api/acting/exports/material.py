"""What every format is made of, and the comment lines that are common to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iojoule import __version__
from iojoule.api.acting.applications import Application, options_of
from iojoule.api.acting.proposal import Left, Proposal, Step, names
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from iojoule.api.acting.answer_file import Answer
    from iojoule.api.application.backend import Backend


@dataclass(frozen=True)
class Material:
    """A recommendation for one drive of one host.

    Attributes:
        answer: The recommendation.
        proposal: What it asks of the host.
        application: What only the application can set, with the reason.
        backend: Predicts by the drive's profile; called only by formats that need predictions.
    """

    answer: Answer
    proposal: Proposal
    application: tuple[Left, ...]
    backend: Callable[[], AbstractContextManager[Backend]]

    @property
    def settings(self) -> tuple[Step, ...]:
        """Every setting, also what is in force on this host."""
        return self.proposal.settings

    @property
    def left(self) -> tuple[Left, ...]:
        """What no setting of the host holds."""
        return (*self.proposal.left, *self.application)


def material_of(
    answer: Answer,
    proposal: Proposal,
    application: Application,
    backend: Callable[[], AbstractContextManager[Backend]],
) -> Material:
    """The recommendation with the options of its application."""
    options = options_of(
        application, answer.recommended.configuration, answer.current.configuration
    )
    left = tuple(
        Left(f"{application.value} option {one.name}", one.value, one.why) for one in options
    )
    return Material(answer, proposal, left, backend)


def plain(value: str) -> str:
    """A value for a line of its own.

    Raises:
        InputError: It holds control characters, which would begin another line of the file.
    """
    if not value.isprintable():
        raise InputError(f"value {value!r} holds control characters and cannot be exported")
    return value


def comment(text: str) -> str:
    """One comment line, whatever the text holds."""
    words = "".join(one if one.isprintable() else " " for one in text)
    return f"# {' '.join(words.split())}"


def heading(material: Material, where: str) -> list[str]:
    """The first comment lines: origin, drive, and where the file belongs."""
    drive = material.proposal.drive
    return [
        comment(
            f"Written by iojoule {__version__} for workload {material.answer.workload} on "
            f"{drive.model or material.answer.model_name}, serial {drive.serial or 'unknown'}."
        ),
        comment(where),
    ]


def not_expressed(left: Iterable[Left]) -> Iterator[str]:
    """One comment line for each thing that the format does not hold."""
    for one in left:
        yield comment(f"Not expressed: {one.what} = {one.value}: {one.why}")


def as_left(steps: Sequence[Step], why: str) -> Iterator[Left]:
    """Settings that a format does not hold, files of one name together, with the first command."""
    for name, group in names(steps):
        first = group[0]
        more = "" if len(group) == 1 else f" and {len(group) - 1} more files"
        values = ", ".join(dict.fromkeys(one.then for one in group))
        yield Left(name, values, f"{why}; by hand: {first.command}{more}")


def text_of(*parts: Iterable[str]) -> str:
    """Lines of all parts as one text."""
    return "".join(f"{line}\n" for part in parts for line in part)
