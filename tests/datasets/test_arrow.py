"""The Arrow schema follows the models."""

from __future__ import annotations

import pyarrow as pa
import pytest

from iojoule.datasets.arrow import arrow_schema, columns, unit_of
from iojoule.datasets.schema import COLUMNS, SCHEMA_VERSION


def test_one_arrow_field_per_field_of_the_schema_in_its_order() -> None:
    schema = arrow_schema()
    assert schema.names == list(COLUMNS)
    assert schema.metadata[b"iojoule.schema_version"] == str(SCHEMA_VERSION).encode()
    for field in schema:
        assert field.metadata[b"kind"].decode() == COLUMNS[field.name]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("demand_bytes_per_second", "B/s"),
        ("demand_operations_per_second", "1/s"),
        ("read_iops", "1/s"),
        ("context_switches_per_second", "1/s"),
        ("request_bytes", "B"),
        ("request_bytes_coalescible", "B"),
        ("host_bytes_written_since_purge", "B"),
        ("idle_gap_seconds_p99", "s"),
        ("seconds_since_last_write", "s"),
        ("write_latency_p999_ns", "ns"),
        ("background_energy_joules", "J"),
        ("dram_power_watts", "W"),
        ("cpu_frequency_max_hertz", "Hz"),
        ("temperature_celsius_mean", "degC"),
        ("percentage_used", "%"),
        ("cpu_utilisation", "cores"),
        ("read_fraction", "1"),
        ("queue_depth", None),
        ("flush_every_writes", None),
        ("engine", None),
    ],
)
def test_units_are_read_off_the_names(name: str, unit: str | None) -> None:
    assert name in COLUMNS
    assert unit_of(name) == unit
    metadata = arrow_schema().field(name).metadata
    assert metadata.get(b"unit") == (None if unit is None else unit.encode())


def test_every_real_number_has_a_unit() -> None:
    bare = [c.name for c in columns().values() if c.arrow_type == pa.float64() and not c.unit]
    assert bare == []


def test_ranges_words_and_defaults_come_from_the_models() -> None:
    request = columns()["request_bytes"]
    assert (request.minimum, request.maximum, request.multiple_of) == (512, 1 << 30, 512)
    assert request.required
    assert not arrow_schema().field("request_bytes").nullable
    assert columns()["latency_mean_ns"].open_minimum
    assert not columns()["iops"].open_minimum
    assert columns()["completion"].words == {"interrupt", "polled"}
    assert columns()["pattern"].default == "random"
    assert columns()["queue_depth"].default == 1
    assert columns()["engine"].default is None
