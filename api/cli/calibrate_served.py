"""`iojoule calibrate --server`: measurements go up, the profile comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from iojoule.api.cli import console
from iojoule.api.cli.server import service, waited_for
from iojoule.api.jobs.calibration_request import CalibrationRequest
from iojoule.api.state.ids import is_id
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from iojoule.datasets.profile import DeviceProfile


@dataclass(frozen=True)
class Served:
    """What a service's calibration found; attributes as those of `calibrating.Calibrated`."""

    profile: DeviceProfile
    notes: list[str]
    excluded: list[Excluded]


@dataclass(frozen=True)
class Excluded:
    """A measurement that was left out."""

    what: str
    reason: str


def calibrate(
    server: str, device: str, datasets: Sequence[Path], request: CalibrationRequest
) -> Served:
    """Upload, calibrate, and fetch the version that came of it.

    Args:
        server: The service.
        device: Id, model or alias of the drive.
        datasets: Files and folders of datasets, or ids of what the service keeps.
        request: All but the datasets.

    Raises:
        IojouleError: A file is no dataset, or the calibration failed.
    """
    with service(server) as client:
        ids = []
        for path in datasets:
            if is_id(str(path)) and not path.exists():
                ids.append(str(path))
                continue
            for file in _files(path):
                kept = client.upload(file, device=device)
                console.note(f"{file}: uploaded as dataset {kept.id}")
                ids.append(kept.id)
        job = client.calibrate(device, request.model_copy(update={"datasets": ids}))
        console.note(f"job {job.id}")
        waited_for(client, [job], "calibrating")
        told = client.result(job)
        version = next(one for one in client.profiles(device) if one.job_id == job.id)
        console.note(
            f"{client.server} answers for {told['device']} with version {version.version} from "
            "now on; `iojoule profile use` takes that back"
        )
        return Served(
            profile=client.profile(device, version.version),
            notes=told["notes"],
            excluded=[Excluded(one["what"], one["reason"]) for one in told["excluded"]],
        )


def _files(path: Path) -> Iterator[Path]:
    """The files of measurements at a path: itself, or the datasets of a folder."""
    if not path.is_dir():
        yield path if path.suffix else path.with_suffix(".parquet")
        return
    found = sorted(path.glob("*.parquet"))
    if not found:
        raise InputError(f"{path}: holds no dataset (.parquet); name a folder that does")
    yield from found
