"""How thoroughly a drive is asked, and which part of it is used."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MEBIBYTE = 1 << 20


class ScaleName(StrEnum):
    """How thoroughly: `quick` shows the big effects, `full` has intervals to rely on."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True)
class Scope:
    """Times, sizes and steps of one characterisation.

    Attributes:
        scale: Its name.
        area_bytes: The part of the drive that is used, from its beginning.
        run_seconds: Measured time of one run that reads.
        ramp_seconds: Time before it.
        idle_seconds: Measured time at rest.
        settle_seconds: Rest after a power state was set.
        quiet_seconds: The drive counts as quiet when it drew idle power for so long. Housekeeping
            that begins later is missed.
        quiet_seconds_max: Longest wait for that.
        repeats: How often what is compared is measured.
        request_sizes: Whose saturation is looked for.
        depths: Over which.
        shares: Of the peak rate, for energy over load.
        permuted_windows: Lengths of shuffled stretches, in requests.
    """

    scale: ScaleName
    area_bytes: int
    run_seconds: float
    ramp_seconds: float
    idle_seconds: float
    settle_seconds: float
    quiet_seconds: float
    quiet_seconds_max: float
    repeats: int
    request_sizes: tuple[int, ...]
    depths: tuple[int, ...]
    shares: tuple[float, ...]
    permuted_windows: tuple[int, ...]

    def share_bytes(self, share: float, unit: int = MEBIBYTE) -> int:
        """A share of the area in whole units, at least one."""
        return max(unit, int(self.area_bytes * share) // unit * unit)


def scope_of(scale: ScaleName, capacity_bytes: int) -> Scope:
    """The scope for a drive: an eighth of it is used in `quick`, half of it in `full`."""
    if scale is ScaleName.QUICK:
        return Scope(
            scale=scale,
            area_bytes=_whole(capacity_bytes // 8),
            run_seconds=0.5,
            ramp_seconds=0.1,
            idle_seconds=1.2,
            settle_seconds=0.2,
            quiet_seconds=1.6,
            quiet_seconds_max=30.0,
            repeats=1,
            request_sizes=(4096, 65536),
            depths=(1, 4, 16, 64),
            shares=(0.25, 0.5, 1.0),
            permuted_windows=(8,),
        )
    return Scope(
        scale=scale,
        area_bytes=_whole(capacity_bytes // 2),
        run_seconds=10.0,
        ramp_seconds=2.0,
        idle_seconds=60.0,
        settle_seconds=5.0,
        quiet_seconds=20.0,
        quiet_seconds_max=600.0,
        repeats=3,
        request_sizes=(4096, 16384, 65536, 262144, 1048576),
        depths=(1, 2, 4, 8, 16, 32, 64, 128, 256),
        shares=(0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0),
        permuted_windows=(2, 4, 8, 16),
    )


def _whole(size: int) -> int:
    return max(MEBIBYTE, size // MEBIBYTE * MEBIBYTE)
