"""Commands that a service answers: the same as here, and what it cannot be asked."""

import csv
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iojoule.api.client import Client
from iojoule.api.http.datasets import UPLOAD
from iojoule.datasets.profile import load_shipped_profile
from iojoule.sim.result import RunCost
from tests.service import ServiceProcess

DEVICE = "samsung-980-pro-1tb"
SCENARIO = """schema_version = 1
[[scenarios]]
[[scenarios.flows]]
queue_depth = 4
total_requests = 300
[[scenarios]]
[[scenarios.flows]]
queue_depth = 1
total_requests = 200
"""
WORN = """schema_version = 1
[[scenarios]]
[[scenarios.flows]]
read_percent = 0
queue_depth = 8
working_set_percent = 90
total_requests = 20000
"""
SMALL = " ".join(
    f"--vary {field}"
    for field in (
        "channels=1", "chips_per_channel=1", "dies_per_chip=1", "planes_per_die=1",
        "blocks_per_plane=32", "pages_per_block=48", "cache_bytes=262144",
        "overprovisioning_ratio=0.4", "physical.slc.static_blocks_per_plane=0",
        "physical.slc.dynamic_blocks_per_plane=0",
    )
)  # fmt: skip
"""A drive that wears out within a second, if its blocks bear few erases."""
CORNER = SMALL.replace("plane=32", "plane=32,64").replace(
    "static_blocks_per_plane=0", "static_blocks_per_plane=40,0"
)
"""Forty blocks of a plane that has 32 are no drive."""
FLEET = """name = "rack"
[[domain]]
name = "rack"
limit_watts = 400
base_watts = 100
[[drives]]
name = "shared"
device = "samsung-980-pro-1tb"
count = 20
domain = "rack"
classes = ["kv"]
[[class]]
name = "kv"
demand_bytes_per_second = 5e9
redirectable = true
[class.workload.workload]
operation = "read"
useful_request_bytes = 4096
"""
TABLE = UPLOAD["requestBody"]["content"]["text/csv"]["examples"]["worked"]["value"]
COSTS = set(RunCost.model_fields)
"""Of a run, and so different each time."""

HEAVY = {"numpy", "scipy", "pyarrow", "sklearn", "iojoule.sim._core", "iojoule.recommender._kernel"}


@pytest.fixture
def files(tmp_path: Path, root: Path) -> dict[str, str]:
    """What commands are given, by a name."""
    examples = root / "examples"
    made = {"reads": examples / "kv-reads.toml"}
    written = {
        "job.fio": (examples / "oltp.fio").read_text().replace("fsync=1\n", ""),
        "runs.csv": "queue_depth,jobs,engine,pattern\n4,1,libaio,\n8,,,sequential\n16,2,,\n",
        "scenario.toml": SCENARIO,
        "worn.toml": WORN,
        "fleet.toml": FLEET,
        "conditions.toml": "pcie_lanes = 4\n",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text)
        made[name.partition(".")[0]] = tmp_path / name
    return {name: str(path) for name, path in made.items()}


def without_costs(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_costs(one) for name, one in told.items() if name not in COSTS}
    return [without_costs(one) for one in told] if isinstance(told, list) else told


SHARED = [
    "devices list",
    "devices show 'Samsung 980 PRO'",
    f"recommend --device {DEVICE} --workload {{reads}} --price 0.3EUR/kWh --temperature 45",
    f"recommend --device {DEVICE} --workload {{job}} --sla 'p99<3ms' --horizon '15 min'",
    "recommend --device wd-zn540 --workload ycsb-c",
    f"predict --device {DEVICE} --configurations {{runs}} --conditions {{conditions}}",
    f"predict --device {DEVICE}",
    f"predict --device {DEVICE} --set jobs=2 --set demand_operations_per_second=130000",
    f"what-if --device {DEVICE} --workload {{reads}} --change growth=1.5 --drives 2",
    f"what-if --device {DEVICE} --workload {{reads}} --change geometry.channels=4",
    "fleet plan {fleet} --budget 390",
    "fleet frontier {fleet} --points 3",
    f"simulate --ssd {DEVICE} --workload {{scenario}} --vary flows.queue_depth=1,2",
    f"simulate --ssd {DEVICE} --workload {{worn}} {SMALL} --vary pe_cycles_limit=1,1000,2",
    f"simulate --ssd {DEVICE} --workload {{scenario}} {CORNER} --vary flows.seed=1,2",
]


