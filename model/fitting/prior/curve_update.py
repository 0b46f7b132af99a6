"""What rows of measurements add to the prior of a drive: its curve, fitted within the prior.

The maximum a posteriori of all quantities together, and the Gaussian around it (Laplace), so that
random reads at two depths also say something of sequential writes. The curve is the physical one
(`model.curve`): five parameters a flow, and two factors of the host for all flows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from iojoule.model.curve import log_mean_latency, log_smooth_max, split_commands
from iojoule.model.fitting.parameters import (
    PathKey,
    PathPrior,
    physical_capacity,
    physical_unloaded,
)
from iojoule.model.fitting.rows import Rows
from iojoule.model.performance import WAKEUP_EXPONENT
from iojoule.model.prior.document import CURVE
from iojoule.model.prior.posterior import Posterior

Floats = NDArray[np.float64]

FORM_SD = 0.15
"""Log units by which drives stray from the physical curve: what it misses on the 980 PRO's and
the 860 PRO's rows, whose residuals a fit of many rows learns."""

HOST_SD = 0.4
"""Log sd of what an unknown host adds to a request and of its core time: the spread of the paths'
costs between the hosts of the public fio runs (recipes/common.toml)."""

HOST_SHARPNESS = 6.0


@dataclass(frozen=True)
class HostPrior:
    """Expected costs by path and scheduler, ns, and the size above which requests are split."""

    paths: Mapping[PathKey, PathPrior]
    schedulers: Mapping[str, tuple[float, float]]
    max_transfer_bytes: float


class _Flow:
    """The rows of one operation and pattern, ready for the curve."""

    def __init__(self, name: str, rows: Rows, host: HostPrior, posterior: Posterior) -> None:
        self.places = [posterior.index(f"{name}_{parameter}") for parameter in CURVE]
        self.commands, log2_bytes = split_commands(rows.request_bytes, host.max_transfer_bytes)
        self.size = np.maximum(np.exp2(log2_bytes), 4096.0)
        self.log_requests = np.log(rows.queue_depth * rows.jobs)
        self.log_cores = np.log(np.minimum(rows.jobs, rows.cores))
        costs = [host.paths[path] for path in rows.path()]
        extra = [host.schedulers.get(str(name), (0.0, 0.0)) for name in rows.scheduler]
        self.added_ns = np.array([one.added_latency_ns for one in costs])
        self.added_ns = self.added_ns + np.array([one[0] for one in extra])
        core = np.array([one.core_time_ns for one in costs]) + np.array([one[1] for one in extra])
        wakeup = np.array([one.wakeup_ns for one in costs])
        self.core_ns = core + wakeup * rows.queue_depth**-WAKEUP_EXPONENT
        self.log_latency = np.log(rows.latency_ns)
        self.sd = np.hypot(rows.relative_sd, FORM_SD)

    def misfit(self, vector: Floats, host: Floats) -> Floats:
        """Standard deviations between the curve and the rows."""
        latency, transfer, operations, rate, sharpness = vector[self.places]
        physical = np.array([latency, transfer, operations, rate]) + _PER_NS
        unloaded = np.exp(physical_unloaded(physical, self.size)) + self.added_ns * np.exp(host[0])
        capacity = physical_capacity(physical, self.size)
        log_commands = self.log_requests + np.log(self.commands)
        sharp = np.full_like(self.size, np.exp(np.clip(sharpness, -1.0, 3.0)))
        device = log_mean_latency(log_commands, np.log(unloaded), capacity, sharp)
        busy = self.log_requests + np.log(self.core_ns) + host[1] - self.log_cores
        return (log_smooth_max(device, busy, HOST_SHARPNESS) - self.log_latency) / self.sd


_PER_NS = np.log(np.array([1.0, 1e-9, 1e-9, 1e-9]))
"""From ns, bytes and operations a second to the curve's ns, bytes and operations a ns."""


def update(posterior: Posterior, rows: Mapping[str, Rows], host: HostPrior) -> Posterior:
    """Take in rows of measurements.

    Args:
        posterior: What is expected of the drive so far.
        rows: Rows by flow (`model.prior.document.FLOWS`).
        host: What the host is expected to cost.
    """
    flows = [_Flow(name, own, host, posterior) for name, own in rows.items() if len(own)]
    if not flows:
        return posterior
    root = np.linalg.cholesky(posterior.covariance + 1e-9 * np.eye(len(posterior.mean)))
    count = len(posterior.mean)

    def loss(z: Floats) -> Floats:
        vector, host_factors = posterior.mean + root @ z[:count], HOST_SD * z[count:]
        return np.concatenate([z, *(flow.misfit(vector, host_factors) for flow in flows)])

    solution = least_squares(loss, np.zeros(count + 2), loss="soft_l1", f_scale=3.0, max_nfev=60)
    jacobian = np.asarray(solution.jac)
    around = np.linalg.inv(jacobian.T @ jacobian)[:count, :count]
    return posterior.moved(posterior.mean + root @ solution.x[:count], root @ around @ root.T)
