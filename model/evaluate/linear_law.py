"""Laws that are linear in their parameters: their values and variances, many rows at once.

Written out by column instead of as matrix products: the threads that a BLAS starts for n rows of
half a dozen regressors cost more than they save, and on a busy machine several times more.
"""

from __future__ import annotations

import numpy as np

from iojoule.model.evaluate.bands import Floats


def values(x: Floats, theta: Floats) -> Floats:
    """Return x theta, shape (n,), for regressors x of shape (n, k)."""
    total = x[:, 0] * theta[0]
    for column in range(1, len(theta)):
        total += x[:, column] * theta[column]
    return np.asarray(total)


def variances(x: Floats, covariance: Floats) -> Floats:
    """Return the diagonal of x C x', shape (n,), for a symmetric C of shape (k, k)."""
    columns = np.ascontiguousarray(x.T)
    total = np.zeros(len(x))
    for row, (column, shared) in enumerate(zip(columns, covariance.tolist(), strict=True)):
        if not column.any():
            continue
        inner = column * shared[row]
        for other in range(row + 1, len(columns)):
            if shared[other] != 0.0:
                inner += columns[other] * (2.0 * shared[other])
        total += inner * column
    return total
