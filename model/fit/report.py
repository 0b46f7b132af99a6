"""`iojoule fit --report`: how far the shipped models may be trusted, on whole parts left out."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict
from threadpoolctl import threadpool_limits

from iojoule.datasets.profile import DeviceProfile, WriteState
from iojoule.datasets.schema import Measurement
from iojoule.model.fit.backtest import (
    QUANTITIES,
    IntervalVerdict,
    Outcome,
    judge,
    judge_intervals,
    leave_out,
    outside_as_one,
)
from iojoule.model.fit.build import fit_profile, load_measurements
from iojoule.model.fit.hold_out import (
    Misfit,
    energy_from_totals,
    larger_requests,
    leave_sessions_out,
    mix_outcomes,
    series_outcomes,
    series_watts,
)
from iojoule.model.fit.performance import fit_surface
from iojoule.model.fit.power import fit_device_power, power_rows
from iojoule.model.fit.surfaces import SurfaceFit, SurfaceMemory, fit_surfaces
from iojoule.model.fit.widths import Fold, few
from iojoule.model.fit.write_state import Series, fit_write_state, write_series
from iojoule.model.recipe import DevicePowerRecipe, Recipe, load_recipe, shipped_recipes

Cells = list[str | int | float | None]

TRANSITION_SECONDS = (265, 299)
"""Where the 980 PRO's write series changes over; scored apart."""

REGIONS = ("inside", "beyond", "below")

COARSE = (1.0, 4.0, 16.0, 64.0, 256.0)
"""Depths of the coarse grid; the others of a finer sweep are tested between them."""


class Table(BaseModel):
    """One table of the report; cells are text or plain numbers."""

    model_config = ConfigDict(frozen=True)

    title: str
    columns: list[str]
    rows: list[Cells]
    note: str


class Report(BaseModel):
    """The tables in reading order."""

    model_config = ConfigDict(frozen=True)

    tables: list[Table]


def report(folder: Path, names: list[str] | None = None) -> Report:
    """Backtest the shipped recipes on a folder of public measurements.

    Args:
        folder: Holds the files that the recipes name.
        names: Which recipes; all that ship by default.

    Raises:
        InputError: A file is missing.
    """
    with threadpool_limits(1):  # small matrices: more threads only wait for each other
        tables: list[Table] = []
        pooled: dict[str, list[Outcome]] = {}
        for name in names or shipped_recipes():
            own, outcomes = _tables(name, folder)
            tables += own
            pooled[name] = outcomes
        if names is None:
            tables.append(_mixes(folder))
        return Report(tables=[_pooled(pooled), *tables])


def _tables(name: str, folder: Path) -> tuple[list[Table], list[Outcome]]:
    """The tables of one drive, and every outcome behind them."""
    tables: list[Table] = []
    recipe = load_recipe(name)
    measurements = load_measurements(recipe, folder)[0]
    series = write_series(measurements)
    state = fit_write_state(series, recipe)
    fits = fit_surfaces(recipe, measurements, state)
    learned = [fit for fit in fits if fit.fitted.grids]
    outcomes = {
        (fit.recipe.operation.value, fit.recipe.pattern.value): leave_out(
            fit.rows, fit.fitted.settings
        )
        for fit in learned
    }
    tables.append(_errors(recipe, outcomes))
    pooled = {kind for kind, fit in zip(outcomes, learned, strict=True) if few(fit.rows)}
    tables.append(_intervals(recipe, outcomes, pooled))
    tables += _between(recipe, learned)
    tables += _power(recipe, measurements, fits, series, state)
    tables += _left_out(recipe, measurements)
    tables += _sessions(recipe, measurements)
    return tables, [o for some in outcomes.values() for o in some]


