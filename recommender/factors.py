"""What a year of work costs: the user's own factors for electricity, carbon and wear.

A configuration that draws E joules for a useful byte and writes w host bytes for it costs, for the
useful bytes U of a year,

    U (E x overhead x price of a joule + w x price of the drive / bytes that it is rated for),

and likewise in CO2, with the carbon intensity of the grid and what making the drive emitted. No
factor has a default but the overhead, which is none where it is not stated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator

from iojoule.datasets.errors import InputError
from iojoule.datasets.profile import DeviceProfile
from iojoule.datasets.schema import NonNegative, Positive, Section, number, validation_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Objective(StrEnum):
    """What is made small: of power, of energy for a piece of work, or of a year of the work.

    A year of the work costs energy, money and CO2 by the user's own factors
    (`recommender.factors`); wear counts where the drive's price or carbon is among them.
    """

    WATTS = "watts"
    JOULES_PER_USEFUL_GB = "joules_per_useful_gb"
    EDP = "edp"
    KWH_PER_YEAR = "kwh_per_year"
    COST = "cost"
    CO2 = "co2"


JOULES_A_KWH = 3.6e6

Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
"""Three letters of ISO 4217, as EUR."""


class EnergyFactors(Section):
    """What a kWh costs and emits.

    Attributes:
        electricity_price_per_kwh: In `currency`.
        currency: Of every price.
        power_usage_effectiveness: Energy of the whole building over that of its servers (ISO/IEC
            30134-2): what cooling and distribution add. None counts as 1; the energy itself is
            always stated without it.
        grid_carbon_grams_per_kwh: CO2 equivalent of a kWh from the grid.
    """

    electricity_price_per_kwh: Positive | None = None
    currency: Currency | None = None
    power_usage_effectiveness: Annotated[float, Field(ge=1.0, le=10.0), number] | None = None
    grid_carbon_grams_per_kwh: NonNegative | None = None

    @model_validator(mode="after")
    def _prices_have_a_currency(self) -> Self:
        for name in ("electricity_price_per_kwh", "drive_price"):
            if getattr(self, name, None) is not None and self.currency is None:
                raise ValueError(f"currency: {name} is stated without one; say which, as EUR")
        return self

    @property
    def overhead(self) -> float:
        """Factor on the energy of the servers."""
        return self.power_usage_effectiveness or 1.0

    @property
    def grid_carbon_kilograms_per_kwh(self) -> float | None:
        """CO2 equivalent of a kWh in kg."""
        grams = self.grid_carbon_grams_per_kwh
        return None if grams is None else grams / 1000.0


class Factors(EnergyFactors):
    """What a kWh and a drive cost and emit.

    Attributes:
        drive_price: Of one drive, in `currency`: spread over the bytes that it is rated for, so
            that wear has a price. None leaves wear out of the cost.
        drive_carbon_kilograms: CO2 equivalent of making one drive, spread likewise.
    """

    drive_price: Positive | None = None
    drive_carbon_kilograms: Positive | None = None


@dataclass(frozen=True)
class Rate:
    """What a kWh and a host byte written cost, in one unit; kWh include the overhead."""

    per_kwh: float
    per_written_byte: float = 0.0


YEARLY = {
    Objective.KWH_PER_YEAR: "kwh_per_year",
    Objective.COST: "cost_per_year",
    Objective.CO2: "co2_kilograms_per_year",
}
"""Objectives that count a year's work, and the field of an answer that holds each."""

_NEEDED = {
    Objective.COST: "electricity_price_per_kwh",
    Objective.CO2: "grid_carbon_grams_per_kwh",
}
_EXAMPLES = {Objective.COST: "--price 0.30EUR/kWh", Objective.CO2: "--carbon 380g/kWh"}


@dataclass(frozen=True)
class Year:
    """A year of the work, and what it costs by every factor that is stated.

    Attributes:
        useful_bytes: Work of a year.
        written_by_the_work: Host bytes that the work itself writes for a useful byte, in every
            configuration.
        rates: By objective.
    """

    useful_bytes: float
    written_by_the_work: float
    rates: Mapping[Objective, Rate]

    def cost(
        self, objective: Objective, joules_per_byte: Floats, written_per_byte: Floats
    ) -> Floats:
        """A year of work at so much energy and so many written host bytes for a useful byte.

        Shapes as they come: one value a configuration.
        """
        rate = self.rates[objective]
        energy = rate.per_kwh / JOULES_A_KWH * joules_per_byte
        return self.useful_bytes * (energy + rate.per_written_byte * written_per_byte)


