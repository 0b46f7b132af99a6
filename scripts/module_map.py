"""Draws the map of CONTRIBUTING.md from the imports: which package uses which, and how much.

python scripts/module_map.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import grimp

PAGE = Path(__file__).resolve().parents[1] / "CONTRIBUTING.md"
PLACE = re.compile(r"(<!-- map: [^>]*-->\n).*?(<!-- end of map -->)", re.DOTALL)
ORDER = ("datasets", "model", "sim", "recommender", "measure", "meter", "api")


def drawing() -> str:
    """The packages and their imports, as a Mermaid flow chart."""
    graph = grimp.build_graph("iojoule", cache_dir=None)
    used: set[tuple[str, str]] = set()
    for module in graph.modules - {"iojoule"}:
        target = module.split(".")[1]
        for imported in graph.find_modules_directly_imported_by(module) - {"iojoule"}:
            source = imported.split(".")[1]
            if source != target and {source, target} <= set(ORDER):
                used.add((source, target))
    arrows = sorted(used, key=lambda pair: (ORDER.index(pair[0]), ORDER.index(pair[1])))
    lines = ["```mermaid", "flowchart LR", *(f"    {a} --> {b}" for a, b in arrows), "```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the map, or with --check say whether it is up to date."""
    text = PAGE.read_text("utf-8")
    drawn = PLACE.sub(lambda match: match[1] + drawing() + match[2], text)
    if "--check" in sys.argv:
        return int(drawn != text)
    PAGE.write_text(drawn, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
