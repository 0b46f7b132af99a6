"""A recipe as it would be had a finding never been published.

Points and anchors that rest on the finding are dropped. A number that a fit cannot do without
falls back to the general assumption of `common.toml` with its wide deviation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from iojoule.datasets.errors import InputError
from iojoule.model.recipe import Recipe, Sourced

DROPPED = frozenset(
    {
        "surfaces.points",
        "power_states.ceiling_depth_exponents",
        "device_power.points",
        "write_state.cache",
        "write_state.collecting",
        "write_state.after_writes",
        "write_state.overwriting",
        "idle.gaps",
        "idle.wakes",
        "idle.apst_seen",
        "host_power.anchors",
        "host_power.sessions",
        "system_power.anchors",
    }
)
"""Lists whose entries a fit can do without."""

BASE_SHARE = 0.35
"""Base over full power where none was measured: 0.29 (D7-P5510), 0.45 (980 PRO)."""

FULL_SHARE = 0.6
"""Full power over the declared cap of PS0 where none was measured: 14.7 of 25 W, 6 of 8.49 W."""

LEAST_SHARE = 0.02
"""Of the work, whatever the cap."""

_CEILING = "power_states.ceiling_bytes_per_second"


def share_of_cap(cap_watts: float, first_cap_watts: float) -> float:
    """Share of the full speed that a cap leaves where no power was measured; may exceed 1."""
    full = FULL_SHARE * first_cap_watts
    base = BASE_SHARE * full
    return max((cap_watts - base) / (full - base), LEAST_SHARE)


def facts_of(recipe: Recipe) -> frozenset[str]:
    """Every finding that some number of the recipe was taken from."""
    return frozenset(fact for item in _sourced(recipe) for fact in item)


def without(recipe: Recipe, facts: Collection[str]) -> Recipe:
    """The recipe less everything that rests on one of the findings.

    Raises:
        InputError: A number rests on a finding and has no fallback; says where to add it.
    """
    gone = frozenset(facts)
    if not gone & facts_of(recipe):
        return recipe
    data = recipe.model_dump(mode="python")
    fallback = data.pop("fallback")
    reduced = _strip(data, "", gone, _Fallback(recipe, gone))
    return Recipe.model_validate({**reduced, "fallback": fallback})


class _Fallback:
    """What stands in for a number, by the path of its field."""

    def __init__(self, recipe: Recipe, gone: frozenset[str]) -> None:
        self.recipe, self._gone = recipe, gone

    def of(self, path: str, own: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any] | None:
        """The stand-in; None where the number may be absent.

        Raises:
            InputError: There is none.
        """
        known = self.recipe.fallback
        if path == "host_paths":
            return {**own, **_fallback(known.host_paths, path, str(own["engine"])), "facts": []}
        if path == "schedulers":
            return {**own, **_fallback(known.schedulers, path, str(own["scheduler"])), "facts": []}
        for key in (path, path.rpartition(".")[0]):
            if key in known.figures:
                figure = known.figures[key].model_dump()
                if key == _CEILING:
                    figure["value"] *= self._share_of_link(parent["power_state"])
                return figure
        raise InputError(f"recipe {self.recipe.device}: {path}: no fallback in common.toml")

    def surface_priors(self, operation: str, pattern: str) -> dict[str, float]:
        return dict(self.recipe.fallback.surface_priors.get(f"{operation}/{pattern}", {}))

    def _share_of_link(self, power_state: int) -> float:
        """Bytes a second that a cap leaves of the link's, as the other states and directions do.

        The watts above the base are proportional to the work, (cap - base) / (full - base), and
        drives keep a share of that which is found in those ceilings that do not rest on what is
        left out (`model.fit.power_states`).
        """
        power, link = self.recipe.device_power, self.recipe.link_bytes_per_second
        caps = power.cap_watts if power is not None else self.recipe.cap_watts
        full = link.value if link is not None else 1e9

        def law(state: int) -> float:
            return full * share_of_cap(caps[state], caps[0])

        shares = [
            state.ceiling_bytes_per_second.value / law(state.power_state)
            for state in self.recipe.power_states
            if not self._gone & set(state.ceiling_bytes_per_second.facts)
        ]
        keeps = float(np.exp(np.mean(np.log(shares)))) if shares else 1.0
        return law(power_state) * keeps


def _fallback(table: dict[str, dict[str, Any]], path: str, name: str) -> dict[str, Any]:
    if name not in table and "default" not in table:
        raise InputError(f"{path}: no fallback for {name} in common.toml")
    return table.get(name, table.get("default", {}))


def _strip(value: Any, path: str, gone: frozenset[str], fallback: _Fallback) -> Any:
    """Copy nested data, replacing what rests on `gone`."""
    if isinstance(value, list):
        spare = path in DROPPED or path.partition(".")[0] in DROPPED
        return [
            _entry(child, path, gone, fallback, {})
            for child in value
            if not (spare and _rests_on(child, gone))
        ]
    if not isinstance(value, dict):
        return value
    out: dict[Any, Any] = {}
    for name, child in value.items():
        inner = f"{path}.{name}" if path else str(name)
        entry = _entry(child, inner, gone, fallback, value)
        if entry is not None or child is None:
            out[name] = entry
    if path == "surfaces" and not gone.isdisjoint(value["prior_facts"]):
        out["priors"] = fallback.surface_priors(str(value["operation"]), str(value["pattern"]))
        out["prior_facts"] = []
    return out


def _entry(
    value: Any, path: str, gone: frozenset[str], fallback: _Fallback, parent: dict[str, Any]
) -> Any:
    if _rests_on(value, gone):
        return fallback.of(path, value, parent)
    return _strip(value, path, gone, fallback)


def _rests_on(value: Any, gone: frozenset[str]) -> bool:
    return isinstance(value, dict) and not gone.isdisjoint(value.get("facts", ()))


def _sourced(value: Any) -> Iterator[list[str]]:
    if isinstance(value, list):
        for item in value:
            yield from _sourced(item)
    elif isinstance(value, dict):
        yield from _sourced(list(value.values()))
    elif hasattr(type(value), "model_fields"):
        if isinstance(value, Sourced):
            yield value.facts
        yield getattr(value, "prior_facts", [])
        for name in type(value).model_fields:
            yield from _sourced(getattr(value, name))
