from pathlib import Path

import pytest

from tests.measure.host_calibration.known_host import KnownHost


def test_a_dry_run_lists_the_loads_and_needs_no_file(iojoule, tmp_path: Path) -> None:
    host = KnownHost(tmp_path, controls=False)
    done = iojoule("measure", "host", "--rapl-root", host.rapl, "--dry-run")
    assert done.code == 0
    assert "# 1. idle" in done.out
    assert "wake-ups a second" in done.out


def test_without_counters_it_names_what_to_give(iojoule, tmp_path: Path) -> None:
    done = iojoule("measure", "host", "--rapl-root", tmp_path, "-o", tmp_path / "host.json")
    assert done.code == 24
    assert "no RAPL counters" in done.err
    assert not (tmp_path / "host.json").exists()


@pytest.mark.parametrize("command", ["predict", "recommend"])
def test_a_host_that_is_none_is_refused(iojoule, tmp_path: Path, command: str) -> None:
    (tmp_path / "host.json").write_text('{"schema_version": 1}')
    question = ["--workload", "examples/oltp.toml"] if command == "recommend" else []
    done = iojoule(
        command, "--device", "samsung-980-pro-1tb", "--host", tmp_path / "host.json", *question
    )
    assert done.code == 3
    assert "host.json" in done.err
