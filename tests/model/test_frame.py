"""Columns are read alike whatever holds them, and many rows answer as few do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import load_shipped_profile
from iojoule.model.evaluate.frame import Frame, make_frame
from iojoule.model.evaluate.predictor import BLOCK_ROWS, Predictor

PROFILE = load_shipped_profile("samsung-980-pro-1tb")


def same(one: Frame, other: Frame) -> None:
    for name in Frame.__dataclass_fields__:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def test_lists_arrays_and_single_values_make_the_same_frame() -> None:
    listed: dict[str, Any] = {
        "queue_depth": [4, None, 4.0],
        "engine": ["libaio", None, "libaio"],
        "power_state": [0, 0, 0],
        "device_state": [None, None, None],
    }
    arrays = {
        "queue_depth": np.array([4.0, np.nan, 4.0]),
        "engine": np.array(["libaio", None, "libaio"], dtype=object),
        "power_state": 0,
    }
    first, used = make_frame(PROFILE, listed, 3)
    second, _ = make_frame(PROFILE, arrays, 3)
    same(first, second)
    assert used["queue_depth"] == PROFILE.defaults["queue_depth"]
    assert used["engine"] == PROFILE.defaults["engine"]


def test_words_in_a_numpy_array_are_words() -> None:
    frame, _ = make_frame(PROFILE, {"engine": np.array(["spdk", "libaio"])}, 2)
    stated, _ = make_frame(
        PROFILE, {"engine": ["spdk", "libaio"], "completion": ["polled", "interrupt"]}, 2
    )
    same(frame, stated)


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        ({"engine": np.array(["libaio", "aio"])}, 2),
        ({"queue_depth": np.array([1.0, 2.5])}, 2),
        ({"device_state": ["fresh", "new"]}, 2),
        ({"queue_depth": ["many", 1]}, 1),
        ({"engine": np.array(["libaio", "psync"]), "queue_depth": np.array([4, 4])}, 2),
    ],
)
def test_the_first_impossible_row_is_named(columns: dict[str, Any], row: int) -> None:
    with pytest.raises(InputError, match=f"row {row}"):
        make_frame(PROFILE, columns, 2)


def test_many_rows_answer_as_they_do_block_by_block() -> None:
    rows = BLOCK_ROWS + 1000
    depths = 2 ** (np.arange(rows) % 9)
    predictor = Predictor(PROFILE)
    frame, _ = make_frame(PROFILE, {"queue_depth": depths, "read_fraction": 1.0}, rows)
    whole = predictor.predict(frame)
    part = predictor.predict(frame.take(slice(BLOCK_ROWS, rows)))
    for name, band in whole.bands.items():
        assert np.array_equal(band.high[BLOCK_ROWS:], part[name].high, equal_nan=True), name
    assert np.array_equal(whole.activity.device_x[BLOCK_ROWS:], part.activity.device_x)
    assert len(whole.evidence) == rows
