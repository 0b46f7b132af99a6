"""A small made-up drive and host, so that the truths below do not depend on any fitted number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iojoule.datasets.profile import DeviceProfile
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import WorkloadProfile, parse_workload

PUBLISHED: dict[str, Any] = {"evidence": "published", "source": "made up"}


def parameter(name: str, value: float, sd: float, unit: str = "W") -> dict[str, Any]:
    return {"name": name, "value": value, "sd": sd, "unit": unit, **PUBLISHED}


def surface(operation: str, pattern: str, factor: float) -> dict[str, Any]:
    tails = [
        {"quantile": "p50", "intrinsic": -0.05, "collision": [], "exponent": 1.0},
        {"quantile": "p99", "intrinsic": 0.3, "collision": [0.02, 0.02], "exponent": 1.0},
        {"quantile": "p999", "intrinsic": 0.9, "collision": [0.05, 0.05], "exponent": 1.0},
    ]
    return {
        "operation": operation, "pattern": pattern, **PUBLISHED,
        "log2_request_bytes": [12.0, 17.0],
        "unloaded_latency_ns": [60e3 * factor, 110e3 * factor],
        "capacity_operations_per_second": [600e3 / factor, 24e3 / factor],
        "sharpness": [2.0, 3.0], "transfer_bytes_per_second": 3e9, "access_unit_bytes": 4096,
        "relative_sd": 0.1,
        "tails": [{**tail, "saturation": 1.0, "host_damping": 0.1} for tail in tails],
        "residual": None, "hulls": {}, "widths": [],
    }  # fmt: skip


def path(engine: str, completion: str, polling: bool, added: float, core: float) -> dict[str, Any]:
    return {
        "engine": engine, "completion": completion, "submission_polling": polling,
        "added_latency_ns": added, "core_time_ns": core, "wakeup_ns": 500.0, "relative_sd": 0.05,
        **PUBLISHED,
    }  # fmt: skip


def state_effect(state: int, operation: str, ceiling: float) -> dict[str, Any]:
    return {
        "power_state": state, "operation": operation,
        "ceiling_bytes_per_second": parameter("ceiling", ceiling, 0.1, "bytes/s"),
        "latency_factor": parameter("latency_factor", 1.0 + 0.5 * state, 0.1, "1"),
        "tail_factor": parameter("tail_factor", 2.0 * state, 0.3, "1"),
    }  # fmt: skip


def device_power() -> dict[str, Any]:
    values = [2.5, 6e-10, 1e-6, 1.4e-9, 2e-6, 2.5]
    sds = [0.02, 2e-11, 3e-7, 1e-10, 4e-7, 0.05]
    return {
        "parameters": [
            parameter(f"p{i}", v, s) for i, (v, s) in enumerate(zip(values, sds, strict=True))
        ],
        "covariance": [
            [sds[i] * sds[j] * (1.0 if i == j else -0.2) for j in range(6)] for i in range(6)
        ],
        "idle_watts": [parameter(f"i{i}", w, 0.05) for i, w in enumerate((1.8, 1.5, 1.2))],
        "cap_watts": [9.0, 4.5, 3.0],
        "peak_watts": parameter("peak", 7.5, 0.3),
        "measured_read_operations_per_second_max": 1e4,
        "measured_bytes_per_second_max": 3e9, "relative_sd": 0.01, "condition": "made up",
    }  # fmt: skip


def host_power() -> dict[str, Any]:
    watts = {
        "idle_watts": (40.0, 1.0), "package_watts": (10.0, 1.5), "uncore_watts": (5.0, 1.0),
        "core_watts": (1.5, 0.2), "awake_core_watts": (0.5, 0.2),
    }  # fmt: skip
    return {
        "host_id": "made-up host", "scope": "all packages",
        "parameters": [parameter(name, *one) for name, one in watts.items()],
        "covariance": [
            [a[1] * b[1] * (i == j) for j, b in enumerate(watts.values())]
            for i, a in enumerate(watts.values())
        ],
        "cpu_cores": 16,
    }  # fmt: skip


def profile_data() -> dict[str, Any]:
    return {
        "schema_version": 1, "device": "made-up-1tb", "model_name": "Made Up 1 TB",
        "profile_version": "1", "generator": "test", "recipe": "test", "sources": [],
        "valid_for": {
            "firmware": [], "pcie_generation": [], "aspm_policy": None,
            "temperature_celsius": None, "power_loss_protection": None, "notes": [],
        },
        "defaults": {
            "operation": "read", "pattern": "random", "request_bytes": 4096, "queue_depth": 1,
            "jobs": 1, "engine": "io_uring", "completion": "interrupt", "power_state": 0,
            "scheduler": "none",
        },
        "default_sources": {}, "max_transfer_bytes": 524288, "capacity_bytes": 10**12,
        "endurance_bytes_written": parameter("endurance", 6e14, 0.0, "bytes"),
        "between_drives_relative_sd": parameter("between", 0.03, 0.0, "1"),
        "surfaces": [surface("read", "random", 1.0), surface("write", "random", 1.5)],
        "host": {
            "host_id": "made-up host", "cpu_cores": 16, "sharpness": 6.0,
            "paths": [
                path("io_uring", "interrupt", False, 6000.0, 2800.0),
                path("io_uring", "polled", False, 3000.0, 1900.0),
                path("io_uring", "interrupt", True, 4000.0, 2000.0),
                path("libaio", "interrupt", False, 7000.0, 3000.0),
                path("psync", "interrupt", False, 5000.0, 2500.0),
                path("spdk", "polled", False, 500.0, 1300.0),
            ],
            "schedulers": [{
                "scheduler": "kyber", "added_latency_ns": 1500.0, "added_core_time_ns": 700.0,
                "relative_sd": 0.1, **PUBLISHED,
            }],
        },
        "power_state_effects": [
            state_effect(state, operation, 1.2e9 / state)
            for state in (1, 2) for operation in ("read", "write")
        ],
        "mixed": [], "device_power": device_power(),
        "write_state": {
            "cached_bytes": parameter("cached", 9e10, 1e9, "bytes"),
            "transition_bytes": parameter("over", 1e11, 1e9, "bytes"),
            "collecting_bytes_per_second": parameter("rate", 1.5e8, 0.05, "bytes/s"),
            "recovery_bytes_per_second_per_byte": parameter("recovery", 0.0, 0.0, "1/s"),
            "background_joules_per_byte": parameter("background", 5e-10, 1e-10, "J/B"),
            "background_seconds_after_write": {},
        },
        "host_power": host_power(),
        "system_power": {
            "host_id": "made-up host", "floor_watts": parameter("floor", 30.0, 2.0),
            "slope": parameter("slope", 1.1, 0.05, "1"), "relative_sd": 0.03,
        },
        "gaps": [],
    }  # fmt: skip


MakeProfile = Callable[..., DeviceProfile]


@pytest.fixture(scope="session")
def make_profile() -> MakeProfile:
    """The made-up drive, with top-level fields of its profile replaced."""

    def make(**changes: Any) -> DeviceProfile:
        return DeviceProfile.model_validate(profile_data() | changes)

    return make


@pytest.fixture(scope="session")
def recommender(make_profile: MakeProfile) -> Recommender:
    return Recommender(make_profile())


@pytest.fixture(scope="session")
def ask() -> Callable[..., WorkloadProfile]:
    """A workload profile of 4 KiB random reads, with parts of it replaced."""

    def build(workload: dict[str, Any] | None = None, **parts: Any) -> WorkloadProfile:
        facts = {"operation": "read", "useful_request_bytes": 4096} | (workload or {})
        return parse_workload({"workload": facts, **parts})

    return build
