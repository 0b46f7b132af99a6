"""The formats by name: one module and one line here for each."""

from __future__ import annotations

from iojoule.datasets.errors import InputError, close_names
from iojoule.datasets.traces.formats.alibaba import ALIBABA
from iojoule.datasets.traces.formats.blkparse import BLKPARSE
from iojoule.datasets.traces.formats.cloudphysics import CLOUDPHYSICS
from iojoule.datasets.traces.formats.fio_iolog import FIO_IOLOG
from iojoule.datasets.traces.formats.fiu import FIU
from iojoule.datasets.traces.formats.mqsim import MQSIM
from iojoule.datasets.traces.formats.msr import MSR
from iojoule.datasets.traces.formats.spc import SPC
from iojoule.datasets.traces.formats.systor import SYSTOR
from iojoule.datasets.traces.formats.tencent import TENCENT
from iojoule.datasets.traces.trace_format import TraceFormat, rows_before_defect

FORMATS: dict[str, TraceFormat] = {
    form.name: form
    for form in (
        MSR,
        ALIBABA,
        TENCENT,
        FIU,
        SPC,
        CLOUDPHYSICS,
        SYSTOR,
        BLKPARSE,
        FIO_IOLOG,
        MQSIM,
    )
}


def format_named(name: str) -> TraceFormat:
    """The format of that name.

    Raises:
        InputError: There is none.
    """
    if name not in FORMATS:
        raise InputError(
            f"--format {name}: is none of {', '.join(FORMATS)}{close_names(name, FORMATS)}"
        )
    return FORMATS[name]


def fitting(head: bytes) -> list[str]:
    """Names of the formats whose rows the beginning of a file could be."""
    return [name for name, form in FORMATS.items() if rows_before_defect(form, head)[1]]


def format_of(head: bytes, where: str) -> TraceFormat:
    """The only format that a file's beginning fits, or that its very first lines fit.

    Raises:
        InputError: They fit none, or several, or one whose rows look like those of other programs
            with another meaning.
    """
    if not head:
        raise InputError(f"{where}: is empty")
    rows = {name: rows_before_defect(form, head) for name, form in FORMATS.items()}
    most = max(read for read, _ in rows.values())
    # reading on then names the line that is none of the format
    names = fitting(head) or [name for name, (read, _) in rows.items() if read == most > 0]
    if len(names) == 1 and FORMATS[names[0]].guessable:
        return FORMATS[names[0]]
    if not names:
        raise InputError(
            f"{where}: its first line fits none of {', '.join(FORMATS)}; --format with the one "
            "that it should be says what differs"
        )
    doubt = "; other programs write rows like these with another meaning" if len(names) == 1 else ""
    raise InputError(
        f"{where}: the format is not certain: its first lines fit {', '.join(names)}{doubt}; state "
        f"it: --format {names[0]}"
    )
