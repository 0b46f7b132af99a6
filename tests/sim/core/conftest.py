"""A small drive and a flow in the core's own structures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iojoule.sim import _core

Drive = Callable[..., _core.DeviceConfig]
Flow = Callable[..., _core.FlowConfig]


@pytest.fixture(params=["compat", "physical"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def drive(mode: str) -> Drive:
    """Two channels of two chips, one die each, two planes: 32 MiB, empty."""

    def make(**fields: object) -> _core.DeviceConfig:
        device = _core.DeviceConfig()
        small = {
            "mode": mode,
            "preconditioning": False,
            "gc_preemptible": False,
            "cache_bytes": 1 << 20,
            "channels": 2,
            "chips_per_channel": 2,
            "dies_per_chip": 1,
            "blocks_per_plane": 32,
            "pages_per_block": 16,
            "overprovisioning_ratio": 0.2,
        }
        for name, value in (small | fields).items():
            setattr(device, name, value)
        return device

    return make


@pytest.fixture
def flow() -> Flow:
    """4 KiB random reads over the whole drive for 10 ms, four at a time."""

    def make(**fields: object) -> _core.FlowConfig:
        made = _core.FlowConfig()
        usual = {
            "channel_ids": [0, 1],
            "chip_ids": [0, 1],
            "die_ids": [0],
            "plane_ids": [0, 1],
            "queue_depth": 4,
            "stop_ns": 10_000_000,
        }
        for name, value in (usual | fields).items():
            setattr(made, name, value)
        return made

    return make