def rates_of(
    factors: Factors, profile: DeviceProfile, objective: Objective | None, *, writes: bool
) -> dict[Objective, Rate]:
    """Rates of everything that the factors tell.

    Args:
        factors: The user's.
        profile: Its rated endurance spreads what the drive costs.
        objective: What is made small; the factor that it needs must be there.
        writes: Whether the workload writes.

    Raises:
        InputError: The objective's factor is missing, or what the drive costs cannot be spread
            over an endurance that nobody knows.
    """
    needed = _NEEDED.get(objective) if objective is not None else None
    if objective is not None and needed is not None and getattr(factors, needed) is None:
        raise InputError(
            f"factors.{needed}: is not stated, and objective {objective.value} needs it; no price "
            f"or intensity is assumed: say {_EXAMPLES[objective]}, or put it under [factors] in "
            "the workload profile",
            field=f"factors.{needed}",
        )
    found = {Objective.KWH_PER_YEAR: Rate(1.0)}
    for name, per_kwh, drive in (
        (Objective.COST, factors.electricity_price_per_kwh, "drive_price"),
        (Objective.CO2, factors.grid_carbon_kilograms_per_kwh, "drive_carbon_kilograms"),
    ):
        spread = getattr(factors, drive)
        wear = 0.0
        if spread is not None and writes:
            wear = spread / rated_bytes(profile, f"factors.{drive}")
        if per_kwh is not None:
            found[name] = Rate(per_kwh * factors.overhead, wear)
    return found


def rated_bytes(profile: DeviceProfile, field: str) -> float:
    """Host bytes that a drive is rated for, over which its price is spread.

    Raises:
        InputError: The profile has no rating.
    """
    if profile.endurance_bytes_written is None:
        raise InputError(
            f"{field}: the profile of {profile.model_name} has no endurance rating to spread it "
            "over; leave it out, or add `endurance_bytes_written` to the drive's facts",
            field=field,
        )
    return profile.endurance_bytes_written.value


_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*(?:/\s*([kM]?Wh))?\s*")
_KWH = {"kWh": 1.0, "MWh": 1e-3}
_GRAMS = {"g": 1.0, "kg": 1e3, "t": 1e6}


def stated_factors(
    price: str | None = None,
    carbon: str | None = None,
    pue: float | None = None,
    drive_price: str | None = None,
    drive_carbon: str | None = None,
) -> dict[str, Any]:
    """Fields of `Factors` from amounts as people write them.

    Args:
        price: Of electricity, as `0.30EUR/kWh`.
        carbon: Of the grid, as `380g/kWh`.
        pue: Power usage effectiveness.
        drive_price: As `120EUR`.
        drive_carbon: As `50kg`.

    Raises:
        InputError: Not such an amount, or two currencies.
    """
    found: dict[str, Any] = {}
    currencies = {}
    if price is not None:
        value, currencies["--price"], per = _amount("--price", price, "0.30EUR/kWh", energy=True)
        found["electricity_price_per_kwh"] = value * per
    if drive_price is not None:
        value, currencies["--drive-price"], _ = _amount("--drive-price", drive_price, "120EUR")
        found["drive_price"] = value
    if carbon is not None:
        value, unit, per = _amount("--carbon", carbon, "380g/kWh", energy=True)
        found["grid_carbon_grams_per_kwh"] = value * per * _grams("--carbon", unit)
    if drive_carbon is not None:
        value, unit, _ = _amount("--drive-carbon", drive_carbon, "50kg")
        found["drive_carbon_kilograms"] = value * _grams("--drive-carbon", unit) / 1e3
    if pue is not None:
        found["power_usage_effectiveness"] = pue
    if len(set(currencies.values())) > 1:
        said = " and ".join(f"{name} in {unit}" for name, unit in currencies.items())
        raise InputError(f"{said}: state both in one currency", field="factors.currency")
    if currencies:
        found["currency"] = next(iter(currencies.values()))
    try:
        Factors.model_validate({"currency": "XXX", **found})
    except ValidationError as error:
        raise validation_error(error, "factors") from None
    return found


def _amount(
    option: str, text: str, example: str, *, energy: bool = False
) -> tuple[float, str, float]:
    """Number, unit and, of an amount per energy, the factor that makes it one per kWh."""
    match = _AMOUNT.fullmatch(text)
    if match is None or (match[3] is not None) != energy or match[3] not in (None, *_KWH):
        raise InputError(f"{option} {text}: write it as {example}", field=option)
    return float(match[1]), match[2], _KWH[match[3]] if energy else 1.0


def _grams(option: str, unit: str) -> float:
    if unit not in _GRAMS:
        raise InputError(f"{option}: {unit!r} is no mass; say g, kg or t", field=option)
    return _GRAMS[unit]
