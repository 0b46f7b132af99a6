"""What a recommendation asks of this host: every setting that differs from what is in force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from iojoule.api.acting.answer_file import Answer
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import UnknownDeviceError
from iojoule.datasets.programs import optional_program
from iojoule.datasets.schema import Configuration
from iojoule.datasets.vocabulary import BYPASSING_ENGINES, Completion, Scheduler
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.settings import of_power, power_state, transitions, wake
from iojoule.measure.drive.block_device import BlockDevice
from iojoule.measure.drive.nvme import NvmeController
from iojoule.measure.errors import UnsafeDriveError
from iojoule.measure.host.changes import (
    CHOICES,
    Change,
    MountOption,
    StandbyTimer,
    SysfsValue,
    mounts,
)
from iojoule.measure.host.facts import HostControls
from iojoule.model.evaluate.power_limit import state_within
from iojoule.recommender.response import DurabilityAnswer

_DEFAULT_REQUESTS = 128
"""BLKDEV_DEFAULT_RQ. A queue that gets a scheduler holds twice as many, or twice what the drive
takes where that is less (Linux, block/blk-mq-sched.c, blk_mq_init_sched)."""

_WEAKER = {
    "commit": "lets a power cut take so many seconds of writes instead of 5 (ext4(5))",
    "nobarrier": "lets a power cut reorder and lose what was flushed",
    "barrier": "may let a power cut reorder and lose what was flushed",
    "data": "changes what a power cut may leave in files",
    "async": "lets a power cut take what the application was told is written",
    "lazytime": "lets a power cut take time stamps",
}
"""Mount options that decide what a power cut may take."""


@dataclass(frozen=True)
class Step:
    """One thing to set.

    Attributes:
        what: Its name.
        change: What sets and reads it.
        now: Its present value.
        then: The value it shall have.
    """

    what: str
    change: Change
    now: str
    then: str

    @property
    def command(self) -> str:
        """The command that sets it."""
        return self.change.command(self.then)

    @property
    def undo_command(self) -> str:
        """The command that takes it back."""
        return self.change.command(self.now)


@dataclass(frozen=True)
class Left:
    """Something that the recommendation says and iojoule does not set: what, value and why."""

    what: str
    value: str
    why: str


@dataclass(frozen=True)
class Proposal:
    """What is to be set, in this order, and what is not.

    Attributes:
        drive: The drive.
        steps: What differs from what is in force.
        kept: Names of what is in force already.
        left: What iojoule does not set.
        settings: Every setting with its recommended value, also those in force.
    """

    drive: DriveFacts
    steps: tuple[Step, ...]
    kept: tuple[str, ...]
    left: tuple[Left, ...]
    settings: tuple[Step, ...] = ()


Wanted = tuple[str, Change, str]
"""Name of a setting, what sets it, the value."""


def propose(answer: Answer, drive: DriveFacts, controller: NvmeController | None) -> Proposal:
    """Compare a recommendation with what is in force on a drive and its host; changes nothing.

    Raises:
        UnsafeDriveError: The drive is of another model than the recommendation is about.
        DriveError: The drive or its controller does not answer.
        HostStateError: The host does not tell a value.
    """
    require_model(answer, drive)
    wanted = answer.recommended.configuration
    settings: list[Wanted] = []
    left: list[Left] = []
    for one in (
        *_queue(wanted, drive.device),
        *_processors(wanted, HostControls(drive.device.sysfs)),
        *_mount_options(wanted, drive.device),
        *_resting(wanted, drive.device),
        *_drive(wanted, drive, controller),
        *_of_the_application(wanted, answer.current.configuration),
        *_flushes(answer.durability),
    ):
        if isinstance(one, Left):
            left.append(one)
        else:
            settings.append(one)
    steps = [Step(what, change, change.get(), value) for what, change, value in settings]
    return Proposal(
        drive,
        tuple(one for one in steps if one.now != one.then),
        tuple(name for name, _ in groupby(one.what for one in steps if one.now == one.then)),
        tuple(left),
        tuple(steps),
    )


def require_model(answer: Answer, drive: DriveFacts) -> None:
    """Refuse a drive that the catalogue knows as another one than the recommendation is about.

    Raises:
        UnsafeDriveError: It is.
    """
    try:
        known = load_catalogue().get(drive.model)
    except UnknownDeviceError:
        return
    if known.id != answer.device:
        raise UnsafeDriveError(
            f"{drive.device.path}: is a {known.id}, but the recommendation is about "
            f"{answer.device}; nothing was done. Name the drive it is about, or ask again for this "
            f"one: `iojoule recommend --device {known.id} ...`"
        )


def _queue(wanted: Configuration, device: BlockDevice) -> Iterator[Wanted | Left]:
    if wanted.engine in BYPASSING_ENGINES:
        return  # its requests never meet the queue
    present = SysfsValue(str(device.queue("scheduler"))).get()
    scheduler = wanted.scheduler.value if wanted.scheduler is not None else present
    if scheduler not in (device.queue_attribute("scheduler") or ""):
        yield Left("scheduler", scheduler, f"this kernel does not offer it: modprobe {scheduler}")
        return
    yield "scheduler", SysfsValue(str(device.queue("scheduler"))), scheduler
    yield from _room(wanted, device, scheduler, scheduler == present)
    if wanted.completion is Completion.POLLED and device.queue_attribute("io_poll") == "0":
        yield Left(
            "io_poll",
            "1",
            "the drive has no poll queues, and making them resets it: put `options nvme "
            "poll_queues=4` into /etc/modprobe.d/nvme.conf and restart",
        )


def _room(
    wanted: Configuration, device: BlockDevice, scheduler: str, stays: bool
) -> Iterator[Wanted | Left]:
    """Whether the queue holds as many requests as the configuration keeps in flight.

    Each hardware queue holds `nr_requests`, without a scheduler at most as many as the drive takes
    (`nr_tags`); jobs are taken to spread over the hardware queues.
    """
    queues = list(device.queue("..").glob("mq/[0-9]*"))
    need = wanted.queue_depth * -(-wanted.jobs // max(len(queues), 1))
    told = device.queue_attribute("../mq/0/nr_tags")
    tags = int(told) if told else None
    present = int(device.queue_attribute("nr_requests") or 0)
    if not stays:
        most = tags or _DEFAULT_REQUESTS
        present = most if scheduler == Scheduler.NONE else 2 * min(most, _DEFAULT_REQUESTS)
    if need <= present:
        return
    if scheduler == Scheduler.NONE and tags is not None and need > tags:
        yield Left("nr_requests", str(need), f"the drive takes {tags} requests a queue at most")
        return
    yield "nr_requests", SysfsValue(str(device.queue("nr_requests"))), str(need)


def _processors(wanted: Configuration, host: HostControls) -> Iterator[Wanted | Left]:
    asked = {
        "cpu_governor": (wanted.cpu_governor, host.governor),
        "cpu_frequency_max_hertz": (wanted.cpu_frequency_max_hertz, host.frequency),
        "cstate_limit": (wanted.cstate_limit, host.sleep_states_up_to),
    }
    for name, (value, settings_of) in asked.items():
        if value is None:
            continue
        found = list(settings_of(value))  # type: ignore[operator]
        if not found:
            yield Left(name, f"{value}", "this host does not offer it (a virtual machine?)")
        for change, text in found:
            yield name, change, text


def _mount_options(wanted: Configuration, device: BlockDevice) -> Iterator[Wanted | Left]:
    options = [one for one in (wanted.mount_options or "").split(",") if one != "defaults"]
    known = {option: name for name, choice in CHOICES.items() for option in choice}
    mounted = {(one.point, one.number) for one in mounts(device.numbers())}
    for option in filter(None, options):
        name = option.partition("=")[0]
        if name in _WEAKER:
            yield Left("mount option", option, f"refused: {_WEAKER[name]}")
        elif option not in known:
            yield Left("mount option", option, "what it does to durability is not known here")
        elif not mounted:
            yield Left("mount option", option, "nothing is mounted from this drive: set in fstab")
        for point, number in sorted(mounted) if option in known else ():
            yield f"mount option of {point}", MountOption(point, number, known[option]), option


def _resting(wanted: Configuration, device: BlockDevice) -> Iterator[Wanted | Left]:
    """How a SATA drive may rest between requests."""
    policy, timer = wanted.link_power_policy, wanted.standby_timer_seconds
    if policy is not None:
        file = device.link_policy()
        if file is None:
            yield Left("link_power_policy", policy.value, "the drive's port has no link policy")
        else:
            yield "link_power_policy", SysfsValue(str(file)), policy.value
    if timer is None:
        return
    if not device.rotates:
        yield Left("standby_timer_seconds", f"{timer:g}", "this drive has no platters to stop")
    elif optional_program("hdparm") is None:
        yield Left(
            "standby_timer_seconds", f"{timer:g}", "hdparm is not installed: apt-get install hdparm"
        )
    else:
        yield "standby_timer_seconds", StandbyTimer(str(device.path)), f"{timer:g}"


def _drive(
    wanted: Configuration, drive: DriveFacts, controller: NvmeController | None
) -> Iterator[Wanted | Left]:
    if controller is None or drive.controller is None:
        for name in ("power_state", "power_limit_watts", "apst_enabled"):
            value = getattr(wanted, name)
            if value:
                yield Left(name, str(value), "no controller is known: name it with --controller")
        return
    if wanted.apst_enabled is not None and drive.controller.has_apst:
        change = transitions(controller)
        yield "apst_enabled", change, change.switched(wanted.apst_enabled)
    limit, state = wanted.power_limit_watts, wanted.power_state
    states = [one.index for one in drive.controller.operational_states]
    if limit is not None and drive.controller.limits_power:
        wake(drive.device)
        yield "power_limit_watts", *next(of_power(None, limit, controller))
        if limit and state is None:
            # what is promised is of the first state that the limit leaves, not of a lower one
            caps = [one.max_power_watts for one in drive.controller.operational_states]
            state = states[state_within(caps, limit)]
    elif limit:
        yield Left("power_limit_watts", f"{limit:g}", "this drive takes no power limit")
    if state is None:
        return
    if state not in states:
        yield Left(
            "power_state",
            str(state),
            f"the drive's operational states are {', '.join(map(str, states))}",
        )
        return
    wake(drive.device)
    yield "power_state", power_state(controller), str(state)


def _of_the_application(wanted: Configuration, current: Configuration) -> Iterator[Left]:
    """What only those who run the application can set, beside what `applications` says."""
    reasons = {
        "post_write_power_state": "is to be set after every burst of writes: only the application "
        "knows when",
        "job_numa_node": "start the application with `numactl --cpunodebind`",
        "filesystem": "a file system is made once, before its data",
    }
    for name, why in reasons.items():
        value = getattr(wanted, name)
        if value is not None and value != getattr(current, name):
            yield Left(name, str(value), why)


def _flushes(found: DurabilityAnswer | None) -> Iterator[Left]:
    """Flushes further apart than today: what is promised needs them."""
    if found is not None and found.weakened:
        every = f"{found.flush_every_writes or 'none'}"
        yield Left("flush_every_writes", every, f"only the application flushes; {found.reason}")


def names(steps: Sequence[Step]) -> list[tuple[str, list[Step]]]:
    """Steps of one name together, such as the governor of every CPU."""
    return [(name, list(group)) for name, group in groupby(steps, key=lambda one: one.what)]
