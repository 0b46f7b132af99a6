"""Questions and answers of POST /predict: flat, with the field names of the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from iojoule.api.application.fields import FIELDS, field_type
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.quantities import ANSWERED
from iojoule.recommender.estimate import Ending

ROWS_MAX = 10_000

EXAMPLE: dict[str, Any] = {
    "device": "samsung-980-pro-1tb",
    "configurations": [
        {"operation": "read", "pattern": "random", "request_bytes": 4096, "queue_depth": 16},
        {
            "operation": "mixed",
            "read_fraction": 0.7,
            "request_bytes": 16384,
            "queue_depth": 8,
            "jobs": 4,
            "engine": "libaio",
            "power_state": 1,
        },
    ],
}


def _left_out_or(name: str) -> Any:
    """A field of the schema that may be left out, with its own range and words."""
    return (field_type(name) | None, None)


if TYPE_CHECKING:
    Configuration = Section

    class Predicted(BaseModel):
        """As made below, as far as types can be told."""

        evidence: Evidence
        evidence_by_quantity: dict[str, Evidence]

        def __getattr__(self, name: str) -> Any: ...

else:
    Configuration = create_model(
        "PredictConfiguration",
        __base__=Section,
        __doc__="Workload, configuration, state and conditions side by side; null = left out.",
        **{name: _left_out_or(name) for name in FIELDS},
    )
    Predicted = create_model(
        "Prediction",
        __base__=Configuration,
        __doc__="The question, then each quantity with its 90 % interval; null = unknown.",
        **dict.fromkeys(ANSWERED, (Ending | None, None)),
        evidence=Evidence,
        evidence_by_quantity=dict[str, Evidence],
    )


class PredictRequest(BaseModel):
    """Configurations to predict, in one go."""

    model_config = ConfigDict(extra="forbid")

    device: str = Field(description="Id, model or alias of a drive with a profile.")
    configurations: list[Configuration] = Field(min_length=1, max_length=ROWS_MAX)


class PredictResponse(BaseModel):
    """One prediction per configuration, in order.

    Attributes:
        defaults_used: Fields left out at least once, and what they took.
        without_effect: Fields of the question that change no figure.
    """

    device: str
    profile_version: str
    iojoule_version: str
    defaults_used: dict[str, Any]
    without_effect: list[str]
    predictions: list[Predicted]
