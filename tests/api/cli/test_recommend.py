import csv
import io
import json
import shlex
from pathlib import Path
from typing import get_args

import pytest

from iojoule.api.http.recommend import EXAMPLE
from iojoule.datasets.profile import load_shipped_profile, write_profile
from iojoule.measure.campaign.plan import load_plan
from iojoule.recommender.response import Verdict


@pytest.fixture
def reads(root: Path) -> Path:
    return root / "examples" / "kv-reads.toml"


@pytest.fixture
def ask(iojoule, device: str, reads: Path, monkeypatch: pytest.MonkeyPatch):
    """Recommend for the shipped example whose host polls today, with some fields replaced."""
    monkeypatch.setenv("COLUMNS", "160")  # nothing is left out
    question = ("--device", device, "--workload", reads, "--set", "current.completion=polled")

    def recommend(*arguments: str | Path):
        return iojoule("recommend", *question, *arguments)

    return recommend


@pytest.fixture
def unflushed(root: Path, tmp_path: Path) -> Path:
    """The shipped job file without flushes, whose cost nobody measured."""
    text = (root / "examples" / "oltp.fio").read_text()
    path = tmp_path / "unflushed.fio"
    path.write_text(text.replace("fsync=1\n", ""))
    return path


def ranked(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1].isdigit() and " W [" in line]


def test_the_table_ranks_and_says_what_is_saved(ask) -> None:
    done = ask("--explain", "--wide")
    assert done.code == 0, done.err
    ranks = [line.split()[0] for line in ranked(done.out)]
    assert ranks[:3] == ["1", "2", "3"]
    assert sum("recommended" in line for line in done.out.splitlines()) == 1
    for said in (
        "today",
        "drive + CPU",
        " W [",
        " J/GB [",
        " kWh [",
        " % [",
        "p99 latency at most 1.00 ms",
        "evidence",
        "Durability:  untouched",
        "reference host",
        "Before acting on it",
        "submission_polling = False",
    ):
        assert said in done.out
    assert any(f" {verdict}: " in done.out for verdict in get_args(Verdict))


