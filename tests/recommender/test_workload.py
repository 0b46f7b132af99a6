"""Workload profiles: what contradicts itself is refused by the name of its field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.errors import InputError
from iojoule.datasets.schema import Configuration
from iojoule.recommender.request import (
    Current,
    Objective,
    WorkloadProfile,
    load_workload,
    parse_seconds,
    parse_workload,
    with_fields,
)
from iojoule.recommender.sla import Sla, confidence_scale

READ = {"operation": "read"}


def test_today_is_described_in_the_words_of_the_schema() -> None:
    assert set(Current.model_fields) == set(Configuration.model_fields)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"workload": {}}, "operation"),
        ({"workload": {"operation": "mixed"}}, "read_fraction"),
        ({"workload": {"operation": "mixed", "read_fraction": 1.2}}, "read_fraction"),
        (
            {"workload": {**READ, "demand_bytes_per_second": float("nan")}},
            "demand_bytes_per_second",
        ),
        ({"workload": {**READ, "demand_bytes_per_second": -1}}, "demand_bytes_per_second"),
        ({"workload": {**READ, "demand_operations_per_second": 0}}, "demand_operations_per_second"),
        (
            {"workload": {**READ, "demand_operations_per_second": 1e-300}},
            "demand_operations_per_second",
        ),
        (
            {"workload": {**READ, "demand_operations_per_second": 1, "demand_bytes_per_second": 1}},
            "demand_operations_per_second",
        ),
        (
            {"workload": {**READ, "useful_request_bytes": 8192, "request_bytes_coalescible": 4096}},
            "request_bytes_coalescible",
        ),
        ({"workload": {**READ, "colour": 1}}, "colour"),
        ({"colour": 1}, "colour"),
        ({"current": {"queue_depth": 0}}, "current.queue_depth"),
        ({"current": {"request_bytes": -4096}}, "current.request_bytes"),
        ({"current": {"engine": "spdk", "completion": "interrupt"}}, "completion"),
        ({"free": {"queue_depth": [0]}}, "free.queue_depth.0"),
        ({"free": {"queue_depth": []}}, "free.queue_depth"),
        ({"free": {"engine": ["fast"]}}, "free.engine.0"),
        ({"free": {"cstate_limit": [-1]}}, "free.cstate_limit.0"),
        ({"free": {"flush_every_writes": "all"}}, "free.flush_every_writes"),
        ({"sla": {"latency_p99_ns_max": 0}}, "sla.latency_p99_ns_max"),
        ({"sla": {"latency_p99_ns_max": -1}}, "sla.latency_p99_ns_max"),
        ({"sla": {"latency_p99_ns_max": float("nan")}}, "sla.latency_p99_ns_max"),
        ({"sla": {"latency_p99_ns_max": float("inf")}}, "sla.latency_p99_ns_max"),
        ({"sla": {"confidence": 0.3}}, "sla.confidence"),
        ({"sla": {"confidence": 0.999}}, "sla.confidence"),
        ({"sla": {"latency_p99_ms_max": 1}}, "sla.latency_p99_ms_max"),
        ({"sla": {"latency_p50_ns_max": 2e6, "latency_p99_ns_max": 1e6}}, "latency_p99_ns_max"),
        ({"sla": {"latency_p99_ns_max": 2e6, "latency_p999_ns_max": 1e6}}, "latency_p999_ns_max"),
        (
            {"sla": {"device_power_watts_max": 9.0, "system_power_watts_max": 5.0}},
            "device_power_watts_max",
        ),
        (
            {
                "workload": {**READ, "useful_request_bytes": 4096},
                "sla": {"throughput_bytes_per_second_min": 1e9, "iops_min": 1e6},
            },
            "sla.iops_min",
        ),
        ({"scope": "rack"}, "scope"),
        ({"concurrency_max": 0}, "concurrency_max"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_workload({"workload": READ, **change}, "question.toml")
    assert caught.value.message.startswith("question.toml: ")
    assert field in caught.value.message


def test_the_objective_follows_from_the_demand() -> None:
    assert parse_workload({"workload": READ}).effective_objective is Objective.JOULES_PER_USEFUL_GB
    demanded = {**READ, "demand_operations_per_second": 1e3}
    assert parse_workload({"workload": demanded}).effective_objective is Objective.WATTS
    assert (
        parse_workload({"workload": demanded, "objective": "edp"}).effective_objective
        is Objective.EDP
    )


def test_one_value_a_list_and_all_are_choices() -> None:
    free = parse_workload(
        {"workload": READ, "free": {"queue_depth": [1, 8], "jobs": "all", "power_state": 1}}
    ).free
    assert free is not None
    assert (free.queue_depth, free.jobs, free.power_state) == ((1, 8), (), (1,))
    assert free.engine is None


def test_a_workload_profile_survives_json(tmp_path: Path) -> None:
    profile = parse_workload(
        {
            "name": "x", "workload": {**READ, "useful_request_bytes": 4096},
            "current": {"engine": "io_uring", "queue_depth": 4},
            "free": {"queue_depth": "all", "engine": ["libaio"]},
            "sla": {"latency_p99_ns_max": 1e6}, "concurrency_max": 64,
        }
    )  # fmt: skip
    path = tmp_path / "question.json"
    path.write_text(profile.model_dump_json(exclude_none=True))
    assert load_workload(path) == profile


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    data = {"workload": READ, "sla": {"latency_p99_ns_max": 1e6}}
    (tmp_path / "a.json").write_text(json.dumps(data))
    (tmp_path / "a.toml").write_text(
        '[workload]\noperation = "read"\n[sla]\nlatency_p99_ns_max = 1e6\n'
    )
    read: list[WorkloadProfile] = [
        load_workload(tmp_path / f"a.{kind}") for kind in ("json", "toml")
    ]
    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.toml", None, "cannot be read"),
        ("cut.toml", '[workload]\noperation = "re', "not a complete TOML file"),
        ("cut.json", '{"workload": {"operation": "re', "JSON"),
        ("nan.json", '{"workload": {"operation": "read", "think_time_ns": NaN}}', "nan.json"),
        ("table.csv", "a,b\n1,2\n", "a workload profile is"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        load_workload(path)
    assert name in caught.value.message


def test_confidence_is_a_one_sided_normal_quantile() -> None:
    assert confidence_scale(0.5) == pytest.approx(0.0)
    assert confidence_scale(0.95) == pytest.approx(1.0)
    assert confidence_scale(0.9) == pytest.approx(1.2815515655 / 1.6448536270)
    assert Sla().confidence == 0.9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0), ("15 min", 900.0), ("24 h", 86400.0), ("365 d", 365 * 86400.0),
        ("1 year", 8766 * 3600.0), ("2 weeks", 14 * 86400.0), ("3600", 3600.0),
        ("1.5 hours", 5400.0),
    ],
)  # fmt: skip
def test_lengths_of_time_are_read(text: str, seconds: float) -> None:
    assert parse_seconds(text, "horizon_seconds") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0", "0 d", "-1 h", "soon", "", "5 parsecs", "h"])
def test_what_is_no_length_of_time_is_refused_by_field(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_seconds(text, "horizon_seconds")
    assert refused.value.field == "horizon_seconds"


@pytest.mark.parametrize("name", ["horizon_seconds", "concurrency_max"])
@pytest.mark.parametrize("nothing", [0, -3, 0.0])
def test_no_time_and_no_requests_are_refused_with_the_remedy(name: str, nothing: float) -> None:
    with pytest.raises(InputError, match="leave it out") as refused:
        parse_workload({"workload": {"operation": "write"}, name: nothing})
    assert refused.value.field == name


def test_of_two_units_of_a_demand_the_last_one_counts() -> None:
    stated = parse_workload({"workload": READ | {"demand_operations_per_second": 1000.0}})
    by_bytes = with_fields(stated, {"workload.demand_bytes_per_second": 5e6}, "--set")
    assert by_bytes.workload.demand_bytes_per_second == 5e6
    assert by_bytes.workload.demand_operations_per_second is None
    again = with_fields(by_bytes, {"workload.demand_operations_per_second": 10.0}, "--set")
    assert again.workload.demand_bytes_per_second is None


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        (("queue_depth",), "current.queue_depth"),
        (("iodepth",), "current.queue_depth"),
        (("demand_bytes_per_second",), "workload.demand_bytes_per_second"),
        (("workload", "bs"), "current.request_bytes"),
        (("sla", "p99"), "sla.latency_p99_ns_max"),
        (("current", "numjob"), "current.jobs"),
    ],
)
def test_a_field_in_the_wrong_table_is_answered_with_its_place(
    path: tuple[str, ...], meant: str
) -> None:
    asked: dict[str, Any] = {"workload": {"operation": "read"}, "current": {}, "sla": {}}
    *tables, name = path
    (asked[tables[0]] if tables else asked)[name] = 1
    with pytest.raises(InputError) as refused:
        parse_workload(asked)
    assert meant in re.split(r"[ ?]", refused.value.message)
