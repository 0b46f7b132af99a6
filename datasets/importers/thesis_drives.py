"""Which SSD an experiment of the IISWC 2026 data set was run on, as far as its documents say.

No file of the data set names a model. Its readme assigns letters to periods of time, and the date
of an experiment is part of its folder's name. The letters are therefore labels of the readme, and
the notes name every case in which the authors' own plot scripts contradict them.
Source: readme of the data set (newer version), artifact scripts of
github.com/t348575/energy-benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

_DATE = re.compile(r"-(\d{4}-\d\d-\d\d)_(\d\d)-(\d\d)-(\d\d)$")

_PERIODS = tuple(
    (datetime.fromisoformat(first), datetime.fromisoformat(last), letter)
    for first, last, letter in (
        ("0001-01-01 00:00:00", "2025-10-07 23:59:59", "A"),
        ("2025-10-08 14:31:15", "2025-11-07 11:51:15", "C"),
        ("2025-11-07 13:26:38", "2025-11-14 10:37:01", "D"),
        ("2025-11-14 11:44:36", "2025-11-25 07:30:56", "E"),
        ("2025-11-25 10:20:27", "2025-12-05 11:44:53", "B"),
        ("2025-12-05 12:24:56", "2025-12-10 17:45:38", "D"),
    )
)
"""First and last second of each period, and the letter that the readme gives it."""

_SECOND_D = _PERIODS[-1][0]
"""From here on an older version of the readme assigns every experiment to D."""

_CONTRADICTED = {
    "nvme-pst-eff-2025-11-16_18-44-20": "the paper's scripts call it C",
    "access-patterns-2025-11-18_00-31-53": "the paper's scripts read it both as A and as E",
}
"""Experiments that the plot scripts assign to another drive than the readme does."""


def readme_label(session: str) -> str | None:
    """The drive that the readme names for an experiment, such as `A (readme)`.

    Args:
        session: Name of the experiment's folder, which ends in its date.

    Returns:
        None where the name bears no date, or its date lies in no period of the readme.
    """
    date = _date(session)
    for first, last, letter in _PERIODS:
        if date is not None and first <= date <= last:
            return f"{letter} (readme)"
    return None


def drive_notes(sessions: Sequence[str], device: str | None) -> list[str]:
    """What the reader must know about the drives of these experiments.

    Args:
        sessions: Names of the experiments' folders.
        device: Drive that the user named for all of them; None where the labels are used.
    """
    by_label: dict[str, list[str]] = {}
    unlabelled = []
    for session in sessions:
        label = readme_label(session)
        if label is not None:
            by_label.setdefault(label, []).append(session)
        elif _date(session) is not None:
            unlabelled.append(session)
    counts = ", ".join(f"{label}: {len(by_label[label])}" for label in sorted(by_label))
    notes = []
    if device is not None and len(by_label) > 1:
        notes.append(
            f"--device says {device} for all experiments, but by their dates the readme of the "
            f"IISWC 2026 data set assigns them to several drives ({counts}); import the "
            "experiments of each drive on their own"
        )
    if device is None and by_label:
        notes.append(
            "device_model is a label: the letter that the readme of the IISWC 2026 data set gives "
            f"to the date of an experiment ({counts} experiments). No file names a model. Pass "
            "--device where the model is known or the runs are not of that data set"
        )
    if device is None and by_label.keys() & {"A (readme)", "B (readme)"}:
        notes.append(
            "the paper's scripts exchange A and B of the readme (the runs of 1 to 5 December 2025 "
            "are B in the readme, A in the scripts). Hint: by its idle and peak power, A of the "
            "readme is a Samsung 980 PRO 1TB; this is inferred and stated nowhere"
        )
    notes += [
        f"{session}: drive in doubt: the date is that of {readme_label(session)}, "
        f"{_CONTRADICTED[session]}"
        for session in sessions
        if session in _CONTRADICTED
    ]
    late = [name for name in sessions if (date := _date(name)) is not None and date >= _SECOND_D]
    if device is None and late:
        notes.append(
            f"{', '.join(late)}: the newer readme assigns D a second time, from 5 to 10 December "
            "2025; the older one assigns everything after 5 December 2025, 12:24:56, to D. Whether "
            "it is the same drive as in November is not stated"
        )
    if device is None and unlabelled:
        notes.append(
            f"{', '.join(unlabelled)}: the date lies in no period of the readme, so the drive is "
            "unknown; pass --device"
        )
    return notes


def _date(session: str) -> datetime | None:
    match = _DATE.search(session)
    try:
        return datetime.fromisoformat("{} {}:{}:{}".format(*match.groups())) if match else None
    except ValueError:
        return None
