"""A made-up drive's characteristics, for what is made of them."""

from __future__ import annotations

from iojoule.datasets.characteristics import (
    Characteristics,
    Estimate,
    Evidence,
    ExperimentResult,
    Row,
    Status,
)
from iojoule.datasets.measured_drive import DeclaredState, MeasuredDrive

MEBIBYTE = 1 << 20


def estimate(value: float, unit: str, share: float = 0.01) -> Estimate:
    spread = share * value
    return Estimate(
        value=value, low=value - spread, high=value + spread, unit=unit, method="made up"
    )


def answer(**estimates: Estimate) -> ExperimentResult:
    return ExperimentResult(
        title="a question",
        purpose="a purpose",
        sources=("a paper",),
        status=Status.ANSWERED,
        estimates=estimates,
        evidence=Evidence(rows=(Row(label="a row", values={"iops": 1.0}),)),
    )


def characteristics(capacity_bytes: int = 576 * MEBIBYTE) -> Characteristics:
    states = [
        DeclaredState(
            index=0, max_power_watts=8.5, operational=True, entry_latency_us=0, exit_latency_us=0
        ),
        DeclaredState(
            index=1,
            max_power_watts=4.2,
            operational=True,
            entry_latency_us=1000,
            exit_latency_us=1000,
        ),
        DeclaredState(
            index=2,
            max_power_watts=0.4,
            operational=False,
            entry_latency_us=10000,
            exit_latency_us=25000,
        ),
    ]
    unit = Estimate(value=4096, low=4096, high=4096, unit="bytes", method="made up")
    return Characteristics(
        generator="test",
        scale="quick",
        began_utc="2026-01-01T00:00:00+00:00",
        drive=MeasuredDrive(
            model="made-up drive",
            capacity_bytes=capacity_bytes,
            block_bytes=512,
            max_transfer_bytes=131072,
            power_states=tuple(states),
        ),
        answers={
            "idle": answer(
                idle_watts_ps0=estimate(1.6, "W"),
                idle_watts_ps1=estimate(1.45, "W"),
                idle_watts_ps2=estimate(0.4, "W"),
                wake_seconds_ps2=estimate(0.03, "s"),
                wake_seconds_ps1=Estimate(unit="s", method="made up", reason="none seen"),
            ),
            "slc-cache": answer(
                cache_bytes=estimate(36 * MEBIBYTE, "bytes", 0.1),
                cache_bytes_by_power=estimate(32 * MEBIBYTE, "bytes", 0.1),
                fold_delay_seconds=estimate(1.0, "s", 0.2),
            ),
            "alignment": answer(mapping_unit_bytes=unit),
        },
    )
