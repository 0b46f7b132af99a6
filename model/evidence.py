"""Evidence as numbers, so that the weaker of two is the greater."""

from __future__ import annotations

from iojoule.datasets.vocabulary import Evidence

EVIDENCE = tuple(evidence.value for evidence in Evidence)
"""Evidence by code; a higher code is weaker."""

(
    MEASURED,
    INTERPOLATED,
    SIMULATED,
    PUBLISHED,
    EXTRAPOLATED,
    DATASHEET,
    ASSUMED,
) = range(len(EVIDENCE))
