"""What a drive saves while its SATA link sleeps, and what waking it takes (ALPM).

In Slumber both sides of the link stop their transceivers, and a drive may stop its clocks as
well. Client drives then keep a tenth of what they draw with an active link (AnandTech, review
11571 of the Intel 545s, p6: device-initiated power management on and off); one that only stops
its transceivers, half of the 0.7 W below, keeps 0.4 of the 0.57 W that such drives are expected
to idle at.

The host's side shows in system power only. Link power management saves 0.8 W a drive in Slumber and
0.5 W in Partial on an ICH8M (FreeBSD, sys/dev/ata, commit 4c10f2e605), 0.5 to 1.5 W a disk (Intel's
lesswatts.org, Serial ATA) and 0.4 to 0.5 W (CompuLab's fit-PC wiki), both ends together.
"""

from __future__ import annotations

from iojoule.datasets.vocabulary import LinkPowerPolicy

SOURCE = "Serial ATA link power management; see model.sata_link"

SLUMBER_SHARE = (0.2, 0.6)
"""Of the idle power with an active link, and sd of its logarithm: the middle of both."""

PORT_WATTS = (0.35, 0.5)
"""What a transceiver with an active link draws, the host's and the drive's alike, and sd of its
logarithm: half of the 0.7 W that both ends save together."""

EXIT_SECONDS = (0.0035, 0.7)
"""Out of Slumber: 3.5 ms were measured for the FreeBSD commit; 10 ms at the most (sata-io.org,
power management). The sd is in log units."""

POLICIES = tuple(LinkPowerPolicy)
"""Policies of Linux, the link awake first."""

OFFERED = (LinkPowerPolicy.MEDIUM_POWER, LinkPowerPolicy.MED_POWER_WITH_DIPM)
"""Policies that are offered where nothing is listed: of those below Linux says that some disks lose
data with them (drivers/ata/Kconfig, SATA_MOBILE_LPM_POLICY)."""

PARTIAL_SHARE = 0.5 / 0.8
"""What Partial saves of what Slumber does (the FreeBSD commit)."""

DEPTH = (0.0, PARTIAL_SHARE, 1.0, 1.0, 1.0)
"""Share of the saving of Slumber that each policy brings; those from the third on let the drive or
the host go there."""

WAITS = (0.0, 0.0, 1.0, 1.0, 1.0)
"""Whether the first request waits for Slumber to end; Partial ends within 10 us."""


def disk_slumber_watts(idle_watts: float) -> tuple[float, float]:
    """Idle power of a disk with its link in Slumber, W, and its sd: the platters go on.

    Its transceiver stops; at most a quarter of the idle power is taken for it.
    """
    watts, log_sd = PORT_WATTS
    saved = min(watts, 0.25 * idle_watts)
    return idle_watts - saved, log_sd * saved
