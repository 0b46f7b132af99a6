"""Metrics of the service, in the names and base units of Prometheus."""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import Iterable, Mapping

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from iojoule import __version__
from iojoule.datasets.vocabulary import Evidence

MULTIPROCESS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""A folder in which several processes of a service share their counts (prometheus-client)."""

BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)

LATENCY = Histogram(
    "iojoule_http_request_duration_seconds",
    "From the request to the end of its response.",
    ("method", "route", "status"),
    buckets=BUCKETS,
)
REFUSED = Counter(
    "iojoule_http_requests_refused", "Requests that access control rejected.", ("status",)
)
IN_PROGRESS = Gauge(
    "iojoule_http_requests_in_progress",
    "Requests in progress that count towards a limit.",
    ("lane",),
    multiprocess_mode="livesum",
)
PREDICTIONS = Counter(
    "iojoule_predictions",
    "Predictions, those of recommended configurations too, by evidence.",
    ("evidence",),
)
RECOMMENDER_LOOKUPS = Counter(
    "iojoule_recommender_cache_lookups", "Lookups of a drive's recommender."
)
RECOMMENDER_MISSES = Counter(
    "iojoule_recommender_cache_misses", "Lookups that had to build the recommender."
)

JOBS = ("iojoule_jobs", "Jobs in the state, those of all replicas, by kind and state.")
STATE_UP = ("iojoule_state_up", "Whether the database could be read: 1 or 0.")
BUILD = ("iojoule_build_info", "Always 1; which version this is.")


Counts = Tally[tuple[str, ...]]
"""Counts by index of the counter in `_COMPUTED` and labels."""

_COMPUTED = (PREDICTIONS, RECOMMENDER_LOOKUPS, RECOMMENDER_MISSES)


def counted() -> Counts:
    """The counts of computations in this process so far."""
    counts: Counts = Tally()
    for index, counter in enumerate(_COMPUTED):
        for sample in next(iter(counter.collect())).samples:
            if sample.name.endswith("_total"):
                counts[str(index), *sample.labels.values()] = int(sample.value)
    return counts


def add(counts: Counts) -> None:
    """Add the counts of another process, unless the processes share their counts."""
    if MULTIPROCESS_VARIABLE in os.environ:
        return
    for (index, *labels), count in counts.items():
        counter = _COMPUTED[int(index)]
        (counter.labels(*labels) if labels else counter).inc(count)


def count_predictions(evidence: Iterable[str]) -> None:
    """Count predictions, by the evidence of each."""
    for kind, count in Tally(evidence).items():
        PREDICTIONS.labels(kind).inc(count)


def count_recommendation(evidence: Iterable[str]) -> None:
    """Count a recommendation, by the weakest evidence of its quantities."""
    kinds = [Evidence(kind) for kind in evidence]
    count_predictions([max(kinds, key=list(Evidence).index)] if kinds else [])


class _StateCollector:
    """Metrics that are read from the state on each scrape."""

    def __init__(self, jobs: Mapping[tuple[str, str], int] | None) -> None:
        self._jobs = jobs

    def collect(self) -> Iterable[Metric]:
        """Version, state of the database and jobs by kind and state."""
        build = GaugeMetricFamily(*BUILD, labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield GaugeMetricFamily(*STATE_UP, value=self._jobs is not None)
        if self._jobs is not None:
            jobs = GaugeMetricFamily(*JOBS, labels=["kind", "state"])
            for (kind, state), count in sorted(self._jobs.items()):
                jobs.add_metric([kind, state], count)
            yield jobs


def exposition(jobs: Mapping[tuple[str, str], int] | None) -> bytes:
    """All metrics in Prometheus' text format.

    Args:
        jobs: Number by kind and state; None: the database is away.
    """
    registry: CollectorRegistry = REGISTRY
    if MULTIPROCESS_VARIABLE in os.environ:
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    own = CollectorRegistry()
    own.register(_StateCollector(jobs))
    return generate_latest(registry) + generate_latest(own)
