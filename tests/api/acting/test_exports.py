"""Recommendations as files of other programs, each read by that program where it is installed."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from iojoule.api.acting.applications import Application
from iojoule.api.acting.exports import ExportFormat, Material, export, material_of
from iojoule.api.acting.exports.iocost import PARAMETERS
from iojoule.api.acting.proposal import Step, propose
from iojoule.api.application.local import LocalBackend
from iojoule.api.cli.options import chosen_profile
from iojoule.datasets.errors import InputError
from iojoule.measure.host.changes import NvmeFeature, StandbyTimer
from tests.api.acting.answers import answer
from tests.api.acting.hosts import SERIAL, host, write

WANTED = {
    "scheduler": "none",
    "cpu_governor": "powersave",
    "cstate_limit": 1,
    "queue_depth": 64,
    "jobs": 4,
    "mount_options": "noatime",
    "job_numa_node": 0,
}
SLA = {"latency_mean_ns_max": 2e6, "latency_p99_ns_max": 5e6, "latency_p999_ns_max": 9e6}
MODEL = re.compile(
    r"echo '259:99 ctrl=user model=linear(?P<values>( [rw](bps|seqiops|randiops)=[1-9][0-9]*)*)'"
    r" > /sys/fs/cgroup/io\.cost\.model"
)
"""What `ioc_cost_model_write` of the kernel reads."""


def material(
    folder: Path,
    wanted: dict[str, Any] | None = None,
    sla: dict[str, Any] | None = None,
    *steps: Step,
    **more: Any,
) -> Material:
    found = answer(WANTED if wanted is None else wanted, None, SLA if sla is None else sla, **more)
    proposal = propose(found, host(folder), None)
    proposal = replace(proposal, settings=(*proposal.settings, *steps))
    backend = LocalBackend(chosen=chosen_profile("samsung-980-pro-1tb", None, None))
    return material_of(found, proposal, Application.FIO, lambda: nullcontext(backend))


POWER_STATE = Step("power_state", NvmeFeature("/dev/nvme0", 1, 2), "0", "2")


def needs(program: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def run(*words: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=120, **more
    )


def comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("#"))


def values(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("kind", ExportFormat)
def test_nothing_of_the_recommendation_is_dropped(tmp_path: Path, kind: ExportFormat) -> None:
    text = export(kind, material(tmp_path, None, None, POWER_STATE))
    assert text.endswith("\n")
    assert "fio option iodepth = 64" in comments(text)
    assert "mount option" in comments(text)
    assert "powersave" in text or "settings of the CPUs" in comments(text)
    assert "power_state" in text or "--feature-id=0x2" in text or "of the drive" in comments(text)


@pytest.mark.parametrize("kind", ExportFormat)
def test_no_value_begins_a_line(tmp_path: Path, kind: ExportFormat) -> None:
    found = material(tmp_path, {"scheduler": "none"}, {}, workload="a\n[script]\nscript=/evil")
    text = export(kind, found)
    assert not [line for line in values(text) if "evil" in line and "!unsafe" not in line]


def test_a_value_with_control_characters_is_refused(tmp_path: Path) -> None:
    found = material(tmp_path)
    step = replace(found.settings[0], then="none\n[script]")
    proposal = replace(found.proposal, settings=(step,))
    with pytest.raises(InputError):
        export(ExportFormat.TUNED, replace(found, proposal=proposal))


def test_what_is_in_force_here_is_exported_too(tmp_path: Path) -> None:
    found = material(tmp_path, {"scheduler": "mq-deadline"}, {})
    assert found.proposal.steps == ()
    assert 'ATTR{queue/scheduler}="mq-deadline"' in export(ExportFormat.UDEV, found)
    assert "elevator=mq-deadline" in export(ExportFormat.TUNED, found)


def test_a_profile_of_tuned_holds_drive_processors_and_files(tmp_path: Path) -> None:
    timer = Step("standby_timer_seconds", StandbyTimer("/dev/sda"), "0", "60")
    found = material(tmp_path, None, None, POWER_STATE, timer)
    text = export(ExportFormat.TUNED, found)
    read = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    read.read_string(text)
    assert read["disk"]["elevator"] == "none"
    assert read["disk"]["spindown"] == "12"  # steps of 5 s (hdparm(8), -S)
    rule = re.compile(read["disk"]["devices_udev_regex"], re.MULTILINE)
    for serial in (SERIAL, SERIAL.replace(" ", "_")):  # with and without string_escape=replace
        assert rule.search(f"A=1\nID_SERIAL_SHORT={serial}\nB=2\n")
        assert not rule.search(f"ID_SERIAL_SHORT={serial}0\n")
    assert read["cpu"]["governor"] == "powersave"
    assert int(read["sysfs"]["priority"]) > 0
    files = [name for name in read["sysfs"] if name.startswith("/")]
    assert [name for name in files if "cpuidle" in name]
    assert "power_state = 2" in comments(text)


@pytest.mark.parametrize(
    "serial", ["S5GX  1", "A #1", "q'x;[y]", "x%y", "${x}", "a\\b", "S1|S2", "*"]
)
def test_a_profile_of_tuned_finds_a_drive_of_any_serial_number(tmp_path: Path, serial: str) -> None:
    found = material(tmp_path, {"scheduler": "mq-deadline"}, {})
    proposal = replace(found.proposal, drive=host(tmp_path, serial=f" {serial}  "))
    # as TuneD reads it (tuned.profiles.loader)
    read = configparser.ConfigParser(
        delimiters=("=",), inline_comment_prefixes=("#",), strict=False, interpolation=None
    )
    read.read_string(export(ExportFormat.TUNED, replace(found, proposal=proposal)))
    rule = re.compile(read["disk"]["devices_udev_regex"], re.MULTILINE)
    known = re.sub(r"[^\w#+.:=@/$%?, -]", "_", serial)  # udev_replace_chars of systemd
    assert rule.search(f"A=1\nID_SERIAL_SHORT={known}\nB=1\n")
    assert not rule.search(f"A=1\nID_SERIAL_SHORT={known}1\nB=1\n")


def test_a_controller_is_set_up_once_it_takes_commands(tmp_path: Path) -> None:
    text = export(ExportFormat.UDEV, material(tmp_path, None, None, POWER_STATE))
    [rule] = [line for line in values(text) if 'SUBSYSTEM=="nvme"' in line]
    assert rule.startswith('ACTION=="add|change", ')


def test_tuned_sets_the_depth_of_the_queue_after_the_scheduler(tmp_path: Path) -> None:
    found = material(tmp_path, {"scheduler": "mq-deadline", "queue_depth": 96}, {})
    read = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    read.read_string(export(ExportFormat.TUNED, found))
    assert read["sysfs"][f"{tmp_path}/class/block/nvme0n1/queue/nr_requests"] == "96"
    assert int(read["sysfs"]["priority"]) > int(read["disk"].get("priority", "0"))


_TUNED = """
import sys
from tuned.profiles.factory import Factory
from tuned.profiles.loader import Loader
from tuned.profiles.locator import Locator
from tuned.profiles.merger import Merger
from tuned.profiles.variables import Variables
from tuned.utils.global_config import GlobalConfig
profile = Loader(
    Locator([sys.argv[1]]), Factory(), Merger(), GlobalConfig(), Variables()
).load("iojoule")
from tuned.plugins.plugin_cpu import CPULatencyPlugin
from tuned.plugins.plugin_disk import DiskPlugin
known = {"disk": DiskPlugin, "cpu": CPULatencyPlugin}
for name, unit in profile.units.items():
    options = {one for one in unit.options if one not in ("priority",)}
    if unit.type in known:
        assert options <= set(known[unit.type]._get_config_options()), (name, options)
    print(unit.type, unit.devices_udev_regex, *sorted(unit.options))
