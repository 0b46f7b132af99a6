"""What a governor may set and by which evidence, what it reads, and where its budget comes from."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from iojoule.api.acting.governing.actuators import Actuators, require_evidence, settings_of
from iojoule.api.acting.governing.budget import FixedBudget, FleetShare, PlannedBudget
from iojoule.api.acting.governing.files import governed, read_service
from iojoule.api.acting.governing.forecast import Demand, Forecaster, Load, Setting
from iojoule.api.acting.governing.groups import BestEffortGroup, Throttle
from iojoule.api.acting.governing.loop import Governed, Governor, Options
from iojoule.api.client.errors import UnreachableError
from iojoule.datasets.errors import InputError, NoProfileError
from iojoule.datasets.measured_drive import DeclaredState
from iojoule.datasets.profile import DeviceProfile, load_shipped_profile
from iojoule.datasets.vocabulary import Evidence
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.nvme import POWER_MANAGEMENT, Controller, NvmeController
from iojoule.measure.drive.power_measurement import POWER_LIMIT, power_word
from iojoule.measure.errors import DriveError, UnsafeDriveError
from iojoule.measure.host import host_files
from iojoule.measure.host.journal import HostState
from iojoule.recommender.fleet.document import Fleet, load_fleet
from iojoule.recommender.fleet.plan import Plan
from iojoule.recommender.fleet.planner import Planner
from iojoule.recommender.sla import parse_sla
from tests.api.acting.hosts import host, values
from tests.meter.hosts import Host
from tests.settable import Below

PROFILE = load_shipped_profile("samsung-980-pro-1tb")
CONTROLLER = Controller(
    serial="S5GX1", model="Samsung SSD 980 PRO 1TB", firmware="5B2QGXA7",
    mdts_exponent=5, volatile_write_cache=True, has_apst=True, format_erases_all=False,
    limits_power=False, measures_power=False,
    power_states=tuple(
        DeclaredState(
            index=index, max_power_watts=watts, operational=index < 3,
            entry_latency_us=0, exit_latency_us=0,
        )
        for index, watts in enumerate((8.49, 4.48, 3.18, 0.04, 0.005))
    ),
)  # fmt: skip


@pytest.fixture
def drive(tmp_path: Path) -> DriveFacts:
    return replace(host(tmp_path / "sys"), controller=CONTROLLER)


def assumed_in(state: int) -> DeviceProfile:
    power = PROFILE.device_power
    assert power is not None
    states = [
        one.model_copy(
            update={"base_watts": one.base_watts.model_copy(update={"evidence": Evidence.ASSUMED})}
        )
        if one.power_state == state
        else one
        for one in power.states
    ]
    return PROFILE.model_copy(update={"device_power": power.model_copy(update={"states": states})})


def test_only_measured_states_of_this_model_are_used(drive: DriveFacts) -> None:
    require_evidence(PROFILE, drive)
    measured = [one.power_state for one in settings_of(PROFILE, drive)]
    assert measured[0] == 0
    assert len(measured) > 1
    last = measured[-1]
    assert last is not None
    assert last not in [one.power_state for one in settings_of(assumed_in(last), drive)]
    with pytest.raises(NoProfileError):
        settings_of(assumed_in(last), drive, power_states=(0, last))
    with pytest.raises(InputError):
        settings_of(PROFILE, drive, power_states=(0, 4))  # a state of sleep
    other = replace(drive, controller=replace(CONTROLLER, model="Samsung SSD 970 PRO 512GB"))
    with pytest.raises(UnsafeDriveError):
        require_evidence(PROFILE, other)
    with pytest.raises(NoProfileError):
        require_evidence(PROFILE.model_copy(update={"recipe": "facts"}), drive)


def test_a_scheduler_is_set_and_restored_through_the_journal(
    tmp_path: Path, drive: DriveFacts
) -> None:
    plain = replace(drive, controller=None)
    with pytest.raises(InputError):
        settings_of(PROFILE, plain)
    settings = settings_of(PROFILE, plain, schedulers=("none",))
    assert settings == [Setting(None, "mq-deadline"), Setting(None, "none")]
    before = values(tmp_path / "sys")
    dry = Actuators(plain, None, settings, None)
    dry.set(1)
    assert values(tmp_path / "sys") == before
    with HostState("drive", tmp_path / "state") as state:
        actuators = Actuators(plain, None, settings, state)
        (drive.device.queue("scheduler")).write_text("none [mq-deadline]\n")
        assert actuators.in_force() == 0
        actuators.set(1)
        assert drive.device.queue("scheduler").read_text() == "none"
        assert list((tmp_path / "state").glob("restore-*"))
    assert drive.device.queue("scheduler").read_text() == "mq-deadline"


def test_what_was_in_force_at_the_start_is_restored(tmp_path: Path, drive: DriveFacts) -> None:
    plain, scheduler = replace(drive, controller=None), drive.device.queue("scheduler")
    scheduler.write_text("none [mq-deadline]\n")
    settings = settings_of(PROFILE, plain, schedulers=("none",))
    with HostState("drive", tmp_path / "state") as state:
        actuators = Actuators(plain, None, settings, state)
        scheduler.write_text("[none] mq-deadline\n")  # somebody's, before the first switch
        actuators.set(1)
    assert scheduler.read_text() == "mq-deadline"


def test_forecasts_of_a_shipped_profile() -> None:
    sla = parse_sla("mean latency < 1 ms")
    settings = [Setting(0), Setting(2)]
    forecaster = Forecaster(PROFILE, settings, sla, concurrency=32)
    idle, busy = (forecaster.at(Load(rate, 4096, 1.0)) for rate in (0.0, 250_000.0))
    assert idle[0].forecast.watts < busy[0].forecast.watts
    assert idle[0].forecast.latency_share < 1 > busy[0].forecast.latency_share
    assert busy[1].forecast.capacity < busy[0].forecast.capacity
    assert forecaster.measured_share(2e6, busy[0]) == pytest.approx(2.0)
    with pytest.raises(InputError):
        Forecaster(PROFILE, settings, parse_sla("system power < 90 W"))


def test_the_next_demand_follows_a_rise_at_once_and_a_fall_when_it_has_lasted() -> None:
    demand = Demand(intervals=4)
    for reads in (100, 100, 100, 900):
        demand.add(demand.load(1.0, reads, 0.0, reads * 8192.0), 0.0)
    assert demand.next() == Load(900, 8192.0, 1.0)
    for _ in range(4):
        demand.add(demand.load(1.0, 60.0, 40.0, 100 * 4096.0), 0.0)
    assert demand.next() == Load(100, 4096.0, 0.6)
    for _ in range(4):
        quiet = demand.load(1.0, 0.0, 0.0, 0.0)
        demand.add(quiet, 0.0)
    assert quiet == demand.next() == Load(0.0, 4096.0, 0.6)


def test_what_a_late_drive_serves_is_taken_for_the_demand_after_a_while_only() -> None:
    demand = Demand(intervals=4, hold_seconds=10, hold_max_seconds=100)
    held = []
    for begin in (0.0, 50.0):
        demand.add(Load(900.0, 4096.0, 1.0), begin)
        seconds = 0.0
        while demand.next().requests_per_second > 500:
            seconds += 1.0
            demand.add(Load(100.0, 4096.0, 1.0), begin + seconds, is_late=True)
        held.append(seconds)
    assert held == [11.0, 21.0]


WORKLOAD = """
concurrency_max = 8
[workload]
operation = "read"
pattern = "sequential"
useful_request_bytes = 4096
[sla]
latency_p99_ns_max = 2e6
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('sla = "p99 < 2 ms"', (2e6, "random", 32)),
        ("[sla]\nlatency_p99_ns_max = 2e6", (2e6, "random", 32)),
        (WORKLOAD, (2e6, "sequential", 8)),
        ('slo = "p99 < 2 ms"', None),
        ('sla = "p99 < many"', None),
    ],
)
def test_sla_files(tmp_path: Path, text: str, expected: tuple[float, str, int] | None) -> None:
    file = tmp_path / "sla.toml"
    file.write_text(text)
    if expected is None:
        with pytest.raises(InputError):
            read_service(file)
        return
    found = read_service(file)
    assert (found.sla.latency_p99_ns_max, found.pattern, found.concurrency) == expected


