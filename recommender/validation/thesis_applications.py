"""Chapter 6 of the thesis (000) beside what the recommender says of the same four applications.

Filebench's file server, RocksDB under YCSB, MLPerf Storage and PostgreSQL under TPC-C, as the
presets describe them, on the Samsung 980 PRO and the host of its profile. Each finding is a
question to the recommender: what it recommends, or what it says of two settings of today's
configuration. It agrees where the direction does; the figures stand side by side. Joules are the
drive's where the thesis leaves the CPU out, else those of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import State
from iojoule.datasets.vocabulary import DeviceState, Engine
from iojoule.recommender.recommend import Recommender
from iojoule.recommender.request import Current, Free, Scope, WorkloadProfile
from iojoule.recommender.response import Row
from iojoule.recommender.validation.thesis_table import CLOSE, Rule
from iojoule.recommender.workloads.presets import find_preset

SEEN = State(device_state=DeviceState.CACHED)
"""The thesis measured for minutes after a purge and one fill: its figures are not of years."""

KIB, MIB = 1024, 1024 * 1024


class _Bench:
    """Asks the recommender about presets, as they are or changed."""

    def __init__(self, profile: DeviceProfile) -> None:
        self.recommender = Recommender(profile)

    def today(self, asked: WorkloadProfile, **current: Any) -> Row:
        """What today's configuration does, with some of its settings changed."""
        told = asked.current.model_dump(exclude_none=True) | current
        changed = {"current": Current.model_validate(told), "free": Free()}
        return self.recommender.today(asked.model_copy(update=changed))

    def best(self, asked: WorkloadProfile) -> Row:
        """What is recommended where every knob is free and today's configuration is not looked at.

        What flushes cost is left out: the profile does not know it.
        """
        stated = asked.workload.model_copy(
            update={"flush_every_writes": None, "force_unit_access": None}
        )
        free = asked.model_copy(update={"workload": stated, "current": Current()})
        found = self.recommender.recommend(free).recommended
        assert found is not None  # nothing is bounded
        return found


THREADS = {"fileserver": 50, "mlperf-unet3d": 4}
"""Threads of the benchmarks that state them; one elsewhere. Each waits for its own request."""


def _asked(preset: str, scope: Scope = Scope.DEVICE_CPU, **workload: Any) -> WorkloadProfile:
    """A preset with some facts of its workload changed, as the thesis ran it: blocking threads."""
    found = find_preset(preset)
    changed = found.workload.model_copy(update=workload)
    today = Current(engine=Engine.PSYNC, queue_depth=1, jobs=THREADS.get(preset))
    return found.model_copy(
        update={
            "workload": changed,
            "scope": scope,
            "state": SEEN,
            "current": today,
            "concurrency_max": "unbounded",
        }
    )


def _joules(row: Row) -> float:
    assert row.joules_per_useful_gb is not None  # the 980 PRO's profile knows drive and CPU
    return row.joules_per_useful_gb.value


def _evidence(*rows: Row) -> str:
    found = {one.joules_per_useful_gb.evidence.value for one in rows if one.joules_per_useful_gb}
    return " and ".join(sorted(found))


def _less(one: Row, other: Row) -> float:
    """Useful bytes per joule of one over those of another, less one, in percent."""
    return 100.0 * (_joules(other) / _joules(one) - 1.0)


def _watts(row: Row) -> float:
    assert row.device_power_watts is not None
    return row.device_power_watts.value


def _not_modelled(application: str, finding: str, thesis: str, why: str) -> Rule:
    return Rule(
        variable=finding,
        workload=application,
        thesis=thesis,
        answer="no knob of the model",
        agrees=None,
        evidence="none",
        why=why,
    )


FILES = "file server"


def _file(size: int) -> WorkloadProfile:
    """The file server reading and writing whole files of one size, as 000 table 6.1 varies it."""
    return _asked("fileserver", useful_request_bytes=size, request_bytes_mix=None)


