"""Recommendations made up for tests, in the layout of `iojoule recommend -o json`."""

from __future__ import annotations

from typing import Any

from iojoule.api.acting.answer_file import Answer
from iojoule.recommender.response import ANSWER_VERSION

TODAY: dict[str, Any] = {
    "request_bytes": 4096,
    "queue_depth": 4,
    "jobs": 1,
    "engine": "io_uring",
    "completion": "interrupt",
    "submission_polling": False,
    "scheduler": "mq-deadline",
    "power_state": 0,
}
MEAN_NS, P99_NS = 1e6, 4e6


def estimate(value: float) -> dict[str, Any]:
    return {"value": value, "low": 0.9 * value, "high": 1.1 * value, "evidence": "measured"}


def row(configuration: dict[str, Any]) -> dict[str, Any]:
    return {
        "configuration": configuration,
        "latency_mean_ns": estimate(MEAN_NS),
        "latency_p99_ns": estimate(P99_NS),
        "latency_p50_ns": None,
        "iops": estimate(1000.0),
    }


def answer_data(
    recommended: dict[str, Any] | None = None,
    current: dict[str, Any] | None = None,
    sla: dict[str, float] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An answer that differs from TODAY in `recommended`."""
    today = TODAY | (current or {})
    return {
        "answer_version": ANSWER_VERSION,
        "workload": "test",
        "device": "my-drive",
        "model_name": "My drive",
        "scope": "device",
        "demand_bytes_per_second": None,
        "sla": sla or {},
        "recommended": row(today | (recommended or {})),
        "current": row(today),
        "saving": {"percent": estimate(10.0), "verdict": "proven", "reason": "made up"},
        "pareto": [],
        **more,
    }


def answer(*args: Any, **more: Any) -> Answer:
    return Answer.model_validate(answer_data(*args, **more))
