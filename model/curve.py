"""The closed-loop saturation curve: mean latency of N requests in flight.

A drive that answers one request in R0 and at most Xmax requests a second follows
    R(N) = (R0^k + (N / Xmax)^k)^(1/k),    X(N) = N / R(N),
a smooth maximum of the unloaded latency and of the queueing time; k says how sharp the bend
is. It is the three-parameter curve of the modelling notes written for latency, so that
N = X R (Little) holds by construction. A host that needs t nanoseconds of a core for each
request adds a second bend of the same form at N t / min(jobs, cores).

Requests above the drive's maximum transfer size are split: the curve works on device commands,
with c = ceil(bytes / MDTS) commands in flight for each request.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def log_smooth_max(log_a: Floats, log_b: Floats, sharpness: Floats | float) -> Floats:
    """Return log((a^k + b^k)^(1/k)) for logs of a and b; any broadcastable shapes."""
    high = np.maximum(log_a, log_b)
    gap = np.abs(log_a - log_b)
    return np.asarray(high + np.log1p(np.exp(-sharpness * gap)) / sharpness)


def log_mean_latency(
    log_concurrency: Floats,
    log_unloaded_latency: Floats,
    log_capacity: Floats,
    sharpness: Floats,
) -> Floats:
    """Log mean latency of the device alone.

    Args:
        log_concurrency: log of device commands in flight.
        log_unloaded_latency: log R0, ns.
        log_capacity: log Xmax, commands per ns.
        sharpness: k, positive.

    Returns:
        log R, ns, broadcast shape.
    """
    return log_smooth_max(log_unloaded_latency, log_concurrency - log_capacity, sharpness)


def split_commands(request_bytes: Floats, max_transfer_bytes: float) -> tuple[Floats, Floats]:
    """Split requests at the maximum transfer size.

    Returns:
        `(commands per request, log2 of the bytes of one command)`.
    """
    commands = np.ceil(request_bytes / max_transfer_bytes)
    return commands, np.log2(request_bytes / commands)
