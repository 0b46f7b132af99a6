"""The lab's drives under loads in virtual time: what their counters show, and what they truly draw.

Ten minutes take half a second, and the same seed gives the same. What the host costs is not there.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iojoule.measure.drive.block_device import Stat
from iojoule.sim import _core
from iojoule.sim.device import DeviceConfig
from iojoule.sim.engines.embedded import native
from iojoule.sim.formats.files import read_drive

LAB = Path(__file__).resolve().parents[2] / "measure" / "lab" / "drives" / "lab-nvme.toml"

PHYSICS: dict[str, dict[str, str]] = {
    "lab-nvme": {},
    "no-cache": {
        "static_blocks_per_plane = 8": "static_blocks_per_plane = 0",
        "link_joules_per_byte = 2e-8": "link_joules_per_byte = 8e-8",
        "controller_busy_watts = 1.0": "controller_busy_watts = 1.6",
        "page_read_ns = [4000000, 4000000, 4000000]": "page_read_ns = [6000000, 6000000, 6000000]",
        "max_power_watts = 4.2": "max_power_watts = 5.2",
        "max_power_watts = 3.4": "max_power_watts = 4.4",
    },
    "folds-late": {
        "static_blocks_per_plane = 8": "static_blocks_per_plane = 14",
        "fold_idle_ns = 1000000000": "fold_idle_ns = 2000000000",
        "controller_joules_per_command = 2.5e-4": "controller_joules_per_command = 6e-4",
        "array_program_watts = 0.35": "array_program_watts = 0.5",
    },
}
"""What differs from the lab's own drive, in the text of its file."""

SIZE = 500_000_000
"""Bytes of the drive that are used."""

SECOND = 1_000_000_000
STEP = SECOND // 100


def drive_text(physics: str) -> str:
    """The lab's drive with other physics."""
    text = LAB.read_text("utf-8")
    for before, after in PHYSICS[physics].items():
        assert before in text
        text = text.replace(before, after)
    return text


def device_of(physics: str) -> DeviceConfig:
    """The same as the simulator reads it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drive.toml"
        path.write_text(drive_text(physics), encoding="utf-8")
        return read_drive(path).device


@dataclass(frozen=True)
class Load:
    """What one job of fio does.

    Attributes:
        rw: As fio has it; of `randrw` seven in ten are reads.
        kib: Size of a request.
        depth: Requests in flight.
        per_second: Requests that begin in a second at most; 0: as many as can.
        pause_after: So many requests are followed by half a second without one; 0: none are.
    """

    rw: str
    kib: int
    depth: int
    per_second: int = 0
    pause_after: int = 0

    @property
    def words(self) -> list[str]:
        """For fio's command line."""
        told = [f"--rw={self.rw}", f"--bs={self.kib}k", f"--iodepth={self.depth}"]
        told += ["--rwmixread=70"] if self.rw == "randrw" else []
        told += [f"--rate_iops={self.per_second}"] if self.per_second else []
        pause = ["--thinktime=500ms", f"--thinktime_blocks={self.pause_after}"]
        return told + (pause if self.pause_after else [])


LOADS: list[Load | None] = [
    Load("randread", 4, 4),
    Load("randread", 64, 8),
    Load("randread", 16, 32),
    Load("randwrite", 4, 4),
    Load("randwrite", 64, 2),
    Load("randrw", 16, 4),
    Load("randread", 4, 1, per_second=20),
    Load("randread", 16, 8, pause_after=64),
    Load("read", 64, 4),
    None,
    None,
]
"""None is a rest, in which the drive may fall asleep."""


class Done(NamedTuple):
    """One request that was served."""

    since_ns: int
    done_ns: int
    size: int
    writes: bool


