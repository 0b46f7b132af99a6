"""Reads and writes that share a drive.

All requests of a mix together: a share f of them reads, w = 1 - f writes. In a closed loop they
take turns: the mean latency is f L_r + w L_w, the harmonic mean of the rates. Sharing makes it
longer:

* Random reads wait for dies that program. They take

      1 + (F - 1) n / (n + `IN_FLIGHT`) (1 - exp(-w / `WRITES_DELAY`))

  times as long, n of them and of the writes in flight: a die that programs holds up the more
  requests the more of them are on their way, and few writes are enough to keep one busy.
* Sequential streams disturb each other: the mean takes F^e times as long, e = f^4 w over its value
  at 70 % reads, the form that passes through both published shares (000 5.7).

Both vanish where nothing is shared. That on percentiles is one of reads that wait behind a write,
and grows as 1 - exp(-w / `TAIL_DELAY`). So mixes tend to the pure operations at both ends, in
values and in intervals.

F, `IN_FLIGHT` and `WRITES_DELAY` are fitted to 4 KiB random mixes of two of the three namespaces
of stonet-research/NVMeBenchmarks, mixratio, 50 to 99 % reads at depths 1 to 128. With a share of
reads left out and the unknown rates of pure writes (unloaded latency and ceiling) fitted beside
each form, this one misses the rate by 1 to 7 % in the median and 13 % at most, turns alone by 1 to
20 and 37 %. On the third, not fitted, it is worse than turns from 75 to 99 % reads (37 against 29 %
at 75), and better at 50 (11 against 19): measured mixes are needed there.

A percentile of the mix is that of the mixture of both directions' latencies. With each direction
log-logistic, S(x) = 1 / (1 + (x / m)^a) of its requests take longer than x, and with one shape a
for both the mixture's percentile solves a quadratic equation in x^a: closed, smooth, monotone in
both percentiles, exact where the directions are alike or one of them is alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iojoule.datasets.profile import MixedEffect
from iojoule.model.evaluate.bands import PUBLISHED, Direction, Floats
from iojoule.model.evaluate.frame import PATTERNS, RANDOM, Frame
from iojoule.model.evaluate.quantities import NORMAL_90

IN_FLIGHT = 64.0
"""Requests in flight at which random reads wait half as long for dies that program as ever: fitted
with `WRITES_DELAY` and F = 1.75 to those mixes."""

WRITES_DELAY = 0.02
"""Share of writes with which the mean latency of random reads has gone most of the way."""

SEQUENTIAL_POWER = 4.0
"""Of f in the extent of sequential mixes: ln 1.37 at 70 % and ln 1.027 at 30 % reads (000 5.7) are
(7 / 3)^k times 3 / 7 apart for k = 3.9."""

_PUBLISHED_SHARE = 0.7
"""Share of reads of the sequential mix whose factor a profile keeps."""

TAIL_DELAY = 0.07
"""Share of writes with which the percentiles of reads have gone most of the way to those of an even
mix: in random mixes of two drives p99 of reads had gone on average 0.25, 0.45, 0.75 and 0.9 of it
(in logs) with 1, 5, 10 and 25 % of writes, while that of writes hardly moved
(stonet-research/NVMeBenchmarks, mixratio). Half of the requests were writes where the factor was
published (icpe24, table 2)."""

ABOVE = {"p50": 0.5, "p99": 0.01, "p999": 0.001}
"""Share of the requests that take longer than each percentile."""

MEDIAN_SHAPE = 6.0
"""Shape of the latencies around their median: a log-logistic distribution of log sd 0.3, for
pi / (sqrt(3) a) is the sd of its logarithm. An assumption; between the directions' medians only."""

LEAST_LOG_TAIL = 0.1
"""Least log ratio of a percentile to the mean that a shape is taken from: shapes stay below 46."""

MOST_APART = 60.0
"""Powers x^a of both directions differ by a factor of exp of this at most: floating-point range."""


