"""Widths of surfaces with few rows, and of those with enough."""

import numpy as np
import pytest

from iojoule.datasets.schema import Measurement
from iojoule.datasets.vocabulary import Operation
from iojoule.model.fitting.backtest import interval_scores, leave_out
from iojoule.model.fitting.recipe import generic_recipe
from iojoule.model.fitting.rows import rows_of
from iojoule.model.fitting.surfaces import SurfaceFit, fit_surfaces
from iojoule.model.fitting.widths import Scores, conformal_factor, conformal_widths
from tests.model.conftest import Maker


def scores_of(values: np.ndarray) -> Scores:
    return {("latency", "inside"): list(values)}


def writes(measurements: list[Measurement]) -> list[Measurement]:
    """The same figures, as if they were writes."""
    return [
        m.model_copy(
            update={"workload": m.workload.model_copy(update={"operation": Operation.WRITE})}
        )
        for m in measurements
    ]


def fits_of(reads: list[Measurement], others: list[Measurement]) -> list[SurfaceFit]:
    return fit_surfaces(generic_recipe("truth", "Truth"), reads + writes(others), None)


def test_a_dozen_scores_borrow_from_the_other_surfaces() -> None:
    rng = np.random.default_rng(1)
    own, other = np.abs(rng.normal(size=12)), np.abs(rng.normal(size=200))
    alone = conformal_widths(scores_of(own))[0]
    pooled = conformal_widths(scores_of(own), [scores_of(other)])[0]
    assert alone.factor == pytest.approx(own.max())  # the 90 % quantile of so few is the greatest
    assert pooled.factor == pytest.approx(conformal_factor(np.concatenate([own, other])))
    assert pooled.scores == 212


def test_quantities_that_a_surface_never_showed_get_no_width() -> None:
    other: Scores = {("p99", "inside"): [1.0] * 40}
    found = conformal_widths(scores_of(np.ones(12)), [other])
    assert {one.quantity for one in found} == {"latency"}


def test_only_a_surface_of_few_rows_looks_beside_itself(measure: Maker) -> None:
    large, small = fits_of(measure(jobs=(1, 4)), measure(sizes=(4096,)))
    assert small.recipe.operation is Operation.WRITE
    assert large.beside([large, small]) == []
    assert small.beside([large, small]) == [large]
    told = {w.quantity: w.scores for w in small.exported([large]).widths if w.region == "inside"}
    assert told["latency"] > len(small.rows)


def test_few_rows_are_judged_with_the_widths_of_all(measure: Maker) -> None:
    reads, others = measure(noise=0.02), measure(sizes=(4096,), noise=0.02)
    settings = fits_of(reads, others)[0].fitted.settings
    many, few = (leave_out(rows_of(m, host_cores=20), settings) for m in (reads, others))
    inside = [one for one in few if one.region == "inside"]
    alone = interval_scores(inside, "model")
    judged = interval_scores(inside, "model", many)
    assert len(judged) == len(alone) == len(inside) > 0
    assert all(one is None for one in alone)
    assert all(one is not None for one in judged)
