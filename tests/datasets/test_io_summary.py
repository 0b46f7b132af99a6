"""The document of what was seen: histograms, windows that add up, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats, lists

from iojoule.datasets.errors import InputError, SchemaVersionError
from iojoule.datasets.io_summary import (
    IoSource,
    IoSummary,
    IoWindow,
    LogHistogram,
    parse_summary,
    write_summary,
)

values = lists(floats(1e-9, 1e12), min_size=1, max_size=200)


@given(values, floats(0.1, 100))
def test_a_percentile_is_within_half_a_bin(seen: list[float], percent: float) -> None:
    found = LogHistogram.of(seen).percentile(percent)
    assert found == pytest.approx(
        np.percentile(seen, percent, method="inverted_cdf"), rel=2 ** (1 / 32) - 1 + 1e-9
    )


@given(values, values)
def test_histograms_add_up(first: list[float], second: list[float]) -> None:
    both = LogHistogram.of(first) + LogHistogram.of(second)
    together = LogHistogram.of(first + second)
    assert both.counts == together.counts
    assert both.total == pytest.approx(together.total)


def test_nothing_has_no_percentile() -> None:
    assert LogHistogram.of([]).percentile(50) is None


def window(**fields: object) -> IoWindow:
    given = {
        "seconds": 10.0,
        "reads": 30,
        "read_bytes": 30 * 4096,
        "flushes": 2,
        "busy_seconds": 1.0,
        "gaps": LogHistogram.of([0.5]),
        "sequential_share": 0.5,
        "in_flight": {0: 9.0, 1: 1.0},
        "read_sizes": {4096: 30},
    }
    return IoWindow.model_validate(given | fields)


def test_windows_are_pooled() -> None:
    summary = IoSummary(
        source=IoSource.DISKSTATS,
        name="x",
        windows=(window(), window(reads=10, sequential_share=1.0, flushes=None)),
    )
    both = summary.pooled()
    assert (both.seconds, both.reads, both.busy_seconds) == (20.0, 40, 2.0)
    assert both.flushes is None, "what one of them does not tell is not told"
    assert both.sequential_share == pytest.approx((30 * 0.5 + 10) / 40)
    assert both.in_flight == {0: 18.0, 1: 2.0}
    assert both.gaps is not None
    assert both.gaps.count == 2


def test_it_is_written_and_read_again(tmp_path: Path) -> None:
    summary = IoSummary(source=IoSource.DISKSTATS, name="x", windows=(window(),))
    path = tmp_path / "seen.json"
    write_summary(summary, path)
    assert parse_summary(path.read_text(), str(path)) == summary
    with pytest.raises(InputError, match="cannot be written"):
        write_summary(summary, tmp_path / "none" / "seen.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1}', '{"windows": [1]}'])
def test_another_document_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"seen\.json"):
        parse_summary(text, "seen.json")


def test_a_newer_one_is_refused() -> None:
    with pytest.raises(SchemaVersionError, match="upgrade"):
        parse_summary('{"schema_version": 2}', "seen.json")


def test_bursts_of_other_gaps_do_not_add_up() -> None:
    with pytest.raises(ValueError, match="--gap-seconds"):
        IoSummary(
            source=IoSource.DISKSTATS, name="x", windows=(window(), window(gap_floor_seconds=0.1))
        )
