import csv
import io
import json
from pathlib import Path

import pytest

from iojoule.datasets.profile import load_shipped_profile
from iojoule.datasets.schema import Conditions
from iojoule.model.evaluate.predictor import Predictor
from iojoule.model.evaluate.validity import under

QUANTITIES = [
    "throughput_bytes_per_second",
    "iops",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_p999_ns",
    "device_power_watts",
    "cpu_power_watts",
    "dram_power_watts",
    "system_power_watts",
    "cpu_utilisation",
    "context_switches_per_second",
    "cpu_joules_per_operation",
    "iops_per_core_max",
]
ANSWERED = [name + end for name in QUANTITIES for end in ("", "_low", "_high")]


@pytest.fixture
def ask(iojoule, device: str, tmp_path: Path):
    """Predict the questions of a CSV text."""

    def predict(text: str, *arguments: str):
        questions = tmp_path / "questions.csv"
        questions.write_text(text, encoding="utf-8")
        return iojoule(
            "predict", "--device", device, "--configurations", questions, "-o", "csv", *arguments
        )

    return predict


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_columns_are_the_inputs_then_the_answers_then_the_evidence(ask) -> None:
    done = ask("queue_depth,series_id,operation\n16,a b,read\n")
    assert done.out.splitlines()[0].split(",") == [
        "queue_depth",
        "series_id",
        "operation",
        *ANSWERED,
        "evidence",
    ]


def test_one_row_each_in_order_with_the_cells_as_they_were(ask, device: str) -> None:
    done = ask(
        'request_bytes,queue_depth,engine,host_id\n 4096,016,,"x, y"\n8192,1,libaio,\n4096,16,,z\n'
    )
    answered = rows(done.out)
    assert [row["queue_depth"] for row in answered] == ["016", "1", "16"]
    assert [row["request_bytes"] for row in answered] == [" 4096", "8192", "4096"]
    assert [row["host_id"] for row in answered] == ["x, y", "", "z"]
    assert answered[0]["iops"] == answered[2]["iops"]
    # nothing is stated of the drive's conditions: the answer is that much wider
    asked = under(load_shipped_profile(device), Conditions())
    prediction, _ = Predictor(asked).predict_columns(
        {"queue_depth": [16], "request_bytes": [4096]}, 1
    )
    for name in ("iops", "latency_p99_ns", "device_power_watts"):
        band = prediction[name]
        for ending, value in (("", band.value), ("_low", band.low), ("_high", band.high)):
            assert float(answered[0][name + ending]) == pytest.approx(value[0], rel=1e-5)


def test_the_interval_holds_the_value_and_unknown_is_empty(ask, iojoule, tmp_path: Path) -> None:
    questions, profile = tmp_path / "q.csv", tmp_path / "p.json"
    lacking = dict.fromkeys(("device_power", "host_power", "system_power"))
    known = json.loads(load_shipped_profile("wd-zn540").model_dump_json())
    profile.write_text(json.dumps(known | lacking))
    questions.write_text("queue_depth\n1\n\n")
    done = iojoule("predict", "--profile", profile, "--configurations", questions, "-o", "csv")
    answered = rows(done.out)
    assert len(answered) == 2, "in a table of one column a blank line is an empty cell"
    for row in answered:
        assert row["device_power_watts"] == row["device_power_watts_low"] == ""
        assert float(row["iops_low"]) <= float(row["iops"]) <= float(row["iops_high"])


def test_defaults_are_said_on_standard_error(ask) -> None:
    done = ask("queue_depth,engine\n4,io_uring\n")
    (said,) = [line for line in done.err.splitlines() if "defaults" in line]
    for name in ("operation = read", "request_bytes = 4096", "jobs = 1", "power_state = 0"):
        assert name in said
    assert "queue_depth" not in said
    assert "engine" not in said


