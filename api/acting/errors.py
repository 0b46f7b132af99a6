"""What can come of acting on a recommendation."""

from __future__ import annotations

from iojoule.datasets.errors import IojouleError


class SlaBreachedError(IojouleError):
    """The SLA was breached while a guarded change was watched; the change was taken back."""

    exit_code = 29
    http_status = 409
    title = "The SLA was breached, and the change was taken back"


class NotProvenError(IojouleError):
    """What was measured proves no saving, or breaks the SLA."""

    exit_code = 30
    http_status = 409
    title = "The saving is not proven, or the SLA not kept"
