"""Sums of groups as counters: a counter that falls is a reset to whoever reads it."""

import random

import numpy as np

from iojoule.meter.attribution import Part
from iojoule.meter.group_sums import ENDED_GROUPS, OTHERS, Sums


def test_no_rounding_makes_a_counter_fall() -> None:
    drawn = random.Random(19)
    sums = Sums("io.stat", named_max=1)
    sums.follow({"S1": "nvme0n1"})
    before: dict[str, tuple[float, float]] = {}
    for turn in range(300):
        sums.begin_interval()
        joules = np.zeros((3, len(Part)))
        for row, (least, most) in enumerate([(-12, -3), (0, 4), (-12, -3)]):
            joules[row, [Part.READ, Part.CPU]] = 10 ** drawn.uniform(least, most)
        keys = (ENDED_GROUPS, f"/{turn}", f"/{turn + 1}")
        sums.add([sums.row(("S1", key)) for key in keys], joules, 1.0)
        sums.end({f"/{turn - 1}"})
        counters = {one.group: (one.joules, one.cpu_joules) for one in sums.readings().counters()}
        for name in {ENDED_GROUPS, OTHERS} & before.keys():
            assert min(np.subtract(counters[name], before[name])) >= 0.0
        before = counters
    assert before.keys() >= {ENDED_GROUPS, OTHERS}
