"""Fleet plans as the command line and the service hand them out."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from iojoule import __version__
from iojoule.api.application.profiles import profile_in, profile_of
from iojoule.api.reports.fleet import summary
from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import toml_of
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import Section, validation_error
from iojoule.recommender.fleet.document import Fleet
from iojoule.recommender.fleet.plan import FrontierPoint, Plan, Stage
from iojoule.recommender.fleet.replacement import Server
from iojoule.recommender.request import read_text


class FleetAnswer(Section):
    """Plans in turn, and the stages from each to the next.

    Attributes:
        summary: `summary[i]` is `plans[i]` in words; empty in files of older versions.
        rollouts: `rollouts[i]` leads to `plans[i]`; None where nothing is known to run before it.
    """

    iojoule_version: str = __version__
    summary: list[list[str]] = Field(default_factory=list)
    plans: list[Plan]
    rollouts: list[list[Stage] | None]


class FrontierAnswer(Section):
    """What budgets buy, by rising watts."""

    iojoule_version: str = __version__
    fleet: str
    points: list[FrontierPoint]


class Servers(Section):
    """The file of a replacement: one server of each kind under the same workload."""

    old: Server
    new: Server


def profiles_for(fleet: Fleet, files: Sequence[Path] = ()) -> dict[str, DeviceProfile]:
    """The profile of every device that the fleet names: from the files, else by catalogue.

    Raises:
        InputError: A device has no profile, or a file answers for none of the fleet's devices.
    """
    wanted = {group.device for group in fleet.drives}
    found: dict[str, DeviceProfile] = {}
    for path in files:
        profile = profile_in(path)
        if profile.device not in wanted:
            raise InputError(
                f"{path}: is the profile of {profile.device}, which no drives of the fleet are; "
                f"they are {', '.join(sorted(wanted))}"
            )
        found[profile.device] = profile
    return found | {device: profile_of(device) for device in wanted - found.keys()}


def read_plan(path: Path) -> Plan:
    """The last plan of a file that `iojoule fleet plan -o json` wrote.

    Raises:
        InputError: Missing, or not such a file.
    """
    try:
        plans = FleetAnswer.model_validate_json(read_text(path)).plans
    except ValidationError as error:
        raise validation_error(error, str(path)) from None
    if not plans:
        raise InputError(f"{path}: holds no plan; `iojoule fleet plan -o json` writes one")
    return plans[-1]


def read_servers(path: Path) -> Servers:
    """Two kinds of servers, `[old]` and `[new]`, from a TOML file.

    Raises:
        InputError: Missing, or not such a file; names the field.
    """
    try:
        return Servers.model_validate(toml_of(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a complete TOML file: {error}") from None
    except ValidationError as error:
        raise validation_error(error, str(path), Servers) from None


def answer(plans: Sequence[Plan], running: Plan | None = None) -> FleetAnswer:
    """Plans with their roll-outs; `running` is what the fleet does before the first."""
    from iojoule.recommender.fleet.plan import rollout

    before: list[Plan | None] = [running, *plans[:-1]]
    return FleetAnswer(
        summary=[list(summary(plan)) for plan in plans],
        plans=list(plans),
        rollouts=[
            None if old is None else rollout(old, new)
            for old, new in zip(before, plans, strict=True)
        ],
    )
