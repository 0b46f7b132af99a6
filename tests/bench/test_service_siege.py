"""The service under load and under attack at the same time: others hardly feel it.

SOAK_SECONDS says how long, as for the soak; the bars are for an hour.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.bench.siege import Siege
from tests.bench.test_service_load import recommending
from tests.bench.test_service_soak import (
    CAPACITY_SECONDS,
    CLIENTS,
    SAMPLE_SECONDS,
    SECONDS,
    SHARE,
    WARM_SECONDS,
    WINDOW_SECONDS,
    Load,
    Watch,
    dataset_of,
    sizes,
    tell,
)
from tests.watched_service import Service

MEMORY_GROWTH = 0.1
DEVICES_P99_SECONDS = 0.5


def test_a_siege_costs_no_memory_and_others_are_answered(tmp_path: Path) -> None:
    with Service(tmp_path / "state") as service:
        load, watch = Load(service, dataset_of(service), 429), Watch(service)
        siege = Siege(service.port, lambda: recommending(load.questions))
        with load.running():
            time.sleep(CAPACITY_SECONDS)
            capacity = load.answered / CAPACITY_SECONDS
            load.every_seconds = CLIENTS / (SHARE * capacity)
            load.seconds.clear()
            with siege.running():
                begun, own = time.perf_counter(), time.process_time()
                while (at := time.perf_counter() - begun) < SECONDS:
                    watch.look(at)
                    time.sleep(SAMPLE_SECONDS)
        own = time.process_time() - own
        early = watch.between(WARM_SECONDS, WARM_SECONDS + WINDOW_SECONDS)
        late = watch.between(SECONDS - WINDOW_SECONDS, SECONDS)
        tell(load, capacity, early, late, own, sizes(tmp_path / "state"))
        ranks = statistics.quantiles(siege.devices_seconds, n=100, method="inclusive")
        print(
            f"  /devices beside it     {len(siege.devices_seconds):7,}  median "
            f"{ranks[49] * 1e3:6.0f} ms  p99 {ranks[98] * 1e3:6.0f} ms\n  "
            + ", ".join(f"{count} x {name}" for name, count in sorted(siege.told.items()))
        )
    assert not load.failures, load.failures[:5]
    assert not siege.failures, siege.failures[:5]
    assert sum(late[0].values()) <= (1 + MEMORY_GROWTH) * sum(early[0].values())
    assert ranks[98] < DEVICES_P99_SECONDS
