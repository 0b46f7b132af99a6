"""Options that state what energy and wear cost."""

from __future__ import annotations

from typing import Annotated

import typer

PriceOption = Annotated[
    str | None, typer.Option("--price", metavar="AMOUNT", help="Of electricity: 0.30EUR/kWh.")
]
CarbonOption = Annotated[
    str | None, typer.Option("--carbon", metavar="AMOUNT", help="CO2 of the grid: 380g/kWh.")
]
PueOption = Annotated[
    float | None,
    typer.Option(
        "--pue", min=1.0, max=10.0, help="Energy of the building over its servers', as 1.4."
    ),
]
DrivePriceOption = Annotated[
    str | None,
    typer.Option(
        "--drive-price", metavar="AMOUNT", help="Of one drive: 120EUR; its wear then costs."
    ),
]
DriveCarbonOption = Annotated[
    str | None,
    typer.Option("--drive-carbon", metavar="AMOUNT", help="CO2 of making one drive: 50kg."),
]
