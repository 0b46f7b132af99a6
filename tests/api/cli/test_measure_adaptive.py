"""The options of `iojoule measure` that let a question decide what is measured."""

from pathlib import Path

from iojoule.measure.campaign.folder import CampaignFolder, CampaignOptions

RUN = ["measure", "run", "--drive", "/dev/null", "--plan", "quick-lab", "--out", "campaign"]


def test_hours_and_question_belong_together(iojoule, tmp_path: Path) -> None:
    (tmp_path / "question.toml").write_text('[workload]\noperation = "read"\n')
    question = str(tmp_path / "question.toml")
    for options in (["--adaptive", "2"], ["--workload", question]):
        done = iojoule(*RUN, *options)
        assert done.code != 0
        assert "belong together" in done.err
    done = iojoule(*RUN, "--adaptive", "2", "--workload", str(tmp_path / "none.toml"))
    assert "cannot be read" in done.err


def test_a_campaign_begun_without_hours_takes_none(iojoule, tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path / "campaign")
    folder.create("", CampaignOptions(drive="/dev/null", serial="S"))
    done = iojoule("measure", "resume", str(folder.path), "--adaptive", "2")
    assert done.code != 0
    assert "was begun without it" in done.err
