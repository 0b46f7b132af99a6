"""Budgets of fitting and loading profiles: 30 s and 50 ms, within 400 MB."""

from __future__ import annotations

import resource
import statistics
import time
from pathlib import Path

from iojoule.datasets.profile import parse_profile
from iojoule.model.fit.build import fit_profile, load_measurements
from iojoule.model.recipe import load_recipe
from tests.reference_data import PUBLIC_DATA, needs_public_data

DEVICE = "samsung-980-pro-1tb"
ROOT = Path(__file__).resolve().parents[2]


def test_loading_the_profile_stays_within_its_budget() -> None:
    text = (ROOT / "datasets" / "profiles" / f"{DEVICE}.json").read_bytes()
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        parse_profile(text, DEVICE)
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(f"\nload {DEVICE}: median {median * 1e3:.1f} ms, {len(text) / 1e3:.0f} kB")
    assert median < 0.05


@needs_public_data
def test_fitting_the_profile_stays_within_its_budget() -> None:
    recipe = load_recipe(DEVICE)
    start = time.perf_counter()
    measurements, sources = load_measurements(recipe, PUBLIC_DATA)
    fit_profile(recipe, measurements, sources)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nfit {DEVICE}: {seconds:.1f} s from files to profile, peak {peak:.0f} MB")
    assert seconds < 30
    assert peak < 400
