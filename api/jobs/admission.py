"""The one way in for what the service simulates: every drive and every flow of a job, as it is run.

What is asked for is a drive and flows with fields changed, some of them several times. Only what
comes of all changes tells what would be run, so that, and nothing before it, is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iojoule.datasets.errors import InputError, IojouleError
from iojoule.sim.device import DeviceConfig
from iojoule.sim.findings import Finding, refuse_errors
from iojoule.sim.formats.files import read_drive
from iojoule.sim.known_defects import findings
from iojoule.sim.presets import preset_path
from iojoule.sim.sweep import with_values
from iojoule.sim.workload import FlowConfig, FlowKind, Scenario

REQUESTS_MAX = 2_000_000_000
"""Of all runs together, where flows say how many; the limits of a run hold for all."""

FLOWS = "flows"

NAMES_FILE = frozenset({"trace_path"})
"""Fields of flows that name a file of the machine; a drive has none (tests look through all)."""

_NO_TRACES = (
    "traces are files of the machine that simulates, which the service does not read; use "
    "`iojoule simulate` there"
)


def drive_of(name: str) -> DeviceConfig:
    """A drive that comes with iojoule, by its name and never by a path.

    Raises:
        InputError: There is none of that name.
    """
    try:
        return read_drive(preset_path(name)).device
    except InputError as error:
        raise InputError(error.message, field="drive") from None


def changed_drive(device: DeviceConfig, values: Mapping[str, Any], place: str) -> DeviceConfig:
    """The drive with fields set otherwise, where nothing is asked of it yet.

    Raises:
        InputError: A field is none of the drive, or cannot have the value; names the place.
    """
    with naming(place):
        refuse_flows(values)
    nothing = Scenario(flows=(FlowConfig(stop_ns=1),))
    with naming(place):
        return with_values(device, nothing, values)[0]


def refuse_flows(names: Iterable[str]) -> None:
    """Return where no field is one of flows; raises InputError.

    A drive that is changed has no flows of the asker's, so such a field would be lost unseen.
    """
    for name in names:
        if name.partition(".")[0].partition("[")[0] == FLOWS:
            raise InputError(f"{name}: is a field of flows, not of a drive; leave it out")


def refuse_files(scenario: Scenario, place: str = "") -> None:
    """Return where no flow names a file.

    Args:
        scenario: With everything that was asked for set.
        place: What set it; none: the flows themselves say so.

    Raises:
        InputError: One does; the file is neither opened nor quoted.
    """
    for index, flow in enumerate(scenario.flows):
        if flow.kind is FlowKind.TRACE or any(getattr(flow, name) for name in NAMES_FILE):
            raise InputError(_NO_TRACES, field=place or f"scenario.flows.{index}.kind")


def refuse_names_of_files(values: Iterable[str], place: str) -> None:
    """Likewise before fields are set: not even a name that would be refused is tried."""
    for name in values:
        if name.rpartition(".")[2] in NAMES_FILE:
            raise InputError(_NO_TRACES, field=place)


def admitted(runs: Sequence[tuple[DeviceConfig, Scenario, str]]) -> list[Finding]:
    """What is to be said of the runs of a job, all of which may be run.

    Args:
        runs: Drive and flows of each with everything set, and what set it (`refuse_files`).

    Raises:
        InputError: One of them may not be run; names the field.
    """
    for _, scenario, place in runs:
        refuse_files(scenario, place)
    asked = sum(flow.total_requests for _, scenario, _ in runs for flow in scenario.flows)
    if asked > REQUESTS_MAX:
        raise InputError(
            f"{asked} requests in {len(runs)} runs are asked for; ask for {REQUESTS_MAX} at most",
            field="scenario",
        )
    found: list[Finding] = []
    with naming("scenario"):
        for device, scenario, _ in runs:
            found.extend(refuse_errors(findings(device, scenario.flows)))
    return list(dict.fromkeys(found))


class naming:  # noqa: N801 - used like a function
    """Puts an error of the simulator at a place of the request."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, IojouleError):
            raise InputError(error.message, field=self._place) from None
