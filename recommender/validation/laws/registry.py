"""The register of laws: what a law is, what one probe of it found, and the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from iojoule.datasets.errors import IojouleError
from iojoule.recommender.validation.laws.subject import Subject

Verdict = Literal["holds", "expected failure", "fails", "does not apply", "not judged"]
"""`expected failure`: every probe that fails is one that the law excuses, with the reason;
`does not apply`: the profile has nothing that the law is about; `not judged`: every probe was
refused, which counts as a failure."""

DRAWS = 12
"""Random probes of a law where nobody asks for another number."""


class NotApplicableError(Exception):
    """The profile has nothing that this probe is about; the message says what."""


@dataclass(frozen=True)
class Finding:
    """One probe of a law.

    Attributes:
        probe: What was asked, in a line.
        expected: What the law says of it.
        seen: What was answered.
        holds: Whether the answer obeys.
        severity: By how much it does not, relative to what the law allows: 0 where it holds or
            where nothing could be asked, infinite where there is no amount.
        excused: Why this failure is expected; None where it is not.
        draw: Number of the random draw.
    """

    probe: str
    expected: str
    seen: str
    holds: bool
    severity: float = float("inf")
    excused: str | None = None
    draw: int = 0


Check = Callable[[Subject, np.random.Generator], Iterator[Finding]]


@dataclass(frozen=True)
class Law:
    """One law.

    Attributes:
        number: Its place in the list.
        title: Its first sentence.
        text: What it demands.
        checked: What `check` asks to find out.
        check: One random probe of it (several findings where they come together).
        expected_failure: Where a failure is excused: which, and what would mend it.
    """

    number: int
    title: str
    text: str
    checked: str
    check: Check
    expected_failure: str | None = None


_LAWS: dict[int, Law] = {}


def law(
    number: int, title: str, text: str, checked: str, *, expected_failure: str | None = None
) -> Callable[[Check], Check]:
    """Register a check as that of a law."""

    def register(check: Check) -> Check:
        if number in _LAWS:
            raise ValueError(f"law {number} is registered twice")
        _LAWS[number] = Law(number, title, text, checked, check, expected_failure)
        return check

    return register


def registered() -> tuple[Law, ...]:
    """Every registered law, by number."""
    return tuple(_LAWS[number] for number in sorted(_LAWS))


def obeys(
    probe: str, expected: str, seen: str, excess: float, *, excused: str | None = None
) -> Finding:
    """A finding that holds where `excess`, relative to what is allowed, is not above 0.

    NaN does not hold.
    """
    holds = bool(excess <= 0.0)
    severity = 0.0 if holds else (float("inf") if np.isnan(excess) else float(excess))
    return Finding(probe, expected, seen, holds, severity, None if holds else excused)


@dataclass(frozen=True)
class Judgement:
    """What became of one law on one profile.

    Attributes:
        law: The law.
        device: Id of the profile's drive.
        probes: Findings, those that hold among them.
        failures: Findings that do not hold, the most severe first.
        refused: Draws that the profile refused to answer, by message.
        not_applicable: Draws that do not apply to the profile, by reason.
    """

    law: Law
    device: str
    probes: int
    failures: tuple[Finding, ...]
    refused: Mapping[str, int] = field(default_factory=dict)
    not_applicable: Mapping[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the law."""
        if any(one.excused is None for one in self.failures):
            return "fails"
        if self.failures:
            return "expected failure"
        if self.probes:
            return "holds"
        return "not judged" if self.refused else "does not apply"

    @property
    def obeyed(self) -> bool:
        """Whether nothing speaks against the law but what it excuses."""
        return self.verdict in ("holds", "expected failure", "does not apply")

    @property
    def worst(self) -> Finding | None:
        """The most severe failure; one that is not excused comes first."""
        return self.failures[0] if self.failures else None

    @property
    def _reason(self) -> str | None:
        """Why nothing was probed, or why the worst failure is excused."""
        if self.probes:
            return None if self.worst is None else self.worst.excused
        return next(iter([*self.refused, *self.not_applicable]), "nothing to compare was found")

    def record(self) -> dict[str, Any]:
        """Plain values, for a table or JSON; infinite severity is None."""
        worst = self.worst
        return {
            "device": self.device,
            "law": self.law.number,
            "title": self.law.title,
            "verdict": self.verdict,
            "probes": self.probes,
            "failed": len(self.failures),
            "excused": sum(one.excused is not None for one in self.failures),
            "refused": sum(self.refused.values()),
            "not_applicable": sum(self.not_applicable.values()),
            "reason": self._reason,
            "worst": None
            if worst is None
            else {
                "draw": worst.draw,
                "probe": worst.probe,
                "expected": worst.expected,
                "seen": worst.seen,
                "severity": worst.severity if np.isfinite(worst.severity) else None,
            },
        }


def judge(subject: Subject, one: Law, draws: int = DRAWS, seed: int = 0) -> Judgement:
    """Probe one law so many times; the same seed draws the same probes."""
    findings: list[Finding] = []
    refused: dict[str, int] = {}
    skipped: dict[str, int] = {}
    for draw in range(draws):
        source = np.random.default_rng([seed, one.number, draw])
        try:
            for found in one.check(subject, source):
                numbered = replace(found, draw=draw)
                findings.append(numbered)
        except NotApplicableError as error:
            skipped[str(error)] = skipped.get(str(error), 0) + 1
        except IojouleError as error:
            refused[error.message] = refused.get(error.message, 0) + 1
        except _FAULTS as error:
            said = f"{type(error).__name__}: {error}"
            findings.append(replace(_fault(said.splitlines()[0]), draw=draw))
    failures = sorted(
        (found for found in findings if not found.holds),
        key=lambda found: (found.excused is not None, -found.severity),
    )
    return Judgement(one, subject.device, len(findings), tuple(failures), refused, skipped)


def judge_all(
    subject: Subject, draws: int = DRAWS, seed: int = 0, laws: Sequence[Law] | None = None
) -> Iterator[Judgement]:
    """Every law in turn, or those given."""
    for one in registered() if laws is None else laws:
        yield judge(subject, one, draws, seed)


class MisfitError(Exception):
    """A question that the laws presuppose cannot even be stated; the message says which."""


_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MisfitError,
    TypeError,
    ValidationError,
    ValueError,
)
"""What an answer that is not as the interface says raises here: a failure, not a crash."""


def _fault(said: str) -> Finding:
    expected = "an answer as the interface describes it"
    return Finding("asking at all", expected, said, holds=False, severity=0.0)
