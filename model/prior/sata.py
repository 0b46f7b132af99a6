"""What a SATA SSD that nobody watched in its gaps does there: its link may sleep (ALPM)."""

from __future__ import annotations

from iojoule.datasets.catalogue import Fact
from iojoule.datasets.profile import IdleBehaviour, LinkPower, Parameter
from iojoule.datasets.vocabulary import Evidence
from iojoule.model import sata_link
from iojoule.model.idle_gaps import REST_SECONDS

STATED_SD = 0.15
"""Log sd of a published Slumber power: of another drive of the model, and read off a figure."""


def sata_idle(idle_watts: Parameter, slumber: Fact | None) -> IdleBehaviour:
    """Gaps of a SATA SSD.

    Args:
        idle_watts: With the link awake.
        slumber: What the drive draws in Slumber, where somebody published it.
    """
    share, log_sd = sata_link.SLUMBER_SHARE
    watts, source = share * idle_watts.value, sata_link.SOURCE
    if slumber is not None:
        watts, log_sd, source = float(slumber.value), STATED_SD, slumber.source
    watts = min(watts, idle_watts.value)

    def number(name: str, value: float, sd: float, unit: str, told: str) -> Parameter:
        return Parameter(
            name=name, value=float(f"{value:.6g}"), sd=float(f"{sd:.6g}"), unit=unit,
            evidence=Evidence.DATASHEET, source=told,
        )  # fmt: skip

    return IdleBehaviour(
        settle_seconds=number(
            "settle_seconds", REST_SECONDS, 0.5, "s", "assumption: as the 980 PRO (000 5.9 F13)"
        ),
        wake_seconds=number(
            "wake_seconds", 0.0, 0.0, "s", "assumption: none while the link is awake"
        ),
        link=LinkPower(
            slumber_watts=number("slumber_watts", watts, log_sd * watts, "W", source),
            exit_seconds=number("exit_seconds", *sata_link.EXIT_SECONDS, "s", sata_link.SOURCE),
        ),
    )
