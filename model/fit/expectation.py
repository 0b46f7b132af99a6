"""What is expected of a drive that is being fitted: priors before its rows, and the rest after.

A handful of measurements meets what the catalogue says of drives like this one. Rows move the
drive's point in the prior; flows that were not measured, and powers that no sensor saw, are
answered from there. Where there are too few rows to learn intervals from rows left out, the
doubt of that point is the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from iojoule.datasets.profile import (
    DeviceProfile,
    IntervalWidth,
    Ladder,
    LadderEntry,
    Parameter,
    Surface,
    Tail,
)
from iojoule.datasets.profile.drive import FactUsed
from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Evidence, Operation
from iojoule.model.fit.build import complete
from iojoule.model.fit.learn_prior import flow_rows, host_prior, update
from iojoule.model.fit.performance import Priors
from iojoule.model.fit.surfaces import surface_priors
from iojoule.model.fit.widths import TELLING_SCORES
from iojoule.model.prior.document import CURVE, FLOWS, load_prior
from iojoule.model.prior.facts import DriveFacts, Observation, observation
from iojoule.model.prior.ladder import power_entries, prior_entries, rung_of
from iojoule.model.prior.posterior import Posterior, condition
from iojoule.model.prior.power import prior_power
from iojoule.model.prior.surfaces import (
    KNOTS,
    curve_doubt,
    curve_parameters,
    prior_surface,
    prior_tail_of,
    tail_widths,
)
from iojoule.model.recipe import Figure, Recipe, SurfaceRecipe

SOURCE = "expected of drives with its facts, and of what was measured of it"

LEAST_SD = 0.15
"""No prior of a curve is narrower (log): the catalogue's drives are known no better."""


