"""The study of public drives fitted in part: its parts, and what it must show."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.vocabulary import IntervalFor
from iojoule.model.fit.backtest import interpolate
from iojoule.model.fit.in_part import (
    Verdict,
    interpolated,
    kept_in_part,
    left_out,
    outcomes,
    pooled,
    public_sets,
)
from iojoule.model.fit.rows import rows_of
from tests.model.conftest import Maker
from tests.reference_data import PUBLIC_DATA, needs_public_data

DEPTHS = (1, 2, 4, 8, 16, 32)


def test_every_other_value_and_both_ends_are_kept(measure: Maker) -> None:
    rows = rows_of(measure(depths=DEPTHS), host_cores=20)
    kept = rows.take(kept_in_part(rows))
    assert set(kept.queue_depth) == {1, 4, 16, 32}
    assert set(kept.request_bytes) == {4096, 65536}
    assert len(kept) == 8


def test_the_baseline_interpolates_axis_after_axis(measure: Maker) -> None:
    rows = rows_of(measure(depths=DEPTHS), host_cores=20)
    mask = kept_in_part(rows)
    kept, left = rows.take(mask), rows.take(~mask)
    values, half = interpolated(kept, kept.iops, left)
    assert np.isfinite(values).all()
    assert half > 0.0
    at = int(np.flatnonzero((left.queue_depth == 8) & (left.request_bytes == 4096))[0])
    line = kept.request_bytes == 4096
    assert values[at] == pytest.approx(
        interpolate(kept.queue_depth[line], kept.iops[line], 8.0), rel=1e-9
    )


def test_scores_count_width_and_misses() -> None:
    truth, value = np.array([1.0, 3.0]), np.array([1.0, 1.0])
    found = Verdict.of(truth, value, value / 2.0, value * 2.0, np.ones(2, dtype=bool))
    assert found.covered.tolist() == [1.0, 0.0]
    assert found.widths == pytest.approx([4.0, 4.0])
    assert found.scores == pytest.approx([np.log(4.0), np.log(4.0) + 20.0 * np.log(1.5)])


@needs_public_data
@pytest.mark.soak
def test_public_drives_fitted_in_part_beat_interpolation() -> None:
    sets = list(public_sets(PUBLIC_DATA))
    assert len(sets) >= 8
    found = [outcome for one in sets for outcome in outcomes(one)]
    for quantity in ("throughput", "mean latency", "p99"):
        model, base = pooled(found, quantity)
        assert np.median(model.errors) <= np.median(base.errors)
        assert model.scores.mean() <= base.scores.mean()
        assert 0.85 <= model.covered.mean() <= 0.97
    better = [one.model.scores.mean() <= one.interpolation.scores.mean() for one in found]
    assert np.mean(better) >= 2.0 / 3.0


@needs_public_data
@pytest.mark.soak
def test_left_out_sessions_lie_in_the_interval_for_another_host() -> None:
    whole = list(public_sets(PUBLIC_DATA, in_part=False))
    found = left_out(whole, IntervalFor.ANOTHER_HOST)
    another, same = pooled(found, "throughput")
    assert 0.85 <= another.covered.mean() <= 0.98
    assert same.covered.mean() < another.covered.mean() - 0.1
    assert (same.widths < another.widths).all()


@needs_public_data
@pytest.mark.soak
def test_left_out_drives_lie_in_the_interval_for_another_drive() -> None:
    whole = list(public_sets(PUBLIC_DATA, in_part=False))
    another, _ = pooled(left_out(whole, IntervalFor.ANOTHER_DRIVE), "throughput")
    assert 0.85 <= another.covered.mean() <= 0.98
