"""The capacity of drives' links, by the rules of their interfaces."""

from __future__ import annotations

from typing import Literal

Interface = Literal["nvme", "sata", "sas"]
Medium = Literal["solid_state", "disk"]

LANE_BYTES_PER_SECOND = {
    1: 2.5e9 * 8 / 10 / 8,
    2: 5e9 * 8 / 10 / 8,
    3: 8e9 * 128 / 130 / 8,
    4: 16e9 * 128 / 130 / 8,
    5: 32e9 * 128 / 130 / 8,
}
"""Bytes per second of a PCIe lane by generation: transfers a second times the line code (PCI
Express Base specification)."""

LINK_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
"""Lanes that a PCIe link can have (likewise)."""

LINK_LANES = 4
"""Lanes of NVMe drives that do not say."""

SATA_BYTES_PER_SECOND = 6e9 * 8 / 10 / 8
"""Serial ATA at 6 Gbit/s with its 8b/10b code."""

NCQ_DEPTH = 32
"""Commands that a SATA drive takes at a time (Serial ATA, Native Command Queuing: tags 0 to 31)."""

GENERAL_CELSIUS = (0.0, 85.0)
"""Assumption: temperatures at which drives of an unknown rating work. From the 0 degrees of the
commercial range to about where controllers declare their critical composite temperature (NVM
Express Base Specification 2.1, Identify Controller, CCTEMP)."""

INDUSTRIAL_CELSIUS = (-40.0, 85.0)
"""The industrial range, for drives of that class that state no other."""
