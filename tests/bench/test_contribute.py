"""Budget of a contribution: a campaign of a working day, with its raw samples, in 60 s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tests.contributions as campaigns
from iojoule.api.application.contribute import contribute

HERTZ, SECONDS, REPEATS = 20_000.0, 30.0, 3


def test_a_working_day_is_contributed_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, depths = [1 << power for power in range(12, 19)], [1 << power for power in range(7)]
    monkeypatch.setattr(campaigns, "GRID", list(product(("random", "sequential"), sizes, depths)))
    made = campaigns.runs(REPEATS)
    noise = campaigns.NOISE_WATTS * np.random.default_rng(0).standard_normal(int(HERTZ * SECONDS))

    def at_length() -> Iterator[campaigns.One]:
        for place, one in enumerate(made):
            began = campaigns.BEGAN + timedelta(seconds=90 * place)
            yield replace(one, watts=one.row["device_power_watts"] + noise, began=began)

    monkeypatch.setattr(campaigns, "HERTZ", HERTZ)
    monkeypatch.setattr(campaigns, "SECONDS", SECONDS)
    campaign = campaigns.write_campaign(tmp_path / "campaign", at_length())
    start = time.perf_counter()
    found = contribute(campaign, tmp_path / "folder")
    seconds = time.perf_counter() - start
    samples = len(made) * len(noise)
    print(f"\ncontribute {found.about.rows} runs, {samples:.3g} samples: {seconds:.1f} s")
    assert seconds < 60
