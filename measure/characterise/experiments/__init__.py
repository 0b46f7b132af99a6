"""The characterisation experiments in execution order: a new one is one line here.

The write cache comes early, on a drive that is used only in its first area; what it writes in
order is what the others read.
"""

from __future__ import annotations

from collections.abc import Sequence

from iojoule.measure.characterise.experiment import Experiment
from iojoule.measure.characterise.experiments.alignment import Alignment
from iojoule.measure.characterise.experiments.asymmetry import Asymmetry
from iojoule.measure.characterise.experiments.idle_states import IdleStates
from iojoule.measure.characterise.experiments.locality import Locality, WritePattern
from iojoule.measure.characterise.experiments.proportionality import EnergyProportionality
from iojoule.measure.characterise.experiments.saturation import SaturationDepth
from iojoule.measure.characterise.experiments.settle import SettleTime
from iojoule.measure.characterise.experiments.slc_cache import Background, SlcCache
from iojoule.measure.errors import CampaignError

EXPERIMENTS: tuple[Experiment, ...] = (
    IdleStates(),
    SlcCache(),
    SaturationDepth(),
    Locality(),
    EnergyProportionality(),
    SettleTime(),
    Alignment(),
    WritePattern(),
    Background(),
    Asymmetry(),
)


def chosen(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The named experiments in execution order; none = all.

    Raises CampaignError if one is unknown.
    """
    known = {experiment.name for experiment in EXPERIMENTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CampaignError(
            f"--only {unknown[0]}: there is no such experiment; experiments are "
            f"{', '.join(experiment.name for experiment in EXPERIMENTS)}",
            field="only",
        )
    return tuple(experiment for experiment in EXPERIMENTS if not names or experiment.name in names)
