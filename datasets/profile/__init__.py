"""The device profile: everything fitted for one SSD model, as numbers in one JSON file.

A profile holds fitted parameters, knots and published figures with their sources; never raw
rows and never pickled objects. `iojoule.model` evaluates it with numpy alone. A new kind of
knowledge is a file here and a field of `DeviceProfile` that older profiles lack.
"""

from iojoule.datasets.profile.assessment import (
    Assessment,
    HeldOut,
    PerformancePoints,
    PowerPoints,
)
from iojoule.datasets.profile.document import (
    DATASETS_RECIPE,
    FACTS_RECIPE,
    DeviceProfile,
    DriveRating,
    SourceRecord,
    ValidFor,
)
from iojoule.datasets.profile.drive import (
    BackgroundWork,
    DevicePower,
    FlushCost,
    IdleBehaviour,
    LinkPower,
    LongWrites,
    Standby,
    StatePower,
    StateTransition,
    WriteCache,
    WriteState,
)
from iojoule.datasets.profile.evidence import (
    CurveDoubt,
    FactUsed,
    Ladder,
    LadderEntry,
)
from iojoule.datasets.profile.files import (
    PROFILE_SCHEMA_VERSION,
    fitted_by_another,
    load_shipped_profile,
    parse_profile,
    read_profile,
    shipped_profiles,
    write_profile,
)
from iojoule.datasets.profile.host import (
    EARLIER_LAW,
    POWER_PARAMETERS,
    Clock,
    DramPower,
    HostOperation,
    HostPath,
    HostPerformance,
    HostPower,
    IdleState,
    NumaCost,
    SchedulerCost,
    SystemPower,
    path_key,
)
from iojoule.datasets.profile.host_profile import (
    HOST_PROFILE_SCHEMA_VERSION,
    HostProfile,
    parse_host_profile,
    read_host_profile,
    write_host_profile,
)
from iojoule.datasets.profile.numbers import (
    Parameter,
)
from iojoule.datasets.profile.performance import (
    CEILING_COMMANDS,
    CEILING_SHARPNESS,
    Hull,
    IntervalWidth,
    MixedEffect,
    PowerStateEffect,
    ResidualTable,
    Surface,
    Tail,
)
from iojoule.datasets.profile.rebuilt import RatioError, RatioTable, Rebuilt
from iojoule.datasets.profile.simulated import (
    CalibratedParameter,
    Simulated,
    SimulatedError,
    SimulatedTable,
)
from iojoule.datasets.profile.state_residual import StateResidual

__all__ = [
    "CEILING_COMMANDS",
    "CEILING_SHARPNESS",
    "DATASETS_RECIPE",
    "EARLIER_LAW",
    "FACTS_RECIPE",
    "HOST_PROFILE_SCHEMA_VERSION",
    "POWER_PARAMETERS",
    "PROFILE_SCHEMA_VERSION",
    "Assessment",
    "BackgroundWork",
    "CalibratedParameter",
    "Clock",
    "CurveDoubt",
    "DevicePower",
    "DeviceProfile",
    "DramPower",
    "DriveRating",
    "FactUsed",
    "FlushCost",
    "HeldOut",
    "HostOperation",
    "HostPath",
    "HostPerformance",
    "HostPower",
    "HostProfile",
    "Hull",
    "IdleBehaviour",
    "IdleState",
    "IntervalWidth",
    "Ladder",
    "LadderEntry",
    "LinkPower",
    "LongWrites",
    "MixedEffect",
    "NumaCost",
    "Parameter",
    "PerformancePoints",
    "PowerPoints",
    "PowerStateEffect",
    "RatioError",
    "RatioTable",
    "Rebuilt",
    "ResidualTable",
    "SchedulerCost",
    "Simulated",
    "SimulatedError",
    "SimulatedTable",
    "SourceRecord",
    "Standby",
    "StatePower",
    "StateResidual",
    "StateTransition",
    "Surface",
    "SystemPower",
    "Tail",
    "ValidFor",
    "WriteCache",
    "WriteState",
    "fitted_by_another",
    "load_shipped_profile",
    "parse_host_profile",
    "parse_profile",
    "path_key",
    "read_host_profile",
    "read_profile",
    "shipped_profiles",
    "write_host_profile",
    "write_profile",
]
