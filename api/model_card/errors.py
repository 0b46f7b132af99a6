"""The card's sections on how far a profile errs: on what was left out, and on what was fitted."""

from __future__ import annotations

import numpy as np
from scipy.stats import binomtest

from iojoule.api.documents.content import Block, Section, Table, Text, percent
from iojoule.api.model_card.pictures import residual_picture
from iojoule.api.words.quantities import size
from iojoule.datasets.profile import Assessment, DeviceProfile, HeldOut

CONFIDENCE = 0.9
NOT_KEPT = (
    "Not known: the profile rests on a datasheet or too few measurements, or an older version "
    "fitted it. Fit it to measurements to see them."
)
_QUANTITY = {
    "throughput_bytes_per_second": "throughput",
    "latency_mean_ns": "mean latency",
    "latency_p99_ns": "p99 latency",
}
_AXIS = {"queue_depth": "depth", "request_bytes": "size"}


def errors_section(profile: DeviceProfile) -> Section:
    """Error, coverage and interval score by region, and by left-out depth and size."""
    heading = "Error, coverage and interval score"
    if profile.assessment is None or not profile.assessment.held_out:
        return Section(heading, (Text(NOT_KEPT),))
    held = profile.assessment.held_out
    by_region = [one for one in held if one.value is None]
    by_value = [one for one in held if one.value is not None]
    return Section(
        heading,
        (
            Text(
                "Whole depths and whole request sizes are left out of the fit in turn, never "
                "random rows, and predicted from the rest. Inside: between other values of the "
                "row's own series; below and beyond: one step under or past them. The baseline is "
                "interpolation in log-log, below and beyond extrapolation. Intervals are nominal "
                "90 %, their widths from the other values alone; p is that of a two-sided binomial "
                "test against 90 %, as if the rows were independent, which those of one series are "
                "not quite. The score is the mean interval score in log units: lower is better."
            ),
            Table.of(_HEADINGS, [_row(one) for one in by_region], _NUMBERS),
            Text("The same by the value that was left out:"),
            Table.of(_HEADINGS, [_row(one) for one in by_value], _NUMBERS),
        ),
    )


_HEADINGS = (
    "workload", "quantity", "left out", "region", "rows", "median error", "90th percentile",
    "baseline's median", "covered", "p", "score", "baseline's score",
)  # fmt: skip
_NUMBERS = tuple(range(4, len(_HEADINGS)))


def _row(one: HeldOut) -> tuple[str, ...]:
    covered, p = "-", "-"
    if one.interval_rows:
        covered = f"{one.covered} of {one.interval_rows}"
        p = f"{binomtest(one.covered, one.interval_rows, CONFIDENCE).pvalue:.2f}"
    return (
        f"{one.pattern} {one.operation}",
        _QUANTITY[one.quantity],
        _left_out(one),
        one.region or "any",
        str(one.rows),
        percent(one.median_error),
        percent(one.p90_error),
        percent(one.baseline_median_error),
        covered,
        p,
        "-" if one.interval_score is None else f"{one.interval_score:.2f}",
        "-" if one.baseline_interval_score is None else f"{one.baseline_interval_score:.2f}",
    )


def _left_out(one: HeldOut) -> str:
    if one.left_out is None:
        return "a depth or size"
    if one.value is None:
        return f"each {_AXIS[one.left_out]}"
    return size(one.value) if one.left_out == "request_bytes" else f"depth {one.value:g}"


def residuals_section(profile: DeviceProfile) -> Section:
    """Log ratios of what was observed to what the profile answers."""
    heading = "Residuals"
    if profile.assessment is None:
        return Section(heading, (Text(NOT_KEPT),))
    rows = _residual_rows(profile.assessment)
    if not rows:
        return Section(heading, (Text("Not known: no measured point was fitted."),))
    blocks: list[Block] = [
        Text(
            "Observed over answered at the fitted points themselves. The bias is the median, the "
            "spread half the distance between the 16th and the 84th percentile. Apart are "
            "sessions labelled as unsteady, and published points, which may differ freely: the "
            "profile answers for the steady ones."
        ),
        Table.of(("quantity", "points", "of", "bias", "spread", "largest"), rows, (1, 2, 3, 4, 5)),
    ]
    if any(one.latency for one in profile.assessment.performance):
        blocks.append(residual_picture(profile, profile.assessment))
    return Section(heading, tuple(blocks))


def _residual_rows(assessment: Assessment) -> list[tuple[str, ...]]:
    rows = []
    for one in assessment.performance:
        for apart in (False, True):
            label = f"{one.pattern} {one.operation}s" + (", apart" if apart else "")
            chosen = [index for index, other in enumerate(one.apart) if other is apart]
            for name, column in (("mean latency", one.latency), ("p99 latency", one.p99)):
                values = [value for i in chosen if (value := column[i]) is not None]
                if values:
                    rows.append(_spread(f"{name}, {label}", values, one.total))
    if assessment.power is not None and assessment.power.watts:
        rows.append(_spread("drive's power", assessment.power.watts, assessment.power.total))
    return rows


def _spread(name: str, values: list[float], total: int) -> tuple[str, ...]:
    logs = np.array(values)
    low, middle, high = np.quantile(logs, [0.16, 0.5, 0.84])
    largest = logs[np.abs(logs).argmax()]
    return (
        name,
        str(len(logs)),
        f"{total:,}",
        percent(np.expm1(middle), sign=True),
        percent(np.expm1((high - low) / 2)),
        percent(np.expm1(largest), sign=True),
    )
