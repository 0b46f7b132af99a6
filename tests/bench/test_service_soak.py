"""The service under mixed load for minutes: nothing fails, and what it holds stays what it was.

Questions come at 80 % of the rate that the service was seen to manage, while datasets are uploaded
and simulations and calibrations run as jobs that somebody follows. SOAK_SECONDS says how long;
`make soak` takes ten minutes.
"""

from __future__ import annotations

import http.client
import io
import itertools
import json
import os
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from iojoule.datasets.provenance import Provenance
from iojoule.datasets.store import Dataset
from tests.bench.test_service_load import DEVICE, Questions, posted, recommending
from tests.http_client import request
from tests.sim.calibration.hidden import HIDDEN, measured
from tests.watched_service import Service

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
SHARE = 0.8
CLIENTS = 16
CAPACITY_SECONDS = 10.0
WARM_SECONDS = min(60.0, SECONDS / 2)
WINDOW_SECONDS = min(60.0, SECONDS / 8)
SAMPLE_SECONDS = 2.0
UPLOAD_EVERY, SIMULATE_EVERY, CALIBRATE_EVERY = 2.0, 3.0, 45.0
KEPT_SECONDS = 4.0
"""A connection that rests for five is closed by the service."""

MEMORY_GROWTH, DESCRIPTORS_MORE, THREADS_MORE = 0.05, 8, 4
COLUMNS = "operation,pattern,request_bytes,queue_depth,iops,device_power_watts"


