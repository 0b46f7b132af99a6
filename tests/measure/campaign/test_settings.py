"""What a run needs set, on a host below a folder."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from iojoule.datasets.schema import Configuration, Workload
from iojoule.measure.campaign.drive_bench import DriveBench
from iojoule.measure.campaign.plan import HostPlan, Plan
from iojoule.measure.campaign.settings import of_campaign, of_run, resting_powers
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.drive.power_measurement import POWER_LIMIT, power_word
from iojoule.measure.errors import DriveError, HostStateError
from iojoule.measure.host.changes import NvmeFeature, SysfsValue
from iojoule.measure.host.journal import HostState
from iojoule.measure.point import Point
from tests.api.acting.hosts import host
from tests.measure.sata import POLICY, fake_hdparm, sata
from tests.stand_ins import SYSTEM, look_in


def test_a_limit_of_sleep_allows_and_forbids(tmp_path: Path) -> None:
    device = host(tmp_path, cpus=1).device
    wanted = Configuration(request_bytes=4096, cstate_limit=1)
    found = {change.command(value) for change, value in of_run(wanted, device, None)}
    folder = tmp_path / "devices/system/cpu/cpu0/cpuidle"
    assert found == {
        f"echo {off} > {folder}/state{state}/disable" for state, off in enumerate((0, 0, 1))
    }
    with pytest.raises(HostStateError, match="no cpuidle"):
        list(of_run(wanted, host(tmp_path / "virtual", cpus=0).device, None))


def test_what_a_run_does_not_state_is_as_it_was_before_the_others(tmp_path: Path) -> None:
    drive = host(tmp_path / "sys", cpus=1)
    files = {"scheduler": "scheduler", "depth": "nr_requests", "merges": "nomerges"}
    paths = {name: Path(drive.device.queue(file)) for name, file in files.items()}
    paths["depth"].write_text("1023")
    paths["merges"].write_text("0")
    before = {name: SysfsValue(str(path)).get() for name, path in paths.items()}
    runs = [
        Configuration(request_bytes=4096, **stated)
        for stated in ({"scheduler": "kyber"}, {}, {"cpu_governor": "powersave"}, {})
    ]
    with HostState("drive", tmp_path / "journals") as state:
        bench = object.__new__(DriveBench)
        bench.__dict__ |= {
            "_of_runs": {}, "_throughout": {SysfsValue(str(paths["merges"])): "2"},
            "_rig": SimpleNamespace(drive=drive, controller=None, state=state),
        }  # fmt: skip
        state.set(SysfsValue(str(paths["merges"])), "2")
        for run in runs:
            bench._set_up(Point(Workload(operation="read"), run))
            if run.scheduler:
                paths["depth"].write_text("64")  # as Linux does with each scheduler
            now = {name: SysfsValue(str(path)).get() for name, path in paths.items()}
            expected = "kyber" if run.scheduler else before["scheduler"]
            assert now["scheduler"] == expected
            assert now["merges"] == "2"
            if not run.scheduler:
                assert now["depth"] == before["depth"]
            governor = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
            assert (governor.read_text().strip() == "powersave") == (run.cpu_governor is not None)
    assert {name: SysfsValue(str(path)).get() for name, path in paths.items()} == before


def resting(**settings: object) -> Configuration:
    return Configuration.model_validate({"request_bytes": 4096, **settings})


def test_a_link_policy_and_a_standby_timer_are_set_and_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    device = sata(tmp_path / "sys", fake_hdparm(tmp_path) / "sda").device
    wanted = resting(link_power_policy="med_power_with_dipm", standby_timer_seconds=300)
    changes = list(of_run(wanted, device, None))
    before = [change.get() for change, _ in changes]
    for change, value in changes:
        change.set(value)
    policy = tmp_path / "sys" / POLICY
    assert policy.read_text() == "med_power_with_dipm"
    assert (tmp_path / "timer").read_text().strip() == "60"
    for (change, _), value in zip(changes, before, strict=True):
        change.set(value)
    assert policy.read_text() == "max_performance"
    assert (tmp_path / "timer").read_text().strip() == "0"


def test_what_a_port_or_drive_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    bare = sata(tmp_path / "a", tmp_path / "sda", policy=None).device
    with pytest.raises(HostStateError, match="link_power_policy"):
        list(of_run(resting(link_power_policy="min_power"), bare, None))
    flash = sata(tmp_path / "b", tmp_path / "sda", rotates=False).device
    with pytest.raises(DriveError, match="standby_timer_seconds"):
        list(of_run(resting(standby_timer_seconds=300), flash, None))
    nvme = host(tmp_path / "c").device
    with pytest.raises(HostStateError, match="link_power_policy"):
        list(of_run(resting(link_power_policy="min_power"), nvme, None))


def test_a_level_of_power_management_holds_for_the_whole_campaign(tmp_path: Path) -> None:
    device = sata(tmp_path / "sys", tmp_path / "sda").device
    plan = Plan.model_construct(host=HostPlan(apm_level=254))
    found = [change.command(value) for change, value in of_campaign(plan, [], device, None, False)]
    assert found == [f"hdparm -B 254 {tmp_path / 'sda'}"]


def test_a_limit_is_set_before_the_power_state(tmp_path: Path) -> None:
    device, controller = host(tmp_path).device, NvmeController(Path("/dev/nvme0"))
    wanted = Configuration(request_bytes=4096, power_state=1, power_limit_watts=3.5)
    found = [
        (change.identifier, value)
        for change, value in of_run(wanted, device, controller)
        if isinstance(change, NvmeFeature)
    ]
    assert found == [(POWER_LIMIT, str(power_word(3.5))), (2, "1")]
    lifted = wanted.model_copy(update={"power_limit_watts": 0.0})
    assert [value for _, value in of_run(lifted, device, controller)] == ["0", "1"]
    for much in (1e-9, 1e6):
        with pytest.raises(DriveError):
            list(of_run(wanted.model_copy(update={"power_limit_watts": much}), device, controller))


def test_idle_power_is_measured_in_every_state_and_limit() -> None:
    def found(*powers: tuple[int | None, float | None]) -> list[tuple[int | None, float | None]]:
        return resting_powers(
            Point(
                Workload(operation="read"),
                Configuration(request_bytes=4096, power_state=state, power_limit_watts=limit),
            )
            for state, limit in powers
        )

    assert found((None, None)) == [(None, None)]
    assert found((1, None), (None, None), (0, None)) == [(0, None), (1, None)]
    assert found((None, 3.5), (None, 0.0)) == [(None, 0.0), (None, 3.5)]
    assert found((1, 0.0), (0, 0.0), (1, 3.5)) == [(0, 0.0), (1, 0.0), (1, 3.5)]
