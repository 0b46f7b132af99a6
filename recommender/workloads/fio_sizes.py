"""The request sizes of a fio job: `bs`, `bsrange` and `bssplit`, each for reads and writes.

A workload profile has one size. The mean is the one that keeps both the requests and the bytes a
second as they were; the distribution itself is stated beside it. Source: fio's HOWTO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iojoule.datasets.errors import InputError
from iojoule.datasets.importers.units import parse_fio_size
from iojoule.recommender.workloads.sizes import percent_text

SIZE_OPTIONS = ("bs", "blocksize", "bsrange", "blocksize_range", "bssplit")
BLOCK_BYTES = 512
Split = dict[int, float]
"""Size in bytes -> share of the requests."""


@dataclass(frozen=True)
class OneSize:
    """What stands for the sizes of a job.

    Attributes:
        mean_bytes: Their mean, rounded to whole blocks of 512 B.
        mix: The distribution as `bytes/percent:...`; None where there is but one size, or a range.
        notes: What the mean does not say.
    """

    mean_bytes: int
    mix: str | None = None
    notes: tuple[str, ...] = ()


def one_size(options: Mapping[str, str], read_share: float, place: str) -> OneSize:
    """The size that stands for those of a job.

    Args:
        options: All options of the job.
        read_share: Share of reads among its requests, 0 to 1.
        place: File and job, for messages.

    Raises:
        InputError: A size that is none, or percentages that are no shares; names the option.
    """
    name, text = _stated(options)
    parts = text.split(",")
    reads = _split(name, parts[0], place)
    writes = _split(name, parts[1], place) if len(parts) > 1 and parts[1].strip() else reads
    shares: Split = {}
    for split, weight in ((reads, read_share), (writes, 1 - read_share)):
        for size, share in split.items():
            shares[size] = shares.get(size, 0.0) + share * weight
    shares = {size: share for size, share in sorted(shares.items()) if share > 0}
    mean = sum(size * share for size, share in shares.items())
    rounded = max(BLOCK_BYTES, round(mean / BLOCK_BYTES) * BLOCK_BYTES)
    if len(shares) == 1:
        return OneSize(int(mean))
    note = (
        f"{name}={text} mixes request sizes: useful_request_bytes is their mean, {mean:.0f} bytes, "
        "which keeps both the requests and the bytes a second"
    )
    return OneSize(rounded, None if name == "bsrange" else percent_text(shares), (note,))


def _stated(options: Mapping[str, str]) -> tuple[str, str]:
    """The option that counts (bssplit before bsrange before bs), and its text."""
    for names in (("bssplit",), ("bsrange", "blocksize_range"), ("bs", "blocksize")):
        for name in names:
            if options.get(name):
                return names[0], options[name]
    return "bs", "4k"


def _split(name: str, text: str, place: str) -> Split:
    if name == "bs":
        return {_size(name, text, text, place): 1.0}
    if name == "bsrange":
        ends = [_size(name, text, end, place) for end in text.split("-")]
        if len(ends) != 2 or ends[0] > ends[1]:
            raise InputError(f"{place}: {name}={text} is not a range like 4k-64k", field=name)
        return {ends[0]: 1.0} if ends[0] == ends[1] else {ends[0]: 0.5, ends[1]: 0.5}
    return _shares(text, place)


def _shares(text: str, place: str) -> Split:
    """`4k/10:64k/:1m/`: what has no percentage shares what is left of a hundred."""
    percents: list[tuple[int, float | None]] = []
    for entry in text.split(":"):
        size, _, percent = entry.partition("/")
        percent = percent.strip()
        if percent and not (percent.isascii() and percent.isdigit() and float(percent) <= 100):
            raise InputError(
                f"{place}: bssplit={text}: {percent} is not a percentage", field="bssplit"
            )
        number = float(percent) if percent else None
        percents.append((_size("bssplit", text, size, place), number))
    stated = sum(percent for _, percent in percents if percent is not None)
    open_ = sum(percent is None for _, percent in percents)
    if stated > 100 or (not open_ and stated < 100):
        raise InputError(
            f"{place}: bssplit={text} adds up to {stated:g} %, not to 100", field="bssplit"
        )
    shares: Split = {}
    for each, part in percents:
        share = (100 - stated) / open_ if part is None else part
        shares[each] = shares.get(each, 0.0) + share / 100
    return shares


def _size(name: str, text: str, word: str, place: str) -> int:
    size = parse_fio_size(word.strip()) if word.strip() else None
    if not size:
        raise InputError(f"{place}: {name}={text} is not a size like 4k", field=name)
    return int(size)
