"""What a reader has to know before acting on a plan."""

from __future__ import annotations

from collections.abc import Mapping

from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.modes import DriveModel
from iojoule.recommender.workload import Scope


def write(fleet: Fleet, models: Mapping[str, DriveModel]) -> list[str]:
    """The notes of a plan, in plain sentences."""
    said = [_peaks(fleet)]
    unmeasured = sorted({group.device for group in fleet.drives if group.peak_over_mean is None})
    if unmeasured:
        said.append(
            f"peaks of {', '.join(unmeasured)}: the peak of each profile over its busiest mode is "
            "taken for every mode; measure 1 ms power near full speed, with requests that arrive "
            "as in operation, and state `peak_over_mean` to plan closer"
        )
    for name, model in models.items():
        if model.standby() is None:
            said.append(
                f"{name}: no standby, since its profile knows no sleep state with its watts and "
                "both its times"
            )
    hosts = {model.profile.host_power.host_id for model in models.values()
             if model.profile.host_power is not None}  # fmt: skip
    if fleet.scope is Scope.DEVICE_CPU:
        shared = any(group.drives_per_host > 1 for group in fleet.drives)
        said.append(
            f"all drives stand on hosts of one kind, {', '.join(sorted(hosts))}; "
            + (
                "the drives of a host share what serving adds to its CPU (drives_per_host)"
                if shared
                else "each wakes up a host of its own: state drives_per_host where they share one"
            )
        )
    said.append(
        "drives that serve stay awake between requests unless the class comes in bursts; their "
        "hosts are the base watts of the domains, whatever they serve"
    )
    return said


def _peaks(fleet: Fleet) -> str:
    if fleet.power_correlation is None:
        return (
            f"limits hold {fleet.percentile:.3%} of the time even if all drives peak at once: no "
            "correlation was measured"
        )
    return (
        f"limits hold {fleet.percentile:.3%} of the time at a correlation of "
        f"{fleet.power_correlation:g} between drives, each fluctuating as much as two levels can"
    )
