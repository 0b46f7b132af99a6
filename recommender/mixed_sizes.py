"""Requests of several sizes: the predictor that answers for them, and what is said of it."""

from __future__ import annotations

from iojoule.datasets.errors import InputError
from iojoule.model.evaluate.predictor import Predictor
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.workloads.sizes import mean_of, shares_of, stands_for


def predictor_for(
    single: Predictor, workload: WorkloadProfile, request_bytes: int
) -> tuple[Predictor, list[str]]:
    """What answers a workload, and notes on it.

    Args:
        single: For one size at a time.
        workload: The question.
        request_bytes: The size that today's configuration states: the mean of the mix.

    Raises:
        InputError: `request_bytes_mix` is no distribution, or one of another mean.
    """
    text = workload.workload.request_bytes_mix
    if text is None:
        return single, []
    from iojoule.model.evaluate.size_mix import SizeMixPredictor

    shares = shares_of(text)
    stated = workload.workload.useful_request_bytes or request_bytes
    if not stands_for(shares, stated):
        raise InputError(
            f"request_bytes_mix: its sizes have {mean_of(shares):.0f} bytes in the mean, and "
            f"useful_request_bytes is {stated}; state the mean there, or leave the mix out",
            field="workload.request_bytes_mix",
        )
    note = (
        f"request sizes are mixed: configurations with requests of {stated} bytes, their mean, are "
        f"answered for the mix of {len(shares)} sizes; enlarged requests have one size"
    )
    return SizeMixPredictor(single, shares, float(stated)), [note]