def mix(
    effects: Sequence[MixedEffect],
    frame: Frame,
    read: Direction,
    write: Direction,
    ready_write: Direction,
) -> Direction:
    """Take turns: the mean latency is weighted by requests, and longer by what sharing costs.

    Writes that wait for the drive to be ready for another one (`DeviceState.overwriting`) leave
    their slot to reads meanwhile. So a mix takes its turns without that wait, but no less time than
    its writes need with it.

    Args:
        effects: Of mixing, by pattern.
        frame: The questions, n of them.
        read: As if all were reads.
        write: As if all were writes.
        ready_write: Those without such a wait; `write` itself where there is none.
    """
    fraction = frame.read_fraction
    log_factor, log_sd, tail, tail_sd = np.take(by_pattern(effects), frame.pattern, axis=1)
    delayed = -np.expm1((fraction - 1.0) / TAIL_DELAY)
    tail, tail_sd = delayed * tail, delayed * tail_sd
    reads, writes, ready = (
        share * np.exp(part.log_value["latency"])
        for share, part in (
            (fraction, read),
            (1.0 - fraction, write),
            (1.0 - fraction, ready_write),
        )
    )
    alone = reads + writes
    slower, slower_sd = _slower(frame, reads / (reads + ready), log_factor, log_sd)
    mean = np.log(np.maximum((reads + ready) * np.exp(slower), writes))
    read_share = reads / alone  # of the time: what the mean is sensitive to
    own, heavier = (NORMAL_90 * slower_sd) ** 2, (NORMAL_90 * tail_sd) ** 2
    value = {"latency": mean}
    half = {"latency": np.sqrt(_weighted(read_share, read, write, "latency") + own)}
    longer = mean - np.log(alone)
    for name in [name for name in read.log_value if name != "latency"]:
        above_median = name != "p50"
        together, sensitive = percentile(
            ABOVE[name],
            fraction,
            (read.log_value[name] + above_median * tail, write.log_value[name]),
            _shape(name, read_share, read, write),
        )
        value[name] = together + longer
        more = sensitive * heavier if above_median else 0.0
        half[name] = np.sqrt(_weighted(sensitive, read, write, name) + own + more)
    evidence = np.where(
        fraction == 1.0,
        read.evidence,
        np.where(
            fraction == 0.0,
            write.evidence,
            np.maximum(np.maximum(read.evidence, write.evidence), PUBLISHED),
        ),
    )
    sharpness = read.sharpness**read_share * write.sharpness ** (1.0 - read_share)
    codes = evidence.astype(np.intp)
    return Direction(value, half, codes, sharpness, write_share=1.0 - read_share)


def _slower(
    frame: Frame, read_share: Floats, log_factor: Floats, log_sd: Floats
) -> tuple[Floats, Floats]:
    """How much longer the mean latency is than by turns, log units, and its sd; shape (n,) each.

    Args:
        frame: The questions.
        read_share: Share of the time that reads take by turns, shape (n,).
        log_factor: ln F of each row's pattern, shape (n,).
        log_sd: Its sd, shape (n,).
    """
    random = frame.pattern == RANDOM
    waiting = extent(frame.read_fraction, frame.queue_depth * frame.jobs, random)
    longer = read_share * waiting * np.expm1(log_factor)
    slower = np.where(random, np.log1p(longer), waiting * log_factor)
    # d log(1 + s u (F - 1)) / d log F = s u F / (1 + s u (F - 1))
    sensitive = read_share * waiting * np.exp(log_factor) / (1.0 + longer)
    return slower, log_sd * np.where(random, sensitive, waiting)


