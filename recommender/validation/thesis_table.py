"""Table 5.1 of the thesis (000) beside what the recommender says, row by row.

The thesis gives rules of thumb for IOPS-driven and throughput-driven workloads on the Samsung
980 PRO. Each rule is turned into a question with an answer in joules: same drive, same host,
drive and CPU together, at PS0 unless the rule is about power states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from iojoule.datasets.profile import DeviceProfile
from iojoule.model.evaluate.prediction import Prediction
from iojoule.model.evaluate.predictor import Predictor
from iojoule.recommender.validation.findings import DISPUTED

Floats = NDArray[np.float64]

DEVICE = "samsung-980-pro-1tb"

CLOSE = 0.02
"""Efficiencies within 2 % count as equal: the thesis' own repeats differ by 1 to 2 % (5.8)."""


class Rule(BaseModel):
    """One cell of the table.

    Attributes:
        variable: Row of Table 5.1.
        workload: Its column: IOPS-driven or throughput-driven.
        thesis: The rule in short.
        answer: What the profile says, with figures.
        agrees: Whether both say the same; None where the profile has no knob for it.
        evidence: What the figures rest on.
        why: What makes them differ, or why nothing can be said.
        disputed: Why the rule is shown and not counted; empty where it counts.
    """

    model_config = ConfigDict(frozen=True)

    variable: str
    workload: str
    thesis: str
    answer: str
    agrees: bool | None
    evidence: str
    why: str
    disputed: str = ""


