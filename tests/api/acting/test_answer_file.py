import io
import json
from pathlib import Path

import pytest

from iojoule.api.acting.answer_file import read_answer
from iojoule.datasets.errors import InfeasibleError, InputError, SchemaVersionError
from tests.api.acting.answers import answer_data

ROOT = Path(__file__).resolve().parents[3]


def test_what_recommend_writes_is_read(iojoule, device: str, tmp_path: Path) -> None:
    reads = ROOT / "examples" / "kv-reads.toml"
    said = iojoule("recommend", "--device", device, "--workload", reads, "-o", "json")
    file = tmp_path / "answer.json"
    file.write_text(said.out)
    found, told = read_answer(file), json.loads(said.out)
    assert found.device == device
    assert (
        found.recommended.configuration.queue_depth
        == (told["recommended"]["configuration"]["queue_depth"])
    )
    assert found.sla.bounds() == {"latency_mean_ns_max": 5e5, "latency_p99_ns_max": 1e6}
    over_mean = found.recommended.latency_over_mean("latency_p99_ns_max")
    row = told["recommended"]
    assert over_mean == row["latency_p99_ns"]["value"] / row["latency_mean_ns"]["value"]
    assert found.recommended.latency_over_mean("latency_mean_ns_max") == 1


def test_it_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(answer_data())))
    assert read_answer(Path("-")).workload == "test"


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"answer_version": 99}, SchemaVersionError, "version 99"),
        ({"recommended": None}, InfeasibleError, "nothing to set"),
        ({"sla": {"latency_p99_ns_max": -1}}, InputError, "latency_p99_ns_max"),
    ],
)
def test_what_cannot_be_acted_on_is_refused(
    tmp_path: Path, change: dict[str, object], kind: type[Exception], said: str
) -> None:
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(answer_data() | change))
    with pytest.raises(kind, match=said):
        read_answer(file)


def test_what_is_no_recommendation_names_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    with pytest.raises(InputError, match="cannot be read"):
        read_answer(file)
    for text in ("{", "[]", "{}"):
        file.write_text(text)
        with pytest.raises(InputError, match="iojoule recommend"):
            read_answer(file)
