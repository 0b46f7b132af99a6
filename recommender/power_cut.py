"""What a power cut takes, in an answer."""

from __future__ import annotations

from iojoule.datasets.schema import Section


class PowerCut(Section):
    """The most that a power cut takes of what was acknowledged; None: nothing bounds it.

    Attributes:
        writes: Requests of the configuration.
        written_bytes: Their bytes.
        seconds: The time in which they are written at the work that is served.
    """

    writes: float | None
    written_bytes: float | None
    seconds: float | None


class Weaker(Section):
    """A setting that would weaken durability.

    Attributes:
        setting: What would change, and to what.
        loses: What a power cut could take then.
        known: What is known of its effect on energy and speed, and from where.
    """

    setting: str
    loses: PowerCut
    known: str


class DurabilityAnswer(Section):
    """What a recommendation does to durability.

    Attributes:
        weaker_allowed: Whether the SLA says so.
        weakened: Whether the recommended configuration needs it.
        flush_every_writes: With the recommended configuration, as the workload profile counts it.
        power_cut: What a power cut takes then; `power_cut_today` what it takes
            today, None where nothing was said about today.
        options: Weaker settings: not considered, or considered and what came of it.
        reason: All that in words.
    """

    weaker_allowed: bool
    weakened: bool
    flush_every_writes: int | None
    power_cut: PowerCut
    power_cut_today: PowerCut | None
    options: list[Weaker]
    reason: str
