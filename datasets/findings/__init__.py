"""The papers' findings as a frozen list: what each states, and how it is judged."""

from iojoule.datasets.findings.finding import (
    Asked,
    Direction,
    Finding,
    Form,
    Judged,
    OutOfScope,
    Paper,
)
from iojoule.datasets.findings.reading import (
    FROZEN_SHA256,
    frozen_papers,
    frozen_sha256,
    parse_paper,
)

__all__ = [
    "FROZEN_SHA256",
    "Asked",
    "Direction",
    "Finding",
    "Form",
    "Judged",
    "OutOfScope",
    "Paper",
    "frozen_papers",
    "frozen_sha256",
    "parse_paper",
]
