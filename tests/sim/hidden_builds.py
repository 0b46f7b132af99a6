"""Drives whose physics nobody knows, built otherwise: what simulated ratios err on them.

A hidden drive is a preset with its times, rates and energies drawn anew. It is the truth, both as
it is and built otherwise; whoever asks has measured it as it is and knows only the preset. The
absolute answer is what the preset says of the changed drive; the ratio's is the measurement times
what the preset says of the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from iojoule.datasets.vocabulary import Operation, Pattern
from iojoule.sim.device import DeviceConfig
from iojoule.sim.formats.files import read_drive
from iojoule.sim.modified_drive import changed_drive, simulated
from iojoule.sim.presets import preset_path

PRESETS = ("samsung-980-pro-1tb", "samsung-pm9a3-960gb")
Build = tuple[tuple[str, Any], ...]

BUILDS: tuple[Build, ...] = (
    (("channels", 4),),
    (("channels", 16),),
    (("dies", 2),),
    (("dies", 8),),
    (("flash", "slc"),),
    (("link_generation", 3),),
    (("channel_megatransfers_per_second", 2400),),
    (("page_read_ns", (90_000,) * 3), ("page_program_ns", (1_500_000,) * 3)),
)
TIME_SD, ENERGY_SD = 0.25, 0.4
"""Log standard deviations of what is drawn: as wide as published drives of a class are apart."""


@dataclass(frozen=True)
class Miss:
    """One cell of one hidden drive built otherwise.

    Attributes:
        quantity: latency, p50, p99, p999 or watts.
        change: Log of the simulated ratio.
        ratio: Log error of the ratio's answer; `absolute` of the preset's own figure.
    """

    quantity: str
    change: float
    ratio: float
    absolute: float


@cache
def preset(name: str) -> DeviceConfig:
    return read_drive(preset_path(name)).device


def hidden(number: int) -> tuple[DeviceConfig, DeviceConfig]:
    """A preset, and the hidden drive of that number made from it."""
    known = preset(PRESETS[number % len(PRESETS)])
    random = np.random.default_rng(number)

    def drawn(value: float, sd: float = TIME_SD) -> float:
        return float(value * np.exp(sd * random.standard_normal()))

    physical = known.physical
    read, program = drawn(1.0), drawn(1.0)
    options = physical.model_copy(
        update={
            "nand": physical.nand.model_copy(
                update={"ecc_decode_ns": round(drawn(physical.nand.ecc_decode_ns))}
            ),
            "controller": physical.controller.model_copy(
                update={
                    name: round(drawn(getattr(physical.controller, name)))
                    for name in ("command_latency_ns", "command_occupancy_ns")
                }
            ),
            "slc": physical.slc.model_copy(
                update={
                    "page_read_ns": round(drawn(physical.slc.page_read_ns)),
                    "page_program_ns": round(drawn(physical.slc.page_program_ns)),
                }
            ),
            "energy": physical.energy.model_copy(
                update={
                    name: drawn(getattr(physical.energy, name), ENERGY_SD)
                    for name in (
                        "array_read_watts",
                        "array_program_watts",
                        "array_erase_watts",
                        "controller_joules_per_command",
                        "controller_joules_per_byte",
                    )
                }
            ),
        }
    )
    return known, known.model_copy(
        update={
            "page_read_ns": tuple(round(read * one) for one in known.page_read_ns),
            "page_program_ns": tuple(round(program * one) for one in known.page_program_ns),
            "channel_megatransfers_per_second": round(
                drawn(known.channel_megatransfers_per_second)
            ),
            "physical": options,
        }
    )


def misses(
    number: int,
    in_flight: tuple[int, ...],
    sizes: tuple[int, ...],
    builds: Sequence[Build] = BUILDS,
) -> Iterator[Miss]:
    """What both answers err on one hidden drive, over all builds and cells."""
    known, truth = hidden(number)
    for build in builds:
        guess, real = changed_drive(known, build), changed_drive(truth, build)
        for operation, depth, size in product((Operation.READ, Operation.WRITE), in_flight, sizes):
            at = (operation, Pattern.RANDOM, 0, depth, size)
            was, told, measured, became = (
                simulated(device, *at) for device in (known, guess, truth, real)
            )
            for quantity, place in (("latency", None), ("p50", 0), ("p99", 1), ("p999", 2)):
                one, other, mine, result = (
                    -each.log_iops + (0.0 if place is None else each.log_tails[place])
                    for each in (was, told, measured, became)
                )
                yield Miss(quantity, other - one, mine + other - one - result, other - result)
            least = min(known.physical.energy.active_watts, was.watts)
            rate = np.exp(told.log_iops - was.log_iops)
            own = np.log(told.watts / (least + (was.watts - least) * rate))
            # the profile's law is told the joules a request of the measured drive
            base = min(truth.physical.energy.active_watts, measured.watts)
            moved = np.exp(told.log_iops - was.log_iops)
            law = base + (measured.watts - base) * moved
            yield Miss(
                "watts",
                float(own),
                float(np.log(law) + own - np.log(became.watts)),
                float(np.log(told.watts / became.watts)),
            )
