"""From a fleet to its plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iojoule.api.application.fleet import answer
from iojoule.api.http.fleet.schemas import (
    BUDGETS_MAX,
    CLASSES_MAX,
    GROUPS_MAX,
    FleetAnswer,
    FrontierAnswer,
    FrontierRequest,
    PlanRequest,
)
from iojoule.api.http.predictors import ServedProfiles
from iojoule.datasets.errors import InputError, within
from iojoule.recommender.fleet.document import Fleet

if TYPE_CHECKING:
    from iojoule.recommender.fleet.planner import Planner


def plan(served: ServedProfiles, request: PlanRequest) -> FleetAnswer:
    """A plan for each budget in turn, with the stages from one to the next.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for a drive; names its group.
        InputError: The fleet is larger than what is planned while somebody waits.
        InfeasibleError: A demand or a limit cannot be kept; says by how much.
    """
    planner = _planner(served, request.fleet)
    with within("fleet"):
        return answer(planner.plans(request.aim, gap=request.gap))


def frontier(served: ServedProfiles, request: FrontierRequest) -> FrontierAnswer:
    """What budgets buy; raises as `plan`."""
    planner = _planner(served, request.fleet)
    budgets = planner.budgets_between(request.least_watts, request.most_watts, request.points)
    return FrontierAnswer(
        fleet=request.fleet.name, points=planner.frontier(budgets, gap=request.gap)
    )


def _planner(served: ServedProfiles, fleet: Fleet) -> Planner:
    from iojoule.recommender.fleet.planner import Planner  # a solver, slow to import

    for field, most in (("drives", GROUPS_MAX), ("classes", CLASSES_MAX), ("budgets", BUDGETS_MAX)):
        found = len(getattr(fleet, field))
        if found > most:
            raise InputError(
                f"{found} {field}; the service plans up to {most} while you wait, `iojoule fleet "
                "plan` any number", field=f"fleet.{field}",
            )  # fmt: skip
    profiles = {}
    for index, group in enumerate(fleet.drives):
        with within(f"fleet.drives.{index}.device"):
            profiles[group.device] = served.of(served.device_id(group.device)).profile
    with within("fleet"):
        return Planner(fleet, profiles)
