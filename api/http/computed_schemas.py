"""Requests and responses of /predict and the lists of devices and presets, for the client too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from iojoule.api.application.devices import DeviceSummary
from iojoule.api.application.fields import FIELDS, field_type
from iojoule.datasets.schema import Section
from iojoule.datasets.vocabulary import Evidence
from iojoule.model.evaluate.quantities import ANSWERED
from iojoule.recommender.response import Ending
from iojoule.recommender.workloads.presets import Preset

ROWS_MAX = 10_000

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
        **{name: (field_type(name) | None, None) for name in FIELDS},
    )
    Predicted = create_model(
        "Prediction",
        __base__=Configuration,
        __doc__="The request, then each quantity with its 90 % interval; null = unknown.",
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
        defaults_used: Fields left out at least once, and their default values.
        without_effect: Fields of the request that change no quantity.
    """

    device: str
    profile_version: str
    iojoule_version: str
    defaults_used: dict[str, Any]
    without_effect: list[str]
    predictions: list[Predicted]


class DeviceList(BaseModel):
    """Every SSD model of the catalogue."""

    iojoule_version: str
    devices: list[DeviceSummary]


class PresetList(BaseModel):
    """Workload profiles of well-known benchmarks."""

    iojoule_version: str
    presets: list[Preset]