@pytest.mark.parametrize("command", SHARED)
def test_a_service_says_the_same_as_the_command(
    iojoule: Any,
    served: ServiceProcess,
    files: dict[str, str],
    command: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # the command that follows stands on one line
    arguments = shlex.split(command.format(**files))
    forms = ("json", "table") if arguments[0] == "simulate" else ("json", "csv", "table")
    forms = ("json",) if "geometry" in command else forms  # is simulated each time
    for form in forms:
        here = iojoule(*arguments, "-o", form)
        there = iojoule(*arguments, "-o", form, "--server", served.url)
        assert there.code == here.code == 0, there.err
        if form == "json":
            assert without_costs(json.loads(there.out)) == without_costs(json.loads(here.out))
        elif arguments[0] == "simulate":  # with what each run cost
            assert there.out.splitlines()[0] == here.out.splitlines()[0]
        elif form == "csv":
            assert there.out == here.out
        else:
            ours = here.out.splitlines()
            theirs = there.out.replace(f" --server {served.url}", "").splitlines()
            assert [
                a for a, b in zip(ours, theirs, strict=True) if a != b and "host" not in a
            ] == []


@pytest.mark.parametrize(
    "command",
    [
        f"recommend --device {DEVICE} --workload {{reads}}",
        f"predict --device {DEVICE} --configurations {{runs}}",
        f"what-if --device {DEVICE} --workload {{reads}} -c growth=1.5 -o json",
    ],
)
def test_who_has_a_service_answer_loads_nothing_that_computes(
    served: ServiceProcess, files: dict[str, str], command: str
) -> None:
    words = [*shlex.split(command.format(**files)), "--server", served.url]
    script = f"""
import sys
from iojoule.api.cli.app import run
code = run({words!r})
sys.exit(code or len({HEAVY!r} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_environment_may_name_the_service(
    iojoule: Any, served: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOJOULE_SERVER", "http://127.0.0.1:9")
    monkeypatch.setattr("iojoule.api.client.connection.sleep", lambda seconds: None)
    gone = iojoule("devices", "list")
    assert gone.code == 53
    assert "http://127.0.0.1:9 does not answer" in gone.err
    assert iojoule("devices", "list", "--server", "").code == 0
    assert iojoule("devices", "list", "--server", served.url).code == 0


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (f"recommend --workload {{reads}} --device {DEVICE} --profile x.json", "--profile"),
        (f"recommend --workload {{reads}} --device {DEVICE} --host x.json", "--host"),
        ("recommend --workload {reads}", "--device"),
        (f"predict --device {DEVICE} --gaps", "--gaps"),
        ("predict --profile x.json", "--profile"),
        (f"what-if --device {DEVICE} --workload {{reads}} -c growth=2 --host x.json", "--host"),
        ("fleet plan {fleet} --profile x.json", "--profile"),
        ("fleet frontier {fleet} --jobs 2", "--jobs"),
        ("fleet frontier {fleet} --dask tcp://x:1", "--dask"),
        (f"simulate --ssd {DEVICE} --workload {{scenario}} --max-memory 100", "--max-memory"),
        (f"simulate --ssd {DEVICE} --workload {{scenario}} --engine mqsim", "--engine"),
        (f"simulate --ssd {DEVICE} --workload {{scenario}} -o xml", "-o xml"),
        ("simulate --ssd drive.toml --workload {scenario}", "--ssd drive.toml"),
        (f"calibrate {{runs}} --device {DEVICE} --ssd x.toml -o x.json", "--ssd x.toml"),
        (f"calibrate {{runs}} --ssd {DEVICE} -o x.json", "--device"),
        (f"calibrate {{runs}} --device {DEVICE} --ssd {DEVICE} -o x.json --state d", "--state"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_name(
    iojoule: Any, files: dict[str, str], command: str, option: str
) -> None:
    done = iojoule(*command.format(**files).split(), "--server", "http://127.0.0.1:9")
    assert done.code == 2
    assert option in done.err
    assert not done.out


def test_more_runs_than_a_service_takes_are_refused_before_it_is_asked(
    iojoule: Any, files: dict[str, str]
) -> None:
    depths = ",".join(map(str, range(1, 66)))
    command = f"simulate --ssd {DEVICE} --workload {{scenario}} --vary flows.queue_depth={depths}"
    done = iojoule(*command.format(**files).split(), "--server", "http://127.0.0.1:9")
    assert done.code == 3
    assert "65 combinations" in done.err


def test_problems_of_a_service_leave_with_the_code_of_the_command(
    iojoule: Any, served: ServiceProcess, files: dict[str, str], tmp_path: Path
) -> None:
    unknown = iojoule("devices", "show", "nonsense", "--server", served.url)
    assert unknown.code == iojoule("devices", "show", "nonsense").code == 4
    assert "note: the service's logs name this request" in unknown.err
    asked = ("recommend", "--device", DEVICE, "--workload", files["reads"], "--sla", "p99<1us")
    here, there = iojoule(*asked), iojoule(*asked, "--server", served.url)
    assert there.code == here.code == 7
    assert there.err == here.err
    wrong = tmp_path / "wrong.csv"
    for cell in ("0", "-1", "x"):
        wrong.write_text(f"queue_depth\n4\n{cell}\n")
        done = iojoule("predict", "--device", DEVICE, "--configurations", wrong,
                       "--server", served.url)  # fmt: skip
        assert done.code == 3
        assert "wrong.csv, line 3: queue_depth: " in done.err
    wrong.write_text("read_fraction\n\n0.5\n")
    done = iojoule("predict", "--device", DEVICE, "--configurations", wrong, "--server", served.url)
    here = iojoule("predict", "--device", DEVICE, "--configurations", wrong)
    assert (done.code, here.code) == (3, 3)
    assert "wrong.csv, line 3" in done.err


def test_many_questions_are_asked_in_parts(
    iojoule: Any, served: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iojoule.api.http.computed_schemas.ROWS_MAX", 3)
    (tmp_path / "q.csv").write_text("queue_depth\n" + "".join(f"{one}\n" for one in range(1, 9)))
    asked = ("predict", "--device", DEVICE, "--configurations", tmp_path / "q.csv", "-o", "json")
    there = json.loads(iojoule(*asked, "--server", served.url).out)
    assert there == json.loads(iojoule(*asked).out)
    (tmp_path / "q.csv").write_text("queue_depth,read_fraction\n" + "1,\n" * 4 + "1,0.5\n")
    assert "q.csv, line 6" in iojoule(*asked, "--server", served.url).err


def test_jobs_are_listed_shown_followed_and_called_off(
    iojoule: Any, served: ServiceProcess
) -> None:
    with Client(served.url) as client:
        flow = {"queue_depth": 4, "total_requests": 2000}
        job = client.simulate({"drive": DEVICE, "scenario": {"flows": [flow]}}).id
        flow = {"queue_depth": 4, "total_requests": 1_000_000_000}
        endless = client.simulate({"drive": DEVICE, "scenario": {"flows": [flow]}}).id
    at = ("--server", served.url)
    assert job in iojoule("jobs", "list", *at).out
    assert json.loads(iojoule("jobs", "follow", job, *at, "-o", "json").out)["state"] == "done"
    assert "100%" in iojoule("jobs", "show", job, *at).out
    assert json.loads(iojoule("jobs", "result", job, *at).out)["scenarios"]
    assert iojoule("jobs", "cancel", endless, *at).code == 0
    done = iojoule("jobs", "follow", endless, *at)
    assert done.code == 41
    assert "called off" in done.err
    rows = list(csv.DictReader(io.StringIO(
        iojoule("jobs", "list", *at, "--state", "cancelled", "--most", "1", "-o", "csv").out
    )))  # fmt: skip
    assert [row["id"] for row in rows] == [endless]
    assert iojoule("jobs", "show", "0" * 28, *at).code == 40
    nobody = iojoule("jobs", "list")
    assert nobody.code == 2
    assert "IOJOULE_SERVER" in nobody.err


def test_who_waits_sees_a_bar_and_may_go(
    iojoule: Any, served: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = {"queue_depth": 4, "total_requests": 1_000_000_000}
    with Client(served.url) as client:
        job = client.simulate({"drive": DEVICE, "scenario": {"flows": [flow]}}).id

        def interrupted(self: Client, job: Any, *, watch: Any) -> None:
            watch(next(self.follow(job)))
            raise KeyboardInterrupt

        monkeypatch.setattr(Client, "wait", interrupted)
        monkeypatch.setenv("FORCE_COLOR", "1")
        done = iojoule("jobs", "follow", job, "--server", served.url)
        assert done.code == 130
        assert "simulation: " in done.err
        assert f"{served.url} goes on: `iojoule jobs follow|cancel {job}`" in done.err
        client.cancel(job)


def test_datasets_are_uploaded_listed_shown_and_fetched(
    iojoule: Any, served: ServiceProcess, tmp_path: Path
) -> None:
    at = ("--server", served.url)
    (tmp_path / "runs.csv").write_text(TABLE)
    done = iojoule(
        "datasets", "upload", tmp_path / "runs.csv", "--device", DEVICE, *at, "-o", "json"
    )
    (kept,) = json.loads(done.out)
    assert (kept["device"], kept["rows"]) == (DEVICE, 2)
    assert kept["id"] in iojoule("datasets", "list", *at).out
    assert "device_power_watts" in iojoule("datasets", "show", kept["id"], *at).out
    told = json.loads(iojoule("datasets", "show", kept["id"], *at, "-o", "json").out)
    assert told["sidecar"]["provenance"]
    assert iojoule("datasets", "fetch", kept["id"], "-o", tmp_path / "runs.parquet", *at).code == 0
    again = iojoule("datasets", "upload", tmp_path / "runs.parquet", *at, "-o", "csv").out
    assert next(csv.DictReader(io.StringIO(again)))["rows"] == "2"


def test_versions_of_a_profile_are_listed_fetched_and_chosen(
    iojoule: Any, served: ServiceProcess, tmp_path: Path
) -> None:
    at = ("--device", DEVICE, "--server", served.url)
    assert "iojoule" in iojoule("profile", "versions", *at).out
    assert json.loads(iojoule("profile", "versions", *at, "-o", "json").out)[-1]["current"]
    assert iojoule("profile", "fetch", "0", "-o", tmp_path / "mine.json", *at).code == 0
    told = json.loads((tmp_path / "mine.json").read_text())
    assert told == load_shipped_profile(DEVICE).model_dump(mode="json")
    assert iojoule("profile", "use", "0", *at).code == 0
    assert iojoule("profile", "use", "99", *at).code == 40


def test_reports_say_what_the_service_answered(
    iojoule: Any, served: ServiceProcess, files: dict[str, str], tmp_path: Path
) -> None:
    asked = ("--device", DEVICE, "--workload", files["reads"], "--server", served.url)
    for number, command in enumerate((("recommend",), ("what-if", "-c", "growth=1.5"))):
        path = tmp_path / f"{number}.html"
        assert iojoule(*command, *asked, "--report", path).code == 0
        assert "icpe24" in path.read_text()
    rack = ("fleet", "frontier", files["fleet"], "--points", "2", "--gap", "0.1")
    path = tmp_path / "fleet.html"
    assert iojoule(*rack, "--server", served.url, "--report", path).code == 0
    assert "icpe24" in path.read_text()