class VirtualDrive:
    """A drive with a host's counters.

    Attributes:
        device: Its physics.
        looks: Its counters as in /sys/block/X/stat, and its power state, at the end of each second.
        now_ns: Time since it was made.
        power_state: That it was told last.
    """

    def __init__(self, device: DeviceConfig) -> None:
        self.device = self.metered(device)
        self.looks: list[tuple[list[int], int]] = []
        self.now_ns, self.power_state = 0, 0
        self._counters = [0] * 17
        self._live = _core.LiveDrive(native(self.device))
        self._cookie = 0
        self._flying: dict[int, tuple[bool, int, int]] = {}  # writes, since, sectors
        self._took_ms, self._busy_ms, self._busy_since = [0.0, 0.0], 0.0, 0
        self._joules = np.zeros(0)
        self._done: list[Done] = []

    @staticmethod
    def metered(device: DeviceConfig) -> DeviceConfig:
        """With joules of each hundredth of a second."""
        values = device.model_dump()
        values["physical"]["energy"]["power_step_ns"] = STEP
        return DeviceConfig.model_validate(values)

    def use(self, times: float = 3.0) -> None:
        """Write all of it so many times at random, and let it rest: no drive is new for long."""
        self.run(Load("randwrite", 64, 8), random.Random(0), size_total=int(times * SIZE))
        self.rest(60.0)
        self.align()

    def set_power_state(self, state: int) -> None:
        self._live.set_power_state(state, self.now_ns)
        self.power_state = state

    def run(
        self, load: Load, rng: random.Random, seconds: float = math.inf, size_total: int = 0
    ) -> list[Done]:
        """Serve the load for so long, or so many bytes of it, and what is in flight to its end.

        As with fio, runs of one kind go to the same places at random, each once (`randrepeat`,
        `norandommap`).
        """
        self._done = []
        until = self.now_ns + seconds * SECOND
        most = size_total // (load.kib * 1024) if size_total else math.inf
        begins = [self.now_ns] * load.depth
        slots, begun, free_from = SIZE // (load.kib * 1024), 0, 0
        places = list(range(slots))
        if load.rw not in ("read", "write"):
            random.Random(load.kib).shuffle(places)
        while self.now_ns < until and begun < most:
            while begins and begins[0] <= self.now_ns and begun < most:
                heapq.heappop(begins)
                if free_from > self.now_ns:
                    heapq.heappush(begins, free_from)
                    continue
                place = places[begun % slots]
                mixed = load.rw == "randrw"
                writes = "write" in load.rw or (mixed and rng.random() >= 0.7)
                self.submit(place * load.kib * 2, load.kib * 2, writes=writes)
                begun += 1
                if load.per_second:
                    free_from = self.now_ns + SECOND // load.per_second
                elif load.pause_after and begun % load.pause_after == 0:
                    free_from = self.now_ns + SECOND // 2
            upcoming = max(self._live.next_event_ns, self.now_ns)
            self._advance(int(min(upcoming, begins[0] if begins else until, until)), begins)
        while self._flying:
            self._advance(max(self._live.next_event_ns, self.now_ns), begins)
        return self._done

    def rest(self, seconds: float) -> None:
        """Nothing is asked for so long."""
        self._advance(self.now_ns + round(seconds * SECOND), [])

    def align(self) -> None:
        """Rest until a second is full."""
        self._advance((len(self.looks) + 1) * SECOND, [])

    def joules(self, begin_ns: int, end_ns: int) -> NDArray[np.float64]:
        """Of each hundredth of a second of a time that is past."""
        _, joules = self._live.take_steps()
        self._joules = np.concatenate([self._joules, joules])
        return self._joules[begin_ns // STEP : end_ns // STEP]

    def watts(self, begin_ns: int, end_ns: int) -> float:
        """What the drive drew on average."""
        joules = self.joules(begin_ns, end_ns)
        return float(joules.mean()) / (STEP / SECOND)

    def submit(self, sector: int, sectors: int, *, writes: bool) -> None:
        """A request comes now."""
        if not self._flying:
            self._busy_since = self.now_ns
        self._flying[self._cookie] = (writes, self.now_ns, sectors)
        kind = "write" if writes else "read"
        self._live.submit(kind, sector, sectors, self._cookie, self.now_ns)
        self._cookie += 1

    def _advance(self, until_ns: int, begins: list[int]) -> None:
        """Time goes on, with a look at each full second; who was served may begin anew."""
        while (second := (len(self.looks) + 1) * SECOND) <= until_ns:
            self._pass(second, begins)
            self.looks.append((list(self._counters), self.power_state))
        self._pass(until_ns, begins)

    def _pass(self, until_ns: int, begins: list[int]) -> None:
        for cookie, done_ns in self._live.advance(until_ns):
            writes, since_ns, sectors = self._flying.pop(cookie)
            self._done.append(Done(since_ns, done_ns, 512 * sectors, writes))
            first = Stat.WRITES if writes else Stat.READS
            self._counters[first] += 1
            self._counters[first + Stat.READ_SECTORS] += sectors
            self._took_ms[writes] += (done_ns - since_ns) / 1e6
            if not self._flying:
                self._busy_ms += (done_ns - self._busy_since) / 1e6
            heapq.heappush(begins, done_ns)
        self.now_ns = max(self.now_ns, until_ns)
        busy_ms = self._busy_ms + ((self.now_ns - self._busy_since) / 1e6 if self._flying else 0.0)
        self._counters[Stat.READ_MS], self._counters[Stat.WRITE_MS] = map(int, self._took_ms)
        self._counters[Stat.BUSY_MS] = int(busy_ms)
        self._counters[Stat.WAITED_MS] = int(sum(self._took_ms))


@dataclass(frozen=True)
class Second:
    """One second of a drive: its counters at the end, its watts and power state in it."""

    counters: Sequence[int]
    watts: float
    power_state: int


@dataclass(frozen=True)
class Recorded:
    """Seconds of a drive, and its counters before."""

    begin: Sequence[int]
    seconds: Sequence[Second]


Turn = tuple[Load | None, int, float]
"""A load or a rest, the power state of the drive, and how many seconds it lasts."""


def record(
    physics: str, seed: int, seconds: int = 600, turns: Iterable[Turn] | None = None
) -> Recorded:
    """What is asked of a used drive in turn; without turns they are drawn by the seed."""
    drive, rng = VirtualDrive(device_of(physics)), random.Random(seed)
    drive.use()
    first = len(drive.looks)
    for load, state, lasts in turns or _turns(rng):
        if state != drive.power_state:  # it wakes the drive
            drive.set_power_state(state)
        if load is None:
            drive.rest(lasts)
        else:
            drive.run(load, rng, lasts)
        if len(drive.looks) > first + seconds:  # one more: what still draws from the last
            break
    drive.align()
    return Recorded(
        drive.looks[first - 1][0],
        [
            Second(counters, drive.watts(second * SECOND, (second + 1) * SECOND), state)
            for second, (counters, state) in enumerate(drive.looks[first : first + seconds], first)
        ],
    )


def _turns(rng: random.Random) -> Iterator[Turn]:
    while True:
        for load in rng.sample(LOADS, len(LOADS)):
            state = rng.choice([0, 0, 0, 1, 2])
            yield load, state, rng.randint(3, 7) * (1 if load else 3)
