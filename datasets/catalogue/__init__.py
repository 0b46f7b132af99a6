"""The catalogue of SSD models: what is published about each, with a source per fact.

One TOML file per model in `drives/`, named by its id. A fact says what somebody published; a
power-state table says what a drive declares, which is not what it draws. Nothing here is
fitted: predictions need a device profile.
"""

from iojoule.datasets.catalogue.contradictions import check_consistent
from iojoule.datasets.catalogue.drive import Drive, Fact, PowerState
from iojoule.datasets.catalogue.lookup import Catalogue, load_catalogue
from iojoule.datasets.catalogue.reading import load_drive_file
from iojoule.datasets.catalogue.references import Reference, load_references

__all__ = [
    "Catalogue",
    "Drive",
    "Fact",
    "PowerState",
    "Reference",
    "check_consistent",
    "load_catalogue",
    "load_drive_file",
    "load_references",
]
