"""What choosing the best of many does to how sure one may be of it: the winner's curse.

The row with the least predicted power is, among rows about as good, the one whose error flatters it
most. An interval that covers 90 % of rows covers fewer of the chosen ones. An interval that would
hold for all m rows that could have been chosen at once also holds for the one that was, however it
was chosen (Berk et al., Valid post-selection inference, Annals of Statistics 41, 2013; Benjamini,
Hechtlinger and Stark, Confidence intervals for selected parameters, 2019). Only what a row errs by
itself counts: an error that all rows share moves all of them and selects none.
"""

from __future__ import annotations

from statistics import NormalDist

from iojoule.model.evaluate.quantities import NORMAL_90

MISS = 0.05
"""Share of misses on each side of a 90 % interval."""

RIVALS = 20
"""Rows that could as well have been chosen. The number is fixed: if it followed the candidates, a
wider choice could recommend less."""

WIDENING = NormalDist().inv_cdf(1.0 - MISS / RIVALS) / NORMAL_90
"""Factor on what a row errs by itself, so that its interval holds for the best of `RIVALS` rows."""
