"""What configurations truly do where a demand arrives by chance: one by one, or in bursts.

One by one, each configuration with capacity for the demand is simulated once more, in an open
loop: Poisson arrivals, as many slots as its queues hold, latency from the arrival of a request. The
drive, its flash, the seed and the number of requests are those of the full-speed table; so what is
true is what such a run shows, the filling of buffers and of free blocks included. Watts of the
drive are the simulator's at that rate. The hidden effects of the table act as they do at full
speed: what is slower by a factor takes so much longer, so that the run is one at a rate so much
higher on a clock so much faster.

The simulator's queues hold two requests at the least. A single slot is a queue of one server
instead: service times of a closed loop of one request that pauses as long as the rate leaves it
(so that the drive finds time for its own work), and the wait before them by Lindley's recursion.

In bursts, latency counts from arrival too. A burst is as large as the queue and is served at full
speed: it takes N / X seconds, N requests in flight at X requests a second. Bursts come by chance
(Poisson), and one waits for those before it (Lindley's recursion again); its requests take what
they take at full speed besides, log-normal through median and p99. Between bursts the drive rests.

Busy cores of the host are those of the simulator. Who polls spins while any of his requests is
under way, which is the share 1 - exp(-l T) of the time of each job (M/G/infinity: l arrivals a
second to the job, T the mean latency).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from iojoule.api.validating.truth import Table, digest_of, flow_of
from iojoule.datasets.schema import Configuration
from iojoule.sim.engines.embedded import EmbeddedEngine
from iojoule.sim.result import LatencySummary, ScenarioResult
from iojoule.sim.sweep import Job, run_jobs
from iojoule.sim.workers import Pool
from iojoule.sim.workers.local import HERE
from iojoule.sim.workload import Scenario

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

COLUMNS = ("latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "watts", "cores")

LEAST_QUEUE = 2
"""Requests that the simulator's queue holds at the least."""

ARRIVALS = 200_000
"""Of Lindley's recursion, for requests; of bursts there are a fifth for each configuration."""

P99_SDS = NormalDist().inv_cdf(0.99)

Simulate = Callable[[Table, Rows, float], Floats]
"""Takes a table, rows of it and a demand in bytes a second that all have capacity for; gives
`COLUMNS`, shape (rows, 5), without hidden effects, on the clock of the simulator."""


def at_random_work(
    table: Table, candidates: Rows, demand: float, simulate: Simulate
) -> dict[str, Floats]:
    """What is observed where a demand in bytes a second comes as Poisson arrivals.

    Shape (configurations,), as `Table.at_work`. Latencies are infinite in rows that cannot carry
    the demand, and in those that are no candidates; such rows draw what they do at full speed.
    """
    full = table.at_work(demand)
    capacity = full["capacity_bytes_per_second"]
    rows = candidates[capacity[candidates] > demand]
    count = len(capacity)
    latency = {name: np.full(count, np.inf) for name in COLUMNS[:3]}
    slower = np.broadcast_to(np.asarray(table.slower, dtype=float), count)[rows]
    tail = np.broadcast_to(np.asarray(table.tail, dtype=float), count)[rows]
    seen = dict(zip(COLUMNS, simulate(table, rows, demand).T, strict=True))
    for name, values in latency.items():
        values[rows] = seen[name] * slower
    latency["latency_p99_ns"][rows] = np.maximum(
        latency["latency_p99_ns"][rows] * tail, latency["latency_p50_ns"][rows]
    )
    idle = table.idle_watts
    device = table.at_rest_and_work(demand)
    device[rows] = idle[rows] + (seen["watts"] - idle[rows]) / slower
    cores = seen["cores"] / slower
    polls, jobs = _polling(table)
    arrivals = demand / table.request_bytes[rows] / jobs[rows]
    spins = jobs[rows] * -np.expm1(-arrivals * latency["latency_mean_ns"][rows] * 1e-9)
    cpu = full["cpu_power_watts"]
    cpu[rows] = table.drive.host.watts(np.where(polls[rows], spins, cores))
    return table.observed(full["served_bytes_per_second"], latency, device, cpu)


def in_bursts(table: Table, candidates: Rows, demand: float) -> dict[str, Floats]:
    """What is observed where a demand in bytes a second comes in bursts; as `at_random_work`."""
    full = table.at_work(demand)
    load = demand / full["capacity_bytes_per_second"]
    latency = {name: np.full(len(load), np.inf) for name in COLUMNS[:3]}
    chosen = table.grid.configurations()
    source = np.random.default_rng(2)
    count = ARRIVALS // 5
    apart, spread = source.exponential(1.0, count), source.standard_normal(count)
    for row in candidates[load[candidates] < 1.0]:
        takes = 1e9 * _slots(chosen[row]) / table.iops[row]
        waits = takes * _waits(np.ones(count), apart / load[row])
        mean, median, late = (table.latency[name][row] for name in COLUMNS[:3])
        own = median * np.exp(spread * np.log(late / median) / P99_SDS)
        latency["latency_mean_ns"][row] = mean + waits.mean()
        latency["latency_p50_ns"][row], latency["latency_p99_ns"][row] = np.quantile(
            waits + own, (0.5, 0.99)
        )
    return full | latency


