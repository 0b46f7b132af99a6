"""What the recommender does to every candidate, compiled."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


def non_dominated(costs: Annotated[NDArray[numpy.float64], dict(shape=(None, 3), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """
    1 for each row of the Pareto set, all three columns to be minimised; the first of equal rows stands for all of them.
    """
