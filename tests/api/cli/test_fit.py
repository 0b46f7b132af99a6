import json
from pathlib import Path
from typing import Any

import pytest

from iojoule.datasets.characteristics import FILE_NAME
from iojoule.datasets.profile import load_shipped_profile, read_profile
from iojoule.datasets.provenance import Provenance, SourceFile
from iojoule.datasets.schema import Judgement
from iojoule.datasets.store import Dataset, write_dataset
from iojoule.datasets.vocabulary import Evidence, Verdict
from iojoule.model.evaluate.predictor import Predictor
from tests.measure.characterise.found import answer, characteristics, estimate


def measured(device: str, **changes: Any) -> Dataset:
    """What the shipped profile predicts over a grid, as if it had been measured."""
    grid = [
        (size, depth, jobs)
        for size in (4096, 16384, 65536)
        for depth in (1, 4, 16, 64)
        for jobs in (1, 4)
    ]
    asked = {
        "operation": ["read"] * len(grid),
        "request_bytes": [row[0] for row in grid],
        "queue_depth": [row[1] for row in grid],
        "jobs": [row[2] for row in grid],
        "engine": ["io_uring"] * len(grid),
    }
    predictor = Predictor(load_shipped_profile("samsung-980-pro-1tb"))
    prediction, _ = predictor.predict_columns(asked, len(grid))
    names = ("iops", "latency_mean_ns", "latency_p50_ns", "latency_p99_ns", "device_power_watts")
    asked |= {name: prediction[name].value.tolist() for name in names}
    asked |= {"host_id": ["bench"] * len(grid), "device_model": [device] * len(grid)}
    asked |= {name: [value] * len(grid) for name, value in changes.items()}
    return Dataset.from_columns(asked, Provenance(importer="test"))


def test_doubtful_and_failed_rows_alter_no_profile_unless_doubtful_ones_are_asked_for(
    iojoule, tmp_path: Path
) -> None:
    clean = measured("micron-7450")
    every = clean.measurements()
    judged = [
        one.model_copy(update={"judgement": Judgement(verdict=Verdict.GOOD)}) for one in every
    ]
    for place, verdict in ((5, Verdict.DOUBTFUL), (6, Verdict.FAILED)):
        seen = every[place].observations
        judged.append(
            every[place].model_copy(
                update={
                    "judgement": Judgement(verdict=verdict, verdict_reasons="stall"),
                    "observations": seen.model_copy(update={"device_power_watts": 46.3}),
                }
            )
        )
    write_dataset(clean, tmp_path / "clean")
    write_dataset(
        Dataset.from_measurements(judged, Provenance(importer="test")), tmp_path / "judged"
    )

    def fitted(name: str, *options: str) -> tuple[Any, str]:
        done = iojoule("fit", tmp_path / name, "-o", tmp_path / "p.json", *options)
        assert done.code == 0, done.err
        profile = read_profile(tmp_path / "p.json")
        return profile.model_dump(exclude={"sources", "generated_utc"}), done.err

    truth, _ = fitted("clean")
    found, said = fitted("judged")
    assert found == truth
    assert "1 doubtful measurements are left out (1 stall)" in said
    assert "1 failed measurements are left out" in said
    asked, said = fitted("judged", "--with-doubtful")
    assert asked != truth
    assert "1 failed measurements are left out" in said
    assert "doubtful" not in said.replace(str(tmp_path), "")
    (source,) = read_profile(tmp_path / "p.json").sources
    assert (source.rows_used, source.rows_excluded) == (25, 1)


@pytest.mark.parametrize("engine", ["libaio", "io_uring", "spdk"])
def test_what_leaves_the_engine_out_is_answered_by_the_measured_one(
    iojoule, tmp_path: Path, engine: str
) -> None:
    write_dataset(measured("micron-7450", engine=engine), tmp_path / "runs")
    assert iojoule("fit", tmp_path / "runs", "-o", tmp_path / "p.json").code == 0
    defaults = read_profile(tmp_path / "p.json").defaults
    # one that takes the drive from its file systems is no default
    assert defaults["engine"] == ("libaio" if engine == "libaio" else "io_uring")


def test_nothing_but_doubtful_rows_is_no_profile(iojoule, tmp_path: Path) -> None:
    doubtful = measured("micron-7450", verdict="doubtful", verdict_reasons="low_coverage")
    write_dataset(doubtful, tmp_path / "runs")
    out = tmp_path / "p.json"
    refused = iojoule("fit", tmp_path / "runs", "-o", out)
    assert (refused.code, "24 low_coverage" in refused.err) == (8, True)
    assert not out.exists()
    assert iojoule("fit", tmp_path / "runs", "-o", out, "--with-doubtful").code == 0


def test_a_dataset_becomes_a_profile_that_predicts(iojoule, tmp_path: Path) -> None:
    write_dataset(measured("micron-7450"), tmp_path / "runs")
    done = iojoule("fit", tmp_path / "runs", "-o", tmp_path / "own.json")
    assert done.code == 0, done.err
    assert "read random" in done.out
    profile = read_profile(tmp_path / "own.json")
    assert profile.device == "micron-7450"
    assert profile.host.host_id == "bench"
    assert profile.sources[0].rows_used == 24
    answer = json.loads(
        iojoule(
            "predict", "--profile", tmp_path / "own.json", "--set", "queue_depth=4", "-o", "json"
        ).out
    )
    truth, _ = Predictor(load_shipped_profile("samsung-980-pro-1tb")).predict_columns(
        {"queue_depth": [4]}, 1
    )
    found = answer["predictions"][0]
    assert found["iops"] == pytest.approx(truth["iops"].value[0], rel=0.1)
    assert not list(tmp_path.glob("*.part"))