COLUMNS = (80, 100, 160)
REQUESTS = {
    "change": (),
    "no change": ("--set", "current.completion=interrupt"),
    "ranking": ("--set", "current={}", "--set", "free.scheduler=all", "--set", "free.engine=all"),
    "infeasible": ("--sla", "mean latency < 20 us, device power < 2.7 W"),
    "one bound": ("--sla", "p99 < 0.1 ms, device power < 6 W"),
    "cost": ("--objective", "cost", "--price", "0.30EUR/kWh"),
}


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("changes", REQUESTS.values(), ids=REQUESTS)
def test_the_verdict_comes_first_and_all_fits_the_terminal(
    ask, monkeypatch: pytest.MonkeyPatch, columns: int, changes: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    done = ask(*changes)
    assert done.code in (0, 7), done.err
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= columns
    summary = json.loads(ask(*changes, "-o", "json").out)["summary"]
    head, below = lines[: lines.index("")], lines[lines.index("") :]
    assert " ".join(head).startswith(summary["sentence"])
    assert len(below) <= 15
    proposed = " ".join(head).partition("  iojoule ")[2].replace("\\", " ").split()
    assert proposed[-1] == shlex.split(summary["next"]["command"])[-1]


def test_the_configuration_is_stated_in_the_settings_of_an_application(ask, tmp_path: Path) -> None:
    asked = ("--settings", "postgresql=17", "--report", tmp_path / "page.html")
    settings = json.loads(ask(*asked, "-o", "json").out)["settings"]
    assert (settings["application"], settings["version"]) == ("postgresql", "17")
    assert {line["name"] for line in settings["settings"]} >= {"effective_io_concurrency"}
    assert "engine" in {one["knob"] for one in settings["not_available"]}
    assert settings["text"] in ask(*asked).out
    assert "effective_io_concurrency = " in (tmp_path / "page.html").read_text()
    assert json.loads(ask("-o", "json").out)["settings"] is None
    assert ask("--settings", "oracle").code == 3


def test_the_next_command_of_a_change_can_be_pasted(ask, reads: Path, device: str) -> None:
    out = ask("--rows", "2").out
    command = out.partition("\n  iojoule ")[2].partition("\n\n")[0].replace("\\\n", " ")
    words = shlex.split(command)
    assert words[: words.index("-o")] == [
        "recommend", "--device", device, "--workload", str(reads),
        "--set", "current.completion=polled",
    ]  # fmt: skip
    assert words[words.index("|") + 1 :][:2] == ["iojoule", "apply"]


def test_ranks_are_in_order_of_the_objective(ask) -> None:
    rows = ranked(ask().out)
    watts = [float(row.split(" W [")[0].split()[-1]) for row in rows]
    assert watts == sorted(watts)


def test_as_many_rows_as_asked_for_and_always_the_recommended_one(ask) -> None:
    for count in (1, 3):
        rows = ranked(ask("--rows", str(count)).out)
        assert len(rows) == count
        assert sum("recommended" in row for row in rows) == 1


def test_json_carries_every_version_and_the_evidence(ask, device: str) -> None:
    answer = json.loads(ask("-o", "json").out)
    assert answer["device"] == device
    for version in ("answer_version", "profile_version", "iojoule_version"):
        assert answer[version]
    assert answer["action"] == "change"
    assert answer["reason_code"] is None
    assert answer["recommended"]["device_power_watts"]["low"] > 0
    assert answer["evidence"]["cpu_power_watts"]
    assert "submission_polling" in answer["defaults_used"]
    assert len(answer["pareto"]) >= 3


def test_csv_holds_every_row_with_its_intervals(ask) -> None:
    rows = list(csv.DictReader(io.StringIO(ask("-o", "csv").out)))
    roles = [row["role"] for row in rows]
    assert roles[0] == "recommended"
    assert roles[-1] == "current"
    assert roles.count("pareto") >= 3
    for row in rows:
        low, value, high = (
            float(row[f"device_cpu_power_watts{end}"]) for end in ("_low", "", "_high")
        )
        assert low <= value <= high
        assert row["device_cpu_power_watts_evidence"]
        assert row["meets_sla"] in ("true", "false")


def test_scope_objective_and_confidence_can_be_chosen(ask) -> None:
    answer = json.loads(
        ask(
            "--scope", "device", "--objective", "joules_per_useful_gb", "--confidence", "0.6",
            "-o", "json",
        ).out
    )  # fmt: skip
    assert answer["scope"] == "device"
    assert answer["objective"] == "joules_per_useful_gb"
    assert answer["confidence"] == 0.6
    assert "energy of drive," in ask("--scope", "device").out


def test_single_fields_can_be_replaced(ask) -> None:
    answer = json.loads(
        ask(
            "--set", "current.queue_depth=8", "--set", "free.queue_depth=[8, 16]",
            "--set", "free.jobs=2", "--set", "name=night", "-o", "json",
        ).out
    )  # fmt: skip
    assert answer["workload"] == "night"
    assert answer["current"]["configuration"]["queue_depth"] == 8
    assert {"queue_depth", "jobs"} <= set(answer["free"])
    for row in answer["pareto"]:
        assert row["configuration"]["queue_depth"] in (8, 16)
        assert row["configuration"]["jobs"] == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("workload.read_fraction=1.2", "read_fraction"),
        ("workload.read_fraction=nan", "read_fraction"),
        ("current.queue_depth=0", "queue_depth"),
        ("workload.useful_request_bytes=-4096", "useful_request_bytes"),
        ("current.power_state=4", "power_state"),
        ("sla.latency_p50_ns_max=5e9", "latency_p99_ns_max"),
        ("sla.confidence=1.5", "confidence"),
        ("sla.latency_p99_max=5", "latency_p99_max"),
        ("free.queue_depth=[]", "queue_depth"),
        ("name.first=x", "name has no fields"),
        ("current.engine=spdk", "spdk"),
    ],
)
def test_what_cannot_be_is_refused_with_the_field(change: str, said: str, ask) -> None:
    changes = ["--set", change]
    if change.endswith("spdk"):
        changes += ["--set", "current.completion=interrupt"]
    done = ask(*changes)
    assert done.code == 3
    assert done.out == ""
    assert said in done.err
    assert "Traceback" not in done.err


def test_files_that_are_no_workload(iojoule, device: str, tmp_path: Path, reads: Path) -> None:
    def ask(path: Path):
        return iojoule("recommend", "--device", device, "--workload", path)

    cut = tmp_path / "cut.toml"
    cut.write_text(reads.read_text()[:400] + '"')
    strange = tmp_path / "strange.yaml"
    strange.write_text("a: 1")
    empty = tmp_path / "empty.json"
    empty.write_text("")
    for path in (cut, strange, empty, tmp_path / "absent.toml", tmp_path):
        done = ask(path)
        assert done.code == 3
        assert path.name in done.err


