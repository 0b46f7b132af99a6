"""The papers' findings judged by a model: predictions with intervals, row by row."""

from iojoule.recommender.findings.disputed import DISPUTED
from iojoule.recommender.findings.expected import expected_of
from iojoule.recommender.findings.judge import Spread, Verdict, judge, judge_order
from iojoule.recommender.findings.profiles import Profiles
from iojoule.recommender.findings.summary import Share, shares
from iojoule.recommender.findings.table import Row, findings_table

__all__ = [
    "DISPUTED",
    "Profiles",
    "Row",
    "Share",
    "Spread",
    "Verdict",
    "expected_of",
    "findings_table",
    "judge",
    "judge_order",
    "shares",
]