def _waits(takes: Floats, apart: Floats) -> Floats:
    """Wait of each arrival at a single server; `apart` is the time before each.

    It is the wait of the one before plus its service less the time between both, at least 0
    (Lindley, "The theory of queues with a single server", 1952).
    """
    ahead = np.concatenate([[0.0], np.cumsum(takes[:-1] - apart[1:])])
    return np.asarray(ahead - np.minimum.accumulate(ahead))


def _polling(table: Table) -> tuple[NDArray[np.bool_], Floats]:
    """Which rows poll, and the jobs of each."""
    chosen = table.grid.configurations()
    polls = np.array([one.completion == "polled" for one in chosen])
    return polls, np.array([one.jobs for one in chosen], dtype=float)


def simulator(kept: Path | None = None, pool: Pool = HERE) -> Simulate:
    """What simulates; results are kept in a folder for the next time."""

    def simulate(table: Table, rows: Rows, demand: float) -> Floats:
        chosen = table.grid.configurations()
        slower = np.broadcast_to(np.asarray(table.slower, dtype=float), len(chosen))
        rates = demand / table.request_bytes * slower
        jobs = [_job(table, chosen[row], float(rates[row]), row) for row in rows]
        if not jobs:
            return np.zeros((0, len(COLUMNS)))
        path = None if kept is None else kept / f"{digest_of(jobs)}.npy"
        if path is not None and path.is_file():
            return np.asarray(np.load(path, allow_pickle=False), dtype=float)
        results = run_jobs(jobs, EmbeddedEngine(), pool=pool)
        seen = zip(rows, results, strict=True)
        values = np.array([_seen(chosen[row], one, float(rates[row])) for row, one in seen])
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, values)
        return values

    return simulate


def _slots(chosen: Configuration) -> int:
    return chosen.queue_depth * chosen.jobs


def _job(table: Table, chosen: Configuration, rate: float, row: int) -> Job:
    device = table.drive.states[chosen.power_state or 0]
    if _slots(chosen) == 1:
        alone = float(table.latency["latency_mean_ns"][row])
        alone /= float(np.broadcast_to(np.asarray(table.slower), len(table.iops))[row])
        pause = {"think_time_ns": max(round(1e9 / rate - alone), 0)}
        return Job(device, Scenario(flows=(flow_of(table.work, chosen, **pause),)))
    # as many slots in all, and no job with fewer than the simulator's queue holds
    jobs = min(chosen.jobs, _slots(chosen) // LEAST_QUEUE)
    device = device.model_copy(update={"io_queue_depth": _slots(chosen) // jobs})
    flow = flow_of(table.work, chosen, arrivals_per_second=rate, jobs=jobs)
    return Job(device, Scenario(flows=(flow,)))


def _seen(chosen: Configuration, result: ScenarioResult, rate: float) -> tuple[float, ...]:
    flow = result.flows[0]
    latency = flow.end_to_end_latency.all
    seconds = (flow.flow_last_completion_ns - flow.measured_from_ns) * 1e-9
    found = (latency.mean_ns, float(latency.p50_ns), float(latency.p99_ns))
    if _slots(chosen) == 1:
        found = one_at_a_time(latency, rate)
    watts = result.device.power_watts_mean or 0.0
    return (*found, watts, (flow.host_cpu_seconds or 0.0) / seconds)


def one_at_a_time(service: LatencySummary, rate: float) -> tuple[float, float, float]:
    """Mean, median and p99 in ns from arrival, of Poisson arrivals at a single server.

    Service times are drawn from the percentiles of `service`, log-linear between them, with its
    mean.
    """
    source = np.random.default_rng(1)
    shares = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)
    ends = np.array(
        [
            service.min_ns,
            service.p50_ns,
            service.p90_ns,
            service.p99_ns,
            service.p999_ns,
            service.p9999_ns,
            service.max_ns,
        ],
        dtype=float,
    )
    takes = np.exp(np.interp(source.random(ARRIVALS), shares, np.log(np.maximum(ends, 1.0))))
    takes *= service.mean_ns / takes.mean()
    apart = source.exponential(1e9 / rate, ARRIVALS)
    total = _waits(takes, apart) + takes
    median, late = np.quantile(total, (0.5, 0.99))
    return float(total.mean()), float(median), float(late)
