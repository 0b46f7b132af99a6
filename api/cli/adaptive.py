"""The options of `iojoule measure run` that let a question decide what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iojoule.api.cli import console
from iojoule.datasets.errors import InputError

if TYPE_CHECKING:
    from iojoule.measure.campaign.conduct import Conduct
    from iojoule.measure.campaign.folder import AdaptiveOptions, CampaignOptions
    from iojoule.measure.campaign.session import Opened

DEFAULT_REGRET = 0.03

AdaptiveOption = Annotated[
    float | None,
    typer.Option(
        "--adaptive",
        metavar="HOURS",
        min=0.0,
        help="Measure at most so long, and only what --workload needs.",
    ),
]
MoreHoursOption = Annotated[
    float | None,
    typer.Option(
        "--adaptive",
        metavar="HOURS",
        min=0.0,
        help="Hours of an adaptive campaign in all; default: those it was begun with.",
    ),
]
QuestionOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The question that --adaptive is to answer (.toml, .json)."),
]
RegretOption = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0.0,
        help="--adaptive ends once the recommendation costs at most so much more than the best.",
    ),
]


def adaptive_options_of(
    hours: float | None, question: Path | None, regret: float
) -> AdaptiveOptions | None:
    """What the options ask for; None = every run of the plan.

    Raises:
        InputError: One of the two that belong together is missing.
    """
    if hours is None and question is None:
        return None
    if hours is None or question is None or hours <= 0:
        raise InputError(
            "--adaptive HOURS and --workload FILE belong together: the hours that may be spent, "
            "and the question that decides what is measured",
            field="adaptive",
        )
    from iojoule.api.adaptive_campaign import adaptive_options

    return adaptive_options(question, hours, regret)[0]


def show_adaptive(opened: Opened, options: AdaptiveOptions) -> None:
    """Say what the question makes of the plan.

    Raises:
        InputError: The plan measures nothing of the question, or the hours are spent before the
            first run.
    """
    from iojoule.api.adaptive_campaign import PlanAdvisor, candidates_of
    from iojoule.measure.campaign.runs import run_seconds
    from iojoule.recommender.workload import parse_workload

    question = parse_workload(options.question)
    candidates = candidates_of(opened.expansion.runs, question)
    PlanAdvisor(opened.plan, candidates, question)  # refuses what cannot be judged, before any run
    left = options.hours * 3600.0 - opened.cost.preparation_seconds
    runs = int(left / run_seconds(opened.plan, candidates[0]))
    if runs < 1:
        raise InputError(
            f"--adaptive {options.hours:g}: preparing the drive alone takes about "
            f"{opened.cost.preparation_seconds / 3600:.1f} hours; give it more",
            field="adaptive",
        )
    table = console.new_table(["adaptive", question.name])
    table.add_row("candidates", f"{len(candidates)} points of the plan")
    table.add_row("runs", f"about {min(runs, len(opened.expansion.runs))} of those above")
    table.add_row("time", f"at most {options.hours:g} h, all included")
    console.emit_table(table)


def with_hours(options: CampaignOptions, hours: float | None) -> CampaignOptions:
    """The options of a campaign that is resumed, with other hours where some are given.

    Raises:
        InputError: The campaign makes every run of its plan.
    """
    if hours is None:
        return options
    if options.adaptive is None:
        raise InputError(
            "--adaptive: this campaign was begun without it and makes every run of its plan; "
            "begin another one in a new folder",
            field="adaptive",
        )
    adaptive = options.adaptive.model_copy(update={"hours": hours})
    return options.model_copy(update={"adaptive": adaptive})


def way_of(options: CampaignOptions) -> Conduct:
    """How a campaign with these options is conducted."""
    if options.adaptive is None:
        from iojoule.measure.campaign.conduct import conduct

        return conduct
    from iojoule.api.adaptive_campaign import adaptive_conduct

    return adaptive_conduct(options.adaptive)