class Expectation:
    """A drive's facts and rows beside the learned prior.

    Args:
        drive: Its facts.
        recipe: What the fit assumes of host and transfer size.
        measurements: Its rows.
    """

    def __init__(
        self, drive: DriveFacts, recipe: Recipe, measurements: Sequence[Measurement]
    ) -> None:
        self.drive = drive.having(list(_idle(measurements)))
        self.rows = flow_rows(measurements, recipe.host.cpu_cores)
        self.powered = {
            operation: sum(
                measurement.observations.device_power_watts is not None
                and measurement.workload.operation is operation
                for measurement in measurements
            )
            for operation in (Operation.READ, Operation.WRITE)
        }
        self.recipe = recipe

    @cached_property
    def before(self) -> Posterior:
        """The drive by its facts."""
        return condition(load_prior(), self.drive)

    @cached_property
    def after(self) -> Posterior:
        """The drive by its facts and rows."""
        return update(self.before, self.rows, host_prior(self.recipe))

    def priors(self, surface: SurfaceRecipe) -> Priors:
        """Priors of a surface's fit; what its recipe says wins."""
        flow = f"{surface.operation.value}_{surface.pattern.value}"
        mean, covariance = curve_parameters(self.before, flow, self.drive.link_bytes_per_second)
        sd = [max(math.sqrt(covariance[i, i]), LEAST_SD) for i in range(5)]
        latency, transfer, operations, rate, sharpness = (math.exp(value) for value in mean)
        expected = Priors(
            unloaded_ns=latency,
            transfer_bytes_per_second=transfer,
            operations_per_second=operations,
            bytes_per_second=rate,
            physical_sd=(sd[0], sd[1], sd[2], sd[3]),
            sharpness=sharpness,
            sharpness_sd=sd[4],
            knots=tuple(KNOTS.tolist()),
        )
        return surface_priors(surface, expected)

    def power_recipe(self, measurements: list[Measurement]) -> Recipe:
        """The recipe with the catalogue's joules for a direction whose power nobody measured."""
        recipe = complete(self.recipe, measurements)
        power = recipe.device_power
        if power is None or self.recipe.device_power is not None:
            return recipe
        expected = prior_power(self.after, self.drive, SOURCE)
        known = {parameter.name: parameter for parameter in expected.parameters}
        priors = dict(power.priors)
        for operation, rows in self.powered.items():
            if not rows:
                for name in ("joules_per_byte", "joules_per_operation"):
                    key = f"{operation.value}_{name}"
                    priors[key] = _figure(known[key])
        return recipe.model_copy(
            update={"device_power": power.model_copy(update={"priors": priors})}
        )

    def completed(self, profile: DeviceProfile) -> DeviceProfile:
        """The fitted profile with what is expected where nothing was measured, and its ladder."""
        link = self.drive.link_bytes_per_second
        surfaces = [self._doubted(surface) for surface in profile.surfaces]
        measured = {_flow(surface) for surface in surfaces}
        surfaces += [
            prior_surface(self.after, flow, link, SOURCE) for flow in FLOWS if flow not in measured
        ]
        power = profile.device_power
        return profile.model_copy(
            update={
                "surfaces": sorted(surfaces, key=_flow),
                "device_power": power or prior_power(self.after, self.drive, SOURCE),
                "ladder": Ladder(entries=self._entries(profile)),
                "gaps": [*profile.gaps, *self._gaps(measured, power is not None)],
            }
        )

    def _doubted(self, surface: Surface) -> Surface:
        """A surface with few scores takes the prior's doubt where its rows do not tell."""
        scores = [width.scores for width in surface.widths if width.quantity == "latency"]
        if scores and min(scores) >= TELLING_SCORES:
            return surface
        means = [width for width in surface.widths if width.quantity == "latency"]
        flow, operation = _flow(surface), surface.operation.value
        mean, covariance = self.after.part([f"{flow}_{name}" for name in CURVE])
        knots = np.array(surface.log2_request_bytes)
        learned = {tail.quantile for tail in surface.tails} if surface.residuals else set()
        tails = [
            tail
            if tail.quantile in learned
            else prior_tail_of(self.after, operation, tail.quantile, len(knots))
            for tail in surface.tails
        ]
        return surface.model_copy(
            update={
                "doubt": curve_doubt(mean, covariance, knots),
                "tails": tails,
                "widths": means
                + [
                    width
                    for tail in tails
                    for width in self._tail_widths(surface, tail, tail.quantile in learned)
                ],
            }
        )

    def _tail_widths(self, surface: Surface, tail: Tail, learned: bool) -> list[IntervalWidth]:
        """A percentile's own doubt: from rows left out, else the prior's, less what rows tell."""
        own = [width for width in surface.widths if width.quantity == tail.quantile]
        return own if learned else tail_widths(self.after, _flow(surface), tail)

    def _entries(self, profile: DeviceProfile) -> list[LadderEntry]:
        entries = []
        for entry in prior_entries(self.after):
            flow = next((name for name in FLOWS if entry.quantity.startswith(name)), None)
            rows = len(self.rows[flow]) if flow in self.rows else 0
            if flow and rows:
                entry = entry.model_copy(
                    update={"rung": rung_of(rows), "evidence": Evidence.MEASURED, "rows": rows}
                )
            if flow or profile.device_power is None:
                entries.append(entry)
        if profile.device_power is not None:
            entries += power_entries(profile.device_power, sum(self.powered.values()))
        return entries

    def _gaps(self, measured: set[str], powered: bool) -> list[str]:
        absent = [flow for flow in FLOWS if flow not in measured]
        gaps = []
        if absent:
            gaps.append(
                "not measured and expected of drives with its facts: "
                + ", ".join(" ".join(reversed(flow.split("_"))) + "s" for flow in absent)
            )
        if not powered:
            gaps.append(
                "the drive's power: no sensor saw it; expected of drives with its facts. Attach "
                "one, repeat the runs and fit again"
            )
        return gaps


def _flow(surface: Surface) -> str:
    return f"{surface.operation.value}_{surface.pattern.value}"


def _figure(parameter: Parameter) -> Figure:
    return Figure(
        value=parameter.value,
        sd=parameter.sd,
        unit=parameter.unit,
        source=parameter.source,
        evidence=parameter.evidence,
    )


def _idle(measurements: Sequence[Measurement]) -> list[Observation]:
    """Idle power that runs report, as one observation."""
    seen = [
        measurement.observations.idle_power_watts
        for measurement in measurements
        if measurement.observations.idle_power_watts and not measurement.configuration.power_state
    ]
    if not seen:
        return []
    value = sorted(seen)[len(seen) // 2]
    fact = FactUsed(name="idle_power_watts", value=value, unit="W", source="the measured runs")
    return [observation({"idle_watts": 1.0}, "fitted", fact, measured=True)]
