"""What is asked of a what-if; light to import, as what answers it is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from iojoule.datasets.errors import InputError, IojouleError, within
from iojoule.datasets.schema import AskedConditions, number
from iojoule.recommender.workloads.presets import ProfileOrPreset
from iojoule.sim.presets import preset_path

if TYPE_CHECKING:
    from iojoule.recommender.what_if.situation import ProfileOf, Situation


class WhatIfRequest(BaseModel):
    """How things are, and what is to be otherwise."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field(description="Id, model or alias of a drive with a profile.")
    workload_profile: ProfileOrPreset
    conditions: AskedConditions = AskedConditions()
    drives: Annotated[
        int, Field(ge=1, le=100_000, description="That share the load evenly."), number
    ] = 1
    changes: dict[str, Any] = Field(
        min_length=1,
        max_length=16,
        description="Field -> new value: drive, growth, demand, mix, size, sla, drives, price, "
        "cap, or a field of the workload profile; preset, a drive of `/simulations` that stands "
        "for this one, and geometry.* of that one, which is simulated.",
    )

    def situation(self, named: ProfileOf) -> Situation:
        """How things are.

        Raises:
            IojouleError: Nothing can be predicted for the drive, or it cannot be under the
                conditions; names the field.
        """
        from iojoule.model.evaluate.validity import refuse_impossible
        from iojoule.recommender.what_if.situation import Situation

        with within("device"):
            profile = named(self.device)
        with within("conditions"):
            refuse_impossible(profile, self.conditions)
        return Situation(
            profile, self.workload_profile, drives=self.drives, conditions=self.conditions
        )

    def simulated(self) -> bool:
        """Whether a change needs the simulator.

        Raises:
            InputError: Nothing of a name can be changed, or `preset` names no drive that comes with
                iojoule: files of this machine are not read for others.
        """
        from iojoule.recommender.what_if.changes import PRESET, kind_of

        kinds = [kind_of(field) for field in self.changes]
        if PRESET in kinds:
            try:
                preset_path(str(self.changes["preset"]))
            except InputError as error:
                raise InputError(error.message, field="preset") from None
        return any(kind.simulated for kind in kinds)


@contextmanager
def of_change(request: WhatIfRequest) -> Iterator[None]:
    """Say of an error which change it is about."""
    try:
        yield
    except IojouleError as error:
        # a field with dots is a name here and no path, and pointers are made of paths
        plain = error.field in request.changes and "." not in str(error.field)
        place = f"changes.{error.field}" if plain else "changes"
        raise type(error)(error.message, field=place) from None