def test_columns_without_effect_are_said_too(ask) -> None:
    done = ask("queue_depth,series_id,kernel_version\n4,a,6.1\n")
    assert "change no figure: series_id, kernel_version" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queue_depth\n1\n0\n", "line 3: queue_depth: "),
        ("request_bytes,jobs\n-4096,1\n", "line 2: request_bytes: "),
        ("operation,read_fraction\nmixed,1.2\n", "line 2: read_fraction: "),
        ("operation,read_fraction\nmixed,NaN\n", "line 2: read_fraction: "),
        ("operation,read_fraction\nmixed,inf\n", "line 2: read_fraction: "),
        ("queue_depth\nNaN\n", "line 2: queue_depth: "),
        ("operation,read_fraction\nmixed,\n", "line 2: read_fraction: "),
        ("operation,read_fraction\nread,0.5\n", "line 2: read_fraction: "),
        ("engine,completion\nspdk,polled\nspdk,interrupt\n", "line 3: completion: spdk"),
        ("engine,queue_depth\npsync,4\n", "line 2: queue_depth: psync"),
        ("engine,scheduler\nspdk,kyber\n", "line 2: scheduler: spdk"),
        ("engine\nlibaoi\n", "line 2: engine: "),
        ("power_state,jobs\n0,1\n4,1\n", "line 3: power_state: 4 is not an operational"),
        ("jobs,post_write_power_state\n1,\n1,4\n", "line 3: post_write_power_state: 4 is not an"),
        ("demand_bytes_per_second\n1e9\n9e12\n", "line 3: demand_bytes_per_second: "),
        ("demand_operations_per_second\n1e7\n", "line 2: demand_operations_per_second: "),
        (
            "demand_bytes_per_second,pcie_generation\n5e9,4\n5e9,3\n",
            "line 3: demand_bytes_per_second: ",
        ),
        ("host_bytes_written_since_purge,jobs\n-1,1\n", "line 2: host_bytes_written_since_purge"),
        ("jobs,series_id\n1,\"a\nb\"\n0,c\n", "line 4: jobs: "),
        ("queue_depht\n1\n", "unknown field 'queue_depht'; did you mean queue_depth?"),
        ("jobs,qqqq\n1,1\n", "unknown field 'qqqq'"),
        ("jobs,jobs\n1,1\n", "jobs stands there twice"),
        ("iops,jobs\n1,1\n", "iops is what a prediction answers"),
        ("idle_power_watts,jobs\n1,1\n", "idle_power_watts is what a prediction answers"),
        ("evidence,jobs\n1,1\n", "evidence is what a prediction answers"),
        ("jobs,engine\n1\n", "line 2: 1 cells, but the first line names 2 columns"),
        ('jobs\n"1\n', "is not CSV"),
        ("", "is empty"),
        ("queue_depth,jobs\n", "no configuration"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_line_and_field(text: str, said: str, ask) -> None:
    done = ask(text)
    assert done.code == 3
    assert done.out == ""
    assert "questions.csv" in done.err
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "question",
    [
        "request_bytes,queue_depth,jobs\n1073741824,65535,65535\n",
        "operation,pattern,power_state\nwrite,sequential,2\n",
        "engine\nspdk\n",
        "engine,completion\nio_uring_cmd,polled\n",
        "operation,read_fraction,request_bytes\nmixed,0.5,512\n",
        "device_state,operation,host_bytes_written_since_purge\ncollecting,write,1e12\n",
    ],
)
def test_what_is_possible_is_answered(question: str, ask) -> None:
    done = ask(question)
    assert done.code == 0, done.err
    (row,) = rows(done.out)
    assert float(row["iops"]) > 0
    assert row["evidence"] != ""


def test_beyond_the_data_it_says_extrapolated(ask) -> None:
    (row,) = rows(ask("queue_depth,jobs,request_bytes\n4096,64,1048576\n").out)
    assert row["evidence"] == "extrapolated"


def test_one_question_without_a_file(iojoule, device: str) -> None:
    done = iojoule("predict", "--device", device, "--set", "queue_depth=16", "--set", "jobs=2",
                   "-o", "json")  # fmt: skip
    answer = json.loads(done.out)
    assert answer["device"] == device
    assert answer["profile_version"]
    assert answer["iojoule_version"]
    assert answer["defaults_used"]["operation"] == "read"
    (one,) = answer["predictions"]
    assert (one["queue_depth"], one["jobs"]) == (16, 2)
    assert one["dram_power_watts"] is None
    assert one["evidence_by_quantity"]["cpu_power_watts"] == "published"
    assert "dram_power_watts" not in one["evidence_by_quantity"]


