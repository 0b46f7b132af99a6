"""What is set, what is left, and why, on a host below a folder."""

from pathlib import Path

import pytest

from iojoule.api.acting.proposal import Proposal, names, propose
from iojoule.measure.errors import UnsafeDriveError
from tests.api.acting.answers import answer
from tests.api.acting.hosts import host
from tests.measure.sata import POLICY, fake_hdparm, sata
from tests.stand_ins import SYSTEM, look_in


def proposed(folder: Path, **recommended: object) -> Proposal:
    return propose(answer(recommended), host(folder), None)


def changes(found: Proposal) -> dict[str, tuple[str, str]]:
    return {name: (group[0].now, group[0].then) for name, group in names(found.steps)}


def reasons(found: Proposal) -> dict[str, str]:
    return {one.what: one.why for one in found.left}


def test_what_is_in_force_is_not_set_again(tmp_path: Path) -> None:
    found = proposed(tmp_path)
    assert found.steps == ()
    assert found.kept == ("scheduler",)


def test_the_scheduler_and_the_processors(tmp_path: Path) -> None:
    found = proposed(
        tmp_path,
        scheduler="none",
        cpu_governor="powersave",
        cpu_frequency_max_hertz=2e9,
        cstate_limit=1,
    )
    assert changes(found) == {
        "scheduler": ("mq-deadline", "none"),
        "cpu_governor": ("performance", "powersave"),
        "cpu_frequency_max_hertz": ("4000000", "2000000"),
        "cstate_limit": ("0", "1"),
    }
    assert [len(group) for _, group in names(found.steps)] == [1, 2, 2, 2]
    queue = tmp_path / "class/block/nvme0n1/queue"
    assert found.steps[0].command == f"echo none > {queue / 'scheduler'}"
    assert found.steps[0].undo_command == f"echo mq-deadline > {queue / 'scheduler'}"


def test_a_deeper_limit_of_sleep_allows_what_was_off(tmp_path: Path) -> None:
    facts = host(tmp_path, cpus=1)
    for state in (1, 2):
        (tmp_path / f"devices/system/cpu/cpu0/cpuidle/state{state}/disable").write_text("1\n")
    found = propose(answer({"cstate_limit": 1}), facts, None)
    assert [(one.now, one.then) for one in found.steps] == [("1", "0")]


def test_a_depth_beyond_the_queue_makes_room_for_it(tmp_path: Path) -> None:
    # two jobs on two hardware queues: each holds 40 of them
    found = proposed(tmp_path, queue_depth=40, jobs=2)
    assert changes(found) == {"nr_requests": ("32", "40")}
    assert proposed(tmp_path, queue_depth=32, jobs=2).steps == ()


def test_what_a_new_scheduler_brings_is_room_enough(tmp_path: Path) -> None:
    found = proposed(tmp_path, queue_depth=60, jobs=1, scheduler="none")
    assert set(changes(found)) == {"scheduler"}


def test_more_than_the_drive_takes_is_said(tmp_path: Path) -> None:
    found = proposed(tmp_path, queue_depth=100, jobs=1, scheduler="none")
    assert reasons(found) == {"nr_requests": "the drive takes 64 requests a queue at most"}


def test_what_the_host_does_not_offer_is_left_with_the_remedy(tmp_path: Path) -> None:
    found = proposed(tmp_path, scheduler="bfq", cpu_governor="schedutil", power_state=1)
    assert found.steps == ()
    assert {name: why.partition(" ")[0] for name, why in reasons(found).items()} == {
        "scheduler": "this",
        "cpu_governor": "this",
        "power_state": "no",
    }
    assert "modprobe bfq" in reasons(found)["scheduler"]
    assert "--controller" in reasons(found)["power_state"]


def test_polling_without_poll_queues_says_how_to_get_them(tmp_path: Path) -> None:
    assert "poll_queues=4" in reasons(proposed(tmp_path, completion="polled"))["io_poll"]