def _file_server(bench: _Bench) -> list[Rule]:
    asked = _asked("fileserver")
    best, states = bench.best(asked), [bench.today(asked, power_state=s) for s in (0, 1, 2)]
    sizes = [bench.today(_file(size * KIB), jobs=20) for size in (128, 512, 1024)]
    threads = [bench.today(asked, jobs=count) for count in (10, 20)]
    watts = [_watts(row) for row in sizes]
    gain = _less(threads[1], threads[0])
    return [
        Rule(
            variable="power state",
            workload=FILES,
            thesis="always PS0: the other states are less efficient",
            answer=f"recommends PS{best.configuration.power_state or 0}; bytes per joule at PS1 "
            f"{_less(states[1], states[0]):+.0f} %, at PS2 {_less(states[2], states[0]):+.0f} %",
            agrees=not best.configuration.power_state and _less(states[1], states[0]) < 0,
            evidence=_evidence(*states),
            why="the host waits with the drive and draws its watts for longer",
        ),
        Rule(
            variable="file size",
            workload=FILES,
            thesis="larger files (128 KiB to 1 MiB) are more efficient",
            answer="whole files of 128, 512 and 1024 KiB, 20 threads: "
            + ", ".join(f"{_joules(row):.1f}" for row in sizes)
            + " J/GB",
            agrees=_joules(sizes[2]) < (1 - CLOSE) * _joules(sizes[0]),
            evidence=_evidence(*sizes),
            why="fewer requests a byte wake fewer cores",
        ),
        Rule(
            variable="drive's watts over file size",
            workload=FILES,
            thesis="not monotonic: 128 KiB < 1 MiB < 512 KiB",
            answer="128, 512 and 1024 KiB: " + ", ".join(f"{one:.2f}" for one in watts) + " W",
            agrees=watts[0] < watts[2] < watts[1],
            evidence=_evidence(*sizes),
            why="of the drive's law only bytes and commands a second count, and both level off; "
            "what a command of twice the drive's largest transfer does to it is not in it",
        ),
        Rule(
            variable="threads",
            workload=FILES,
            thesis="20 instead of 10: about 3 % more bytes per joule, which is negligible",
            answer=f"{gain:+.1f} % bytes per joule; recommends {best.configuration.jobs} job(s) at "
            f"depth {best.configuration.queue_depth}",
            agrees=abs(gain) < 10.0,
            evidence=_evidence(*threads),
            why="ten requests of this size keep the drive busy; more threads only wake cores",
        ),
        _not_modelled(
            FILES,
            "file system",
            "ext4 > XFS (within 5 %) > Btrfs (up to 40 % slower)",
            "what a file system adds to a request has no published figure by request size",
        ),
        _not_modelled(
            FILES,
            "page cache (F14)",
            "may double throughput and efficiency",
            "a recommendation counts what reaches the drive; `iojoule workload observe` sees that",
        ),
    ]


STORE = "RocksDB (YCSB)"

RUN_BYTES = MIB
"""A run of a log or of a compaction that may be written at once; RocksDB's buffers are larger."""


def _rocksdb(bench: _Bench) -> list[Rule]:
    half, most, reads = (_asked(f"ycsb-{name}", Scope.DEVICE) for name in "abc")
    busy = {"queue_depth": 32, "jobs": 4, "engine": "libaio"}
    a, b, c = (bench.today(one, **busy) for one in (half, most, reads))
    slow_a, slow_b = (bench.today(one, power_state=1, **busy) for one in (half, most))
    log = WorkloadProfile.model_validate(
        {
            "name": "log",
            "scope": "device_cpu",
            "workload": {
                "operation": "write",
                "pattern": "sequential",
                "useful_request_bytes": 4096,
                "request_bytes_coalescible": RUN_BYTES,
            },
            "current": {"engine": "psync", "queue_depth": 1},
        }
    )
    small, large = bench.today(log), bench.best(log)
    return [
        Rule(
            variable="power state",
            workload=STORE,
            thesis="PS0: efficiency at PS1 is about half in all workloads",
            answer=f"operations per joule of the drive at PS1: A {_less(slow_a, a):+.0f} %, "
            f"B {_less(slow_b, b):+.0f} %",
            agrees=_less(slow_a, a) < 0 and _less(slow_b, b) < 0,
            evidence=_evidence(a, slow_a, b, slow_b),
            why="a lower cap takes more of the rate than of the watts",
        ),
        Rule(
            variable="updates (F16)",
            workload=STORE,
            thesis="B and C 210 % more operations per joule of the drive than A",
            answer=f"128 requests in flight: B {_less(b, a):+.0f} %, C {_less(c, a):+.0f} %",
            agrees=_less(b, a) > 0 and _less(c, a) > 0,
            evidence=_evidence(a, b, c),
            why="the same direction; the factor of three is the store's, in which reads and writes "
            "interfere far more than on the bare drive, of which alone the model knows",
        ),
        Rule(
            variable="rate of A",
            workload=STORE,
            thesis="half of the others' rate",
            answer=f"128 requests in flight: {100 * a.iops.value / b.iops.value:.0f} % of B's, "
            f"{100 * a.iops.value / c.iops.value:.0f} % of C's",
            agrees=a.iops.value < (1 - CLOSE) * min(b.iops.value, c.iops.value),
            evidence=_evidence(a, b, c),
            why="random writes reach less than reads, and a mix of both in between",
        ),
        Rule(
            variable="B at PS1 against A at PS0",
            workload=STORE,
            thesis="B at PS1 is 100 % more efficient than A at PS0",
            answer=f"operations per joule of the drive {_less(slow_b, a):+.0f} %",
            agrees=_less(slow_b, a) > 0,
            evidence=_evidence(slow_b, a),
            why="on the bare drive PS1 takes more than fewer writes give; in the store, where A is "
            "three times as costly as B, it is the other way round",
        ),
        Rule(
            variable="buffers and log",
            workload=STORE,
            thesis="fewer and larger sequential writes: 13 % more inserts per joule (and 3 % fewer "
            "reads and updates)",
            answer=f"a log of 4 KiB writes that may go together: recommends "
            f"{large.configuration.request_bytes // KIB} KiB, {_less(large, small):+.0f} % bytes "
            "per joule",
            agrees=large.configuration.request_bytes > 4096,
            evidence=_evidence(small, large),
            why="the same direction; a store spends most of its joules on the CPU's own work, of "
            "which nothing is saved (F17)",
        ),
        _not_modelled(
            STORE,
            "no write-ahead log",
            "22 % more operations per joule in A",
            "no knob of the recommender weakens durability; `iojoule apply --application rocksdb` "
            "quotes the gain and what a power cut would take",
        ),
        _not_modelled(
            STORE,
            "processor",
            "saturated in all workloads, its watts nearly the same",
            "a request's own core time is modelled, what the store does with a record is not",
        ),
    ]