def test_without_any_field_it_predicts_the_defaults(iojoule, device: str) -> None:
    table = iojoule("predict", "--device", device).out
    assert "IOPS" in table
    assert " W [" in table
    assert "90 % interval" in table


@pytest.mark.parametrize("operations", [110_000, 130_000])
def test_a_latency_without_a_bound_is_a_word_in_a_table(
    operations: int, iojoule, device: str
) -> None:
    sets = ("queue_depth=4", "jobs=2", f"demand_operations_per_second={operations}")
    asked = ("predict", "--device", device, *(f"--set={one}" for one in sets))
    stated = json.loads(iojoule(*asked, "-o", "json").out)["predictions"][0]
    done = iojoule(*asked)
    assert stated["latency_p99_ns_high"] == "unbounded"
    assert done.code == 0
    assert "unbounded" in done.out


def test_a_bad_single_question_names_the_field(iojoule, device: str) -> None:
    done = iojoule("predict", "--device", device, "--set", "queue_depth=0")
    assert done.code == 3
    assert "--set: queue_depth: " in done.err


def test_standard_input(iojoule, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("jobs\n2\n"))
    done = iojoule("predict", "--device", device, "--configurations", "-", "-o", "csv")
    assert rows(done.out)[0]["jobs"] == "2"


def test_files_that_cannot_be_read(iojoule, device: str, tmp_path: Path) -> None:
    absent = iojoule("predict", "--device", device, "--configurations", tmp_path / "no.csv")
    folder = iojoule("predict", "--device", device, "--configurations", tmp_path)
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"jobs\n\xff\xfe\n")
    foreign = iojoule("predict", "--device", device, "--configurations", binary)
    for done in (absent, folder, foreign):
        assert done.code == 3
        assert str(tmp_path) in done.err


def test_a_drive_nobody_knows_and_one_without_a_profile(iojoule) -> None:
    unknown = iojoule("predict", "--device", "samsung-980-pr")
    assert unknown.code == 4
    assert "samsung-980-pro-1tb" in unknown.err
    emulated = iojoule("predict", "--device", "virtualbox-nvme")
    assert emulated.code == 5
    assert "--profile" in emulated.err


def test_a_drive_without_a_profile_answers_from_its_facts(iojoule) -> None:
    done = iojoule("predict", "--device", "micron-7450", "--set", "queue_depth=16", "-o", "csv")
    assert done.code == 0
    assert "nobody measured" in done.err
    assert "iojoule fit" in done.err
    (row,) = rows(done.out)
    assert row["evidence"] == "datasheet"
    assert float(row["iops_high"]) > 2 * float(row["iops_low"])
    assert float(row["device_power_watts_low"]) > 0


def test_stated_conditions_narrow_others_widen_and_impossible_ones_are_refused(
    iojoule, device: str
) -> None:
    def width(*options: str) -> float:
        (row,) = rows(iojoule("predict", "--device", device, "-o", "csv", *options).out)
        return float(row["iops_high"]) / float(row["iops_low"])

    assert width("--pcie-generation", "3", "--set", "pcie_lanes=4") < width()
    assert width("--pcie-generation", "4") > width()
    refused = iojoule("predict", "--device", device, "--pcie-generation", "5")
    assert refused.code == 3
    assert "pcie_generation" in refused.err
    hot = iojoule("predict", "--device", device, "--temperature", "120")
    assert hot.code == 3
    assert "temperature_celsius_mean" in hot.err


