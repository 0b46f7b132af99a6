"""The learned prior as one document, and the assumptions that it was learned from."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import Parameter
from iojoule.datasets.schema import Section, validation_error
from iojoule.datasets.vocabulary import Evidence

EFFECTS = ("centre", "sata", "datacentre", "xpoint", "generation", "qlc", "sata_datacentre")
"""What moves the mean of a quantity: the consumer NVMe drive of TLC flash at PCIe 3.0, and what
groups add. `generation` counts from 3.0 and is 0 for other interfaces; `sata_datacentre` is what
the two together add beside each."""

FLOWS = ("read_random", "read_sequential", "write_random", "write_sequential")
"""Operation and pattern of a surface; each has the five parameters below."""

CURVE = (
    "latency_ns",
    "transfer_bytes_per_second",
    "operations_per_second",
    "bytes_per_second",
    "sharpness",
)
"""Parameters of the physical curve: unloaded latency = a + bytes / b, capacity = min(I, B / bytes)
and the bend k (see `model.evaluate.surface`)."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class Quantity(Section):
    """A quantity before the catalogue speaks; group effects and sd in log units.

    Attributes:
        sata_scale: Spread of SATA drives over that of NVMe ones.
        effect_sd: Of a group effect, where it is not the common one.
    """

    unit: str
    centre: Positive
    sd: Positive
    sata: float = 0.0
    datacentre: float = 0.0
    xpoint: float = 0.0
    generation: float = 0.0
    qlc: float = 0.0
    sata_datacentre: float = 0.0
    sata_scale: Positive = 1.0
    effect_sd: Positive | None = None
    loadings: tuple[float, float, float, float, float, float]


class Kind(Section):
    """How a kind of fact tells of a quantity (log units)."""

    offset: float = 0.0
    offset_sd: NonNegative = 0.0
    sd: Positive
    why: str


class ConditionPrior(Section):
    """How far an unknown condition may move throughput, latency and watts (log sd)."""

    sd: Positive
    why: str


class Assumptions(Section):
    """The stated hyperpriors (`assumptions.toml`)."""

    schema_version: Literal[1]
    centre_sd: Positive
    effect_sd: Positive
    spread_drives: Positive
    sata_share: Annotated[float, Field(gt=0, lt=1)]
    datacentre_share: Annotated[float, Field(gt=0, lt=1)]
    xpoint_share: Annotated[float, Field(gt=0, lt=1)]
    qlc_share: Annotated[float, Field(gt=0, lt=1)]
    generation_shares: dict[str, Annotated[float, Field(gt=0, lt=1)]]
    quantities: dict[str, Quantity]
    kinds: dict[str, Kind]
    conditions: dict[str, ConditionPrior]


class LearnedSource(Section):
    """One source of the prior: how many drives and figures came from it."""

    name: str
    drives: int
    figures: int


class LearnedPrior(Section):
    """Group means, spread and offsets as learned; everything in log units.

    Attributes:
        quantities: Names in the order of every array below.
        effects: Mean of a quantity by EFFECTS, shape (quantities, effects).
        effect_covariance: Its covariance, shape (quantities, effects, effects).
        spread: Covariance of drives around their group, shape (quantities, quantities).
        offsets: By kind of fact: learned offset and its sd.
        drives: How many drives told of each quantity.
    """

    schema_version: Literal[1]
    generator: str
    quantities: list[str]
    effects: list[list[float]]
    effect_covariance: list[list[list[float]]]
    spread: list[list[float]]
    offsets: dict[str, tuple[float, float]]
    drives: list[int]
    sources: list[LearnedSource]


@cache
def load_assumptions() -> Assumptions:
    """The stated hyperpriors that ship."""
    text = resources.files("iojoule.model.prior").joinpath("assumptions.toml").read_text("utf-8")
    return Assumptions.model_validate(tomllib.loads(text))


@cache
def load_prior() -> LearnedPrior:
    """The learned prior that ships.

    Raises:
        InputError: The file is damaged.
    """
    where = "model/prior/learned.json"
    data = resources.files("iojoule.model.prior").joinpath("learned.json").read_bytes()
    try:
        return LearnedPrior.model_validate_json(data)
    except ValidationError as error:
        raise validation_error(error, where) from None
    except ValueError as error:
        raise InputError(f"{where}: {error}; install iojoule again") from None


def six_digits(values: Iterable[float]) -> list[float]:
    """Numbers with the digits that an expected profile keeps."""
    return [float(f"{value:.6g}") for value in values]


def number(name: str, value: float, sd: float, unit: str, source: str) -> Parameter:
    """An expected parameter with the digits that a profile keeps; its evidence is a data sheet."""
    value, sd = six_digits((value, sd))
    return Parameter(
        name=name, value=value, sd=sd, unit=unit, evidence=Evidence.DATASHEET, source=source
    )
