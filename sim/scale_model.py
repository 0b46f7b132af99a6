"""A scale model of a drive: what needs hours on the drive happens n times sooner, the rest as ever.

A block has n times fewer pages and is erased n times faster; nothing else changes. Under the same
load the model's dies, channels, link and buffer are as busy, and a request takes as long. What
depends on how often a block has been filled goes n times faster: the pseudo-SLC cache is full, and
garbage collection begins and settles, after an n-th of the time. So an n-th of a day, with its
rates, on addresses n times fewer, shows the whole day.

The idea is that of spatial sampling for caches (Waldspurger et al., "Cache Modeling and
Optimization using Miniature Simulations", USENIX ATC 2017): n times fewer addresses, n times less
cache. There time stays and the load shrinks, which would leave the dies idle.
"""

from __future__ import annotations

from iojoule.sim.device import DeviceConfig, FlashTechnology
from iojoule.sim.physical_options import PhysicalOptions

PAGES_MIN = 24
"""Of a block in a model; with fewer, a block is hardly more than a page on each word line."""


def scale_model(device: DeviceConfig, wanted: float) -> tuple[DeviceConfig, float]:
    """A model of the drive, and its scale: the one nearest to `wanted` (1: the drive itself).

    Blocks keep a multiple of the pages of a word line, and at least `PAGES_MIN` pages, so the scale
    may be smaller than wanted.
    """
    line = 1 + list(FlashTechnology).index(device.flash_technology)
    pages = max(round(device.pages_per_block / wanted / line) * line, PAGES_MIN)
    if wanted <= 1 or pages >= device.pages_per_block:
        return device, 1.0
    scale = device.pages_per_block / pages
    return device.model_copy(
        update={
            "pages_per_block": pages,
            "block_erase_ns": round(device.block_erase_ns / scale),
            # the share of the mapping table that is in memory
            "cmt_bytes": round(device.cmt_bytes / scale),
            "physical": _physical(device, scale),
        }
    ), scale


def _physical(device: DeviceConfig, scale: float) -> PhysicalOptions:
    physical = device.physical
    slc, energy, power = physical.slc, physical.energy, physical.power

    def less(joules: float | None) -> float | None:
        return None if joules is None else joules / scale

    return physical.model_copy(
        update={
            "slc": slc.model_copy(update={"block_erase_ns": round(slc.block_erase_ns / scale)}),
            "energy": energy.model_copy(
                update={
                    "block_erase_joules": less(energy.block_erase_joules),
                    "slc_block_erase_joules": less(energy.slc_block_erase_joules),
                }
            ),
            "power": power.model_copy(
                update={
                    "commands": tuple(
                        each.model_copy(update={"time_ns": round(each.time_ns / scale)})
                        for each in power.commands
                    )
                }
            ),
            "warmup_ns": round(physical.warmup_ns / scale),
        }
    )
