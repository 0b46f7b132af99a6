"""The example of a column map is one."""

from pathlib import Path

from iojoule.datasets.importers.column_map import parse_column_map

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "column-map.toml"


def test_the_example_map_is_valid() -> None:
    parsed = parse_column_map(EXAMPLE.read_text("utf-8"), "example", str(EXAMPLE))
    assert "operation" in parsed.columns