"""


def test_tuned_loads_the_profile(tmp_path: Path) -> None:
    needs("tuned-adm")
    text = export(ExportFormat.TUNED, material(tmp_path / "host", None, None, POWER_STATE))
    (tmp_path / "iojoule").mkdir()
    (tmp_path / "iojoule/tuned.conf").write_text(text)
    python = needs("/usr/bin/python3")
    done = run(python, "-B", "-c", _TUNED, tmp_path, cwd="/")
    assert done.returncode == 0, done.stderr
    units = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(units) == {"disk", "cpu", "sysfs"}
    assert "ID_SERIAL_SHORT" in units["disk"]


class _Loader(yaml.SafeLoader):
    """Reads Ansible's own tag."""


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def test_tasks_install_the_rule_and_the_values(tmp_path: Path) -> None:
    found = material(tmp_path, None, None, POWER_STATE)
    text = export(ExportFormat.ANSIBLE, found)
    tasks = yaml.load(text, Loader=_Loader)
    copies = [task["ansible.builtin.copy"] for task in tasks if "ansible.builtin.copy" in task]
    assert [copy["dest"] for copy in copies] == [
        "/etc/udev/rules.d/71-iojoule-S5GX-1.rules",
        "/etc/tmpfiles.d/iojoule-S5GX-1.conf",
    ]
    assert copies[0]["content"] == export(ExportFormat.UDEV, found)
    assert copies[1]["content"] == export(ExportFormat.TMPFILES, found)
    commands = [task.get("ansible.builtin.command", "") for task in tasks]
    assert sum("--subsystem-match=nvme" in one for one in commands) == 1


