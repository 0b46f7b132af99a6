"""What the service says of versions of profiles."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from iojoule.api.http.moments import moment
from iojoule.datasets.schema import number

if TYPE_CHECKING:
    from iojoule.api.state.profiles import ProfileVersion

BROUGHT = 0
"""Number of the profile that iojoule itself brings; those that were calibrated count from 1."""

EXAMPLE = {"version": BROUGHT}


class KeptProfile(BaseModel):
    """A version of a device's profile.

    Attributes:
        version: Its number; 0 is the profile that iojoule itself brings.
        profile_version: What answers name it.
        sha256: Hash of its file; null for version 0, which changes with iojoule.
        job_id: The calibration that made it; null where it is not yours to read.
        current: Whether it answers.
    """

    version: int
    profile_version: str
    origin: Literal["iojoule", "calibration"]
    sha256: str | None
    job_id: str | None
    created_at: datetime | None
    current: bool
    url: str

    @classmethod
    def of(cls, kept: ProfileVersion, current: int, readable: Collection[str]) -> Self:
        """What is said of a version that is kept."""
        return cls(
            version=kept.number, profile_version=kept.profile_version, origin="calibration",
            sha256=kept.sha256, created_at=moment(kept.created_at),
            job_id=kept.job_id if kept.job_id in readable else None,
            current=kept.number == current, url=f"/devices/{kept.device}/profiles/{kept.number}",
        )  # fmt: skip

    @classmethod
    def brought(cls, device: str, profile_version: str, current: int) -> Self:
        """What is said of the version that iojoule brings."""
        return cls(
            version=BROUGHT, profile_version=profile_version, origin="iojoule", sha256=None,
            job_id=None, created_at=None, current=current == BROUGHT,
            url=f"/devices/{device}/profiles/{BROUGHT}",
        )  # fmt: skip


class ProfileList(BaseModel):
    """Versions of a device's profile, the newest first.

    Attributes:
        current: The version that answers.
        next_cursor: What to ask for next; null: this is the end.
    """

    device: str
    current: int
    profiles: list[KeptProfile]
    next_cursor: str | None


class CurrentProfile(BaseModel):
    """Which version of a device's profile answers."""

    device: str
    version: int


class Rollback(BaseModel):
    """Which version should answer from now on."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[
        int, Field(ge=0, le=10**9, description="0 is the profile that iojoule brings."), number
    ]  # fmt: skip
