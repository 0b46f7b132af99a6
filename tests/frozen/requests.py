"""Draws the 500 frozen requests: command lines with the files they read, from a seed.

Run `python -m tests.frozen.requests` to draw them again and to write what they answer today into
`answers.jsonl`; a change of the answers is then a change that a reviewer sees.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from iojoule.api.cli.app import run

ANSWERS = Path(__file__).with_name("answers.jsonl")
SEED = 20261123
FITTED = ("samsung-980-pro-1tb", "wd-zn540", "samsung-860-pro")
CATALOGUE = (
    "kioxia-cd6", "intel-optane-900p", "crucial-p3-1tb", "micron-7400-m2", "intel-dc-p4500-4tb",
    "hitachi-travelstar-5k320", "kingston-dc500m", "kingston-a2000-1tb",
)  # fmt: skip
KINDS = {
    "recommend": 200,
    "predict": 150,
    "what-if": 40,
    "timeline": 30,
    "fleet": 20,
    "fit": 10,
    "simulate": 50,
}
DETAILED = 60
"""Numbers of an answer that are kept one by one; the rest are kept as one sum."""


@dataclass(frozen=True)
class FrozenRequest:
    """Command lines that run one after another in a folder with these files."""

    name: str
    commands: list[list[str]]
    files: dict[str, str] = field(default_factory=dict)
    result: str = ""
    """File with the answer; empty: the last command's standard output."""


def frozen_requests() -> list[FrozenRequest]:
    """All requests, the same on every machine."""
    drawn = []
    for kind, count in KINDS.items():
        random = Random(f"{SEED} {kind}")
        draw = globals()["_" + kind.replace("-", "_")]
        drawn += [draw(random, f"{kind}-{number:03}") for number in range(count)]
    return drawn


def answer(request: FrozenRequest) -> dict[str, Any]:
    """Exit code, the places of all numbers, the first numbers and a sum over the rest."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, text in request.files.items():
                Path(name).write_text(text)
            for command in request.commands:
                output = io.StringIO()
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
                    code = run(command)
                if code not in {0, 7}:
                    break
            path = Path(request.result)
            text = path.read_text() if request.result and path.is_file() else output.getvalue()
        finally:
            os.chdir(before)
    try:
        leaves = list(_numbers(json.loads(text), ""))
    except ValueError:
        leaves = []
    rest = leaves[DETAILED:]
    return {
        "name": request.name,
        "code": code,
        "places": hashlib.sha256(" ".join(place for place, _ in leaves).encode()).hexdigest()[:12],
        "numbers": [value for _, value in leaves[:DETAILED]],
        "count": len(leaves),
        "sum": math.fsum(
            (1 + index % 7) * _scaled(place, value) for index, (place, value) in enumerate(rest)
        ),
    }


def _scaled(place: str, value: float) -> float:
    """A number by its magnitude; a correlation, whose scale is 1, as it is.

    A correlation near 0 has no digits of its own: it is what rounding leaves of larger numbers.
    """
    return value if ".correlation[" in place else math.asinh(value * 1e9)


SKIPPED = ("run_user_seconds", "run_wall_seconds", "memory_bytes", "peak_bytes", "summary")
"""What the run itself took, which is no answer, and what repeats other fields."""


def _numbers(node: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name not in SKIPPED:
                yield from _numbers(value, f"{place}.{name}" if place else name)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _numbers(value, f"{place}[{index}]")
    elif isinstance(node, bool) or (isinstance(node, int | float) and math.isfinite(node)):
        yield place, float(node)


def _toml(table: dict[str, Any]) -> str:
    """A TOML file of plain values, tables and lists of tables."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in table.items() if _plain(value)]
    for name, value in table.items():
        if isinstance(value, dict):
            lines += [f"\n[{name}]", *(f"{key} = {json.dumps(one)}" for key, one in value.items())]
    return "\n".join(lines) + "\n"


def _plain(value: object) -> bool:
    return not isinstance(value, dict)


def _device(random: Random, fitted: float) -> str:
    if random.random() < fitted:
        return random.choices(FITTED, (6, 3, 1))[0]
    return random.choice(CATALOGUE)


