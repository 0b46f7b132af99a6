"""A measured point: a configuration under a workload."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from iojoule.datasets.schema import Configuration, Workload


@dataclass(frozen=True)
class Point:
    """One configuration under one workload."""

    workload: Workload
    configuration: Configuration

    @property
    def key(self) -> str:
        """Tells points apart, in every process alike."""
        fields = {
            **self.workload.model_dump(mode="json", exclude_none=True),
            **self.configuration.model_dump(mode="json", exclude_none=True),
        }
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def writes(self) -> bool:
        """Whether it changes what is on the drive."""
        return self.workload.operation != "read"