class Load:
    """Everything that is asked of the service at the same time, and what came of it."""

    def __init__(self, service: Service, dataset: str, *statuses: int) -> None:
        """`statuses`: answered beside 200 where others ask for more than there is."""
        self._expected = (200, *statuses)
        self._service, self._dataset = service, dataset
        self.questions, self._numbers = Questions(), itertools.count()
        self.enough = threading.Event()
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self.sent_bytes = 0
        self.every_seconds = 0.0

    def question(self) -> tuple[str, bytes]:
        """What a client asks next: seven in ten a recommendation over 20,000 candidates."""
        number = next(self._numbers)
        place = number % 20
        if place < 14:
            return "POST /recommend", recommending(self.questions)
        if place < 17:
            rows = [
                {"operation": "read", "queue_depth": 1 + (number + row) % 256, "jobs": 1 + row % 16}
                for row in range(100)
            ]
            return "POST /predict", posted("/predict", {"device": DEVICE, "configurations": rows})
        if place < 19:
            asked = {"workload_profile": self.questions.next(), "changes": {"growth": 1.2}}
            return "POST /what-if", posted("/what-if", {"device": DEVICE, **asked})
        return "GET /jobs", request("GET", "/jobs?limit=20")

    def client(self) -> None:
        """Ask at a pace, or as soon as there is an answer where the service is late."""
        due = time.perf_counter()
        while not self.enough.is_set():
            with self._service.connection() as connection:
                answered = time.perf_counter()
                while not self.enough.is_set() and time.perf_counter() - answered < KEPT_SECONDS:
                    name, sent = self.question()
                    start = time.perf_counter()
                    reply = connection.ask(sent)
                    answered = time.perf_counter()
                    self.seconds[name].append(answered - start)
                    if reply.status not in self._expected:
                        self.failures.append(f"{name}: {reply.status} {reply.body[:200]!r}")
                    due = max(due + self.every_seconds, answered - self.every_seconds)
                    self.enough.wait(max(0.0, due - answered))

    def upload(self) -> None:
        """Another dataset."""
        iops = 12000 + next(self._numbers)
        rows = "\n".join(
            f"read,random,4096,{depth},{iops + 9000 * depth},{3 + depth / 64:.3f}"
            for depth in range(1, 65)
        )
        body = f"{COLUMNS}\n{rows}\n".encode()
        self._accepted(request("POST", "/datasets", body, "text/csv"), "upload")
        self.sent_bytes += len(body)

    def simulate(self) -> None:
        """A simulation, followed until it has ended."""
        flow = {"queue_depth": 4, "total_requests": 20_000 + next(self._numbers)}
        body = {"drive": DEVICE, "scenario": {"flows": [flow]}}
        self._follow(self._accepted(posted("/simulations", body), "simulation"))

    def calibrate(self) -> None:
        """A calibration, after which another profile answers, followed until it has ended."""
        body = {"datasets": [self._dataset], "drive": DEVICE, "parameters": ["page_read_ns"],
                "rounds": 1, "designs": 8, "tables": False}  # fmt: skip
        sent = posted(f"/devices/{DEVICE}/calibrations", body)
        self._follow(self._accepted(sent, "calibration"))

    def _accepted(self, sent: bytes, name: str) -> dict[str, Any]:
        with self._service.connection() as connection:
            reply = connection.ask(sent)
            while reply.status == 429 and 429 in self._expected and not self.enough.wait(1):
                reply = connection.ask(sent)
        told: dict[str, Any] = json.loads(reply.body)
        if reply.status not in (201, 202):
            self.failures.append(f"{name}: {reply.status} {reply.body[:200]!r}")
        else:
            self.done[name] += 1
        return told

    def _follow(self, job: dict[str, Any]) -> None:
        if "events_url" not in job:
            return
        connection = http.client.HTTPConnection("127.0.0.1", self._service.port, timeout=300)
        connection.request("GET", job["events_url"])
        seen = [line[7:].strip() for line in connection.getresponse() if line[:7] == b"event: "]
        connection.close()
        if seen[-1:] != [b"done"]:
            self.failures.append(f"job {job['id']} ended with {seen}")
        self.done["followed to its end"] += 1

    def repeat(self, what: Callable[[], None], seconds: float) -> None:
        """Do it now and then; what is under way is finished."""
        while not self.enough.is_set():
            what()
            self.enough.wait(seconds)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The load, until the block ends."""
        beside = (
            (self.upload, UPLOAD_EVERY), (self.simulate, SIMULATE_EVERY),
            (self.calibrate, CALIBRATE_EVERY),
        )  # fmt: skip
        targets = [
            *(lambda: self.guarded(self.client) for _ in range(CLIENTS)),
            *(lambda each=each: self.guarded(self.repeat, *each) for each in beside),
        ]
        threads = [threading.Thread(target=target) for target in targets]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.enough.set()
            for thread in threads:
                thread.join()

    def guarded(self, function: Callable[..., None], *args: Any) -> None:
        """Call it; an answer that does not come is a failure too."""
        try:
            function(*args)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.failures.append(f"{function.__name__}: {error!r}")

    @property
    def answered(self) -> int:
        """How many questions were."""
        return sum(map(len, self.seconds.values()))


class Watch:
    """What the processes that stay hold, again and again."""

    def __init__(self, service: Service) -> None:
        self._staying = service.processes()
        self._names = [self._name(place) for place in range(len(self._staying))]
        self.samples: list[tuple[float, dict[str, float], int, int]] = []

    def _name(self, place: int) -> str:
        if not place:
            return "service"
        runs_jobs = "iojoule.api.jobs" in self._staying[place].cmdline()
        return f"{'runs jobs' if runs_jobs else 'computes'} ({self._staying[place].pid})"

    def look(self, at: float) -> None:
        """Take a sample; raises FileNotFoundError where one of them has died."""
        memory = {
            name: anonymous_bytes(one.pid) / 1e6
            for name, one in zip(self._names, self._staying, strict=True)
        }
        descriptors = sum(one.num_fds() for one in self._staying)
        self.samples.append((at, memory, descriptors, sum(o.num_threads() for o in self._staying)))

    def between(self, first: float, last: float) -> tuple[dict[str, float], float, float]:
        """Medians of the samples of a time: megabytes by process, descriptors and threads."""
        found = [sample for sample in self.samples if first <= sample[0] <= last]
        memory = {name: statistics.median(s[1][name] for s in found) for name in self._names}
        return (
            memory, statistics.median(s[2] for s in found), statistics.median(s[3] for s in found),
        )  # fmt: skip


def anonymous_bytes(pid: int) -> int:
    """Memory that is no file's, proc(5); what several share counts once.

    Pages of files belong to whoever maps them, other programs too, and come and go with those.
    """
    told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (line,) = (line for line in told.splitlines() if line.startswith("Pss_Anon:"))
    return int(line.split()[1]) * 1024


def sizes(state: Path) -> dict[str, tuple[int, int]]:
    """Files and bytes of each part of the state's folder."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for path in state.rglob("*"):
        if path.is_file():
            part = path.relative_to(state).parts[0]
            count, size = found[part]
            found[part] = (count + 1, size + path.stat().st_size)
    return dict(found)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "state"


