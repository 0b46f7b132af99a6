"""The laws that every answer must obey, as checks of random probes (docs/validation.md).

Each law follows from physics, from arithmetic or from plain sense, whatever the model. A law is one
function, registered with `registry.law`; the command line, the tests and the documentation read
the register.
"""

from iojoule.recommender.validation.laws import drives, equal_work, form, load, state, words
from iojoule.recommender.validation.laws.registry import (
    DRAWS,
    Finding,
    Judgement,
    Law,
    NotApplicableError,
    judge,
    judge_all,
    registered,
)
from iojoule.recommender.validation.laws.subject import Figure, Served, Subject

LAWS = registered()
"""Every law, by number."""

__all__ = [
    "DRAWS",
    "LAWS",
    "Figure",
    "Finding",
    "Judgement",
    "Law",
    "NotApplicableError",
    "Served",
    "Subject",
    "drives",
    "equal_work",
    "form",
    "judge",
    "judge_all",
    "load",
    "state",
    "words",
]
