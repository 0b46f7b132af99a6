"""Large requests of a drive that nobody measured: patterns meet, and SATA writes lose a little."""

from __future__ import annotations

import numpy as np
import pytest

from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.vocabulary import Operation
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.fit.learn_prior import catalogue_drives
from iojoule.model.prior.build import build_profile
from iojoule.model.prior.facts import (
    PATTERN_SD,
    apart_share,
    facts_of,
    join_large_requests,
    large_write_loss,
)

DRIVE = load_catalogue().get("samsung-pm871-240gb")


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE])
def test_patterns_meet_where_a_request_covers_all_dies(operation: Operation) -> None:
    profile = build_profile(facts_of(DRIVE))
    kinds = {str(s.pattern): s for s in profile.surfaces if s.operation is operation}
    random, sequential = kinds["random"], kinds["sequential"]
    for name in ("unloaded_latency_ns", "capacity_operations_per_second"):
        one, other = getattr(random, name), getattr(sequential, name)
        assert one[-1] == pytest.approx(other[-1])
        assert one[0] != pytest.approx(other[0])


def test_writes_meet_at_smaller_sizes_than_reads() -> None:
    for size in (15.0, 16.0, 17.0, 18.0):
        assert apart_share(Operation.WRITE, size) < apart_share(Operation.READ, size)


def test_random_requests_beyond_the_largest_knot_go_as_sequential_ones() -> None:
    sizes = [1 << 20, 2 << 20, 4 << 20]
    for drive in catalogue_drives():
        profile = build_profile(drive)
        if profile.interface != "nvme":
            continue
        predictor = Predictor(profile)
        kinds = [(o, p) for o in ("read", "write") for p in ("random", "sequential")]
        asked = {
            "operation": [operation for operation, _ in kinds for _ in sizes],
            "pattern": [pattern for _, pattern in kinds for _ in sizes],
            "request_bytes": sizes * len(kinds),
            "queue_depth": 1,
        }
        told, _ = predictor.predict_columns(asked, len(kinds) * len(sizes))
        rates = told["throughput_bytes_per_second"].value.reshape(2, 2, len(sizes))
        for operation, (random, sequential) in zip(("read", "write"), rates, strict=True):
            assert (np.diff(random) >= -1e-3 * random[:-1]).all(), (drive.device, operation)
            assert random == pytest.approx(sequential, rel=0.03), (drive.device, operation)


def test_without_sequential_surfaces_nothing_changes() -> None:
    profile = build_profile(facts_of(DRIVE))
    alone = [s for s in profile.surfaces if str(s.pattern) == "random"]
    assert join_large_requests(alone) == alone


def test_a_finding_does_not_answer_for_its_own_loss() -> None:
    every, _ = large_write_loss()
    without, sd = large_write_loss({"001-041"})
    assert without < every  # 12 % is above the mean of the others
    assert large_write_loss({"001-166"}) == (without, sd)  # the same runs
    assert sd > 0.0


def test_a_published_ratio_holds_for_its_drive_and_is_not_learned_from() -> None:
    drive = load_catalogue().get("kingston-sv300s37a120g")
    kept = drive.model_copy(
        update={"facts": [f for f in drive.facts if "over_random" not in f.metric]}
    )
    told, untold = (
        {(s.operation, str(s.pattern)): s for s in build_profile(facts_of(one)).surfaces}
        for one in (drive, kept)
    )
    ratios = [
        np.divide(*(one[Operation.WRITE, p].capacity_operations_per_second[3] for p in PATTERNS))
        for one in (told, untold)
    ]
    assert ratios[0] > 1.1 > ratios[1]
    observed = {o.kind for drive in catalogue_drives() for o in drive.observations}
    assert "measured_ratio" not in observed


PATTERNS = ("sequential", "random")


def test_large_random_requests_are_doubted_as_the_sequential_ones_that_they_go_as() -> None:
    surfaces = {
        (str(surface.operation), str(surface.pattern)): surface
        for surface in build_profile(facts_of(DRIVE)).surfaces
    }
    random, sequential = (surfaces["write", name].doubt for name in ("random", "sequential"))
    assert random is not None
    assert sequential is not None
    for own, other in zip(random.capacity_sd[5:], sequential.capacity_sd[5:], strict=True):
        assert own == pytest.approx(np.hypot(other, PATTERN_SD), rel=1e-5)
    assert random.capacity_sd[0] != pytest.approx(sequential.capacity_sd[0], rel=0.05)
