"""What the service counts of itself, in the names and base units of Prometheus."""

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

SEVERAL_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""A folder in which several processes of one service count together (prometheus-client)."""

BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip

LATENCY = Histogram(
    "iojoule_http_request_duration_seconds",
    "From the request to the end of its answer.",
    ("method", "route", "status"),
    buckets=BUCKETS,
)
REFUSED = Counter(
    "iojoule_http_requests_refused", "Requests that the gate did not let pass.", ("status",)
)
UNDER_WAY = Gauge(
    "iojoule_http_requests_in_progress",
    "Requests under way that hold one of a limited number of places.",
    ("lane",),
    multiprocess_mode="livesum",
)
PREDICTIONS = Counter(
    "iojoule_predictions",
    "Predictions given, recommended configurations too, by the evidence they rest on.",
    ("evidence",),
)
RECOMMENDER_LOOKUPS = Counter(
    "iojoule_recommender_cache_lookups", "How often a drive's recommender was asked for."
)
RECOMMENDER_MISSES = Counter(
    "iojoule_recommender_cache_misses", "How often it had to be made first."
)

JOBS = ("iojoule_jobs", "Jobs in the state, those of all replicas, by kind and state.")
STATE_UP = ("iojoule_state_up", "Whether the database could be read: 1 or 0.")
BUILD = ("iojoule_build_info", "Always 1; which version this is.")


Counted = Tally[tuple[str, ...]]
"""How often what happened while answers were computed, by figure and label."""

_OF_ANSWERS = (PREDICTIONS, RECOMMENDER_LOOKUPS, RECOMMENDER_MISSES)


def counted() -> Counted:
    """What this process has counted of answers so far."""
    found: Counted = Tally()
    for place, figure in enumerate(_OF_ANSWERS):
        for sample in next(iter(figure.collect())).samples:
            if sample.name.endswith("_total"):
                found[str(place), *sample.labels.values()] = int(sample.value)
    return found


def add(counted: Counted) -> None:
    """Count what another process has counted; where all count together, it has done so itself."""
    if SEVERAL_VARIABLE in os.environ:
        return
    for (place, *labels), count in counted.items():
        figure = _OF_ANSWERS[int(place)]
        (figure.labels(*labels) if labels else figure).inc(count)


def count_predictions(words: Iterable[str]) -> None:
    """Count predictions, each by the word that says what it rests on."""
    for word, count in Tally(words).items():
        PREDICTIONS.labels(word).inc(count)


def count_recommendation(words: Iterable[str]) -> None:
    """Count one, by the weakest of the words that say what its quantities rest on."""
    found = [Evidence(word) for word in words]
    count_predictions([max(found, key=list(Evidence).index)] if found else [])


class _Read:
    """Figures that are read when they are asked for."""

    def __init__(self, jobs: Mapping[tuple[str, str], int] | None) -> None:
        self._jobs = jobs

    def collect(self) -> Iterable[Metric]:
        """Jobs, where they could be read."""
        build = GaugeMetricFamily(*BUILD, labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield GaugeMetricFamily(*STATE_UP, value=self._jobs is not None)
        if self._jobs is not None:
            jobs = GaugeMetricFamily(*JOBS, labels=["kind", "state"])
            for (kind, state), count in sorted(self._jobs.items()):
                jobs.add_metric([kind, state], count)
            yield jobs


def exposed(jobs: Mapping[tuple[str, str], int] | None) -> bytes:
    """All figures in Prometheus' text format.

    Args:
        jobs: How many, by kind and state; None: the database is away.
    """
    counted: CollectorRegistry = REGISTRY
    if SEVERAL_VARIABLE in os.environ:
        counted = CollectorRegistry()
        multiprocess.MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    read = CollectorRegistry()
    read.register(_Read(jobs))
    return generate_latest(counted) + generate_latest(read)
