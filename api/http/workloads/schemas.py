"""What the service says of workload profiles."""

from __future__ import annotations

from pydantic import BaseModel

from iojoule.recommender.workloads.presets import Preset

__all__ = ["Preset", "PresetList"]

EXAMPLE = """\
[global]
ioengine=libaio
iodepth=16
bs=8k
[oltp]
rw=randrw
rwmixread=70
rate_iops=14000,6000
"""


class PresetList(BaseModel):
    """Workload profiles of well-known benchmarks."""

    iojoule_version: str
    presets: list[Preset]
