"""Workload profiles from any source, for the command line."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from iojoule.datasets.atomic import output_file, write_text_atomically
from iojoule.datasets.errors import InputError
from iojoule.datasets.io_summary import IoSummary, parse_summary, write_summary
from iojoule.datasets.schema import validation_error
from iojoule.measure.drive.block_io import find_disk
from iojoule.measure.observe import capture
from iojoule.recommender.request import WorkloadProfile, read_text
from iojoule.recommender.workloads.sources import SourceKind, as_json, as_toml, summary_of


def write_profile(profile: WorkloadProfile, path: Path) -> None:
    """Write a profile that `iojoule recommend --workload` takes, by the ending of its name.

    Raises:
        InputError: The ending is neither .toml nor .json, or the place cannot be written.
    """
    form = {".toml": as_toml, ".json": as_json}.get(path.suffix.lower())
    if form is None:
        raise InputError(f"{path}: a workload profile is a .toml or a .json file")
    with output_file(path):
        write_text_atomically(path, form(profile))


def observe_traced(drive: Path, seconds: float, gap_seconds: float) -> IoSummary:
    """Trace a live drive with blktrace.

    Raises:
        DriveError, UnsafeDriveError: There is no such whole drive.
        HostStateError: The host does not let it be traced.
        InputError: Nothing was read or written.
    """
    disk = find_disk(drive)
    traced = capture(disk, seconds)
    path = Path(f"blktrace of {disk.name}")
    found = summary_of(path, traced.text, SourceKind.BLKPARSE, gap_seconds=gap_seconds)
    window = found.windows[0].model_copy(update={"began_unix_seconds": traced.began_unix_seconds})
    return found.model_copy(update={"name": disk.name, "windows": (window,)})


class Kept:
    """Keeps what is observed, and adds it to a file where one is named.

    Args:
        path: The file of an earlier observation, or a new one; None keeps nothing on disk.

    Raises:
        InputError: The file is there and is no observation.
    """

    def __init__(self, path: Path | None) -> None:
        self.summary: IoSummary | None = None
        self._path = path
        self._earlier: IoSummary | None = None
        if path is not None and path.exists():
            self._earlier = parse_summary(read_text(path), str(path))

    def keep(self, summary: IoSummary) -> None:
        """Take what was seen so far; the file always holds all of it.

        Raises:
            InputError: The file is of another drive or another gap, or cannot be written.
        """
        self.summary = summary
        if self._path is None:
            return
        if self._earlier is not None:
            summary = self._with_earlier(self._earlier, summary)
        write_summary(summary, self._path)

    def _with_earlier(self, earlier: IoSummary, summary: IoSummary) -> IoSummary:
        if (earlier.name, earlier.source) != (summary.name, summary.source):
            raise InputError(
                f"{self._path}: is an observation of {earlier.name} by {earlier.source}, not of "
                f"{summary.name} by {summary.source}; name another file"
            )
        data = summary.model_dump() | {"windows": (*earlier.windows, *summary.windows)}
        try:
            return IoSummary.model_validate(data)
        except ValidationError as error:
            raise validation_error(error, str(self._path)) from None
