"""What a governor may set on one drive, by which evidence, and how it is set and read back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from iojoule.api.acting.governing.forecast import Setting
from iojoule.datasets.catalogue import load_catalogue
from iojoule.datasets.errors import InputError, NoProfileError, UnknownDeviceError
from iojoule.datasets.profile import FACTS_RECIPE, DeviceProfile
from iojoule.datasets.vocabulary import Evidence
from iojoule.measure.campaign.rig import DriveFacts
from iojoule.measure.campaign.settings import power_limit, power_state, require_no_limit
from iojoule.measure.drive.nvme import POWER_STATE_MASK, NvmeController
from iojoule.measure.drive.power_measurement import NO_LIMIT, power_word
from iojoule.measure.errors import DriveError, UnsafeDriveError
from iojoule.measure.host.changes import Change, NvmeFeature, SysfsValue
from iojoule.measure.host.journal import HostState

_LIMIT_STEP = 0.01
_SEEN = frozenset({Evidence.MEASURED, Evidence.INTERPOLATED, Evidence.PUBLISHED})


def require_evidence(profile: DeviceProfile, drive: DriveFacts) -> None:
    """Refuse a profile that nobody measured, or that is of another model than the drive.

    Raises:
        NoProfileError: It rests on facts of the model alone, or knows no watts.
        UnsafeDriveError: It is of another model.
    """
    power = profile.device_power
    if profile.recipe == FACTS_RECIPE or power is None or power.is_expected:
        raise NoProfileError(
            f"{profile.device}: no power of this drive was measured for this profile; measure it "
            "(`iojoule measure run --plan profile`), fit it, and name the file with --profile"
        )
    key = _key(drive.model)
    if key in (_key(profile.model_name), _key(profile.device)):
        return
    try:
        known = load_catalogue().get(drive.model).id
    except UnknownDeviceError:
        known = drive.model
    if known != profile.device:
        raise UnsafeDriveError(
            f"{drive.device.path}: is a {drive.model}, but the profile was measured on a "
            f"{profile.model_name}; nothing was done. Name a profile of this model"
        )


def measured_states(profile: DeviceProfile) -> list[int]:
    """Power states whose watts and speed were measured."""
    power = profile.device_power
    if power is None:
        return []
    states = [0] if power.parameters[0].evidence in _SEEN else []
    speeds = {
        effect.power_state
        for effect in profile.power_state_effects
        if effect.latency_factor.evidence in _SEEN
    }
    watts = {one.power_state for one in power.states if one.base_watts.evidence in _SEEN}
    return states + sorted(watts & speeds)


def settings_of(
    profile: DeviceProfile,
    drive: DriveFacts,
    *,
    power_states: Sequence[int] = (),
    schedulers: Sequence[str] = (),
) -> list[Setting]:
    """The settings that are compared, the fastest power state and present scheduler first.

    Args:
        profile: What was measured.
        drive: What it offers.
        power_states: Those that may be used; empty for all that were measured.
        schedulers: Those that may be used beside the present one.

    Raises:
        InputError: The drive or kernel does not offer one, or there is nothing to choose from.
        NoProfileError: A power state was asked for whose power was not measured.
    """
    measured = measured_states(profile)
    offered = [one.index for one in drive.controller.operational_states] if drive.controller else []
    where = drive.device.path
    for state in power_states:
        if state not in offered:
            raise InputError(
                f"{where}: power state {state} is none of its operational states "
                f"({', '.join(map(str, offered)) or 'no NVMe controller is known'})"
            )
        if state not in measured:
            raise NoProfileError(
                f"{profile.device}: the power in power state {state} was not measured (measured: "
                f"{', '.join(map(str, measured)) or 'none'}); measure it and fit again, or leave "
                "it out"
            )
    states = sorted(set(power_states) or set(measured).intersection(offered))
    queue = drive.device.queue_attribute("scheduler") or ""
    for one in schedulers:
        if one not in queue.replace("[", " ").replace("]", " ").split():
            raise InputError(f"{where}: the kernel offers no scheduler {one} there: {queue}")
    present = re.search(r"\[(.+?)\]", queue)
    first = [present[1]] if present and schedulers else []
    names: list[str | None] = list(dict.fromkeys([*first, *schedulers]))
    every_state: list[int | None] = [*states] or [None]
    settings = [Setting(*pair) for pair in product(every_state, names or [None])]
    if len(settings) < 2:
        raise InputError(
            f"{where}: there is nothing to choose from: of its operational power states "
            f"({', '.join(map(str, offered)) or 'none'}) the profile has measured "
            f"{', '.join(map(str, measured)) or 'none'}, and no --scheduler is named"
        )
    return settings


class Actuators:
    """Sets the settings of one drive; without a journal nothing is ever set.

    The journal restores what was in force when this was made, also where somebody else changed it
    before the first switch.

    Args:
        drive: Whose settings.
        controller: Its controller; None where it has none.
        settings: What may be set.
        state: The journal; None for a dry run.

    Raises:
        DriveError: The drive does not answer, or somebody limits its power already.
    """

    def __init__(
        self,
        drive: DriveFacts,
        controller: NvmeController | None,
        settings: Sequence[Setting],
        state: HostState | None,
    ) -> None:
        self.settings, self._drive, self._state = tuple(settings), drive, state
        self._power_state = power_state(controller) if controller else None
        self._scheduler = SysfsValue(str(drive.device.queue("scheduler")))
        self._limit: NvmeFeature | None = None
        self.limit_watts: float | None = None
        self.refused_watts: float | None = None
        require_no_limit(drive, controller)
        if controller is not None and drive.controller and drive.controller.limits_power:
            self._limit = power_limit(controller)
        if state is not None:
            self._remember(state)

    @property
    def can_limit(self) -> bool:
        """Whether the drive enforces a power limit by itself."""
        return self._limit is not None

    def is_asleep(self) -> bool:
        """Whether the drive went by itself into a state in which it serves nothing."""
        if self._power_state is None or self._drive.controller is None:
            return False
        present = int(self._power_state.get()) & POWER_STATE_MASK
        return present not in [one.index for one in self._drive.controller.operational_states]

    def in_force(self) -> int | None:
        """Which setting is, by its place; None for none of them. Asks the drive."""
        for place, setting in enumerate(self.settings):
            if all(self._same(change, value) for change, value in self._changes(setting)):
                return place
        return None

    def set(self, place: int, *, again: bool = False) -> None:
        """Put a setting into force.

        Args:
            place: Which one.
            again: Also what was set already: somebody else, or a reset, has changed it.

        Raises:
            DriveError, HostStateError: It is refused.
        """
        if self._state is None:
            return
        for change, value in self._changes(self.settings[place]):
            if again:
                self._state.forget(change)
            self._state.set(change, value)

    def limit(self, watts: float | None, place: int) -> None:
        """Let the drive itself keep below so many watts; None lifts it.

        States above the limit become unavailable, so the setting is put into force again after it.
        Changes of less than 1 % are left; a limit that the drive refuses is not tried again.

        Raises:
            DriveError: It cannot be lifted.
        """
        present = self.limit_watts
        same = watts == present
        if watts is not None and present is not None:
            same = abs(watts - present) < _LIMIT_STEP * present
        if self._state is None or self._limit is None or same:
            return
        refused = self.refused_watts
        if watts is not None and refused is not None and watts < refused * (1.0 + _LIMIT_STEP):
            return
        value = str(NO_LIMIT if watts is None else power_word(watts))
        try:
            self._state.set(self._limit, value)
        except DriveError:
            if watts is None:
                raise
            self.refused_watts = watts
            return
        self.limit_watts = watts
        if watts is None:
            self.set(place, again=True)

    def renew_limit(self) -> None:
        """Set a power limit again that a reset or a suspension may have lifted.

        Raises:
            DriveError: It is refused.
        """
        if self._state is not None and self._limit is not None and self.limit_watts is not None:
            self._state.forget(self._limit)
            self._state.set(self._limit, str(power_word(self.limit_watts)))

    def put_back(self) -> None:
        """Set what was in force at first, as far as it is taken; the journal keeps the rest."""
        changes = {change: None for one in self.settings for change, _ in self._changes(one)}
        if self._limit is not None:
            changes[self._limit] = None
        if self._state is not None:
            self._state.put_back_all(reversed(changes))

    def _remember(self, state: HostState) -> None:
        """Let everything that may be set become again what it is now, whoever changes it."""
        for setting in self.settings:
            for change, _ in self._changes(setting):
                state.remember(change)
        if self._limit is not None:
            state.remember(self._limit)  # behind the power state, so that it is put back before

    def _changes(self, setting: Setting) -> Iterator[tuple[Change, str]]:
        if setting.power_state is not None and self._power_state is not None:
            yield self._power_state, str(setting.power_state)
        if setting.scheduler is not None:
            yield self._scheduler, setting.scheduler

    def _same(self, change: Change, value: str) -> bool:
        now = change.get()
        if change is self._power_state:
            return int(now) & POWER_STATE_MASK == int(value)
        return now == value


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
