"""Open and closed loop: whether the rate of a workload is a demand."""

from __future__ import annotations

from enum import StrEnum

from iojoule.datasets.errors import InputError
from iojoule.recommender.workload import WorkloadProfile

DEMANDS = ("demand_bytes_per_second", "demand_operations_per_second")


class Loop(StrEnum):
    """What the rate of a workload means."""

    OPEN = "open"
    """A demand: so much is to be done a second, whatever the drive."""
    CLOSED = "closed"
    """As fast as the drive answers: a faster one would be given more to do."""


def with_loop(profile: WorkloadProfile, loop: Loop | None) -> WorkloadProfile:
    """The workload with its demand taken away in a closed loop.

    Raises:
        InputError: An open loop is asked of a workload that states no demand.
    """
    if loop is None:
        return profile
    if loop is Loop.OPEN:
        if profile.as_fast_as_possible:
            raise InputError(
                f"{profile.name}: no rate is known, so there is no demand to be met; leave "
                "--loop open out, or state the demand with `recommend --set "
                "workload.demand_bytes_per_second=...`",
                field="loop",
            )
        return profile
    freed = profile.workload.model_copy(update=dict.fromkeys(DEMANDS))
    return profile.model_copy(update={"workload": freed})
