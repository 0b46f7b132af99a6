"""How many bits a flash cell holds: from a fact, or from what is published of a product line."""

from __future__ import annotations

LINES = {
    "QLC": ("660p", "670p", " p3 ", "qvo", "p5316"),
    "MLC": ("850 pro", "860 pro", "950 pro", "970 pro", "sm961", "p3500", "p3700", "5410s", "9100"),
}
"""Product lines by the cells that articles and data sheets say they have, where the catalogue has
no fact of it: 660p (evantechbook.com), 670p (Tom's Hardware), P3 (pgrid.app), 870 QVO
(pugetsystems.com), P5316, P3500, E 5410s (Intel), 970 PRO (ssdwiki.com), SM961 (legitreviews.com),
9100 (anandtech.com); Samsung's older PRO lines as it sold them ("2-bit MLC"), P3700 as P3500."""


def cell_named(stated: str | None, model: str) -> str:
    """TLC, QLC, MLC, SLC or unknown.

    Args:
        stated: Kind of memory cell as a fact states it; None where none does.
        model: Name of the model.
    """
    for word in ("QLC", "TLC", "MLC", "SLC"):
        if word in (stated or "").upper():
            return word
    name = f" {model.casefold()} "
    return next(
        (word for word, lines in LINES.items() if any(one in name for one in lines)), "unknown"
    )
