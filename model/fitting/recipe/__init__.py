"""Recipes: what a device profile is fitted from, with every assumption and its source.

A recipe names measurements (a file and the column map that reads it), published figures with
their sources, and priors for what data cannot tell. `common.toml` holds what holds for every
drive until its own recipe or data say otherwise.
"""

from iojoule.model.fitting.recipe.document import (
    ContributedFolder,
    MeasurementFile,
    Recipe,
)
from iojoule.model.fitting.recipe.drive import (
    AfterWrites,
    ApstSeen,
    CacheSize,
    CollectingRate,
    DevicePowerRecipe,
    GapSeen,
    IdleRecipe,
    Overwriting,
    PowerPoint,
    WakeSeen,
    WriteStateRecipe,
)
from iojoule.model.fitting.recipe.fallback import Fallback
from iojoule.model.fitting.recipe.files import (
    generic_recipe,
    load_recipe,
    parse_recipe,
    shipped_recipes,
)
from iojoule.model.fitting.recipe.host import (
    ClockRecipe,
    HostAnchor,
    HostOperationRecipe,
    HostPathRecipe,
    HostPowerRecipe,
    HostRecipe,
    HostSession,
    IdleStateRecipe,
    NumaRecipe,
    SchedulerRecipe,
    SystemAnchor,
    SystemPowerRecipe,
)
from iojoule.model.fitting.recipe.performance import (
    MixedRecipe,
    PowerStateRecipe,
    PublishedPoint,
    SurfaceRecipe,
)
from iojoule.model.fitting.recipe.pooling import pool
from iojoule.model.fitting.recipe.sourced import (
    Figure,
    Sourced,
)

__all__ = [
    "AfterWrites",
    "ApstSeen",
    "CacheSize",
    "ClockRecipe",
    "CollectingRate",
    "ContributedFolder",
    "DevicePowerRecipe",
    "Fallback",
    "Figure",
    "GapSeen",
    "HostAnchor",
    "HostOperationRecipe",
    "HostPathRecipe",
    "HostPowerRecipe",
    "HostRecipe",
    "HostSession",
    "IdleRecipe",
    "IdleStateRecipe",
    "MeasurementFile",
    "MixedRecipe",
    "NumaRecipe",
    "Overwriting",
    "PowerPoint",
    "PowerStateRecipe",
    "PublishedPoint",
    "Recipe",
    "SchedulerRecipe",
    "Sourced",
    "SurfaceRecipe",
    "SystemAnchor",
    "SystemPowerRecipe",
    "WakeSeen",
    "WriteStateRecipe",
    "generic_recipe",
    "load_recipe",
    "parse_recipe",
    "pool",
    "shipped_recipes",
]
