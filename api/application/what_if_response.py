"""The answer to a what-if as the command line and the service hand it out; light to import."""

from __future__ import annotations

from iojoule import __version__
from iojoule.recommender.what_if.outcome import Outcome


class WhatIfAnswer(Outcome):
    """An outcome, what it is in words, and the version of iojoule that computed it."""

    summary: str = ""
    iojoule_version: str = __version__