def extent(
    read_fraction: Floats | float, in_flight: Floats | float, random: Floats | bool
) -> Floats:
    """How far the factor F of a mix counts: 0 at both ends; see above. Shape as the arguments'.

    Args:
        read_fraction: Share of the requests that read, 0 to 1.
        in_flight: Requests in flight.
        random: Whether the pattern is random, else sequential; true or false.
    """
    fraction = np.asarray(read_fraction, dtype=float)
    flight = np.asarray(in_flight, dtype=float)
    held_up = -np.expm1((fraction - 1.0) / WRITES_DELAY) * flight / (flight + IN_FLIGHT)
    at = _PUBLISHED_SHARE
    disturbed = fraction**SEQUENTIAL_POWER * (1.0 - fraction) / (at**SEQUENTIAL_POWER * (1.0 - at))
    return np.asarray(np.where(random, held_up, disturbed))


def percentile(
    above: float, read_fraction: Floats, logs: tuple[Floats, Floats], shape: Floats | float
) -> tuple[Floats, Floats]:
    """Log of a mixture's percentile, and its elasticity to that of the reads (1 less: writes).

    With q the share above, y = x^a and y_d = x_d^a q / (1 - q) of direction d, its percentile x_d,

        f / (1 + y / y_r) + (1 - f) / (1 + y / y_w) = q

    is the quadratic q y^2 + (q (y_r + y_w) - f y_r - (1 - f) y_w) y = (1 - q) y_r y_w with one
    positive root. Fewer requests than the share above move it next to nothing however slow they
    are.

    Args:
        above: Share of the requests above the percentile, q.
        read_fraction: Share of reads f, shape (n,).
        logs: Log percentiles of reads and of writes, shape (n,) each.
        shape: a of both directions, above 0.
    """
    read, write = logs
    apart = write - read
    shape = np.minimum(shape, MOST_APART / np.maximum(np.abs(apart), 1e-9))
    up = np.exp(0.5 * shape * apart)
    odds = above / (1.0 - above)
    y_read, y_write = odds / up, odds * up  # in units of the geometric mean of both percentiles
    linear = above * (y_read + y_write) - read_fraction * y_read - (1.0 - read_fraction) * y_write
    product = (1.0 - above) * odds**2
    # the root without cancellation, on either side of linear = 0
    width = np.abs(linear) + np.sqrt(linear**2 + 4.0 * above * product)
    y = np.where(linear < 0.0, width / (2.0 * above), 2.0 * product / width)
    log_value = 0.5 * (read + write) + np.log(y) / shape
    # dS / dlog x = -a S (1 - S) of each direction, with S = y_d / (y_d + y)
    reads = read_fraction * y_read * (y_write + y) ** 2
    writes = (1.0 - read_fraction) * y_write * (y_read + y) ** 2
    return np.asarray(log_value), np.asarray(reads / (reads + writes))


def _shape(name: str, read_share: Floats, read: Direction, write: Direction) -> Floats | float:
    """Shape of both directions: (1 - q) / q = (x_q / m)^a with the mean in place of the median."""
    if name == "p50":
        return MEDIAN_SHAPE
    tails = [side.log_value[name] - side.log_value["latency"] for side in (read, write)]
    log_tail = read_share * tails[0] + (1.0 - read_share) * tails[1]
    return np.asarray(np.log(1.0 / ABOVE[name] - 1.0) / np.maximum(log_tail, LEAST_LOG_TAIL))


def _weighted(share: Floats, read: Direction, write: Direction, name: str) -> Floats:
    """Squared log half width of both directions, weighted by what the value follows."""
    return np.asarray(
        share * read.half_width[name] ** 2 + (1.0 - share) * write.half_width[name] ** 2
    )


def by_pattern(effects: Sequence[MixedEffect]) -> Floats:
    """Log factor of mixing on latency and its sd, and the same of tails; shape (4, patterns)."""
    factors = np.zeros((4, len(PATTERNS)))
    for effect in effects:
        factors[:, PATTERNS.index(effect.pattern.value)] = (
            np.log(effect.latency_factor.value),
            effect.latency_factor.sd,
            np.log(effect.tail_factor.value),
            effect.tail_factor.sd,
        )
    return factors