FLEET = """
[[domain]]
name = "rack"
limit_watts = 300
[[drives]]
name = "shared"
device = "samsung-980-pro-1tb"
count = 8
domain = "rack"
classes = ["reads"]
[[class]]
name = "reads"
demand_bytes_per_second = 1e9
redirectable = true
[class.workload.workload]
operation = "read"
useful_request_bytes = 4096
"""


def test_a_planned_budget_holds_for_a_while_when_the_service_is_away(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    away, now, said = [False], [0.0], list[str]()

    def plans(fleet: Fleet) -> list[Plan]:
        if away[0]:
            raise UnreachableError("nobody answers")
        return list(Planner(fleet, {"samsung-980-pro-1tb": PROFILE}).plans("least_watts"))

    def budget(share: FleetShare, ask: Callable[[Fleet], list[Plan]]) -> PlannedBudget:
        return PlannedBudget(
            share, ask, 5.0, hold_seconds=60, say=said.append, clock=lambda: now[0]
        )

    two = budget(FleetShare(file, "shared", 2), plans)
    assert two.watts() == 5.0
    two.refresh()
    planned = two.watts()
    eight = budget(FleetShare(file, "shared", 8), plans)
    eight.refresh()
    assert eight.watts() == pytest.approx(4 * planned)
    away[0] = True
    for now[0] in (30.0, 60.0):
        two.refresh()
        assert two.watts() == planned
    now[0] = 61.0
    assert two.watts() == 5.0
    away[0] = False
    two.refresh()
    assert two.watts() == planned
    assert len(said) == 2
    with pytest.raises(InputError):
        budget(FleetShare(file, "shared", 9), plans)
    with pytest.raises(InputError):
        budget(FleetShare(file, "others", 1), plans)
    assert re.search("60 s", said[0])


def test_a_plan_of_another_fleet_is_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    plans = list(Planner(load_fleet(file), {"samsung-980-pro-1tb": PROFILE}).plans("least_watts"))
    renamed = [one.model_copy(update={"name": "others"}) for one in plans[0].groups]
    for answer in ([], [plans[0].model_copy(update={"groups": renamed})]):
        told = answer
        budget = PlannedBudget(FleetShare(file, "shared", 2), lambda _, told=told: told, 5.0)
        budget.refresh()
        assert budget.watts() == 5.0


def test_nobody_waits_for_a_planner_that_hangs(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    hangs = threading.Event()

    def ask(_: Fleet) -> list[Plan]:
        hangs.wait(60)
        raise UnreachableError("nobody answers")

    with PlannedBudget(FleetShare(file, "shared", 2), ask, 5.0) as budget:
        assert not hangs.is_set()
        assert budget.watts() == 5.0
        hangs.set()


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Host, list[Governed]]:
    """A host with two drives that are governed by their schedulers."""
    monkeypatch.setattr("iojoule.api.acting.governing.loop.wake", lambda _: None)
    host = Host(tmp_path / "host")
    for name in ("nvme0n1", "nvme1n1"):
        host.nvme(name, f"S{name}")
    return host, [scheduled(host, name) for name in ("nvme0n1", "nvme1n1")]


def scheduled(host: Host, name: str) -> Governed:
    """A drive of a host that is governed by its scheduler."""
    folder = host.sysfs / "block" / name
    (folder / "queue" / "scheduler").write_text("none [mq-deadline]\n")
    (folder / "stat").write_text("0 " * 17)
    device = BlockDevice(Path("/dev") / name, name, "259:0", 10**12, 512, host.sysfs)
    facts = replace(DriveFacts(device, None, None), controller=CONTROLLER)
    return Governed(facts, None, PROFILE, power_states=(0,), schedulers=("none",))


def schedulers(host: Host) -> list[str]:
    names = ("nvme0n1", "nvme1n1")
    texts = [(host.sysfs / "block" / name / "queue/scheduler").read_text() for name in names]
    return [host_files.value_in_force(text.strip()) for text in texts]


def governing(
    host: Host,
    drives: list[Governed],
    state: HostState | None = None,
    record: Callable[[dict[str, Any]], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Governor:
    """Without a budget, for a latency that nothing breaks."""
    options = Options(parse_sla("mean latency < 1 ms"), proc=host.proc, sysfs=host.sysfs)
    return Governor(drives, options, FixedBudget(None), state, record, say)


def test_a_drive_that_takes_the_name_of_a_governed_one_is_not_governed(
    two: tuple[Host, list[Governed]],
) -> None:
    host, drives = two
    said = list[str]()
    with governing(host, drives, say=said.append) as governor:
        assert governor.step().keys() == {"nvme0n1", "nvme1n1"}
        host.swap("nvme0n1", "another")
        assert governor.step().keys() == {"nvme1n1"}
        assert governor.gone.keys() == {"nvme0n1"}
        host.swap("nvme1n1", "a third")
        with pytest.raises(DriveError):
            governor.step()


def test_a_drive_that_fails_is_restored_and_ends_nothing_for_others(
    two: tuple[Host, list[Governed]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, drives = two
    logged = list[dict[str, Any]]()
    with (
        HostState("drives", tmp_path / "state") as state,
        governing(host, drives, state, logged.append) as governor,
    ):
        assert governor.step().keys() == {"nvme0n1", "nvme1n1"}
        for drive in governor._drives.values():
            drive.actuators.set(1)
        assert schedulers(host) == ["none", "none"]

        def fails(*_: object) -> None:
            raise DriveError("it does not answer")

        monkeypatch.setattr(governor._drives["nvme0n1"].law, "decide", fails)
        assert governor.step().keys() == {"nvme1n1"}
        assert schedulers(host) == ["mq-deadline", "none"]
        assert (logged[-1]["device"], logged[-1]["reason"]) == ("nvme0n1", "failed")
        assert governor.totals.keys() == {"nvme0n1", "nvme1n1"}
        (host.sysfs / "block/nvme1n1/stat").unlink()
        with pytest.raises(DriveError):
            governor.step()
    assert schedulers(host) == ["mq-deadline", "mq-deadline"]


def test_totals_are_of_the_time_that_passed(two: tuple[Host, list[Governed]]) -> None:
    host, drives = two
    logged = list[dict[str, Any]]()
    with governing(host, drives, record=logged.append) as governor:
        governor.step()  # much sooner than its period
        totals = governor.totals["nvme0n1"]
    watts = next(one["measured"]["watts"] for one in logged if one["device"] == "nvme0n1")
    assert totals.joules / totals.seconds == pytest.approx(watts, rel=1e-5)


def test_what_a_reset_undid_is_set_again(two: tuple[Host, list[Governed]], tmp_path: Path) -> None:
    host, drives = two
    host.did("nvme0n1", reads=10)
    logged = list[dict[str, Any]]()
    with (
        HostState("drives", tmp_path / "state") as state,
        governing(host, drives, state, logged.append) as governor,
    ):
        governor.step()
        host.counters["nvme0n1"] = [0] * 17
        host.write()
        (host.sysfs / "block/nvme0n1/queue/scheduler").write_text("[none] mq-deadline\n")
        governor.step()
        governor.step()
        assert schedulers(host) == ["mq-deadline", "mq-deadline"]
    assert [one["device"] for one in logged if one["reason"] == "changed_by_others"] == ["nvme0n1"]


def test_two_namespaces_of_one_drive_are_refused(
    two: tuple[Host, list[Governed]], tmp_path: Path
) -> None:
    host, drives = two
    host.disk(
        "nvme0n2",
        below="pci/nvme0",
        device__model="Samsung SSD 980 PRO 1TB",
        device__transport="pcie",
    )
    options = Options(parse_sla("mean latency < 1 ms"), proc=host.proc, sysfs=host.sysfs)
    for other in (drives[0], scheduled(host, "nvme0n2")):
        with pytest.raises(InputError):
            Governor(
                [drives[0], other], options, FixedBudget(9), None, lambda _: None, lambda _: None
            )
    with pytest.raises(InputError):
        governed([Path("nvme0n1")] * 2, ["samsung-980-pro-1tb"])


class Features(NvmeController):
    """A controller that holds features and nothing else."""

    values: ClassVar[dict[int, int]] = {}

    def feature(self, identifier: int) -> int:
        return self.values.get(identifier, 0)

    def set_feature(self, identifier: int, value: int) -> None:
        self.values[identifier] = value

    def identify(self) -> Controller:
        return CONTROLLER


def test_a_power_limit_that_a_reset_lifted_is_set_again(
    tmp_path: Path, drive: DriveFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iojoule.measure.host.changes.NvmeController", Features)
    monkeypatch.setattr(Features, "values", {})
    limited = replace(drive, controller=replace(CONTROLLER, limits_power=True))
    node = tmp_path / "nvme0"
    node.touch()
    with HostState("drive", tmp_path / "state") as state:
        actuators = Actuators(limited, Features(node), [Setting(0), Setting(2)], state)
        actuators.set(1)
        actuators.limit(3.0, 1)
        assert Features.values == {POWER_MANAGEMENT: 2, POWER_LIMIT: power_word(3.0)}
        Features.values.clear()
        actuators.renew_limit()
        assert Features.values == {POWER_LIMIT: power_word(3.0)}
        actuators.set(1, again=True)
        actuators.put_back()
        assert Features.values == {POWER_MANAGEMENT: 0, POWER_LIMIT: 0}


def test_a_best_effort_group_gives_way_fast_and_comes_back_slowly() -> None:
    throttle = Throttle(hold_seconds=10.0)
    wants, limits = 10e6, []
    for second in range(60):
        moved = min(wants, throttle.limit or wants)
        limits.append(throttle.decide(float(second), second < 6, moved))
    assert limits[:6] == pytest.approx([7e6, 7e6, 4.9e6, 4.9e6, 3.43e6, 3.43e6])
    assert limits[14] == pytest.approx(1.25 * 3.43e6)
    assert throttle.decide(70.0, is_pressed=False, moved=1e6) is None, "it no longer needs a limit"
    assert Throttle().decide(0.0, is_pressed=True, moved=0.0) is None


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_groups_are_written_for_one_drive_and_restored(
    tmp_path: Path, drive: DriveFacts, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_files, "SETTABLE", (Below(tmp_path, "*"),))
    folder, number = tmp_path / "batch", drive.device.number
    folder.mkdir()
    if version == 2:
        (folder / "io.stat").write_text(f"7:0 rbytes=9\n{number} rbytes=1000000 wbytes=0 rios=1\n")
        files = [folder / "io.max"]
    else:
        stat = folder / "blkio.throttle.io_service_bytes_recursive"
        stat.write_text(f"7:0 Read 9\n{number} Read 900000\n{number} Write 100000\nTotal 1000009\n")
        files = [folder / f"blkio.throttle.{one}_bps_device" for one in ("read", "write")]
    for file in files:
        file.write_text("")
    with HostState("drive", tmp_path / "state") as state:
        group = BestEffortGroup(folder, drive.device, state)
        assert group.decide(0.0, 1.0, is_pressed=False, of_drive=0.0) is None
        for file in (folder / "io.stat", folder / "blkio.throttle.io_service_bytes_recursive"):
            if file.exists():
                file.write_text(
                    file.read_text().replace("=1000000", "=2000000").replace("900", "1900")
                )
        assert group.decide(1.0, 1.0, is_pressed=True, of_drive=9e6) == pytest.approx(0.7e6)
        for file in files:
            assert file.read_text().startswith(f"{number} ")
            assert "700000" in file.read_text()
    for file in files:
        assert "700000" not in file.read_text()
    with HostState("drive", tmp_path / "state") as state:
        group = BestEffortGroup(folder, drive.device, state)
        assert group.decide(0.0, 1.0, is_pressed=True, of_drive=9e6) == pytest.approx(6.3e6)
        assert all("6300000" in file.read_text() for file in files)
        group.put_back()
        assert all("6300000" not in file.read_text() for file in files)
        shutil.rmtree(folder)
        assert group.decide(9.0, 1.0, is_pressed=True, of_drive=9e6) is None
    with pytest.raises(InputError):
        BestEffortGroup(tmp_path, drive.device, None)
