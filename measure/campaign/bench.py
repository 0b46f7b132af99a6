"""What a campaign needs of whatever makes its runs: a real drive, or a simulated one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from iojoule.measure.campaign.folder import CampaignState
from iojoule.measure.campaign.points import Run
from iojoule.measure.campaign.record import RunRecord

Say = Callable[[str], None]
"""Tells people what is going on, in one line."""

Store = Callable[[CampaignState], None]
"""Keeps what was done to the drive."""


class Bench(Protocol):
    """Makes runs."""

    def prepare(self, state: CampaignState, store: Store) -> None:
        """Bring the drive into the state in which the runs begin, as far as that is not done.

        Args:
            state: What was done already; changed in place.
            store: Keeps it whenever a step is done.
        """

    def before(self, run: Run, state: CampaignState, store: Store) -> None:
        """What this run needs done to the drive that earlier ones did not."""

    def perform(self, run: Run, folder: Path, state: CampaignState) -> RunRecord:
        """Make one run; a failed one is a record too.

        Raises:
            DriveError: The drive has vanished: no further run is possible.
            CampaignError: The folder cannot be written.
        """

    def finish(self, state: CampaignState, store: Store) -> None:
        """What is measured after the last run."""
