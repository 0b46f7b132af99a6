"""Takes out of measurements what names a person, a machine or one specimen of a drive.

What stays is decided by what a field may hold, not by what looks suspicious: words of a known
list, firmware revisions, release numbers of kernels, names of processors. All other text is left
out, and the fields that lost some are named. Identifiers that only tell runs apart (drive, host,
session, series) become numbered labels. Even a hash of a serial number is replaced: serial numbers
of one model differ in a few digits, so a hash can be reversed by trying them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from iojoule.datasets.schema import Measurement
from iojoule.datasets.verdict import ReasonCode

SECRET_LETTERS = 5
"""Names shorter than this occur by chance in other words."""

MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()/+-]{0,39}")
"""Model number: at most 40 characters (NVM Express Base Specification 2.1, figure 312, MN)."""

FIRMWARE = re.compile(r"[A-Za-z0-9._+-]{1,8}")
"""Firmware revision: at most 8 characters (likewise, FR)."""

_KERNEL = re.compile(r"\d+(\.\d+){1,2}(?![\d.])")
"""Release without what a distribution or its owner appended."""

_CPU = re.compile(
    r"(Intel|AMD|ARM|Apple|Ampere|Cortex|Neoverse|IBM|POWER|Common KVM|QEMU|Genuine|Virtual)"
    r"[A-Za-z0-9 ()@.+/-]{0,60}"
)

_WORDS = {
    "arrival_process": {"poisson", "open", "closed", "steady", "bursts", "constant", "none"},
    "cpu_governor": {
        "performance",
        "powersave",
        "ondemand",
        "conservative",
        "schedutil",
        "userspace",
    },
    "filesystem": {"ext4", "xfs", "btrfs", "f2fs", "zfs", "ext2", "ext3", "none"},
    "aspm_policy": {"default", "performance", "powersave", "powersupersave", "disabled"},
}
"""Values that Linux and fio know."""

_MOUNT = {
    "ro",
    "rw",
    "noatime",
    "nodiratime",
    "relatime",
    "lazytime",
    "discard",
    "nodiscard",
    "sync",
    "barrier",
    "nobarrier",
    "data=ordered",
    "data=writeback",
    "data=journal",
}

_LABELS = {
    "device_serial_hash": "drive",
    "host_id": "host",
    "session_id": "session",
    "series_id": "series",
}

# Facts of the catalogue cite files of public collections that are named by a hash: HASH.json.
_IDENTITIES = {
    "a MAC address": r"(?<![\w:-])[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}(?![\w:-])",
    "an IP address": r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.])",
    "a path of one machine": (
        r"(?<![\w.:/-])(/(home|root|users|dev|mnt|media|tmp|var|srv|opt)/|~/)\S"
    ),
    "a UUID": r"(?<!\w)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!\w|\.json)",
    "a world wide name": r"(?<!\w)(eui|naa|nguid|wwn|uuid)[.:_-]*(0x)?[0-9a-f]{16,32}(?!\w)",
    "an identifier of 64 or 128 bits": (
        r"(?<![\w.])(0x)?(?=\d*[a-f])[0-9a-f]{16}([0-9a-f]{16})?(?!\w|\.json)"
    ),
    "an e-mail address": r"(?<!\w)[\w.+-]+@[\w-]+\.[\w.-]+",
}


@dataclass(frozen=True)
class Anonymous:
    """Measurements without identities.

    Attributes:
        measurements: In the order they were given.
        left_out: Fields of which at least one value was left out.
    """

    measurements: list[Measurement]
    left_out: tuple[str, ...]


def without_identities(
    measurements: Sequence[Measurement], device: str, origin: str, secrets: Iterable[str] = ()
) -> Anonymous:
    """Measurements of one drive as they may be published.

    Args:
        measurements: All of one model of drive.
        device: The name of that model, which takes the place of any other.
        origin: A word that is the same for this set of measurements alone; part of the labels, so
            that those of two contributions never meet.
        secrets: Serial number, host name and the like, where they are known; a value that is
            one, or contains one of at least `SECRET_LETTERS`, is left out whatever its form.
    """
    known = {secret.casefold() for secret in secrets if secret}
    labels: dict[str, dict[str, str]] = {field: {} for field in _LABELS}
    left_out: set[str] = set()

    def publishable(field: str, value: str | None) -> str | None:
        if value is None:
            return None
        anonymous = _FORMS[field](value)
        if anonymous is not None and _holds(anonymous.casefold(), known):
            anonymous = None
        if anonymous is None:
            left_out.add(field)
        return anonymous

    def label(field: str, value: str | None) -> str | None:
        if value is None:
            return None
        of_field = labels[field]
        made = f"{_LABELS[field]}-{origin}-{len(of_field) + 1}"
        # the one word of a session that a fit reads: its runs may differ freely
        made += "-unsteady" if field == "session_id" and "unsteady" in value else ""
        return of_field.setdefault(value, made)

    def clean(measurement: Measurement) -> Measurement:
        workload, chosen, under = (
            measurement.workload,
            measurement.configuration,
            measurement.conditions,
        )
        return measurement.model_copy(
            update={
                "workload": workload.model_copy(
                    update={
                        "arrival_process": publishable("arrival_process", workload.arrival_process)
                    }
                ),
                "configuration": chosen.model_copy(
                    update={
                        name: publishable(name, getattr(chosen, name))
                        for name in ("cpu_governor", "filesystem", "mount_options")
                    }
                ),
                "conditions": under.model_copy(
                    update={
                        "device_model": device,
                        **{name: label(name, getattr(under, name)) for name in _LABELS},
                        **{
                            name: publishable(name, getattr(under, name))
                            for name in ("firmware", "aspm_policy", "cpu_model", "kernel_version")
                        },
                    }
                ),
                "judgement": measurement.judgement.model_copy(
                    update={
                        "verdict_reasons": publishable(
                            "verdict_reasons", measurement.judgement.verdict_reasons
                        )
                    }
                ),
            }
        )

    cleaned = [clean(measurement) for measurement in measurements]
    return Anonymous(cleaned, tuple(sorted(left_out)))


def _holds(text: str, secrets: Iterable[str]) -> bool:
    return any(
        secret == text or (len(secret) >= SECRET_LETTERS and secret in text) for secret in secrets
    )


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda value: value if pattern.fullmatch(value) else None


def _among(words: set[str]) -> Callable[[str], str | None]:
    return lambda value: value if value in words else None


def _release(value: str) -> str | None:
    match = _KERNEL.match(value)
    return match[0] if match else None


def _mounted(value: str) -> str | None:
    return ",".join(word for word in value.split(",") if word in _MOUNT) or None


def _codes(value: str) -> str | None:
    return ",".join(word for word in value.split(",") if word in set(ReasonCode)) or None


_FORMS: dict[str, Callable[[str], str | None]] = {
    **{field: _among(words) for field, words in _WORDS.items()},
    "mount_options": _mounted,
    "firmware": _matching(FIRMWARE),
    "cpu_model": _matching(_CPU),
    "kernel_version": _release,
    "verdict_reasons": _codes,
}

TEXT_FIELDS = ("device_model", *_LABELS, *_FORMS)
"""Every field of the schema that holds free text."""


def identities(text: str, secrets: Iterable[str] = ()) -> list[str]:
    """What in a text may name a person, a machine or a specimen: kind and place, never the value.

    Args:
        text: Content of a file.
        secrets: Serial numbers and the like that must not occur.
    """
    problems = []
    for kind, pattern in _IDENTITIES.items():
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            problems.append(f"{kind} in line {text.count(chr(10), 0, match.start()) + 1}")
    folded = text.casefold()
    problems += [
        f"a serial number in line {text.count(chr(10), 0, folded.index(secret.casefold())) + 1}"
        for secret in secrets
        if len(secret) >= SECRET_LETTERS and secret.casefold() in folded
    ]
    return problems
