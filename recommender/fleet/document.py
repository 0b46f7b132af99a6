"""The fleet file: drives, where their power comes from, what they serve, and the budget."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.errors import InputError
from iojoule.datasets.input_file import toml_of
from iojoule.datasets.schema import (
    Fraction,
    NonNegative,
    Positive,
    Section,
    Truth,
    number,
    validation_error,
)
from iojoule.datasets.vocabulary import IntervalFor
from iojoule.recommender.factors import Factors
from iojoule.recommender.request import (
    DEMANDS,
    Scope,
    WorkloadProfile,
    is_json,
    load_workload,
    read_text,
)
from iojoule.recommender.sla import MINIMA, Confidence

Name = Annotated[str, Field(min_length=1, max_length=80)]
Percentile = Annotated[float, Field(gt=0.5, lt=1.0), number]
Count = Annotated[int, Field(ge=1, le=10_000_000), number]


class PowerDomain(Section):
    """A part of the power tree with its own limit: a breaker, a rack, a room.

    Attributes:
        name: How drives and other domains refer to it.
        parent: The domain that feeds it; None at the top.
        limit_watts: What it may draw; None bounds nothing by itself.
        base_watts: What else it feeds, drives apart: hosts, fans, switches.
    """

    name: Name
    parent: str | None = None
    limit_watts: Positive | None = None
    base_watts: NonNegative = 0.0


class DriveGroup(Section):
    """Drives of one model in one domain, interchangeable.

    Attributes:
        name: How the plan calls them.
        device: Catalogue id, or the id of a profile that was handed over.
        count: How many.
        domain: The power domain that feeds them.
        classes: Classes of workload whose data they hold.
        peak_over_mean: Power exceeded only the stated share of the time over mean power while
            serving, as measured over 1 ms with requests that arrive as in operation (a queue that
            is always full smooths power); None takes the drive's own peak for it.
        drives_per_host: How many of them stand in one host and run alike: what serving adds to the
            CPU is that of one host at the rate of all its drives.
        spin_ups_per_drive_year: Starts and stops that a year may cost each drive on average; None:
            what its rating allows over five years. Drives of a group take turns, and a day's worth
            may be used at once.
    """

    name: Name
    device: Name
    count: Count
    domain: str
    classes: Annotated[tuple[Name, ...], Field(min_length=1)]
    peak_over_mean: Annotated[float, Field(ge=1.0, le=10.0), number] | None = None
    drives_per_host: Annotated[int, Field(ge=1, le=1000), number] = 1
    spin_ups_per_drive_year: NonNegative | None = None


DEMAND_MAX = 1e18
"""Bytes a second: more than all drives of the world; beyond it the optimiser loses its digits."""


class WorkloadClass(Section):
    """What a part of the fleet does.

    Attributes:
        name: How drives refer to it.
        workload: Pattern, sizes, SLA: a workload profile without demand.
        demand_bytes_per_second: Useful bytes a second of the whole class.
        redirectable: Whether any drive that holds it may serve any of it. Where not, every drive
            that holds it serves an equal share.
        segregate: Whether reads and writes of a mixed class may go to different drives; only
            where it is redirectable.
        importance: Weight of a served byte where the watts do not suffice for all. None: it must
            be served whatever happens.
        wake_seconds_max: How long a demand may wait for a drive in standby to serve again; drives
            that hold the class and take longer stay ready. None: as long as it takes.
    """

    name: Name
    workload: WorkloadProfile
    demand_bytes_per_second: Annotated[Positive, Field(le=DEMAND_MAX)]
    redirectable: Truth = False
    segregate: Truth = False
    importance: Positive | None = None
    wake_seconds_max: Positive | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        asked = self.workload
        if not asked.as_fast_as_possible:
            raise ValueError(
                f"class {self.name}: its workload states a demand of its own; state that of the "
                "whole class in demand_bytes_per_second and leave it out of the workload"
            )
        for bound in (*MINIMA, "cpu_power_watts_max", "system_power_watts_max"):
            if getattr(asked.sla, bound) is not None:
                raise ValueError(
                    f"class {self.name}: sla.{bound} is not for one drive of a fleet; state the "
                    "demand of the class, and watts as limits of domains"
                )
        if self.segregate and not self.redirectable:
            raise ValueError(
                f"class {self.name}: reads and writes can go to different drives only where the "
                "class is redirectable"
            )
        if self.segregate and not 0.0 < asked.read_fraction < 1.0:
            raise ValueError(f"class {self.name}: only a mixed workload can be segregated")
        return self


class Budget(Section):
    """What the whole fleet may draw from a moment on."""

    seconds: NonNegative = 0.0
    watts: Positive


class Fleet(Section):
    """A fleet and how surely its plan must hold.

    Attributes:
        name: How the plan calls it.
        domains: The power tree; one or more.
        drives: Groups of interchangeable drives.
        classes: What they serve.
        budgets: Watts of the whole fleet over time, by rising `seconds`; none: only the limits.
        percentile: Share of the time in which every domain stays within its limit.
        confidence: One-sided probability with which models of power and speed hold.
        scope: Whose watts are planned: those of the drives, or also those that serving them adds to
            their hosts' CPUs. What a host draws without work belongs to `base_watts`.
        power_correlation: Correlation between the fluctuations of any two drives' power where it
            was measured; None assumes that all peak together.
        interval_for: What the bounds are about: the drives and hosts that were measured, others of
            the model, or another model; None: what each profile says.
        period_seconds: Length of the last budget's period, and of a plan without budgets.
        factors: What a kWh costs and emits, and each of the drives.
    """

    name: Name = "fleet"
    domains: Annotated[tuple[PowerDomain, ...], Field(min_length=1)]
    drives: Annotated[tuple[DriveGroup, ...], Field(min_length=1)]
    classes: Annotated[tuple[WorkloadClass, ...], Field(min_length=1)]
    budgets: tuple[Budget, ...] = ()
    percentile: Percentile = 0.99
    confidence: Confidence = 0.9
    scope: Literal[Scope.DEVICE, Scope.DEVICE_CPU] = Scope.DEVICE_CPU
    power_correlation: Fraction | None = None
    interval_for: IntervalFor | None = None
    period_seconds: Positive = 3600.0
    factors: Factors = Factors()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for what, items in (
            ("domain", self.domains),
            ("drives", self.drives),
            ("class", self.classes),
        ):
            _unique(what, (item.name for item in items))
        self._tree()
        known = {item.name: item for item in self.classes}
        held: Counter[str] = Counter()
        for group in self.drives:
            if group.domain not in {domain.name for domain in self.domains}:
                raise ValueError(f"drives {group.name}: there is no domain {group.domain!r}")
            for name in group.classes:
                if name not in known:
                    raise ValueError(f"drives {group.name}: there is no class {name!r}")
                held[name] += 1
                if not known[name].redirectable and len(group.classes) > 1:
                    raise ValueError(
                        f"drives {group.name}: class {name} is not redirectable, so its drives "
                        "hold nothing else; put them into a group of their own"
                    )
        for name in known:
            if not held[name]:
                raise ValueError(f"class {name}: no drives hold it; add it to some `classes`")
        times = [budget.seconds for budget in self.budgets]
        if times != sorted(set(times)):
            raise ValueError("budgets: seconds must rise from one budget to the next")
        return self

    def _tree(self) -> None:
        parents = {domain.name: domain.parent for domain in self.domains}
        for name, parent in parents.items():
            if parent is not None and parent not in parents:
                raise ValueError(f"domain {name}: there is no domain {parent!r} to be its parent")
            seen, here = {name}, parent
            while here is not None:
                if here in seen:
                    raise ValueError(f"domain {name}: is fed by itself, through {here}")
                seen.add(here)
                here = parents[here]

    def feeders(self, domain: str) -> Iterator[str]:
        """A domain and all that feed it, from the bottom up."""
        parents = {item.name: item.parent for item in self.domains}
        here: str | None = domain
        while here is not None:
            yield here
            here = parents[here]

    def groups_in(self, domain: str) -> set[int]:
        """Places in `drives` of the groups that a domain feeds."""
        return {
            place for place, group in enumerate(self.drives) if domain in self.feeders(group.domain)
        }

    def base_watts_in(self, domain: str) -> float:
        """What a domain and those below it draw beside the drives."""
        return sum(one.base_watts for one in self.domains if domain in self.feeders(one.name))

    def share_bytes_per_second(self, workload: WorkloadClass) -> float:
        """What each drive that holds a class serves where all serve the same."""
        holders = sum(group.count for group in self.drives if workload.name in group.classes)
        return workload.demand_bytes_per_second / holders

    @property
    def base_watts(self) -> float:
        """What all domains draw beside the drives."""
        return sum(domain.base_watts for domain in self.domains)


def _unique(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{what} {twice[0]}: stands there twice; give each a name of its own")


_TABLES = {"domain": "domains", "drives": "drives", "class": "classes", "budget": "budgets"}
"""Tables of the file, `[[class]]`, and the fields that they are."""


def load_fleet(path: Path) -> Fleet:
    """Read a fleet file (TOML, or JSON with the field names of `Fleet`).

    A class's `workload` is a table or the path of a workload profile beside the fleet file.

    Raises:
        InputError: The file or what it says is not what it must be; names file and field.
    """
    return parse_fleet(read_text(path), str(path), folder=path.parent)


def parse_fleet(text: str, where: str, *, folder: Path | None = None) -> Fleet:
    """Read the text of a fleet file.

    Args:
        text: TOML, or JSON with the field names of `Fleet`.
        where: What messages call it.
        folder: Where workload profiles lie that it names; None refuses those.

    Raises:
        InputError: It is not what it must be; names the field.
    """
    try:
        if is_json(text):
            return Fleet.model_validate_json(text)
        return Fleet.model_validate(_read(toml_of(text), where, folder))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not a complete TOML file: {error}") from None
    except ValidationError as error:
        raise validation_error(error, where, Fleet) from None


def _read(data: dict[str, Any], where: str, folder: Path | None) -> dict[str, Any]:
    read = {_TABLES.get(name, name): value for name, value in data.items()}
    classes = read.get("classes")
    for place, item in enumerate(classes if isinstance(classes, list) else ()):
        stated = item.get("workload") if isinstance(item, dict) else None
        if isinstance(stated, str):
            if folder is None:
                raise InputError(
                    f"{where}: a workload is the name of a file, which only the command line "
                    "reads; write its tables here",
                    field=f"classes/{place}/workload",
                )
            loaded = load_workload(folder / stated).model_dump(exclude_unset=True)
            # the class states the demand of all its drives; a profile's own is of one host
            loaded.pop("observed", None)
            for field in DEMANDS:
                loaded["workload"].pop(field, None)
            item["workload"] = loaded
    return read


Aim = Literal["least_watts", "most_demand"]
"""What a plan makes least or most: watts for the demand, or demand within the watts."""