def test_without_a_feasible_configuration_the_nearest_misses_are_shown(ask) -> None:
    changes = [f"sla.latency_{name}_ns_max=20000" for name in ("mean", "p99")]
    bounds = [word for change in changes for word in ("--set", change)]
    done = ask(*bounds)
    assert done.code == 7
    assert "Nearest misses" in done.out
    assert "missed by" in done.out
    assert "infeasible" in done.err
    assert "today, misses SLA" in ask(*bounds, "--explain", "--wide").out
    listed = ask(*bounds, "-o", "csv")
    assert listed.code == 7
    assert "nearest_miss" in listed.out
    answer = json.loads(ask(*bounds, "-o", "json").out)
    assert (answer["action"], answer["reason_code"]) == ("none", "infeasible")


def test_a_flush_of_unknown_cost_is_not_shown_to_hold(iojoule, device: str, root: Path) -> None:
    asked = ("recommend", "--device", device, "--workload", root / "examples" / "oltp.toml")
    done = iojoule(*asked, "-o", "json")
    assert done.code == 7
    answer = json.loads(done.out)
    assert (answer["action"], answer["reason_code"]) == ("none", "not_shown_to_hold")
    shortfalls = [one for miss in answer["nearest_misses"] for one in miss["shortfalls"]]
    assert shortfalls
    assert all(one["unknown"] for one in shortfalls)
    assert "not shown to hold" in iojoule(*asked).out


def test_a_demand_near_the_capacity_has_latencies_without_a_bound(ask) -> None:
    crowded = ("--set", "workload.demand_operations_per_second=560000")
    row = json.loads(ask(*crowded, "-o", "json").out)["current"]
    assert row["latency_p99_ns"]["high"] == "unbounded"
    assert "unbounded" in ask(*crowded, "--explain").out