def _workload(random: Random, name: str) -> dict[str, Any]:
    operation = random.choice(("read", "read", "write", "mixed"))
    useful = random.choice((512, 4096, 4096, 8192, 16384, 65536, 131072, 1048576))
    workload: dict[str, Any] = {
        "operation": operation,
        "pattern": random.choice(("random", "random", "sequential")),
        "useful_request_bytes": useful,
    }
    if operation == "mixed":
        workload["read_fraction"] = random.choice((0.3, 0.5, 0.7, 0.95))
    if random.random() < 0.4:
        workload["request_bytes_coalescible"] = useful * random.choice((2, 4, 16))
    if random.random() < 0.85:
        rate = 10 ** random.uniform(6.0, 9.2)
        if random.random() < 0.7:
            workload["demand_bytes_per_second"] = float(f"{rate:.3g}")
        else:
            workload["demand_operations_per_second"] = float(f"{rate / useful:.3g}")
        if random.random() < 0.6:
            workload["arrival_process"] = random.choice(("poisson", "regular"))
    table: dict[str, Any] = {
        "name": name,
        "scope": random.choice(("device", "device_cpu", "system")),
        "objective": random.choice(("watts", "watts", "joules_per_useful_gb", "edp")),
        "workload": workload,
        "current": {
            "engine": random.choice(("io_uring", "libaio", "psync", "posixaio")),
            "request_bytes": useful,
            "queue_depth": 1,
            "jobs": random.choice((1, 4, 8)),
            "power_state": 0,
        },
        "sla": {"confidence": random.choice((0.8, 0.9, 0.95))},
    }
    if table["current"]["engine"] != "psync":
        table["current"]["queue_depth"] = random.choice((1, 4, 32, 128))
    bound = random.choice(
        ("latency_p99_ns_max", "latency_mean_ns_max", "device_power_watts_max", "")
    )
    if bound.startswith("latency"):
        table["sla"][bound] = float(f"{10 ** random.uniform(5.0, 8.0):.3g}")
    elif bound:
        table["sla"][bound] = random.choice((6.0, 8.0))
    if random.random() < 0.3:
        sizes = [useful, workload.get("request_bytes_coalescible", useful)]
        table["free"] = {
            "request_bytes": sorted(set(sizes)),
            "jobs": [1, 2, 4],
            "queue_depth": [1, 8],
        }
    return table


def _recommend(random: Random, name: str) -> FrozenRequest:
    arguments = ["recommend", "--device", _device(random, 0.75), "--workload", "workload.toml"]
    if random.random() < 0.15:
        arguments += ["--price", "0.30EUR/kWh", "--pue", "1.4"]
    if random.random() < 0.1:
        arguments += ["--temperature", str(random.choice((25, 55, 68)))]
    if random.random() < 0.1:
        arguments += ["--for", random.choice(("same-host", "another-host", "another-drive"))]
    return FrozenRequest(
        name, [[*arguments, "-o", "json"]], {"workload.toml": _toml(_workload(random, name))}
    )


def _predict(random: Random, name: str) -> FrozenRequest:
    header = "operation,pattern,request_bytes,queue_depth,jobs,engine,power_state"
    device = _device(random, 0.7)
    states = (0, 0, 1, 2) if device == FITTED[0] else (0,)
    rows = []
    for _ in range(3):
        engine = random.choice(("io_uring", "libaio", "psync", "posixaio"))
        depth = 1 if engine == "psync" else random.choice((1, 2, 8, 32, 128, 256))
        rows.append(
            f"{random.choice(('read', 'write'))},{random.choice(('random', 'sequential'))},"
            f"{random.choice((1024, 4096, 12288, 65536, 262144, 1048576))},{depth},"
            f"{random.choice((1, 2, 4, 16))},{engine},{random.choice(states)}"
        )
    arguments = ["predict", "--device", device, "--configurations", "rows.csv"]
    if random.random() < 0.2:
        arguments.append("--gaps")
    text = "\n".join((header, *rows)) + "\n"
    return FrozenRequest(name, [[*arguments, "-o", "json"]], {"rows.csv": text})


def _what_if(random: Random, name: str) -> FrozenRequest:
    change = random.choice(
        (
            "growth=1.5", "growth=0.4", "size=16384", "drives=2", "mix=0.5", "sla=p99 < 1 ms",
            "cap=device power <= 6 W for 1 h", "drive=wd-zn540", "price=0.30EUR/kWh",
            "workload.pattern=sequential", "geometry.channels=4", "demand=100e6",
        )
    )  # fmt: skip
    arguments = ["what-if", "ask", "--device", FITTED[0], "--workload", "workload.toml"]
    return FrozenRequest(
        name,
        [[*arguments, "-c", change, "-o", "json"]],
        {"workload.toml": _toml(_workload(random, name))},
    )


def _timeline(random: Random, name: str) -> FrozenRequest:
    phases = []
    for _ in range(random.randint(1, 4)):
        seconds = random.choice((5, 30, 120, 600))
        rate = random.choice(("", "", "@200e6", "@1e9"))
        phases.append(random.choice((f"write={seconds}{rate}", f"idle={seconds}")))
    device = FITTED[0] if random.random() < 0.8 else random.choice(("kioxia-cd6", "crucial-p3-1tb"))
    arguments = ["timeline", *phases, "--device", device]
    for setting in (
        f"request_bytes={random.choice((4096, 65536, 1048576))}",
        f"queue_depth={random.choice((1, 8, 32))}",
        f"pattern={random.choice(('random', 'sequential'))}",
    ):
        arguments += ["--set", setting]
    return FrozenRequest(name, [[*arguments, "--step", "10", "-o", "json"]])


