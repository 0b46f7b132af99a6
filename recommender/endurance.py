"""What a configuration writes in a year, and how long the rated endurance lasts."""

from __future__ import annotations

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import YEAR_SECONDS
from iojoule.recommender.answer import Endurance, Row
from iojoule.recommender.factors import rated_bytes
from iojoule.recommender.workload import WorkloadProfile


def endurance_of(
    profile: DeviceProfile, workload: WorkloadProfile, recommended: Row, current: Row | None
) -> Endurance | None:
    """Host and flash bytes a year; None for a workload that does not write.

    A rating in bytes written counts host bytes (JESD218), so years left need no write
    amplification.
    """
    if workload.read_fraction == 1.0:
        return None
    yearly = recommended.host_bytes_written_per_second * YEAR_SECONDS
    change = None
    if current is not None:
        change = yearly - current.host_bytes_written_per_second * YEAR_SECONDS
    money = _spread(profile, workload.factors.drive_price, "drive_price")
    carbon = _spread(profile, workload.factors.drive_carbon_kilograms, "drive_carbon_kilograms")
    amplification = workload.write_amplification
    rated = profile.endurance_bytes_written
    years = None
    if rated is not None and yearly > 0:
        left = max(0.0, 1.0 - (workload.percentage_used or 0.0) / 100.0)
        years = rated.value * left / yearly
    parts = []
    if amplification is None:
        parts.append("write amplification is not known, so only host bytes are stated")
    if rated is None:
        parts.append("the profile has no endurance rating")
    elif workload.percentage_used is None:
        parts.append("an unused drive is assumed; state percentage_used")
    return Endurance(
        host_bytes_per_year=yearly,
        change_host_bytes_per_year=change,
        nand_bytes_per_year=None if amplification is None else yearly * amplification,
        years_left=years,
        cost_per_year=None if money is None else yearly * money,
        change_cost_per_year=None if money is None or change is None else change * money,
        co2_kilograms_per_year=None if carbon is None else yearly * carbon,
        change_co2_kilograms_per_year=None if carbon is None or change is None else change * carbon,
        reason="; ".join(parts) or "from the rating, the share used and the host bytes a year",
    )


def _spread(profile: DeviceProfile, amount: float | None, name: str) -> float | None:
    """What a written host byte takes of the drive's price or carbon; None where none is stated."""
    return None if amount is None else amount / rated_bytes(profile, f"factors.{name}")
