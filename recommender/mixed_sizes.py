"""Requests of several sizes: the predictor that answers for them, and what is said of it."""

from __future__ import annotations

from iojoule.model.evaluate.predictor import Predictor
from iojoule.recommender.request import WorkloadProfile
from iojoule.recommender.workloads.sizes import shares_of

MEAN_WITHIN = 0.1
"""The sizes that are listed stand for all where their mean is within so much of the stated one."""


def predictor_for(
    single: Predictor, workload: WorkloadProfile, request_bytes: int
) -> tuple[Predictor, list[str]]:
    """What answers a workload, and notes on it.

    Args:
        single: For one size at a time.
        workload: The question.
        request_bytes: The size that today's configuration states: the mean of the mix.

    Raises:
        InputError: `request_bytes_mix` is no distribution.
    """
    text = workload.workload.request_bytes_mix
    if text is None:
        return single, []
    from iojoule.model.evaluate.size_mix import SizeMixPredictor

    shares = shares_of(text)
    mean = sum(size * share for size, share in shares.items())
    stated = workload.workload.useful_request_bytes or request_bytes
    if abs(mean - stated) > MEAN_WITHIN * stated:
        note = (
            f"request sizes are mixed, but those listed have {mean:.0f} bytes in the mean and "
            f"useful_request_bytes says {stated}: they do not stand for all, so the answer is that "
            "of one size of the stated mean; its tail is too short"
        )
        return single, [note]
    note = (
        f"request sizes are mixed: configurations with requests of {stated} bytes, their mean, are "
        f"answered for the mix of {len(shares)} sizes; enlarged requests have one size"
    )
    return SizeMixPredictor(single, shares, float(stated)), [note]
