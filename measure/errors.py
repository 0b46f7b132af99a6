"""Errors of measurements: drive, host, fio, sensor, campaign, lab."""

from __future__ import annotations

from iojoule.datasets.errors import InputError, IojouleError


class UnsafeDriveError(IojouleError):
    """The drive may not be used: in use, not a whole drive, or not the named one."""

    exit_code = 20
    title = "The drive may not be touched"


class DriveError(IojouleError):
    """The drive or its controller does not answer, refuses a command, or has vanished."""

    exit_code = 21
    title = "The drive does not answer as it must"


class HostStateError(IojouleError):
    """The host refuses a setting or a permission; the message names the remedy."""

    exit_code = 22
    title = "The host refuses"


class FioError(IojouleError):
    """fio is missing, too old, or failed."""

    exit_code = 23
    title = "fio failed"


class SensorError(IojouleError):
    """A sensor cannot be used, or stopped delivering."""

    exit_code = 24
    title = "A sensor failed"


class CampaignError(InputError):
    """A plan or a campaign's folder is not what it must be."""

    exit_code = 25
    title = "The campaign cannot go on"


class RunsFailedError(IojouleError):
    """The campaign is over, but some runs failed; what succeeded is stored."""

    exit_code = 26
    title = "Some runs failed"


class LabError(IojouleError):
    """The virtual testbed cannot be set up or taken down."""

    exit_code = 27
    title = "The lab"


class ProgramError(IojouleError):
    """The program that `measure command` ran failed; what was measured of it is kept."""

    exit_code = 28
    title = "The measured program failed"