def test_a_characterisation_without_measurements_goes_beside_a_campaign(
    iojoule, tmp_path: Path
) -> None:
    write_dataset(measured("made-up drive"), tmp_path / "runs")
    asked = tmp_path / "asked"
    asked.mkdir()
    told = characteristics()
    told.answers["settle"] = answer(settle_joules=estimate(0.05, "J"))
    (asked / FILE_NAME).write_text(told.model_dump_json())
    done = iojoule("fit", tmp_path / "runs", asked, "-o", tmp_path / "p.json")
    assert done.code == 0, done.err
    idle = read_profile(tmp_path / "p.json").idle
    assert idle is not None
    assert idle.settle_seconds.evidence is Evidence.MEASURED
    assert iojoule("fit", asked, "-o", tmp_path / "none.json").code == 3


def test_the_drive_must_be_named_once(iojoule, tmp_path: Path) -> None:
    write_dataset(measured("micron-7450", device_model=None), tmp_path / "unnamed")
    out = tmp_path / "p.json"
    unnamed = iojoule("fit", tmp_path / "unnamed", "-o", out)
    assert unnamed.code == 3
    assert "--device" in unnamed.err
    write_dataset(measured("samsung-pm9a3"), tmp_path / "other")
    write_dataset(measured("micron-7450"), tmp_path / "one")
    for arguments in ((tmp_path / "one", tmp_path / "other"), (tmp_path,)):
        two = iojoule("fit", *arguments, "-o", out)
        assert two.code == 3
        assert "samsung-pm9a3" in two.err
    contradicted = iojoule("fit", tmp_path / "one", "--device", "samsung-pm9a3", "-o", out)
    assert contradicted.code == 3
    assert "micron-7450" in contradicted.err
    assert not out.exists()


def test_outputs_that_cannot_be_are_refused_before_the_fit(iojoule, tmp_path: Path) -> None:
    folder = iojoule("fit", "nothing.parquet", "-o", tmp_path)
    assert folder.code == 3
    assert "is a folder" in folder.err
    nowhere = iojoule("fit", "nothing.parquet", "-o", tmp_path / "no" / "p.json")
    assert nowhere.code == 3
    assert "does not exist" in nowhere.err


def test_datasets_that_cannot_be_read(iojoule, tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    absent = iojoule("fit", tmp_path / "absent", "-o", out)
    empty = iojoule("fit", tmp_path, "-o", out)
    data, _ = write_dataset(measured("micron-7450"), tmp_path / "torn")
    data.write_bytes(data.read_bytes()[:-10])
    torn = iojoule("fit", data, "-o", out)
    for done, said in ((absent, "absent"), (empty, "holds no dataset"), (torn, "half written")):
        assert done.code == 3
        assert said in done.err
    assert not out.exists()


def test_the_public_measurements_must_be_there(
    iojoule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = iojoule("fit", "--shipped", "--data", tmp_path / "absent", "-o", tmp_path)
    assert absent.code == 3
    assert "--data" in absent.err
    empty = iojoule("fit", "--shipped", "--data", tmp_path, "-o", tmp_path)
    assert empty.code == 3
    assert ".csv" in empty.err
    monkeypatch.setenv("IOJOULE_DATA", str(tmp_path / "elsewhere"))
    named = iojoule("fit", "--recipe", "wd-zn540", "-o", tmp_path / "p.json")
    assert named.code == 3
    assert "elsewhere" in named.err
    assert not list(tmp_path.iterdir())


def test_recipes_that_do_not_exist(iojoule, tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    unknown = iojoule("fit", "--recipe", "nonsense", "--data", tmp_path, "-o", out)
    assert unknown.code == 4
    assert "samsung-980-pro-1tb" in unknown.err
    absent = iojoule("fit", "--recipe", tmp_path / "r.toml", "--data", tmp_path, "-o", out)
    assert absent.code == 3
    broken = tmp_path / "broken.toml"
    broken.write_text("device = ")
    done = iojoule("fit", "--recipe", broken, "--data", tmp_path, "-o", out)
    assert done.code == 3
    assert "broken.toml" in done.err
    assert not out.exists()


def test_a_folder_of_many_files_is_cited_in_short(iojoule, tmp_path: Path) -> None:
    files = [
        SourceFile(name=f"randread-{depth}-1.json", sha256="0" * 64) for depth in (1, 2, 4, 8, 16)
    ]
    plain = measured("micron-7450")
    columns = {name: plain.column(name).tolist() for name in plain.columns}
    given = Provenance(importer="test", sources=tuple(files))
    write_dataset(Dataset.from_columns(columns, given), tmp_path / "runs")
    assert iojoule("fit", tmp_path / "runs", "-o", tmp_path / "p.json").code == 0
    (source,) = read_profile(tmp_path / "p.json").sources
    assert source.citation.endswith("; and 2 more")
