"""Figures in what programs print."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from iojoule.datasets.errors import InputError
from iojoule.measure.command import request as metrics
from iojoule.measure.command.request import parse_metric, read_number, read_output


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-0.5", -0.5),
        (".5", 0.5),
        ("7.", 7),
        ("1e6", 1e6),
        ("1.5E-3", 1.5e-3),
        ("1,234,567.89", 1234567.89),
        ("1 234 567", 1234567),
        ("1'234", 1234),
        ("12_345", 12345),
        ("1234567", 1234567),
        ("3.2M", 3.2e6),
        ("12k", 12e3),
        ("1 Ki", 1024),
        ("2MiB", 2 * 2**20),
        ("512 MB/s", 512e6),
        ("12.5 kops/s", 12.5e3),
        ("88 ops/sec", 88),
        ("9 B", 9),
        ("3 ms", 3e-3),
        ("250us", 250e-6),
        ("2 min", 120),
        ("1.5 s", 1.5),
        ("40K IOPS", 40e3),
        ("5 tps", 5),
        ("1,000 rows/s", 1000),
    ],
)
def test_numbers_as_programs_print_them(text: str, value: float) -> None:
    assert math.isclose(read_number(text, "x"), value, rel_tol=1e-12)


@pytest.mark.parametrize("text", ["", "abc", "1,23", "12,5", "1.234.567", "5 apples", "1 2", "e6"])
def test_what_is_no_number_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(InputError, match="--metric tps"):
        read_number(text, "--metric tps")


def test_the_last_match_of_the_first_output_that_has_one_counts() -> None:
    metric = parse_metric(r"tps=^tps = ([\d.,]+)")
    assert metric.find(["tps = 1\nx\ntps = 2.5\n", "tps = 9"]) == 2.5
    assert metric.find(["nothing", "so tps = 3\ntps = 4"]) == 4
    assert metric.find(["", ""]) is None


def test_an_alternative_without_the_group_is_not_found() -> None:
    assert parse_metric("n=done|n: ([0-9]+)").find(["n: 5\ndone\n"]) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tps", "not NAME=REGEX"),
        ("=([0-9])", "not NAME=REGEX"),
        ("a b=(.)", "not NAME=REGEX"),
        ("tps=tps", "has no group"),
        ("tps=([0-9", "no regular expression"),
    ],
)
def test_a_metric_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_metric(text)


def test_of_a_long_output_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stdout.txt"
    path.write_bytes(b"x" * 100 + b"\xfftps = 5\n")
    monkeypatch.setattr(metrics, "LAST_BYTES", 20)
    text = read_output(path)
    assert len(text) == 20
    assert parse_metric("tps=tps = (.+)").find([text]) == 5


def test_the_expressions_in_the_documents_find_what_the_programs_print() -> None:
    root = Path(__file__).resolve().parents[3]
    places = ("docs/measure-command.md", "examples/pgbench.sh", "examples/db_bench.sh")
    text = "".join((root / place).read_text(encoding="utf-8") for place in places)
    shown = re.findall(r"'(\w+=[^']*\([^']*)'", text)
    found = {text: parse_metric(text).find([PRINTED]) for text in shown}
    assert len(found) >= 6
    assert None not in found.values()


PRINTED = """\
number of transactions actually processed: 2313
latency average = 69.534 ms
readrandom   :     887.2 micros/op 1127 ops/sec 28.376 seconds 31984 operations;    0.1 MB/s
29.010: IO Summary: 604123 ops 20137.2 ops/s 9153/1831 rd/wr 487.3mb/s 0.3ms/op
[OVERALL], Throughput(ops/sec), 11890.6
  read: IOPS=12.3k, BW=48.1MiB/s (50.4MB/s)(1443MiB/30001msec)
"""
