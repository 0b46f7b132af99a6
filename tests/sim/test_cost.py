"""Predicted times of simulations tell long ones from short ones."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from scipy.stats import spearmanr

from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.formats.files import read_drive
from iojoule.sim.presets import preset_path
from iojoule.sim.sweep import TRACE_LINE_BYTES, predicted_seconds
from iojoule.sim.workload import FlowConfig, FlowKind, Generator, Scenario

DRIVE = read_drive(preset_path("samsung-980-pro-1tb")).device


def test_predictions_rank_runs_as_their_events_do() -> None:
    predicted, events = [], []
    for reads, depth, sectors in product((100, 70), (1, 8, 64), (8, 64, 512)):
        flow = FlowConfig(
            read_percent=reads, queue_depth=depth, size_mean_sectors=sectors, stop_ns=5_000_000
        )
        scenario = Scenario(flows=(flow,))
        predicted.append(predicted_seconds(DRIVE, scenario))
        events.append(EmbeddedEngine().run(DRIVE, scenario).events or 0)
    assert float(spearmanr(predicted, events).statistic) > 0.8


def test_twice_the_requests_take_about_twice_the_time() -> None:
    def seconds(**asked: object) -> float:
        return predicted_seconds(DRIVE, Scenario(flows=(FlowConfig.model_validate(asked),)))

    base = seconds(stop_ns=0, total_requests=1)
    open_loop = {"generator": Generator.BANDWIDTH, "bandwidth_bytes_per_second": 400_000_000}
    for one, two in (
        ({"stop_ns": 10**9}, {"stop_ns": 2 * 10**9}),
        ({"total_requests": 10**5}, {"total_requests": 2 * 10**5}),
        (
            open_loop | {"stop_ns": 10**9},
            open_loop | {"stop_ns": 10**9, "bandwidth_bytes_per_second": 800_000_000},
        ),
    ):
        assert 1.99 < (seconds(**two) - base) / (seconds(**one) - base) < 2.01


def test_a_trace_counts_by_its_lines(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    short, long = [], []
    for lines, found in ((1000, short), (100_000, long)):
        trace.write_bytes(b"x" * TRACE_LINE_BYTES * lines)
        flow = FlowConfig(kind=FlowKind.TRACE, trace_path=str(trace))
        found.append(predicted_seconds(DRIVE, Scenario(flows=(flow,))))
    assert long[0] > 10 * short[0]
    missing = FlowConfig(kind=FlowKind.TRACE, trace_path=str(tmp_path / "none"))
    assert predicted_seconds(DRIVE, Scenario(flows=(missing,))) < short[0]
