"""Published findings that are shown and not counted, each with its reason.

All are figures of one section of one paper (000, 5.6) in which the energy, CPU power or CPU clock
of another engine stands beside libaio's. They rest on RAPL alone: the section has no figure of the
wall. Where the same paper shows both meters, they disagree (5.2, over request sizes: 61 to 46 W by
RAPL, 94 to 91 W at the wall), so that a fall of CPU watts by RAPL need not reach the plug. All runs
are at full speed with 4 requests in flight, 32 in one of them. libaio's CPU clock was lower by up
to a quarter in them (000-185), which is a cause of fewer watts that no engine sets: what an engine
changes is the core time and the wake-ups of a request, not the power of a package that is awake.
A model that follows these figures promises a saving that nobody has seen at the wall.

Figures of the same section that compare throughput or latency (000-175, 177, 184), or one engine
with itself (000-186), are counted.
"""

from __future__ import annotations

from collections.abc import Mapping

_WATTS = "CPU watts of libaio by RAPL alone, at a lower clock; no wall meter saw them"
_CLOCK = "a lower CPU clock with libaio, which no engine sets: the likelier cause of its watts"
_RANK = "ranks libaio by joules that rest on its CPU watts by RAPL alone"
_BESIDE = "joules beside those of libaio, which rest on its CPU watts by RAPL alone"

DISPUTED: Mapping[str, str] = {
    "000-171": _RANK,
    "000-172": _RANK,
    "000-173": _BESIDE,
    "000-174": _BESIDE,
    "000-176": _BESIDE,
    "000-178": _BESIDE,
    "000-179": _WATTS,
    "000-180": _BESIDE,
    "000-181": _BESIDE,
    "000-182": _BESIDE,
    "000-183": _BESIDE,
    "000-185": _CLOCK,
}
"""Finding -> why it does not count."""