class _Bench:
    """Efficiency of configurations at full speed: requests and bytes per joule."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.profile = profile
        self.predictor = Predictor(profile)

    def ask(self, **columns: Any) -> Prediction:
        rows = max(len(v) for v in columns.values() if isinstance(v, list))
        return self.predictor.predict_columns(columns, rows)[0]

    @staticmethod
    def watts(answer: Prediction) -> Floats:
        return answer["device_power_watts"].value + answer["cpu_power_watts"].value

    def io_per_joule(self, answer: Prediction) -> Floats:
        return np.asarray(answer["iops"].value / self.watts(answer))

    def mib_per_joule(self, answer: Prediction) -> Floats:
        rate = answer["throughput_bytes_per_second"].value
        return np.asarray(rate / 2**20 / self.watts(answer))


def _evidence(answer: Prediction) -> str:
    words = sorted(set(answer.evidence_words()))
    return "performance " + " and ".join(words) + "; CPU power published"


def _size(value: float) -> str:
    for limit, word in ((2**20, "MiB"), (2**10, "KiB")):
        if value >= limit:
            return f"{value / limit:g} {word}"
    return f"{value:g} B"


def _request_size(bench: _Bench) -> list[Rule]:
    small = [512, 1024, 2048, 4096, 8192, 16384, 65536]
    answer = bench.ask(request_bytes=small, queue_depth=1)
    efficiency = bench.io_per_joule(answer)
    near = [
        s for s, e in zip(small, efficiency, strict=True) if e >= (1 - CLOSE) * efficiency.max()
    ]
    sizes = [65536, 262144, 1048576, 4194304]
    large = bench.ask(request_bytes=sizes, queue_depth=1, pattern="sequential")
    rate = bench.mib_per_joule(large)
    best = sizes[int(np.argmax(rate))]
    return [
        Rule(
            variable="Request size",
            workload="IOPS",
            thesis="small sizes like 4 KiB",
            answer=f"best requests per joule at {', '.join(map(_size, near))} "
            f"({efficiency.max():.0f} IO/J at depth 1)",
            agrees=4096 in near,
            evidence=_evidence(answer),
            why="below 4 KiB nothing is gained: the flash reads whole units",
        ),
        Rule(
            variable="Request size",
            workload="throughput",
            thesis="large sizes like 4 MiB",
            answer=f"best bytes per joule at {_size(best)} ({rate.max():.0f} MiB/J at depth 1)",
            agrees=best >= 1048576,
            evidence=_evidence(large),
            why="fewer requests let the CPU sleep; beyond 1 MiB the gain is "
            f"{100 * (rate[3] / rate[2] - 1):.0f} %",
        ),
    ]


def _depth(bench: _Bench) -> list[Rule]:
    depths = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    answer = bench.ask(queue_depth=depths)
    efficiency = bench.io_per_joule(answer)
    within = answer["latency_p99_ns"].high <= 1e6
    best = max(d for d, ok in zip(depths, within, strict=True) if ok)
    kept = efficiency[depths.index(best)] / efficiency[within].max()
    stream = bench.ask(queue_depth=depths, request_bytes=[16384] * 9, pattern="sequential")
    rate, speed = bench.mib_per_joule(stream), stream["throughput_bytes_per_second"].value
    enough = next(d for d, e in zip(depths, rate, strict=True) if e >= (1 - 2 * CLOSE) * rate.max())
    return [
        Rule(
            variable="I/O depth",
            workload="IOPS",
            thesis="as deep as the latency target allows",
            answer=f"with p99 below 1 ms depth {best} keeps {100 * kept:.0f} % of the best "
            "requests per joule",
            agrees=bool(kept >= 1 - 2 * CLOSE),
            evidence=_evidence(answer),
            why="past the core's ceiling more depth adds latency and no requests",
        ),
        Rule(
            variable="I/O depth",
            workload="throughput",
            thesis="up to the saturation point",
            answer=f"16 KiB: within 4 % of the best bytes per joule from depth {enough}, at "
            f"{100 * speed[depths.index(enough)] / speed.max():.0f} % of the highest throughput",
            agrees=bool(speed[depths.index(enough)] >= 0.9 * speed.max()),
            evidence=_evidence(stream),
            why="energy follows throughput until it saturates",
        ),
    ]


def _jobs(bench: _Bench) -> list[Rule]:
    answer = bench.ask(queue_depth=[32, 8, 1], jobs=[1, 4, 32])
    efficiency = bench.io_per_joule(answer)
    stream = bench.ask(
        queue_depth=[32, 8, 1], jobs=[1, 4, 32], request_bytes=[131072] * 3, pattern="sequential"
    )
    rate = bench.mib_per_joule(stream)
    return [
        Rule(
            variable="Jobs",
            workload="IOPS",
            thesis="parallelise as a last effort",
            answer="32 requests in flight: 1 x 32 against 4 x 8 and 32 x 1 jobs: "
            + " / ".join(f"{e:.0f}" for e in efficiency)
            + " IO/J",
            agrees=bool(efficiency[0] >= (1 - CLOSE) * efficiency[2]),
            evidence=_evidence(answer),
            why="each job wakes a core; four jobs still pay where one core is the ceiling",
        ),
        Rule(
            variable="Jobs",
            workload="throughput",
            thesis="parallelise to the saturation point",
            answer="128 KiB, 32 requests in flight as 1, 4 and 32 jobs: "
            + " / ".join(f"{e:.0f}" for e in rate)
            + " MiB/J",
            agrees=bool(rate[0] < (1 - CLOSE) * rate[1]),
            evidence=_evidence(stream),
            why="one job with depth already saturates the drive, so more jobs only wake cores; the "
            "thesis varied jobs at depth 1, where they are the only parallelism",
        ),
    ]


def _completion(bench: _Bench) -> list[Rule]:
    both = ["interrupt", "polled"]
    busy = bench.ask(
        completion=both, queue_depth=[32] * 2, pattern="sequential", request_bytes=[4096] * 2
    )
    ratio = bench.io_per_joule(busy)[1] / bench.io_per_joule(busy)[0]
    large = bench.ask(
        completion=both, queue_depth=[4] * 2, pattern="sequential", request_bytes=[1048576] * 2
    )
    slow = bench.mib_per_joule(large)[1] / bench.mib_per_joule(large)[0]
    return [
        Rule(
            variable="Interrupts",
            workload="IOPS",
            thesis="poll at 4 KiB if continuous, else interrupts",
            answer=f"4 KiB sequential at depth 32: polling {100 * (ratio - 1):+.0f} % requests per "
            "joule (thesis: +100 %)",
            agrees=bool(ratio > 1),
            evidence=_evidence(busy),
            why="a polling core completes more requests than an interrupted one; part of the "
            "thesis' gain is merging (89 % of the requests), which no drive model knows",
        ),
        Rule(
            variable="Interrupts",
            workload="throughput",
            thesis="always interrupts",
            answer=f"1 MiB at depth 4: polling {100 * (slow - 1):+.0f} % bytes per joule",
            agrees=bool(slow < 1),
            evidence=_evidence(large),
            why="a core spins while the drive takes its time",
        ),
    ]


def _engine(bench: _Bench) -> list[Rule]:
    engines = ["libaio", "io_uring", "spdk"]
    rules = []
    for workload, columns, metric, unit in (
        ("IOPS", {"queue_depth": [4] * 3}, bench.io_per_joule, "IO/J"),
        (
            "throughput",
            {"queue_depth": [4] * 3, "request_bytes": [524288] * 3},
            bench.mib_per_joule,
            "MiB/J",
        ),
    ):
        answer = bench.ask(engine=engines, **columns)
        value = metric(answer)
        rules.append(
            Rule(
                variable="I/O engine",
                workload=workload,
                thesis="always libaio",
                answer=", ".join(f"{e} {v:.0f}" for e, v in zip(engines, value, strict=True))
                + f" {unit}",
                agrees=engines[int(np.argmax(value))] == "libaio",
                evidence=_evidence(answer),
                why="the thesis' rule rests on libaio's CPU watts; an engine changes the core time "
                "and wake-ups of a request, and libaio's and io_uring's are alike",
                disputed=DISPUTED["000-171"],
            )
        )
    return rules


def _mixes(bench: _Bench) -> list[Rule]:
    rules = []
    for pattern, thesis, split in (
        ("sequential", "read-heavy sequential: split the directions", True),
        ("random", "random: interleave the directions", False),
    ):
        columns = {"request_bytes": 16384, "queue_depth": [4] * 3, "pattern": pattern}
        answer = bench.ask(
            operation=["mixed", "read", "write"], read_fraction=[0.7, None, None], **columns
        )
        watts, rate = bench.watts(answer), answer["iops"].value
        apart = 1.0 / (0.7 * watts[1] / rate[1] + 0.3 * watts[2] / rate[2])
        together = rate[0] / watts[0]
        better_apart = bool(apart > together)
        rules.append(
            Rule(
                variable="Mixed workloads",
                workload="both",
                thesis=thesis,
                answer=f"70/30 at 16 KiB, depth 4: interleaved {together:.0f}, in turns "
                f"{apart:.0f} IO/J",
                agrees=better_apart == split,
                evidence=_evidence(answer),
                why="F10: sequential mixes lose up to 27 % of the throughput"
                if split
                else "F11 compares the mix with pure reads or pure writes, whose average it beats "
                "only because writes are the quicker half; against the same requests in turns the "
                "published 17 to 36 % leave a loss of about a tenth, with an interval that "
                "includes none",
            )
        )
    return rules


def _scheduler(bench: _Bench) -> list[Rule]:
    names = ["none", "kyber", "mq-deadline", "bfq"]
    answer = bench.ask(scheduler=names, queue_depth=[8] * 4, jobs=[4] * 4)
    value = bench.io_per_joule(answer)
    order = [names[i] for i in np.argsort(-value)]
    kyber = value[names.index("kyber")]
    return [
        Rule(
            variable="Scheduler",
            workload="both",
            thesis="none; kyber if one is needed",
            answer=" > ".join(f"{n} {value[names.index(n)]:.0f}" for n in order) + " IO/J",
            agrees=bool(order[0] == "none" and kyber >= (1 - CLOSE) * value[2:].max()),
            evidence=_evidence(answer),
            why="kyber was measured on this drive, mq-deadline and bfq are assumptions",
        )
    ]


def _power_states(bench: _Bench) -> list[Rule]:
    power, state, host = (
        bench.profile.device_power,
        bench.profile.write_state,
        bench.profile.host_power,
    )
    if power is None or state is None or host is None:
        return []
    states = [0, 1, 2]
    answer = bench.ask(power_state=states, request_bytes=[16384] * 3, queue_depth=[4] * 3)
    share = 100.0 / answer["iops"].value  # a hundred requests a second, then a gap
    idle = np.array([power.idle_watts[s].value for s in states])
    drive = share * answer["device_power_watts"].value + (1 - share) * idle
    rest = host.parameters[0].value
    both = drive + share * answer["cpu_power_watts"].value + (1 - share) * rest
    slower = answer["latency_mean_ns"].value / answer["latency_mean_ns"].value[0]
    work = np.array([state.background_seconds_after_write[s].value for s in states])
    half = (np.array(power.cap_watts[:3]).clip(max=power.peak_watts.value) + idle) / 2
    joules = work * half
    said = ", ".join(
        f"PS{s} {d:.2f} W of {w:.1f} W at {f:.1f} x the latency"
        for s, d, w, f in zip(states, drive, both, slower, strict=True)
    )
    return [
        Rule(
            variable="Intervals",
            workload="both",
            thesis="stay in the highest power state",
            answer=f"100 requests a second, drive and drive + CPU: {said}",
            agrees=bool(both[0] - both.min() <= CLOSE * both[0]),
            evidence="published",
            why="what a lower state saves is within 2 % of drive + CPU and costs latency; its idle "
            "power was never published, and for the drive alone the assumed values save a tenth",
        ),
        Rule(
            variable="GC",
            workload="both",
            thesis="keep a high power state after writes",
            answer="background work after 15 s of writing: "
            + ", ".join(
                f"PS{s} {w:.0f} s, about {j:.0f} J"
                for s, w, j in zip(states, work, joules, strict=True)
            ),
            agrees=bool(joules[0] < joules[1:].min()),
            evidence="published",
            why="mean power taken halfway between idle and the cap (it jumps between the two)",
        ),
    ]


def _numa(_: _Bench) -> list[Rule]:
    return [
        Rule(
            variable="NUMA",
            workload="both",
            thesis="run on the drive's NUMA node",
            answer="no knob of the model",
            agrees=None,
            evidence="none",
            why="one figure is published (9 % less throughput on the remote node at 4 KiB); "
            "job_numa_node is recorded with measurements and not yet a candidate",
        )
    ]


QUESTIONS: Sequence[Callable[[_Bench], list[Rule]]] = (
    _request_size,
    _depth,
    _jobs,
    _completion,
    _engine,
    _mixes,
    _scheduler,
    _power_states,
    _numa,
)
"""The rows of Table 5.1 in order."""


def thesis_table(profile: DeviceProfile) -> list[Rule]:
    """Answer every row of Table 5.1 from a profile of the 980 PRO.

    Args:
        profile: With device and CPU power.
    """
    bench = _Bench(profile)
    return [rule for question in QUESTIONS for rule in question(bench)]
