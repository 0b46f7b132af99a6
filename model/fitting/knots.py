"""Where a surface's curve has its parameters: sizes of a command, as log2 of bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGEST_COMMAND_BYTES = 1 << 20
"""Where no limit of one command is known, a surface of few figures ends here."""


def knot_positions(log2_bytes: Floats, wanted: tuple[float, ...] = ()) -> Floats:
    """One knot for every octave near which there are rows, else the rows' own sizes; and wanted."""
    octaves = np.unique(np.round(log2_bytes))
    near = [np.abs(log2_bytes - octave).min() < 0.25 for octave in octaves]
    own = octaves[near] if any(near) else np.unique(log2_bytes)
    return np.union1d(own, wanted)


def with_ends(knots: Floats, access_unit_bytes: float, max_transfer_bytes: float) -> Floats:
    """Knots with the smallest and the largest command added.

    Where a surface rests on a few published figures, the physical shapes carry it from one end to
    the other: below the smallest size known, commands a second are not held at that size's.
    """
    least = np.log2(access_unit_bytes)
    most = np.log2(min(max_transfer_bytes, LARGEST_COMMAND_BYTES))
    ends = [end for end in (least, most) if np.abs(knots - end).min() >= 0.25]
    return np.sort(np.append(knots, ends))
