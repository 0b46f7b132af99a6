"""How the drives of a host rest, who wakes them, and which table of transitions would save more.

Without a query only files of the kernel are read: a sleeping drive sleeps on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iojoule.api.acting.proposal import Proposal, Step
from iojoule.api.application.profiles import profile_of
from iojoule.datasets.catalogue import Drive, catalogued
from iojoule.datasets.errors import NoProfileError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.vocabulary import LinkPowerPolicy
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.settings import transitions
from iojoule.measure.drive.nvme import AUTONOMOUS_TRANSITIONS, Controller, NvmeController
from iojoule.measure.drive.transition_table import (
    Transition,
    chain_from,
    decode,
    linux_chain,
    table_of,
)
from iojoule.measure.errors import DriveError, UnsafeDriveError
from iojoule.measure.host.changes import NvmeTransitions
from iojoule.measure.host.host_files import PROC, SYSFS
from iojoule.meter.idle import Chain, Outcome, Rest, recommended
from iojoule.meter.idle_link import LinkOutcome, link_outcomes
from iojoule.meter.idle_settings import RestSettings, block_device, drive_names, read_settings
from iojoule.meter.idle_watch import Watched, watch
from iojoule.meter.idle_watts import State, rest_of
from iojoule.model.evaluate.bands import Interval


@dataclass(frozen=True)
class Asked:
    """What a drive said of itself.

    Attributes:
        controller: Identify Controller.
        enabled: Whether transitions are switched on.
        table: Its table.
        power_state_changes: In the watch, where the drive counts them.
        commands: How many were sent to it.
    """

    controller: Controller
    enabled: bool
    table: tuple[Transition, ...]
    power_state_changes: int | None
    commands: int


class DriveQuery:
    """Asks drives with commands, each of which may wake them.

    Before the watch: Identify, and log page C0h of an OCP drive. After it: Get Features for the
    switch and for the table, and that log page again where it holds the count of state changes.

    Args:
        controllers: Kernel name of a drive -> its controller.
    """

    def __init__(self, controllers: Mapping[str, NvmeController]) -> None:
        self._controllers = controllers
        self._identities: dict[str, Controller] = {}
        self._changes: dict[str, int] = {}
        self._commands: dict[str, int] = {}

    def before(self) -> None:
        """Ask all before the watch.

        Raises:
            DriveError: One does not answer.
            HostStateError: nvme-cli is missing or not permitted.
        """
        for name, nvme in self._controllers.items():
            self._identities[name] = nvme.identify()
            self._commands[name] = 2
            changes = nvme.power_state_changes()
            if changes is not None:
                self._changes[name] = changes

    def after(self, name: str) -> Asked | None:
        """What a drive said, None for one that is not asked; raises as `before`."""
        nvme = self._controllers.get(name)
        if nvme is None:
            return None
        controller, commands = self._identities[name], self._commands[name]
        changes = None
        if name in self._changes:
            commands += 1
            now = nvme.power_state_changes()
            changes = None if now is None else now - self._changes[name]
        if not controller.has_apst:
            return Asked(controller, False, (), changes, commands)
        enabled = bool(nvme.feature(AUTONOMOUS_TRANSITIONS) & 1)
        return Asked(controller, enabled, decode(nvme.transitions()), changes, commands + 2)


@dataclass(frozen=True)
class Advice:
    """How one drive rests and what would save.

    Attributes:
        settings: What rules its rest now.
        after: The same after the watch: runtime power management counts time.
        watched: Gaps, and who ended them.
        asked: What the drive said; None: it was not asked.
        in_force: Its table from PS0 on; None: not known.
        in_force_source: Where that is known from, or why it is not.
        rest: What it draws; None: not known.
        most_wake_us: Bound of the wake-up.
        tables: The recommended one first; empty: `reason` says why.
        links: Policies of the SATA link, the recommended one first.
        reason: Why there is no advice on a table.
    """

    settings: RestSettings
    after: RestSettings
    watched: Watched
    asked: Asked | None
    in_force: Chain | None
    in_force_source: str
    rest: Rest | None
    most_wake_us: int
    tables: tuple[Outcome, ...]
    links: tuple[LinkOutcome, ...]
    reason: str | None

    @property
    def best(self) -> Outcome | None:
        """The recommended table."""
        return self.tables[0] if self.tables else None

    def transitions_of(self, chain: Chain) -> tuple[Transition, ...]:
        """The table of a chain, from every operational state."""
        operational = self.rest.operational if self.rest is not None else ()
        return table_of(operational, chain)

    def document(self) -> dict[str, Any]:
        """As one JSON object; what is not known is null."""
        settings = self.settings
        known = ("name", "model", "serial", "firmware", "interface", "controller", "rotates")
        table = self.asked.table if self.asked is not None and self.asked.enabled else ()
        return {
            **{name: getattr(settings, name) for name in known},
            "transitions": {
                "supported": settings.supports_transitions
                if self.asked is None
                else self.asked.controller.has_apst,
                "in_force": None if self.in_force is None else _chain(self.in_force),
                "in_force_source": self.in_force_source,
                "table": None if self.asked is None else [asdict(one) for one in table],
                "latency_tolerance_us": settings.latency_tolerance_us,
                "default_latency_us": settings.default_latency_us,
                "force_apst": settings.force_apst,
                "linux_rule": asdict(settings.rule),
            },
            "aspm": asdict(settings.link) | {"sleeps": settings.link.sleeps},
            "link_policy": settings.link_policy,
            "runtime": [asdict(one) for one in settings.runtime],
            "manages_runtime_stop": settings.manages_runtime_stop,
            "standby_timer_seconds": None,  # ATA has no command that returns it
            "watch": self._watch(),
            "commands_sent": 0 if self.asked is None else self.asked.commands,
            "advice": self._advice(),
        }

    def _watch(self) -> dict[str, Any]:
        gaps = self.watched.gaps
        many = len(gaps.seconds) > 0
        before = {one.device: one.suspended_seconds for one in self.settings.runtime}
        suspended = {
            one.device: one.suspended_seconds - earlier
            for one in self.after.runtime
            if one.suspended_seconds is not None and (earlier := before.get(one.device)) is not None
        }
        return {
            "seconds": gaps.watch_seconds,
            "rest_share": gaps.rest_share,
            "gaps": len(gaps.seconds),
            "gap_seconds_p50": float(np.median(gaps.seconds)) if many else None,
            "gap_seconds_p90": float(np.quantile(gaps.seconds, 0.9)) if many else None,
            "gap_seconds_max": float(gaps.seconds.max()) if many else None,
            "only_rest": gaps.only_rest,
            "reads": self.watched.reads,
            "writes": self.watched.writes,
            "runtime_suspended_seconds": suspended,
            "power_state_changes": None if self.asked is None else self.asked.power_state_changes,
            "long_gaps_ended": self.watched.ends,
            "long_gaps_unattributed": self.watched.unattributed,
            "wakers": [asdict(one) for one in self.watched.wakers],
            "pollers": [asdict(one) for one in self.watched.pollers],
        }

    def _advice(self) -> dict[str, Any]:
        rest = self.rest
        return {
            "wake_latency_max_us": self.most_wake_us,
            "reason": self.reason,
            "evidence": rest.evidence.value if rest is not None else None,
            "sources": list(rest.sources) if rest is not None else [],
            "idle_watts": asdict(rest.idle_watts) if rest is not None else None,
            "saving_against": None
            if not self.tables
            else "table in force"
            if self.in_force is not None
            else "no transitions",
            "tables": [_table(one) for one in self.tables],
            "link_policies": [_link(one) for one in self.links],
        }


def _chain(chain: Chain) -> list[dict[str, int]]:
    return [{"power_state": state, "idle_milliseconds": wait} for state, wait in chain]


def _link(one: LinkOutcome) -> dict[str, Any]:
    return {
        "policy": one.policy.value,
        "saving_milliwatts": _milliwatts(one.saving_watts),
        "wake_us": one.wake_us,
        "evidence": one.evidence.value,
        "source": one.source,
    }


def _milliwatts(watts: Interval) -> dict[str, float]:
    return {name: 1e3 * value for name, value in asdict(watts).items()}


def _table(one: Outcome) -> dict[str, Any]:
    return {
        "chain": _chain(one.chain),
        "saving_milliwatts": _milliwatts(one.saving_watts),
        "wakes_per_hour": one.wakes_per_hour,
        "exit_us": one.exit_us,
        "wake_us": one.wake_us,
        "asleep_share": one.asleep_share,
    }


@dataclass(frozen=True)
class Question:
    """What is asked about the drives of a host.

    Attributes:
        watch_seconds: How long they are watched.
        most_wake_us: Bound of the wake-up.
        profile: Of the drive, where one is named; else the catalogue's.
        sysfs, proc: Roots of the trees.
    """

    watch_seconds: float
    most_wake_us: int
    profile: DeviceProfile | None = None
    sysfs: Path = SYSFS
    proc: Path = PROC


def drives_of(drive: Path | None, sysfs: Path) -> list[str]:
    """Kernel names: of the drive of that node, or of all drives of the host.

    Raises:
        DriveError: There is no such drive.
        UnsafeDriveError: It is a partition.
    """
    if drive is None:
        return drive_names(sysfs)
    name = drive.resolve().name
    folder = sysfs / "class" / "block" / name
    if not folder.exists():
        raise DriveError(f"{drive}: there is no such drive; `lsblk` lists those there are")
    if (folder / "partition").exists():
        raise UnsafeDriveError(f"{drive}: is a partition; name the whole drive")
    return [name]


def advise(
    names: Sequence[str],
    question: Question,
    query: DriveQuery | None = None,
) -> list[Advice]:
    """Watch drives and say what would save; those that vanish meanwhile are left out.

    Args:
        names: Kernel names.
        question: How.
        query: Asks drives with commands; None: no command is sent.

    Raises:
        DriveError: A drive that is asked does not answer.
        HostStateError: A file of the kernel cannot be read.
    """
    before = {name: read_settings(name, sysfs=question.sysfs) for name in names}
    if query is not None:
        query.before()
    nodes = {name: _nodes(one, question.sysfs) for name, one in before.items()}
    watched = watch(names, question.watch_seconds, proc=question.proc, nodes=nodes)
    return [
        _advice(before[name], watched[name], query.after(name) if query else None, question)
        for name in names
        if name in watched
    ]


def _nodes(settings: RestSettings, sysfs: Path) -> list[Path]:
    """The nodes of a drive, and the files of its temperature."""
    nodes = [Path("/dev") / settings.name]
    folder = block_device(settings.name, sysfs).folder / "device"
    if settings.controller is not None:
        nodes.append(Path("/dev") / settings.controller)
        nodes.append(Path("/dev") / settings.name.replace("nvme", "ng", 1))
    files = [*folder.glob("hwmon*/temp*_input"), *folder.glob("hwmon/hwmon*/temp*_input")]
    return nodes + [one.resolve() for one in files]


def _advice(
    settings: RestSettings, watched: Watched, asked: Asked | None, question: Question
) -> Advice:
    drive = catalogued(asked.controller.model if asked else settings.model or "")
    profile = question.profile or _profile_of(drive)
    rest, reason = _rest(settings, asked, drive, profile)
    in_force, source = _in_force(settings, asked, rest)
    tables: tuple[Outcome, ...] = ()
    if rest is not None and reason is None:
        linux = None
        if settings.latency_tolerance_us is not None:
            linux = linux_chain(
                [one.latency for one in rest.sleeps], settings.latency_tolerance_us, settings.rule
            )
        tables = tuple(recommended(rest, watched.gaps, question.most_wake_us, in_force, linux))
    return Advice(
        settings=settings,
        after=read_settings(settings.name, sysfs=question.sysfs),
        watched=watched,
        asked=asked,
        in_force=in_force,
        in_force_source=source,
        rest=rest,
        most_wake_us=question.most_wake_us,
        tables=tables,
        links=tuple(_links(settings, watched, profile, question.most_wake_us)),
        reason=reason,
    )


def _profile_of(drive: Drive | None) -> DeviceProfile | None:
    try:
        return profile_of(drive.id) if drive is not None else None
    except NoProfileError:
        return None


def _links(
    settings: RestSettings, watched: Watched, profile: DeviceProfile | None, most_wake_us: int
) -> list[LinkOutcome]:
    """Policies of a SATA link; none where the present one or the drive is not known."""
    if profile is None or settings.link_policy not in set(LinkPowerPolicy):
        return []
    return link_outcomes(profile, watched.gaps, LinkPowerPolicy(settings.link_policy), most_wake_us)


def _rest(
    settings: RestSettings,
    asked: Asked | None,
    drive: Drive | None,
    profile: DeviceProfile | None,
) -> tuple[Rest | None, str | None]:
    """What the drive draws without requests, and why there is no advice where there is none."""
    if asked is None and settings.interface != "nvme":
        return None, "no NVMe controller: it has no table of transitions"
    if not (asked.controller.has_apst if asked else settings.supports_transitions):
        return None, "the drive does not support autonomous transitions"
    declared: Sequence[State] = ()
    if asked is not None:
        declared = asked.controller.power_states
    elif drive is not None:
        declared = drive.power_states
    rest = rest_of(declared, profile, drive, settings.link.sleeps)
    if rest is None:
        return None, "its idle power is not known: fit a profile and name it with --profile"
    if not rest.sleeps:
        return rest, "latencies of its sleep states are not known: --ask-drive reads them"
    return rest, None


def _in_force(
    settings: RestSettings, asked: Asked | None, rest: Rest | None
) -> tuple[Chain | None, str]:
    if asked is not None:
        sleeps = [one.latency.state for one in rest.sleeps] if rest is not None else []
        chain = chain_from(asked.table, 0, sleeps) if asked.enabled else ()
        return chain, "read from the drive"
    if settings.interface != "nvme":
        return (), "no NVMe controller"
    if settings.supports_transitions is False:
        return (), "no latency tolerance in sysfs: the drive does not support it"
    if settings.latency_tolerance_us == 0:
        return (), "latency tolerance 0: Linux switched it off"
    return None, "only the drive knows: --ask-drive reads it"


def proposal_of(advice: Advice, facts: DriveFacts, nvme: NvmeController) -> Proposal:
    """The recommended table as a change that `apply` sets and `undo` takes back.

    Raises:
        DriveError: There is no recommendation.
    """
    if advice.best is None:
        raise DriveError(f"{facts.device.path}: no table is recommended: {advice.reason}")
    change = transitions(nvme)
    now = change.get()
    then = NvmeTransitions.value_of(advice.transitions_of(advice.best.chain))
    step = Step("apst_table", change, now, then)
    differs = advice.best.chain != advice.in_force
    return Proposal(facts, (step,) if differs else (), () if differs else ("apst_table",), ())