def _mixes(folder: Path) -> Table:
    """The public mixes with a share of reads left out, by drive and share and of all."""
    outcomes = mix_outcomes(folder)
    groups = [(outcome.drive, outcome.read_fraction, [outcome]) for outcome in outcomes]
    rows: list[Cells] = []
    for drive, share, some in [*groups, ("all", None, outcomes)]:
        errors = (
            np.abs(np.concatenate([getattr(outcome, name) for outcome in some]))
            for name in ("error", "turns", "untaught", "untaught_turns")
        )
        rows.append(
            [
                drive,
                share,
                sum(len(outcome.depth) for outcome in some),
                *[
                    round(100.0 * float(figure(each)), 1)
                    for each in errors
                    for figure in (np.median, np.max)
                ],
                _percent(float(np.mean(np.concatenate([outcome.inside for outcome in some])))),
                round(float(np.median(np.concatenate([outcome.width for outcome in some]))), 2),
            ]
        )
    return Table(
        title="mixes of three drives, a share of reads left out",
        columns=[
            *("drive", "reads", "n", "model %", "largest %", "turns %", "largest %"),
            *("no mix seen %", "largest %", "turns %", "largest %", "inside %", "width"),
        ],
        rows=rows,
        note="log errors of the rate, median and largest. turns: the harmonic mean, reads alone as "
        "measured and writes alone fitted to the other shares; where no mix was seen, both as the "
        "profile predicts them. These drives' writes alone were not measured.",
    )