def _fleet(random: Random, name: str) -> FrozenRequest:
    lines = [f'name = "{name}"', "percentile = 0.99", "confidence = 0.9", "period_seconds = 3600"]
    lines += ["[[domain]]", 'name = "hall"', f"limit_watts = {random.choice((900, 2000, 4000))}"]
    lines += [f"base_watts = {random.choice((50, 200))}"]
    for number in range(random.randint(1, 3)):
        lines += ["[[drives]]", f'name = "d{number}"', f'device = "{_device(random, 0.8)}"']
        lines += [
            f"count = {random.choice((8, 24, 60))}",
            'domain = "hall"',
            'classes = ["a", "b"]',
        ]
    for label in ("a", "b"):
        rate = float(f"{10 ** random.uniform(8.0, 9.6):.3g}")
        lines += ["[[class]]", f'name = "{label}"', f"demand_bytes_per_second = {rate!r}"]
        lines += ["redirectable = true"] + (["importance = 1.0"] if label == "b" else [])
        lines += ["[class.workload.workload]", f'operation = "{random.choice(("read", "write"))}"']
        lines += [f"useful_request_bytes = {random.choice((4096, 16384, 131072))}"]
    lines += ["[[budget]]", "seconds = 0", f"watts = {random.choice((400, 800, 1500))}"]
    command = ["fleet", "plan", "fleet.toml", "-o", "json"]
    return FrozenRequest(name, [command], {"fleet.toml": "\n".join(lines) + "\n"})


COLUMNS = """schema_version = 1
[source]
citation = "drawn"
licence = "CC0-1.0"
[constants]
device_model = "{device}"
host_id = "bench"
engine = "io_uring"
pattern = "random"
[columns]
operation = "operation"
request_bytes = {{ column = "bytes", unit = "B" }}
queue_depth = "depth"
jobs = "jobs"
iops = {{ column = "iops", unit = "IOPS" }}
latency_mean_ns = {{ column = "mean", unit = "ns" }}
latency_p99_ns = {{ column = "p99", unit = "ns" }}
device_power_watts = {{ column = "watts", unit = "W" }}
"""


def _fit(random: Random, name: str) -> FrozenRequest:
    """A drive that saturates: depth over the sum of a fixed latency and of its capacity's time."""
    lines = ["operation,bytes,depth,jobs,iops,mean,p99,watts"]
    fixed_ns, capacity = random.uniform(6e4, 2e5), random.uniform(1.5e9, 5e9)
    idle, joules = random.uniform(1.5, 4.0), random.uniform(1e-9, 4e-9)
    operations = ("read",) if random.random() < 0.5 else ("read", "write")
    for operation, size, depth, jobs in itertools.product(
        operations, (4096, 16384, 65536), (1, 4, 16, 64), (1, 4)
    ):
        outstanding = depth * jobs
        latency = (fixed_ns**4 + (outstanding * size / capacity * 1e9) ** 4) ** 0.25
        iops = outstanding / latency * 1e9 * random.gauss(1, 0.02)
        mean = outstanding / iops * 1e9
        watts = idle + joules * iops * size * random.gauss(1, 0.02)
        figures = f"{iops:.1f},{mean:.0f},{mean * 1.5:.0f},{watts:.4f}"
        lines.append(f"{operation},{size},{depth},{jobs},{figures}")
    device = random.choice(("kioxia-cd6", "crucial-p3-1tb", "micron-7400-m2"))
    return FrozenRequest(
        name,
        [
            ["import", "csv", "runs.csv", "--columns", "map.toml", "-o", "runs"],
            ["fit", "runs", "-o", "profile.json"],
        ],
        {"runs.csv": "\n".join(lines) + "\n", "map.toml": COLUMNS.format(device=device)},
        result="profile.json",
    )


def _simulate(random: Random, name: str) -> FrozenRequest:
    flow = {
        "kind": "synthetic",
        "read_percent": random.choice((0, 30, 70, 100)),
        "address_distribution": random.choice(("random_uniform", "streaming", "random_hotcold")),
        "size_mean_sectors": random.choice((8, 16, 64)),
        "alignment_sectors": 8,
        "queue_depth": random.choice((1, 4, 16, 64)),
        "working_set_percent": random.choice((1, 10, 50)),
        "seed": random.randint(1, 10_000),
        "stop_ns": random.choice((5_000_000, 20_000_000)),
    }
    if flow["address_distribution"] == "random_hotcold":
        flow["hot_region_percent"] = random.choice((10, 30))
    lines = ["schema_version = 1", "[[scenarios]]"]
    for number in range(random.choice((1, 1, 2))):
        flow["seed"] += number
        lines += [
            "[[scenarios.flows]]",
            *(f"{key} = {json.dumps(one)}" for key, one in flow.items()),
        ]
    preset = random.choice(
        ("samsung-980-pro-1tb", "intel-optane-dc-p4800x-375gb", "samsung-pm9a3-960gb")
    )
    arguments = ["simulate", "--ssd", preset, "--workload", "load.toml"]
    mode = "physical" if "980" not in preset else random.choice(("physical", "compat"))
    return FrozenRequest(
        name, [[*arguments, "--mode", mode]], {"load.toml": "\n".join(lines) + "\n"}
    )


def main() -> None:
    """Write the answers of today."""
    with ANSWERS.open("w") as out:
        for request in frozen_requests():
            out.write(json.dumps(answer(request), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
