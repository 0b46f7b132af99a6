"""Fits a profile from the measurements of one drive, with no recipe of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iojoule.datasets.catalogue import catalogued, load_catalogue, slug
from iojoule.datasets.characteristics import Characteristics
from iojoule.datasets.measured_drive import MeasuredDrive
from iojoule.datasets.profile import DATASETS_RECIPE, DeviceProfile, SourceRecord
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Engine
from iojoule.model.evaluate.terms import TERMS
from iojoule.model.fit.build import (
    fit_profile,
    valid_for,
)
from iojoule.model.fit.expectation import Expectation
from iojoule.model.fit.generic_recipe import (
    characterised_gaps,
    characterised_idle_watts,
    characterised_runs,
    characterised_writes,
    measured_host,
    random_collecting,
)
from iojoule.model.fit.selection import select, within_limits
from iojoule.model.fit.state_residual import notes_on_mixes
from iojoule.model.prior.facts import known_facts
from iojoule.model.recipe import (
    Recipe,
    generic_recipe,
)


@dataclass(frozen=True)
class Fitted:
    """A fitted profile and what its reader should know.

    Attributes:
        profile: The profile.
        notes: What was assumed or left out.
    """

    profile: DeviceProfile
    notes: list[str]


def fit_measured(
    name: str,
    measurements: Sequence[Measurement],
    sources: list[SourceRecord],
    measured: MeasuredDrive | None,
    characteristics: Characteristics | None,
    *,
    with_doubtful: bool = False,
) -> Fitted:
    """Fit a profile from measurements of one drive alone.

    Args:
        name: The drive's id or model.
        measurements: All of it.
        sources: Where they come from.
        measured: What the drive says of itself.
        found: What `iojoule measure characterise` found of it.
        with_doubtful: Whether to take runs that their campaign calls doubtful.

    Raises:
        InputError: Too little was measured; says what to do.
        DataQualityError: The measurements contradict themselves (`model.fit.selection`).
    """
    recipe, notes = _recipe(name, measured)
    selected = select(measurements, with_doubtful=with_doubtful)
    limit, rows, limit_notes = within_limits(
        selected.measurements, selected.limited, recipe.cap_watts
    )
    notes += selected.notes + limit_notes
    recipe = recipe.model_copy(update={"host": measured_host(recipe.host, rows)})
    recipe = _with_measured_engine(recipe, rows)
    power_runs: list[Measurement] = []
    if characteristics is not None:
        power_runs = characterised_runs(characteristics, rows)
        writes = characterised_writes(characteristics)
        past_cache = random_collecting(characteristics, rows)
        if writes is not None and past_cache is not None:
            writes = writes.model_copy(update={"collecting": [past_cache, *writes.collecting]})
        recipe = recipe.model_copy(
            update={
                "idle_watts": characterised_idle_watts(characteristics),
                "write_state": writes,
                "idle": characterised_gaps(characteristics),
            }
        )
    recipe = recipe.model_copy(update={"valid_for": valid_for(recipe.valid_for, rows)})
    facts = known_facts(name, measured)
    expected = Expectation(facts, recipe, rows)
    recipe = expected.power_recipe(rows)
    profile = fit_profile(recipe, rows, sources, priors_of=expected.priors, power_runs=power_runs)
    notes += notes_on_mixes(profile, rows)
    whole = expected.completed(profile)
    for term in TERMS:
        whole = term.fitted(whole, rows)
    found_too = {
        "flush": selected.flush,
        "power_limit": limit,
        "rating": facts.rating,
        "recipe": DATASETS_RECIPE,
    }
    return Fitted(whole.model_copy(update=found_too), notes)


def _with_measured_engine(recipe: Recipe, rows: Sequence[Measurement]) -> Recipe:
    """The default engine is the measured one of those that keep file systems and queues.

    Else every request that leaves the engine out is answered beside the measurements.
    """
    runs = Counter(run.configuration.engine for run in rows)
    if runs[Engine.LIBAIO] <= runs[Engine.IO_URING]:
        return recipe
    source = {"engine": "engine of most of the measurements"}
    return recipe.model_copy(
        update={
            "defaults": {**recipe.defaults, "engine": Engine.LIBAIO.value},
            "default_sources": {**recipe.default_sources, **source},
        }
    )


def _recipe(name: str, measured: MeasuredDrive | None) -> tuple[Recipe, list[str]]:
    """The common assumptions with what the catalogue, or else the drive itself, says of it."""
    known = _from_drive(measured)
    drive = catalogued(name)
    if drive is None:
        own = slug(name)
        close = ", ".join(load_catalogue().closest(name))
        return generic_recipe(own, name).model_copy(update=known), [
            f"{name} is not in the catalogue (closest: {close}); the profile is named {own}"
        ]
    for field, metric in (
        ("capacity_bytes", "capacity"),
        ("max_transfer_bytes", "max_transfer_size"),
    ):
        fact = drive.fact(metric)
        if fact is not None and fact.unit == "bytes" and not isinstance(fact.value, str):
            known[field] = int(fact.value)
    states = drive.operational_states
    caps = [state.max_power_watts for state in states]
    # a cap belongs to the state of its place in the list; some drives declare caps of 0 W
    if [state.index for state in states] == list(range(len(states))) and all(caps):
        known["cap_watts"] = caps
    known["drive_class"] = drive.drive_class
    return generic_recipe(drive.id, drive.model).model_copy(update=known), []


def _from_drive(drive: MeasuredDrive | None) -> dict[str, Any]:
    """The fields of a recipe that the drive itself answers."""
    if drive is None:
        return {}
    known: dict[str, Any] = {"capacity_bytes": drive.capacity_bytes}
    if drive.max_transfer_bytes is not None:
        known["max_transfer_bytes"] = drive.max_transfer_bytes
    if drive.caps_watts:
        known["cap_watts"] = drive.caps_watts
    return known
