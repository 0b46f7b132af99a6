"""A recommendation as `iojoule recommend` wrote it, as far as acting on it needs it."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from iojoule.api.reports.report_file import data_of
from iojoule.datasets.errors import InfeasibleError, InputError, SchemaVersionError
from iojoule.datasets.input_file import json_of, read_input_text
from iojoule.datasets.schema import Configuration, validation_error
from iojoule.recommender.request import Scope
from iojoule.recommender.response import ANSWER_VERSION, DurabilityAnswer, Estimate
from iojoule.recommender.sla import LATENCY_MAXIMA, Sla


class _Lenient(BaseModel):
    """Takes what it needs and leaves the rest alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Setup(_Lenient):
    """A row of the answer: the configuration and the latencies that are expected of it."""

    configuration: Configuration
    latency_mean_ns: Estimate
    latency_p50_ns: Estimate | None = None
    latency_p99_ns: Estimate | None = None
    latency_p999_ns: Estimate | None = None

    def latency_over_mean(self, bound: str) -> float | None:
        """How many times the mean the latency is that a bound of the SLA is about.

        Args:
            bound: Field of the SLA, one of `LATENCY_MAXIMA`.
        """
        expected: Estimate | None = getattr(self, LATENCY_MAXIMA[bound])
        return None if expected is None else expected.value / self.latency_mean_ns.value


class ExpectedSaving(_Lenient):
    """What the recommendation promises, in percent of today's energy for the same work."""

    percent: Estimate
    verdict: str


class Answer(_Lenient):
    """The part of a recommendation that is acted on.

    Attributes:
        device: Catalogue id of the drive it is about.
        model_name: Its name.
        workload: Name of the workload profile.
        scope: Whose energy counts.
        demand_bytes_per_second: Useful bytes demanded; None = as fast as possible.
        sla: The bounds.
        recommended: What to use.
        current: What ran when the question was asked.
        saving: What it promises; None where no power is known.
        durability: What a power cut takes then; None where it says nothing of it.
    """

    device: str
    model_name: str
    workload: str
    scope: Scope
    demand_bytes_per_second: float | None
    sla: Sla
    recommended: Setup
    current: Setup
    saving: ExpectedSaving | None = None
    durability: DurabilityAnswer | None = None


def read_answer(path: Path) -> Answer:
    """Read a recommendation, as JSON or in a report; `-` is standard input.

    Raises:
        InputError: It is missing or no recommendation.
        SchemaVersionError: It, or its report, is of another version.
        InfeasibleError: It recommends nothing.
    """
    where = "standard input" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else read_input_text(path)
        is_report = text.lstrip().startswith("<")
        data = data_of(text, where)["answer"] if is_report else json_of(text)
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None
    except ValueError:
        data = None
    if not isinstance(data, dict) or "answer_version" not in data:
        raise InputError(
            f"{where}: is no recommendation; write one with `iojoule recommend ... -o json > FILE`"
        )
    if data["answer_version"] != ANSWER_VERSION:
        raise SchemaVersionError(
            f"{where}: is a recommendation of version {data['answer_version']}, this iojoule knows "
            f"{ANSWER_VERSION}; ask again with the iojoule that is to act"
        )
    if data.get("recommended") is None:
        raise InfeasibleError(f"{where}: no configuration met the SLA, so there is nothing to set")
    try:
        return Answer.model_validate(data)
    except ValidationError as error:
        raise validation_error(error, where) from None