def test_what_the_interval_is_about_is_one_field_everywhere(
    iojoule, device: str, tmp_path: Path
) -> None:
    def width(row: dict[str, str]) -> float:
        return float(row["iops_high"]) / float(row["iops_low"])

    kinds = ("same-host", "another-host", "another-drive")
    command = ("predict", "--device", device, "-o", "csv")
    by_option = [width(rows(iojoule(*command, "--for", kind).out)[0]) for kind in kinds]
    assert by_option[0] < by_option[1] < by_option[2]
    assert width(rows(iojoule(*command).out)[0]) == by_option[1]  # measured elsewhere
    path = tmp_path / "asked.csv"
    path.write_text("queue_depth,interval_for\n" + "".join(f"1,{kind}\n" for kind in kinds))
    by_column = [width(row) for row in rows(iojoule(*command, "--configurations", path).out)]
    assert by_column == by_option
    conditions = tmp_path / "today.toml"
    conditions.write_text('interval_for = "same-host"\n')
    stated = rows(iojoule(*command, "--conditions", conditions).out)[0]
    assert width(stated) == by_option[0]
    path.write_text("queue_depth,interval_for\n1,next-door\n")
    refused = iojoule(*command, "--configurations", path)
    assert refused.code == 3
    assert "interval_for" in refused.err


def test_each_row_has_its_own_conditions(iojoule, device: str, tmp_path: Path) -> None:
    path = tmp_path / "asked.csv"
    path.write_text("queue_depth,pcie_generation\n1,3\n16,\n16,3\n")
    done = iojoule("predict", "--device", device, "--configurations", path, "-o", "csv")
    first, unknown, known = rows(done.out)
    assert first["iops"] != known["iops"]
    assert unknown["iops"] == known["iops"]
    assert float(unknown["iops_low"]) < float(known["iops_low"])
    path.write_text("queue_depth,pcie_generation\n1,3\n16,5\n")
    refused = iojoule("predict", "--device", device, "--configurations", path)
    assert refused.code == 3
    assert "line 3" in refused.err


def test_profiles_as_files(iojoule, device: str, tmp_path: Path) -> None:
    good = json.loads(load_shipped_profile(device).model_dump_json())
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(good))
    assert iojoule("predict", "--profile", path).out == iojoule("predict", "--device", device).out
    path.write_text(json.dumps(good | {"schema_version": 99}))
    newer = iojoule("predict", "--profile", path)
    assert newer.code == 6
    assert "upgrade iojoule" in newer.err
    path.write_text(json.dumps(good)[:1000])
    cut = iojoule("predict", "--profile", path)
    assert cut.code == 3
    assert str(path) in cut.err
    path.write_text("{}")
    assert iojoule("predict", "--profile", path).code == 3
    assert iojoule("predict", "--profile", tmp_path / "absent.json").code == 3


def test_what_gaps_cost_is_answered_where_it_is_asked_for(ask) -> None:
    text = "operation,request_bytes,burst_bytes,idle_gap_seconds_p50\nwrite,131072,1e9,5\nread,,,\n"
    plain, more = ask(text), ask(text, "--gaps")
    names = [
        "wake_latency_ns", "cycle_power_watts", "idle_power_watts", "background_seconds",
        "background_energy_joules",
    ]  # fmt: skip
    header = more.out.splitlines()[0].split(",")
    assert set(header) - set(plain.out.splitlines()[0].split(",")) == {
        name + end for name in names for end in ("", "_low", "_high")
    }
    stated, unstated = rows(more.out)
    for name in names:
        low, value, high = (float(stated[name + end]) for end in ("_low", "", "_high"))
        assert low <= value <= high
    idle, cycle, active = (
        float(stated[name])
        for name in ("idle_power_watts", "cycle_power_watts", "device_power_watts")
    )
    assert idle < cycle < active, "most of the five seconds are rest"
    assert unstated["wake_latency_ns"] == unstated["cycle_power_watts"] == "", "no gap is stated"


def test_questions_may_state_different_power_limits(ask) -> None:
    done = ask(
        "operation,request_bytes,queue_depth,power_limit_watts\n"
        "read,4096,128,\nread,4096,128,0\nread,4096,128,4.5\nread,4096,128,3.6\n"
    )
    free, none, higher, lower = (float(row["device_power_watts"]) for row in rows(done.out))
    assert free == none > higher > lower
    assert higher <= 4.5
    assert lower <= 3.6
