"""What docs/measurements.md promises holds."""

import re
from pathlib import Path

from iojoule.datasets.importers.column_map import parse_column_map

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements.md"


def test_the_example_map_is_valid() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example
    parsed = parse_column_map(example.group(1), "example", str(PAGE))
    assert "operation" in parsed.columns