TRAINING = "MLPerf Storage"

GIB = 1024 * MIB


def _mlperf(bench: _Bench) -> list[Rule]:
    one = _asked("mlperf-unet3d")
    best, today = bench.best(one), bench.today(one)
    flat_out = _asked("mlperf-unet3d", demand_bytes_per_second=None, arrival_process=None)
    fastest = bench.today(flat_out, queue_depth=16, engine="libaio", request_bytes=MIB, jobs=1)
    large = {"queue_depth": 8, "engine": "libaio", "request_bytes": MIB, "jobs": 1}
    three, two = (
        bench.today(_asked("mlperf-unet3d", demand_bytes_per_second=rate * GIB), **large)
        for rate in (3.0, 2.2)
    )
    rate = fastest.throughput_bytes_per_second
    alone = [
        bench.today(flat_out.model_copy(update={"scope": Scope.DEVICE}), **large),
        bench.today(
            _asked("mlperf-unet3d", Scope.DEVICE, demand_bytes_per_second=2.9 * GIB), **large
        ),
    ]
    pause = _less(alone[1], alone[0])
    return [
        Rule(
            variable="request size",
            workload=TRAINING,
            thesis="large sequential reads: as efficient as the best of the microbenchmarks",
            answer=f"recommends {best.configuration.request_bytes // KIB} KiB instead of "
            f"{today.configuration.request_bytes // KIB} KiB, {_less(best, today):+.0f} % bytes "
            "per joule",
            agrees=best.configuration.request_bytes >= MIB,
            evidence=_evidence(best, today),
            why="few requests, which let the CPU sleep",
        ),
        Rule(
            variable="throughput",
            workload=TRAINING,
            thesis="U-Net3D and ResNet-50 reach over 3 GiB/s",
            answer=f"1 MiB at depth 16: {rate.value / GIB:.2f} [{rate.low / GIB:.2f}, "
            f"{rate.high / GIB:.2f}] GiB/s",
            agrees=rate.high >= 3.0 * GIB and rate.value >= 0.9 * 3.0 * GIB,
            evidence=rate.evidence.value,
            why="the link of the thesis' host, PCIe 3 x4, carries 3.3 to 3.4 GiB/s",
        ),
        Rule(
            variable="rate",
            workload=TRAINING,
            thesis="at 2.2 GiB/s (CosmoFlow) 19 MiB/J instead of 29 at over 3 GiB/s (ResNet-50), "
            "drive and CPU",
            answer=f"{1e9 / MIB / _joules(two):.0f} instead of {1e9 / MIB / _joules(three):.0f} "
            "MiB/J",
            agrees=_joules(two) > (1 + CLOSE) * _joules(three),
            evidence=_evidence(two, three),
            why="a host at rest draws its watts whatever is read; the thesis' CPU was pinned by "
            "the benchmark itself, which no request's core time explains",
        ),
        Rule(
            variable="short pauses (F18)",
            workload=TRAINING,
            thesis="too short to gate power, and yet 3.4 % more bytes per joule of the drive than "
            "the best microbenchmark at that rate",
            answer=f"2.9 GiB/s with pauses against full speed: {pause:+.1f} % bytes per joule of "
            "the drive",
            agrees=pause >= 0.0,
            evidence=_evidence(*alone),
            why="in a pause the drive still draws what it draws awake, so pauses only cost; the "
            "thesis' own explanation is a hypothesis, and 3.4 % is little more than its repeats "
            "differ by (1 to 2 %, 5.8)",
        ),
        _not_modelled(
            TRAINING,
            "accelerators",
            "6 saturate the drive (35 for ResNet-50)",
            "a demand is stated per accelerator, their count is the user's",
        ),
    ]