def dataset_of(service: Service) -> str:
    """Measurements of a drive unlike the one that iojoule knows, to calibrate on."""
    rows = measured(HIDDEN, (4096, 16384, 65536), (1, 4, 16))
    stream = io.BytesIO()
    pq.write_table(Dataset.from_measurements(rows, Provenance(importer="soak")).table, stream)
    sent = request(
        "POST", "/datasets", stream.getvalue(), "application/vnd.apache.parquet"
    )  # fmt: skip
    with service.connection() as connection:
        return str(json.loads(connection.ask(sent).body)["id"])


def test_ten_minutes_of_load_leave_the_service_as_it_was(kept: Path) -> None:
    with Service(kept) as service:
        load, watch = Load(service, dataset_of(service)), Watch(service)
        with load.running():
            time.sleep(CAPACITY_SECONDS)
            capacity = load.answered / CAPACITY_SECONDS
            load.every_seconds = CLIENTS / (SHARE * capacity)
            load.seconds.clear()
            begun, own = time.perf_counter(), time.process_time()
            while (at := time.perf_counter() - begun) < SECONDS:
                watch.look(at)
                time.sleep(SAMPLE_SECONDS)
        own = time.process_time() - own
        early = watch.between(WARM_SECONDS, WARM_SECONDS + WINDOW_SECONDS)
        late = watch.between(SECONDS - WINDOW_SECONDS, SECONDS)
        tell(load, capacity, early, late, own, sizes(kept))
    assert not load.failures, load.failures[:5]
    assert sum(late[0].values()) <= (1 + MEMORY_GROWTH) * sum(early[0].values())
    assert late[1] <= early[1] + DESCRIPTORS_MORE
    assert late[2] <= early[2] + THREADS_MORE
    left = sizes(kept)
    assert "work" not in left
    assert "incoming" not in left


def tell(
    load: Load, capacity: float, early: Any, late: Any, own: float, left: dict[str, Any]
) -> None:
    """Print the table."""
    rate = load.answered / SECONDS
    print(
        f"\n{SECONDS:.0f} s of mixed load at {SHARE:.0%} of {capacity:.0f} questions a second: "
        f"{load.answered:,} answered ({rate:.0f} a second), {len(load.failures)} failures; asking "
        f"took {own / SECONDS:.0%} of a core (load {os.getloadavg()[0]:.1f})"
    )
    for name, seconds in sorted(load.seconds.items()):
        ranks = statistics.quantiles(seconds, n=100, method="inclusive")
        print(
            f"  {name:22} {len(seconds):7,}  median {statistics.median(seconds) * 1e3:6.0f} ms  "
            f"p99 {ranks[98] * 1e3:6.0f} ms"
        )
    print("  " + ", ".join(f"{count} x {name}" for name, count in sorted(load.done.items())))
    for name, megabytes in early[0].items():
        now = late[0][name]
        print(f"  {name:22} {megabytes:6.1f} MB then {now:6.1f} MB ({now / megabytes - 1:+.1%})")
    before, after = sum(early[0].values()), sum(late[0].values())
    print(
        f"  all of them            {before:6.1f} MB then {after:6.1f} MB "
        f"({after / before - 1:+.1%} after the first {WARM_SECONDS:.0f} s); "
        f"descriptors {early[1]:.0f} then {late[1]:.0f}, threads {early[2]:.0f} then {late[2]:.0f}"
    )
    parts = (f"{name} {count} files, {size / 1e6:.2f} MB" for name, (count, size) in left.items())
    print(f"  kept: {'; '.join(parts)} (uploads were {load.sent_bytes / 1e6:.2f} MB)")