@pytest.mark.parametrize("wanted", [WANTED, {"request_bytes": 8192}])
def test_ansible_reads_and_checks_the_tasks(tmp_path: Path, wanted: dict[str, Any]) -> None:
    program = needs("ansible-playbook")
    text = export(ExportFormat.ANSIBLE, material(tmp_path / "host", wanted))
    (tmp_path / "tasks.yml").write_text(text.replace('"/etc/', f'"{tmp_path}/etc/'))
    (tmp_path / "play.yml").write_text(
        "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.import_tasks: tasks.yml\n"
    )
    for folder in ("etc/udev/rules.d", "etc/tmpfiles.d"):
        (tmp_path / folder).mkdir(parents=True)
    own = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
    }
    syntax = run(program, "--syntax-check", tmp_path / "play.yml", env=own, cwd=tmp_path)
    assert syntax.returncode == 0, syntax.stderr
    checked = run(program, "--check", "--diff", tmp_path / "play.yml", env=own, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert not list((tmp_path / "etc/udev/rules.d").iterdir())
    if wanted is WANTED:
        assert "failed=0" in checked.stdout
        assert 'ATTR{queue/scheduler}="none"' in checked.stdout


def test_io_cost_is_told_what_the_profile_predicts(tmp_path: Path) -> None:
    text = export(ExportFormat.IOCOST, material(tmp_path))
    model, qos = values(text)
    found = MODEL.fullmatch(model)
    assert found is not None
    told = dict(one.split("=") for one in found["values"].split())
    assert list(told) == [one.name for one in PARAMETERS]
    # Random reads of 4 KiB at depth 64 by 4 jobs are measured: 784,048/s.
    assert int(told["rrandiops"]) == pytest.approx(784_048, rel=0.02)
    assert int(told["rbps"]) > int(told["wbps"]) > 1e9
    for name in ("rrandiops", "wbps"):  # though extrapolated rates are higher
        assert f"{name}: measured" in comments(text)
    assert shlex.split(qos)[1] == (
        "259:99 enable=1 ctrl=user rpct=99.90 rlat=9000 wpct=99.90 wlat=9000"
    )
    assert "latency_p99_ns_max = 5e+06" in comments(text)
    assert "latency_mean_ns_max = 2e+06" in comments(text)


def test_a_bound_on_reads_says_nothing_of_writes(tmp_path: Path) -> None:
    sla = {"latency_p99_ns_max": 5e6, "directions": {"latency_p99_ns_max": "read"}}
    text = export(ExportFormat.IOCOST, material(tmp_path, {}, sla))
    assert shlex.split(values(text)[1])[1] == "259:99 enable=1 ctrl=user rpct=99.00 rlat=5000"


@pytest.mark.parametrize("more", [{}, {"soft": ["latency_p99_ns_max"]}])
def test_without_a_hard_percentile_io_cost_is_not_enabled(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    sla = {"latency_p99_ns_max": 5e6, **more} if more else {}
    [model] = values(export(ExportFormat.IOCOST, material(tmp_path, {}, sla)))
    assert MODEL.fullmatch(model)


def test_what_the_profile_does_not_predict_is_left_to_the_kernel(tmp_path: Path) -> None:
    drive = LocalBackend(chosen=chosen_profile("wd-zn540", None, None))
    found = replace(
        material(tmp_path, {"power_state": None}, {}, device="wd-zn540"),
        backend=lambda: nullcontext(drive),
    )
    text = export(ExportFormat.IOCOST, found)
    told = {name.split("=")[0] for line in values(text) for name in line.split() if "=" in name}
    for one in PARAMETERS:
        assert (one.name in told) != (f"{one.name} is left out" in comments(text))


def test_the_shell_reads_the_lines_of_io_cost(tmp_path: Path) -> None:
    (tmp_path / "cost.sh").write_text(export(ExportFormat.IOCOST, material(tmp_path / "host")))
    assert run("/bin/sh", "-n", tmp_path / "cost.sh").returncode == 0


def test_a_service_gets_what_is_implied_and_no_more(tmp_path: Path) -> None:
    write(tmp_path / "devices/system/node/node0", cpulist="0-3,8")
    text = export(ExportFormat.SYSTEMD, material(tmp_path, demand_bytes_per_second=1e8))
    assert values(text) == [
        "[Service]",
        "IODeviceLatencyTargetSec=/dev/nvme0n1 2000us",
        "CPUAffinity=0-3,8",
    ]
    assert "latency_p99_ns_max" in comments(text)
    assert "100000000 B/s" in comments(text)


def test_files_of_one_setting_are_one_comment(tmp_path: Path) -> None:
    found = material(tmp_path, {"cpu_governor": "powersave", "cstate_limit": 1}, {})
    assert len(found.settings) > 2
    lines = comments(export(ExportFormat.SYSTEMD, found)).splitlines()
    assert sum("cpu_governor = powersave" in line for line in lines) == 1
    assert sum("cstate_limit = " in line for line in lines) == 1


def test_a_node_that_the_host_does_not_have_is_said(tmp_path: Path) -> None:
    text = export(ExportFormat.SYSTEMD, material(tmp_path, sla={}))
    assert values(text) == ["[Service]"]
    assert "job_numa_node = 0" in comments(text)


def test_systemd_accepts_the_drop_in(tmp_path: Path) -> None:
    program = needs("systemd-analyze")
    write(tmp_path / "host/devices/system/node/node0", cpulist="0")
    unit = tmp_path / "work.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    drop_in = tmp_path / "work.service.d/50-iojoule.conf"
    drop_in.parent.mkdir()
    drop_in.write_text(export(ExportFormat.SYSTEMD, material(tmp_path / "host")))
    done = run(program, "verify", unit, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
    complaints = [line for line in done.stderr.splitlines() if "50-iojoule" in line]
    assert (done.returncode, complaints) == (0, [])
    drop_in.write_text("[Service]\nCPUAffinity=x\n")
    done = run(program, "verify", unit, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
    assert "50-iojoule.conf" in done.stderr  # it was read


def test_systemd_tmpfiles_writes_the_values(tmp_path: Path) -> None:
    program = needs("systemd-tmpfiles")
    if os.geteuid() != 0:
        pytest.skip("systemd-tmpfiles writes below another root as root only")
    text = export(ExportFormat.TMPFILES, material(tmp_path / "host"))
    root = tmp_path / "root"
    sys = root / "sys/devices/system/cpu"
    shutil.copytree(tmp_path / "host/devices/system/cpu", sys)
    for file in sys.rglob("*"):
        if file.is_file():
            file.write_text("")  # a regular file keeps the end of a longer value, sysfs does not
    rules = tmp_path / "iojoule.conf"
    rules.write_text(text.replace(str(tmp_path / "host"), "/sys"))
    done = run(program, "--create", f"--root={root}", rules)
    assert done.returncode == 0, done.stderr
    assert (sys / "cpu1/cpufreq/scaling_governor").read_text().strip() == "powersave"
    assert (sys / "cpu0/cpuidle/state2/disable").read_text().strip() == "1"


def test_udev_accepts_the_rules(tmp_path: Path) -> None:
    program = needs("udevadm")
    if run(program, "verify", "--help").returncode != 0:
        pytest.skip("this udevadm cannot verify rules (systemd 254 can)")
    rules = tmp_path / "71-iojoule.rules"
    rules.write_text(export(ExportFormat.UDEV, material(tmp_path / "h", None, None, POWER_STATE)))
    done = run(program, "verify", rules)
    assert done.returncode == 0, done.stdout + done.stderr
