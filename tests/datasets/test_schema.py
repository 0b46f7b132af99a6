"""The schema refuses what cannot be and names the field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import (
    COLUMNS,
    SECTIONS,
    HostSettings,
    from_row,
    to_row,
    validation_error,
)

ROW: dict[str, Any] = {"operation": "read", "request_bytes": 4096}


def test_field_names_are_unique_across_the_kinds() -> None:
    assert len(COLUMNS) == sum(len(kind.model_fields) for kind in SECTIONS.values())


def test_a_row_survives_the_way_there_and_back() -> None:
    measurement = from_row({**ROW, "engine": "io_uring", "iops": 10.0, "repeat_index": 2})
    assert from_row(to_row(measurement)) == measurement
    assert to_row(measurement)["queue_depth"] == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"queue_depth": 0}, "queue_depth"),
        ({"request_bytes": -4096}, "request_bytes"),
        ({"request_bytes": 4000}, "request_bytes"),
        ({"operation": "mixed"}, "read_fraction"),
        ({"operation": "mixed", "read_fraction": 1.2}, "read_fraction"),
        ({"read_fraction": 0.5}, "read_fraction"),
        ({"operation": "trim"}, "operation"),
        ({"iops": float("nan")}, "iops"),
        ({"latency_mean_ns": float("inf")}, "latency_mean_ns"),
        ({"latency_mean_ns": 0.0}, "latency_mean_ns"),
        ({"latency_mean_ns": 1.1e30}, "latency_mean_ns"),
        ({"latency_mean_ns": True}, "latency_mean_ns"),
        ({"queue_depth": True}, "queue_depth"),
        ({"flush_every_writes": 10**300}, "flush_every_writes"),
        ({"apst_enabled": 1}, "apst_enabled"),
        ({"latency_p50_ns": 2.0, "latency_p99_ns": 1.0}, "latency_p99_ns"),
        ({"write_latency_p50_ns": 2.0, "write_latency_p999_ns": 1.0}, "write_latency_p999_ns"),
        ({"engine": "spdk", "completion": "interrupt"}, "completion"),
        ({"engine": "libaio", "completion": "polled"}, "completion"),
        ({"engine": "psync", "queue_depth": 2}, "queue_depth"),
        ({"engine": "spdk", "scheduler": "kyber"}, "scheduler"),
        ({"engine": "libaio", "submission_polling": True}, "submission_polling"),
        ({"power_state": 32}, "power_state"),
        (
            {"demand_bytes_per_second": 1.0, "demand_operations_per_second": 1.0},
            "demand_operations_per_second",
        ),
        ({"colour": "red"}, "colour"),
    ],
)
def test_impossible_values_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        from_row({**ROW, **change}, where="line 7")
    assert caught.value.message.startswith("line 7: ")
    assert field in caught.value.message
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"request_bytes": "4k"}, "must be a whole number of bytes (found '4k')"),
        ({"queue_depth": "two"}, "must be a whole number (found 'two')"),
        ({"queue_depth": 2.5}, "must be a whole number (found 2.5)"),
        ({"demand_bytes_per_second": "fast"}, "must be a number (found 'fast')"),
    ],
)
def test_what_is_no_number_is_said_in_plain_words(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        from_row({**ROW, **change}, where="line 7")
    assert caught.value.message.endswith(says)


def test_littles_ratio_counts_depth_and_jobs() -> None:
    seen = {"iops": 80_000.0, "latency_mean_ns": 100_000.0}
    measurement = from_row({**ROW, "queue_depth": 4, "jobs": 2, **seen})
    assert measurement.littles_ratio() == pytest.approx(1.0)
    assert from_row(ROW).littles_ratio() is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [("bs", "request_bytes"), ("iodepth", "queue_depth"), ("QD", "queue_depth"),
     ("numjobs", "jobs"), ("ioengine", "engine"), ("queue_deph", "queue_depth")],
)  # fmt: skip
def test_names_of_fio_are_answered_with_the_field(name: str, meant: str) -> None:
    with pytest.raises(ValidationError) as refused:
        HostSettings.model_validate({name: 1})
    error = validation_error(refused.value, "--set")
    assert error.field == name
    assert meant in error.message
