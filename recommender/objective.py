"""What an answer makes small."""

from __future__ import annotations

from enum import StrEnum


class Objective(StrEnum):
    """What is made small: of power, of energy for a piece of work, or of a year of the work.

    A year of the work costs energy, money and CO2 by the user's own factors
    (`recommender.factors`); wear counts where the drive's price or carbon is among them.
    """

    WATTS = "watts"
    JOULES_PER_USEFUL_GB = "joules_per_useful_gb"
    EDP = "edp"
    KWH_PER_YEAR = "kwh_per_year"
    COST = "cost"
    CO2 = "co2"