def _pooled(outcomes: dict[str, list[Outcome]]) -> Table:
    """Medians by drive and axis and of all, on the same rows for model and baselines."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for name, results in outcomes.items():
        for result in results:
            if result.sessions != "steady":
                continue
            for key in ((name, result.axis), (name, "both"), ("all drives", "both")):
                groups.setdefault(key, []).append(result)
    rows: list[Cells] = []
    for key, region, quantity in product(sorted(groups), REGIONS, QUANTITIES):
        some = [o for o in groups[key] if (o.region, o.quantity) == (region, quantity)]
        if some:
            medians: Cells = [
                round(100.0 * float(np.median([o.error(m) for o in some])), 2)
                for m in ("model", "interpolation", "hyperbola")
            ]
            rows.append([*key, region, quantity, len(some), *medians])
    return Table(
        title="All drives: median errors on whole depths and sizes left out, steady sessions, %",
        columns=[
            *("drive", "left out", "region", "quantity", "n"),
            *("model", "log-log", "hyperbola"),
        ],
        rows=rows,
        note="Every distinct depth and size is left out in turn, of all series at once. inside: "
        "between depths or sizes of the row's own series; beyond: one step after the last one that "
        "is left of it; below: one step before the first.",
    )


def _percent(value: float) -> float:
    return round(100.0 * value, 1)


def _errors(recipe: Recipe, outcomes: dict[tuple[str, str], list[Outcome]]) -> Table:
    rows: list[Cells] = []
    for (operation, pattern), results in outcomes.items():
        for axis, grid, region, quantity in product(
            ("queue_depth", "request_bytes"), ("coarse", "fine"), REGIONS, QUANTITIES
        ):
            some = [
                o
                for o in results
                if (o.axis, o.grid, o.region, o.quantity) == (axis, grid, region, quantity)
            ]
            if some:
                errors = [
                    _percent(float(np.quantile([o.error(method) for o in some], q)))
                    for method in ("model", "interpolation", "hyperbola")
                    for q in (0.5, 0.9)
                ]
                rows.append(
                    [f"{pattern} {operation}", axis, grid, region, quantity, len(some), *errors]
                )
    return Table(
        title=f"{recipe.model_name}: errors on whole depths and sizes left out, %",
        columns=[
            "workload",
            "left out",
            "grid",
            "region",
            "quantity",
            "n",
            "model median",
            "model p90",
            "log-log median",
            "log-log p90",
            "hyperbola median",
            "hyperbola p90",
        ],
        rows=rows,
        note="inside: between depths or sizes of the row's own series; beyond and below: one step "
        "after its last, before its first. log-log: monotone interpolation inside, log-log "
        "extrapolation outside. Same rows for all three; rows whose series has nothing left are "
        "not scored. fine: series of eight values or more, where interpolation is as good as fio's "
        "own histogram bins (1 to 2 %).",
    )


def _intervals(
    recipe: Recipe, outcomes: dict[tuple[str, str], list[Outcome]], pooled: set[tuple[str, str]]
) -> Table:
    """Intervals of both methods; the `pooled` surfaces have too few rows to tell widths alone."""
    rows: list[Cells] = []
    for kind, results in outcomes.items():
        others = [o for other, some in outcomes.items() if other != kind for o in some]
        beside = outside_as_one(others) if kind in pooled else []
        operation, pattern = kind
        for key in product(("steady", "apart"), ("inside", "outside"), QUANTITIES):
            some = [o for o in outside_as_one(results) if (o.sessions, o.region, o.quantity) == key]
            model, base = (judge_intervals(some, m, beside) for m in ("model", "interpolation"))
            if model.rows:
                rows.append(
                    [f"{pattern} {operation}", *key, model.rows, *_verdict(model), *_verdict(base)]
                )
    verdict = ("covers %", "p", "score")
    return Table(
        title=f"{recipe.model_name}: 90 % intervals on the same rows",
        columns=[
            *("workload", "sessions", "region", "quantity", "n"),
            *(f"model {name}" for name in verdict),
            *(f"log-log {name}" for name in verdict),
        ],
        rows=rows,
        note="p: two-sided binomial test against 90 %, clustered by series. Score: mean interval "
        "score in log units, lower is better. Widths come from the other folds' errors, for both "
        "methods; a workload of few rows takes those of the drive's other workloads as well. "
        "outside: beyond and below. apart: sessions labelled unsteady, which no profile "
        "answers for.",
    )


def _verdict(verdict: IntervalVerdict) -> Cells:
    covered = _percent(verdict.covered / verdict.rows)
    return [covered, round(verdict.p_value, 3), round(verdict.score, 3)]


def _between(recipe: Recipe, fits: list[SurfaceFit]) -> list[Table]:
    """Fit the coarse depths of sessions with a finer sweep and test between them."""
    rows: list[Cells] = []
    for fit in fits:
        requests = fit.rows.queue_depth * fit.rows.jobs
        fine = np.zeros(len(fit.rows), dtype=bool)
        for session in sorted({str(name) for name in fit.rows.session}):
            own = fit.rows.session == session
            if len(np.unique(requests[own])) >= 9 and set(COARSE) <= set(requests[own]):
                fine |= own
        train = ~(fine & ~np.isin(requests, COARSE))
        if train.all():
            continue
        fitted = fit_surface(fit.rows.take(train), fit.fitted.settings)
        for axis in ("queue_depth", "jobs"):
            results = judge(fit.rows, Fold(axis, 0.0, train), fitted)
            for quantity in QUANTITIES:
                some = [o for o in results if o.quantity == quantity and o.region == "inside"]
                if some:
                    rows.append(
                        [f"{fit.recipe.pattern} {fit.recipe.operation}", axis, quantity, len(some)]
                        + [
                            _percent(float(np.median([o.error(m) for o in some])))
                            for m in ("model", "interpolation", "hyperbola")
                        ]
                    )
    if not rows:
        return []
    return [
        Table(
            title=f"{recipe.model_name}: fitted at 1, 4, 16, 64, 256, tested between, median %",
            columns=["workload", "along", "quantity", "n", "model", "log-log", "hyperbola"],
            rows=rows,
            note="requests in flight of the sweeps with a finer grid",
        )
    ]


def _power(
    recipe: Recipe,
    measurements: list[Measurement],
    fits: list[SurfaceFit],
    series: Series | None,
    state: WriteState | None,
) -> list[Table]:
    if recipe.device_power is None:
        return []
    surface = fits[0].fitted
    checks = larger_requests(measurements, recipe.device_power, surface)
    rows: list[Cells] = [_cells(check) for check in checks]
    if series is not None and state is not None:
        rows += _series(recipe.device_power, recipe.max_transfer_bytes, measurements, series, state)
    return [
        Table(
            title=f"{recipe.model_name}: device power on what the fit did not see",
            columns=["what", "n", "median error %", "largest error %", "bias %"],
            rows=rows,
            note="read power is fitted up to 512 KiB and predicts 1 to 2 MiB. Write series: the "
            "first half of each regime is fitted and the second half predicted from bytes "
            "written and time; the transition is scored apart.",
        )
    ]


def _sessions(recipe: Recipe, measurements: list[Measurement]) -> list[Table]:
    """Every session that the recipe names, predicted from all else."""

    def fit(rest: list[Measurement]) -> DeviceProfile:
        return fit_profile(recipe, rest, [], SurfaceMemory())

    rows: list[Cells] = []
    for outcome in leave_sessions_out(measurements, recipe.sessions_left_out, fit):
        median, most = (float(np.quantile(outcome.errors, share)) for share in (0.5, 0.9))
        cells = [len(outcome.runs), _percent(median), _percent(most), outcome.covered]
        rows.append([outcome.session, outcome.quantity, *cells, round(outcome.width, 2)])
    if not rows:
        return []
    return [
        Table(
            title=f"{recipe.model_name}: whole figures left out, each predicted from all else",
            columns=[
                *("figure", "quantity", "n", "median error %", "p90 error %"),
                *("inside 90 %", "median high / low"),
            ],
            rows=rows,
            note="A figure is a session. Rates that watts rest on are predicted too. What the text "
            "of other sections publishes stays in the recipe.",
        )
    ]


def _left_out(recipe: Recipe, measurements: list[Measurement]) -> list[Table]:
    """The write series with its halves, and all of it, unseen."""
    rows: list[Cells] = []
    for outcome in series_outcomes(recipe, measurements):
        for name, unit, pair in (
            ("energy of the series, J", 1.0, outcome.energy),
            ("energy of what was left out, J", 1.0, outcome.unseen),
            ("bytes of what was left out, GB", 1e9, outcome.written),
            ("energy for a byte of it, J/GB", 1e-9, outcome.per_byte),
            ("bytes up to the cliff, GB", 1e9, outcome.cliff),
        ):
            if pair is None:
                continue
            predicted, truth = pair
            if predicted is None:
                rows.append(
                    [outcome.left_out, outcome.seen, outcome.given, name, None, truth / unit]
                )
                continue
            numbers: Cells = [
                round(n / unit, 1) for n in (predicted.value, truth, predicted.low, predicted.high)
            ]
            error = round(100.0 * (predicted.value / truth - 1.0), 1)
            inside = "yes" if predicted.low <= truth <= predicted.high else "no"
            rows.append(
                [outcome.left_out, outcome.seen, outcome.given, name, *numbers, error, inside]
            )
    if not rows:
        return []
    return [
        Table(
            title=f"{recipe.model_name}: write series, state not given",
            columns=[
                *("left out", "seconds seen", "given", "what", "predicted", "measured"),
                *("low", "high", "error %", "inside"),
            ],
            rows=rows,
            note="every row is predicted by a profile fitted without what is left out. The "
            "drive's state follows from the bytes it was made to write; where no cliff was seen "
            "its place comes from published figures.",
        )
    ]


def _cells(misfit: Misfit) -> Cells:
    return [
        misfit.name,
        misfit.rows,
        _percent(misfit.median),
        _percent(misfit.largest),
        _percent(misfit.bias),
    ]


def _series(
    recipe: DevicePowerRecipe,
    transfer: int,
    measurements: list[Measurement],
    series: Series,
    state: WriteState,
) -> list[Cells]:
    """Score the write series by regime and as a whole."""
    second = np.arange(len(series.watts))
    start, end = TRANSITION_SECONDS
    later = {
        "cached": (second >= start // 2) & (second < start),
        "collecting": second > (end + second[-1]) // 2,
    }
    seen = [
        measurement
        for measurement in measurements
        if measurement.state.host_bytes_written_since_purge is None
        or not any(
            mask[
                np.searchsorted(
                    series.bytes_written, measurement.state.host_bytes_written_since_purge
                )
            ]
            for mask in later.values()
        )
    ]
    watts = power_rows(seen, transfer, state)
    assert len(watts) < len(power_rows(measurements, transfer, state))
    half = fit_device_power(watts, recipe)
    predicted = series_watts(half, state, series)
    rows = [
        _cells(Misfit.of(f"{name} regime, second half", predicted[mask], series.watts[mask]))
        for name, mask in later.items()
    ]
    change = (second >= start) & (second <= end)
    rows.append(
        _cells(Misfit.of("transition, 265 to 299 s", predicted[change], series.watts[change]))
    )
    whole = series.watts.sum()
    cached = float(np.mean(series.bytes_per_second[: start // 2]))
    totals = energy_from_totals(
        half,
        state,
        float(series.bytes_per_second.sum()),
        float(len(second)),
        cached,
        series.request_bytes,
    )
    for name, energy in (
        ("energy, bytes given each second", float(predicted.sum())),
        ("energy, total bytes and time given", totals),
    ):
        rows.append(_cells(Misfit.of(name, np.array([energy]), np.array([whole]))))
    return rows