DATABASE = "PostgreSQL (TPC-C)"


def _postgresql(bench: _Bench) -> list[Rule]:
    one = _asked("tpcc-like")
    busy = {"queue_depth": 16, "engine": "libaio"}
    best, today = bench.best(one), bench.today(one)
    rate = float(one.workload.demand_bytes_per_second or 0.0)
    twice = _asked("tpcc-like", demand_bytes_per_second=2.0 * rate)
    once, double = (bench.today(asked, **busy) for asked in (one, twice))
    slow = [
        _less(bench.today(asked, power_state=1, **busy), at_ps0)
        for asked, at_ps0 in ((one, once), (twice, double))
    ]
    alone = bench.today(_asked("tpcc-like", Scope.DEVICE), **busy)
    peak = bench.today(
        _asked("mlperf-unet3d", Scope.DEVICE, demand_bytes_per_second=None, arrival_process=None),
        queue_depth=16,
        engine="libaio",
        request_bytes=MIB,
        jobs=1,
    )
    below = -_less(alone, peak)
    return [
        Rule(
            variable="power state",
            workload=DATABASE,
            thesis="PS0; PS1 7.8 % fewer transactions per joule at 1000 warehouses, 30 % at 2000",
            answer=f"recommends PS{best.configuration.power_state or 0}; bytes per joule at PS1 "
            f"{slow[0]:+.1f} % at 100 MiB/s, {slow[1]:+.1f} % at 200 MiB/s",
            agrees=not best.configuration.power_state and max(slow) <= 100 * CLOSE,
            evidence=_evidence(once, double),
            why="both states serve an even demand, so joules change little; the thesis' lies in "
            "bursts up to the drive's full rate, where PS1 makes transactions wait",
        ),
        Rule(
            variable="load",
            workload=DATABASE,
            thesis="2000 instead of 1000 warehouses: 45 % more transactions per joule",
            answer=f"200 instead of 100 MiB/s: {_less(double, once):+.0f} % bytes per joule",
            agrees=_less(double, once) > 0,
            evidence=_evidence(double, once),
            why="the watts of a host and a drive at rest are shared by more work",
        ),
        Rule(
            variable="drive's efficiency (F19)",
            workload=DATABASE,
            thesis="70 to 90 MiB/J of the drive, a seventh of its best: like 4 KiB at a depth "
            "below 4",
            answer=f"100 MiB/s: {1e9 / MIB / _joules(alone):.0f} MiB/J of the drive, "
            f"{below:.0f} % below 1 MiB sequential reads ({1e9 / MIB / _joules(peak):.0f})",
            agrees=below > 50,
            evidence=_evidence(alone, peak),
            why="a drive that is awake draws most of its watts whatever it does; the thesis' mean "
            "holds bursts of 1 to 3 GiB/s, so its bytes per joule are above those of an even rate",
        ),
        Rule(
            variable="concurrency",
            workload=DATABASE,
            thesis="buffers and effective_io_concurrency raised together: 13 % more transactions "
            "per joule, 36 % more I/O per joule of the drive",
            answer=f"recommends {best.concurrency} requests in flight instead of "
            f"{today.concurrency}: {_less(best, today):+.0f} % bytes per joule",
            agrees=_less(best, today) > 0 and best.concurrency > today.concurrency,
            evidence=_evidence(best, today),
            why="one request at a time cannot carry 100 MiB/s of 8 KiB pages, but jobs can, and at "
            "one rate the host draws about the same; the values that the thesis set are not "
            "published",
        ),
        _not_modelled(
            DATABASE,
            "mount -o commit=60",
            "15 % more transactions per joule on ext4",
            "a power cut may then take 60 s of unflushed writes: no knob of the recommender "
            "weakens durability; `iojoule apply --application postgresql` quotes the gain",
        ),
    ]


APPLICATIONS: Sequence[Callable[[_Bench], list[Rule]]] = (
    _file_server,
    _rocksdb,
    _mlperf,
    _postgresql,
)
"""In the order of chapter 6."""


def thesis_applications(profile: DeviceProfile) -> list[Rule]:
    """Answer every finding about applications from a profile of the 980 PRO.

    Args:
        profile: With device and CPU power.
    """
    bench = _Bench(profile)
    return [rule for application in APPLICATIONS for rule in application(bench)]
