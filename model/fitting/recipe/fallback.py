"""General assumptions that stand in for a published number when it is left out."""

from __future__ import annotations

from pydantic import Field

from iojoule.datasets.schema import Section
from iojoule.model.fitting.recipe.sourced import Figure


class Fallback(Section):
    """Stand-ins by the path of the field (`host_power.priors`), engine or scheduler.

    Attributes:
        figures: A number with a wide deviation.
        surface_priors: By `operation/pattern`; none stands for the general ones.
        host_paths: Costs of an engine whose own figure is left out.
        schedulers: Costs of a scheduler likewise.
    """

    figures: dict[str, Figure] = Field(default_factory=dict)
    surface_priors: dict[str, dict[str, float]] = Field(default_factory=dict)
    host_paths: dict[str, dict[str, float | str]] = Field(default_factory=dict)
    schedulers: dict[str, dict[str, float | str]] = Field(default_factory=dict)
