"""The model card: what a profile rests on, how far it errs, and where it ends.

`build_card` turns a profile into sections, tables and pictures; `write_card` writes them as
Markdown beside SVG files, or as one HTML page that needs nothing else.
"""

from iojoule.api.model_card.card import build_card
from iojoule.api.model_card.files import check_target, write_card
from iojoule.api.model_card.findings import FindingsSummary, read_findings

__all__ = ["FindingsSummary", "build_card", "check_target", "read_findings", "write_card"]
