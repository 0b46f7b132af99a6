"""Every folder of `datasets/contributed` passes the checks; a made one shows that they check."""

import json
import shutil
from pathlib import Path

import pytest

from iojoule.api.application.contribute import check_contribution, contribute
from iojoule.datasets.contribution import (
    NEEDED,
    OPTIONAL,
    contributed_folder,
    read_contribution,
)
from iojoule.datasets.errors import DataQualityError, InputError
from iojoule.model.fit import build
from iojoule.model.recipe import ContributedFolder, generic_recipe
from tests.contributions import contents, runs, write_campaign

CONTRIBUTED = Path(__file__).resolve().parents[2] / "datasets" / "contributed"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A contribution of a campaign that nothing is wrong with."""
    path = tmp_path_factory.mktemp("contributed")
    campaign = write_campaign(path / "campaign", runs(repeats=2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOJOULE_DATA", str(path / "none"))
        contribute(campaign, path / "folder")
    return path / "folder"


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def test_every_contribution_passes() -> None:
    for folder in CONTRIBUTED.iterdir():
        if folder.is_dir():
            verdicts = {one.verdict for one in check_contribution(folder)}
            assert verdicts <= {"passed", "not known"}, folder


def test_nothing_else_lies_beside_the_contributions() -> None:
    assert [path.name for path in CONTRIBUTED.iterdir() if path.is_file()] == ["README.md"]


def test_a_made_contribution_passes_the_same_checks(made: Path) -> None:
    verdicts = {one.name: one.verdict for one in check_contribution(made)}
    assert set(contents(made)) == {*NEEDED, *OPTIONAL}
    judged = {name for name, verdict in verdicts.items() if verdict == "passed"}
    assert judged == set(verdicts) - {"second_meter", "verdicts"}
    contribution = read_contribution(made)
    assert contribution.about.rows == len(contribution.measurements) == len(contribution.runs)
    checks = json.loads((made / "checks.json").read_text())["checks"]
    assert [one["name"] for one in checks] == list(verdicts)


@pytest.mark.parametrize("name", NEEDED)
def test_a_folder_with_a_file_missing_is_refused(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(InputError) as refused:
        check_contribution(copy)
    assert refused.value.field == name


def test_a_folder_with_a_file_too_many_is_refused(copy: Path) -> None:
    (copy / "raw.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError) as refused:
        check_contribution(copy)
    assert refused.value.field == "raw.parquet"


def test_measurements_that_were_edited_are_refused(copy: Path) -> None:
    path = copy / "measurements.csv"
    path.write_text(path.read_text().replace("read,random,4096,1,", "read,random,4096,2,", 1))
    with pytest.raises(InputError) as refused:
        check_contribution(copy)
    assert refused.value.field == "measurements_sha256"


def test_a_profile_of_other_measurements_is_refused(copy: Path) -> None:
    path = copy / "profile.json"
    profile = json.loads(path.read_text())
    profile["sources"][-1]["sha256"] = "0" * 64
    path.write_text(json.dumps(profile))
    with pytest.raises(InputError) as refused:
        check_contribution(copy)
    assert refused.value.field == "profile"


@pytest.mark.parametrize(
    "text", ["/home/jane/campaign", "00:1b:21:3c:4d:5e", "eui.0025385b71b08f1a", "jane@example.org"]
)
@pytest.mark.parametrize("name", ["agreement.md", "contribution.toml"])
def test_a_file_that_names_somebody_is_refused(copy: Path, name: str, text: str) -> None:
    with (copy / name).open("a") as stream:
        stream.write(f"\n# {text}\n")
    with pytest.raises(DataQualityError) as refused:
        check_contribution(copy)
    assert refused.value.field == "identity"


def test_samples_of_a_stuck_sensor_are_refused(copy: Path) -> None:
    path = copy / "runs.csv"
    head, first, *rest = path.read_text().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    cells["longest_constant_seconds"] = "0.9"
    path.write_text("\n".join([head, ",".join(cells.values()), *rest]) + "\n")
    with pytest.raises(DataQualityError) as refused:
        check_contribution(copy)
    assert refused.value.field == "stuck_sensor"


def test_a_recipe_takes_a_contribution_in(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "contributed_folder", lambda name: made.with_name(name))
    entry = ContributedFolder(contributed="folder")
    recipe = generic_recipe("samsung-980-pro-1tb", "Samsung 980 PRO 1TB")
    named = recipe.model_copy(update={"measurements": [entry]})
    measurements, (source,) = build.load_measurements(named, Path("nowhere"))
    contribution = read_contribution(made)
    assert measurements == contribution.measurements
    assert (source.name, source.licence, source.rows_used) == ("folder", "Apache-2.0", 24)
    assert source.sha256 == contribution.about.measurements_sha256
    other = named.model_copy(update={"device": "micron-7450"})
    with pytest.raises(InputError) as refused:
        build.load_measurements(other, Path("nowhere"))
    assert refused.value.field == "contributed"


def test_a_recipe_cannot_name_what_is_not_there() -> None:
    with pytest.raises(InputError) as refused:
        contributed_folder("no-such-folder")
    assert refused.value.field == "contributed"
