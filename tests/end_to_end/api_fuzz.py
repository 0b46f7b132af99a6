"""Fuzzes a running service by its own description (schemathesis) and reads what came of it."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iojoule.api.problem_document import MEDIA_TYPE

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")

TYPED = (
    "Input should be a valid",
    "Field required",
    "Extra inputs are not permitted",
    "unknown field",
)
"""How pydantic speaks of types: what the description lets pass must not be refused so."""


@dataclass
class Fuzzed:
    """What a run of schemathesis did.

    Attributes:
        cases: Requests by operation; those in sequence count as one more, "Stateful tests".
        statuses: Answers by status.
        failures: What its checks and those of `_wrong` found, each with the request.
    """

    cases: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        statuses = ", ".join(f"{status}: {n}" for status, n in sorted(self.statuses.items()))
        operations = len(self.cases.keys() - {"Stateful tests"})
        return f"{self.cases.total()} cases of {operations} operations; {statuses}"


def fuzz(url: str, folder: Path, *, seed: int, examples: int, phases: str) -> Fuzzed:
    """Fuzz all operations of a service.

    Args:
        url: Of the service.
        folder: For the record of all requests and answers.
        seed: Of the cases; the same one gives the same cases of the same description.
        examples: Of an operation and phase, at most.
        phases: Those of schemathesis, with commas.
    """
    record = folder / "fuzz.ndjson"
    told = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--no-color",
            "--config-file", str(CONFIGURATION), "run", f"{url}/openapi.json",
            "--seed", str(seed), "-n", str(examples), "--phases", phases, "--workers", "2",
            "--continue-on-failure", "--no-shrink", "--request-timeout", "60",
            "--report", "ndjson", "--report-ndjson-path", str(record),
        ],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = Fuzzed()
    for recorder in _recorders(record):
        for name, case in recorder.get("cases", {}).items():
            answer = recorder.get("interactions", {}).get(name, {}).get("response")
            value = case["value"]
            found.cases[recorder["label"]] += 1
            asked = f"{value['method']} {value['path']} {value.get('query')} {value.get('body')}"
            checks = recorder.get("checks", {}).get(name, ())
            bad = [_said(one) for one in checks if one["status"] == "failure"]
            if answer is None:
                bad.append("no answer")
            else:
                found.statuses[answer["status_code"]] += 1
                bad += _wrong(answer, value)
            found.failures += [f"{each}: {asked[:500]}" for each in bad]
    assert found.cases, told.stdout + told.stderr
    return found


def _recorders(record: Path) -> Iterator[dict[str, Any]]:
    with record.open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if "ScenarioFinished" in event:
                yield event["ScenarioFinished"]["recorder"]


def _said(check: dict[str, Any]) -> str:
    failure = check.get("failure_info", {}).get("failure", {})
    return f"{check['name']}: {failure.get('title')} {str(failure.get('message'))[:200]}"


def _wrong(answer: dict[str, Any], case: dict[str, Any]) -> Iterator[str]:
    """What schemathesis does not look for: errors are problems, and no type is refused wrongly."""
    status = answer["status_code"]
    if status < 400 or case["method"] == "HEAD":
        return
    kind = answer["headers"].get("content-type", ["none"])[0]
    if kind != MEDIA_TYPE:
        yield f"{status} is {kind}"
        return
    problem = json.loads(base64.b64decode(answer["content"]["$base64"]))
    lacking = {"type", "title", "status", "detail", "instance", "request_id"} - set(problem)
    if lacking or problem["status"] != status:
        yield f"{status} is no whole problem: {problem}"
    meta = case.get("meta") or {}
    if meta.get("generation", {}).get("mode") == "positive":
        refused = [one["detail"] for one in problem.get("errors") or ()]
        for detail in refused:
            if detail.startswith(TYPED):
                yield f"what the description lets pass is refused: {detail}"