def test_without_power_it_ranks_by_performance_and_says_so(
    iojoule, root: Path, tmp_path: Path
) -> None:
    lacking = dict.fromkeys(("device_power", "host_power", "system_power"))
    profile = tmp_path / "p.json"
    write_profile(load_shipped_profile("samsung-860-pro").model_copy(update=lacking), profile)
    done = iojoule(
        "recommend", "--profile", profile, "--workload", root / "examples/kv-reads.toml",
        "--set", "workload.demand_operations_per_second=10000",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "ranked by performance" in " ".join(done.out.split())  # lines are wrapped
    asked = ("recommend", "--profile", profile, "--workload", root / "examples/kv-reads.toml")
    changed = ("--set", "workload.demand_operations_per_second=10000", "-o", "json")
    answer = json.loads(iojoule(*asked, *changed).out)
    assert answer["ranked_by"] == "performance"
    assert answer["saving"] is None


def test_a_fio_job_file_as_it_is(iojoule, device: str, root: Path, unflushed: Path) -> None:
    job = ("recommend", "--device", device, "--workload", unflushed)
    done = iojoule(*job, "--horizon", "15 min")
    assert done.code == 0, done.err
    assert iojoule(*job, "--horizon", "1 y").code == 7
    assert iojoule(*job, "--horizon", "0").code == 3
    assert "oltp on Samsung 980 PRO" in done.out
    wrong = iojoule(
        "recommend", "--device", device, "--workload", root / "examples/oltp.fio", "--job", "x"
    )
    assert wrong.code == 3
    assert "oltp" in wrong.err


def test_a_json_workload_gives_the_same_answer_as_the_service(
    iojoule, device: str, tmp_path: Path
) -> None:
    path = tmp_path / "workload.json"
    path.write_text(json.dumps(EXAMPLE["workload_profile"]))
    done = iojoule("recommend", "--device", device, "--workload", path, "-o", "json")
    assert json.loads(done.out)["recommended"]


def test_a_picture_beside_the_answer(ask, tmp_path: Path) -> None:
    done = ask("--plot", tmp_path / "front.svg")
    assert done.code == 0
    assert f"wrote {tmp_path / 'front.svg'}" in done.err
    assert (tmp_path / "front.svg").read_text().startswith("<?xml")
    crowded = ("--set", "workload.demand_operations_per_second=560000")
    for number, changes in enumerate((crowded, ("--sla", "p99 < 20 us"))):
        path = tmp_path / f"{number}.svg"
        ask(*changes, "--plot", path)
        assert path.read_text().startswith("<?xml")


def test_reasons_prices_and_what_to_measure_are_told(ask) -> None:
    done = ask("--explain", "--wide")
    for said in (
        "why this one",
        "together",
        "Shapley",
        "10 % looser",
        "the demand",
        "To be surer of the",
        "it saves with a probability of",
    ):
        assert said in done.out


def test_what_to_measure_next_is_a_plan_and_a_command_that_exist(
    ask, iojoule, tmp_path: Path
) -> None:
    path = tmp_path / "next.toml"
    answer = json.loads(ask("--measure-plan", path, "-o", "json").out)
    runs = answer["measure_next"]["runs"]
    sweeps = load_plan(str(path))[0].sweep
    assert len(sweeps) == len(runs) >= 2
    for sweep, run in zip(sweeps, runs, strict=True):
        stated = run["configuration"]
        assert sweep.name.endswith(run["role"])
        for name in ("request_bytes", "queue_depth", "jobs", "engine", "power_state"):
            assert sweep.knobs[name].values == (stated[name],)
    words = answer["measure_next"]["command"].split()
    assert words[:3] == ["iojoule", "measure", "run"]
    assert path.name in words
    shown = iojoule("measure", "run", "--help").out
    for option in (word for word in words if word.startswith("--")):
        assert option in shown


def test_a_plan_that_cannot_be_written_is_an_input_error(ask, tmp_path: Path) -> None:
    done = ask("--measure-plan", tmp_path / "nowhere" / "next.toml")
    assert done.code == 3
    assert "next.toml" in done.err


def test_the_least_saving_can_be_stated(ask) -> None:
    assert "Not taken:" in ask("--least-saving", "30%", "--explain").out
    answer = json.loads(ask("--least-saving", "30%", "-o", "json").out)
    assert answer["action"] == "no change"
    assert answer["least_saving_percent"] == 30
    assert 2 < answer["not_taken"]["objective_saved_percent"] < 30
    assert answer["recommended"] == answer["current"]
    assert ask("--least-saving", "much").code == 3
    assert ask("--least-saving", "-1").code == 3


def test_what_is_enough_alone_is_said_where_nothing_is_feasible(ask) -> None:
    out = ask("--sla", "p99 < 0.1 ms, device power < 6 W", "--explain").out
    assert "enough alone: p99 latency" in out
    none = ask("--sla", "mean latency < 20 us, device power < 2.7 W").out
    assert "several have" in none


@pytest.mark.parametrize("name", ["front.gif", "front", "no/front.svg", "."])
def test_pictures_that_cannot_be_are_refused_first(name: str, ask, tmp_path: Path) -> None:
    done = ask("--plot", tmp_path / name)
    assert done.code == 3
    assert done.out == ""
    assert not list(tmp_path.iterdir())


def test_on_a_narrow_terminal_intervals_stand_below(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iojoule.api.cli.console.width", lambda: 120)
    monkeypatch.setenv("COLUMNS", "120")
    lines = ask("--rows", "3", "--explain").out.splitlines()
    heading = next(place for place, line in enumerate(lines) if "p99 latency  " in line)
    assert max(len(line) for line in lines[heading : heading + 8]) <= 120
    assert any(line.strip().startswith("[") for line in lines)


def test_money_and_carbon_stand_beside_the_energy(
    ask, iojoule, device: str, unflushed: Path
) -> None:
    factors = ("--price", "0.30EUR/kWh", "--carbon", "380g/kWh", "--pue", "1.4")
    done = ask("--objective", "cost", "--drive-price", "120EUR", *factors, "--explain", "--wide")
    assert done.code == 0, done.err
    for said in ("ranked by cost (EUR)", "] EUR a year; ", "] a year"):
        assert said in done.out
    writing = ("--device", device, "--workload", unflushed, "--horizon", "15 min")
    worn = iojoule(
        "recommend", *writing, "--objective", "cost", "--drive-price", "120EUR", *factors,
        "--explain", "--wide",
    )  # fmt: skip
    assert "EUR of the drive a year" in worn.out, worn.err
    answer = json.loads(ask(*factors, "-o", "json").out)
    saved = answer["saving"]
    assert saved["cost_per_year"]["value"] == pytest.approx(saved["kwh_per_year"]["value"] * 0.42)
    assert answer["factors"]["currency"] == "EUR"


def test_a_missing_price_is_asked_for(ask) -> None:
    done = ask("--objective", "cost")
    assert done.code == 3
    assert "--price 0.30EUR/kWh" in done.err
    assert ask("--price", "cheap").code == 3


def test_a_preset_is_a_question_too(iojoule, device: str) -> None:
    done = iojoule("recommend", "--device", device, "--workload", "ycsb-a", "--sla", "p99 < 2 ms")
    assert done.code == 0, done.err
    asked = ("--device", device, "--workload", "ycsb-a", "--sla", "p99 < 2 ms", "-o", "json")
    answer = json.loads(iojoule("recommend", *asked).out)
    assert answer["workload"] == "ycsb-a"
    assert answer["action"] == "ranking"
    assert answer["current"] is answer["current_place"] is answer["saving"] is None
    unknown = iojoule("recommend", "--device", device, "--workload", "ycbs-a")
    assert unknown.code == 3
    assert "ycsb-a" in unknown.err
