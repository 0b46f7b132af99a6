"""What is asked of a what-if; light to import, as what answers it is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from iojoule.datasets.errors import InputError, IojouleError
from iojoule.datasets.schema import number
from iojoule.recommender.workload import WorkloadProfile
from iojoule.sim.presets import preset_path


class WhatIfRequest(BaseModel):
    """How things are, and what is to be otherwise."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field(description="Id, model or alias of a drive with a profile.")
    workload_profile: WorkloadProfile
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

    def simulated(self) -> bool:
        """Whether a change needs the simulator.

        Raises:
            InputError: Nothing of a name can be changed, or `preset` names no drive that comes with
                iojoule: files of this machine are not read for others.
        """
        from iojoule.recommender.what_if.changes import kind_of
        from iojoule.recommender.what_if.changes.geometry import PRESET

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