def test_an_engine_past_the_block_layer_needs_nothing_of_it(tmp_path: Path) -> None:
    found = proposed(tmp_path, engine="io_uring_cmd", scheduler=None, queue_depth=100)
    assert (found.steps, found.left) == ((), ())


@pytest.mark.parametrize("option", ["commit=60", "nobarrier", "data=writeback", "lazytime"])
def test_durability_is_never_weakened(tmp_path: Path, option: str) -> None:
    found = proposed(tmp_path, mount_options=f"defaults,{option}")
    assert found.steps == ()
    assert [one.value for one in found.left] == [option]
    assert "refused" in found.left[0].why


def test_options_that_nobody_knows_are_not_set(tmp_path: Path) -> None:
    found = proposed(tmp_path, mount_options="noatime,frobnicate")
    assert found.steps == ()
    assert [one.why.partition(":")[0] for one in found.left] == [
        "nothing is mounted from this drive",
        "what it does to durability is not known here",
    ]


def test_what_only_the_application_can_do_is_told(tmp_path: Path) -> None:
    found = proposed(tmp_path, job_numa_node=1, filesystem="xfs", post_write_power_state=0)
    assert set(reasons(found)) == {"job_numa_node", "filesystem", "post_write_power_state"}


def test_another_drive_than_the_answer_is_about_is_refused(tmp_path: Path) -> None:
    facts = host(tmp_path)
    (tmp_path / "class/block/nvme0n1/device/model").write_text("Samsung SSD 980 PRO 1TB\n")
    with pytest.raises(UnsafeDriveError, match=r"is a samsung-980-pro-1tb, but .* my-drive"):
        propose(answer(), facts, None)
    propose(answer(device="samsung-980-pro-1tb"), facts, None)


def test_flushes_that_a_saving_needs_are_left_to_the_application(tmp_path: Path) -> None:
    cut = {"writes": None, "written_bytes": None, "seconds": None}
    weaker = {
        "weaker_allowed": True, "weakened": True, "flush_every_writes": 40, "power_cut": cut,
        "power_cut_today": cut, "options": [], "reason": "weaker, as the SLA allows",
    }  # fmt: skip
    facts = host(tmp_path, cpus=1)
    assert (
        "as the SLA allows"
        in reasons(propose(answer(durability=weaker), facts, None))["flush_every_writes"]
    )
    untouched = answer(durability=weaker | {"weakened": False})
    assert reasons(propose(untouched, facts, None)) == {}


def test_how_a_disk_rests_is_set_where_port_and_program_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_in(monkeypatch, tmp_path, *SYSTEM)
    facts = sata(tmp_path / "sys", fake_hdparm(tmp_path, state="standby") / "sda")
    wanted = {"link_power_policy": "medium_power", "standby_timer_seconds": 600}
    found = propose(answer(wanted), facts, None)
    assert changes(found) == {
        "link_power_policy": ("max_performance", "medium_power"),
        "standby_timer_seconds": ("0", "600"),
    }
    by_name = {one.what: one for one in found.steps}
    assert by_name["link_power_policy"].command.endswith(POLICY)
    assert by_name["standby_timer_seconds"].command == f"hdparm -S 120 {tmp_path / 'sda'}"
    assert by_name["standby_timer_seconds"].undo_command == f"hdparm -S 0 {tmp_path / 'sda'}"
    assert (tmp_path / "state").read_text().strip() == "standby"  # looking did not wake it


def test_how_a_drive_cannot_rest_is_left_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"link_power_policy": "medium_power", "standby_timer_seconds": 600}
    flash = sata(tmp_path / "a", tmp_path / "sda", rotates=False, policy=None)
    assert set(reasons(propose(answer(wanted), flash, None))) == set(wanted)
    look_in(monkeypatch, tmp_path)
    disk = sata(tmp_path / "b", tmp_path / "sda")
    assert "hdparm" in reasons(propose(answer(wanted), disk, None))["standby_timer_seconds"]
