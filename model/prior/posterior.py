"""A drive's own point in the learned prior, given the facts that are known of it.

Everything is Gaussian in logarithms, so facts are taken in by one linear update. Where class or
memory are unknown each possibility is taken in turn, weighed by its share and by how well it
explains the facts, and the mixture is summed up by its mean and covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from iojoule.model.evaluate.bands import Floats
from iojoule.model.prior.document import EFFECTS, LearnedPrior, load_assumptions
from iojoule.model.prior.facts import DriveFacts, Observation


@dataclass(frozen=True)
class Posterior:
    """What is expected of one drive.

    Attributes:
        prior: Names the quantities.
        mean: Logarithms, shape (q,).
        covariance: Shape (q, q).
        observations: The facts that were taken in.
        group: Regressors of EFFECTS that the drive most likely has, shape (effects,).
    """

    prior: LearnedPrior
    mean: Floats
    covariance: Floats
    observations: tuple[Observation, ...]
    group: Floats

    def share(self, effect: str) -> float:
        """How likely the drive is of that group, 0 to 1."""
        return float(self.group[EFFECTS.index(effect)])

    def index(self, quantity: str) -> int:
        """Place of a quantity."""
        return self.prior.quantities.index(quantity)

    def value(self, quantity: str) -> float:
        """Median of a quantity, in its unit."""
        return float(np.exp(self.mean[self.index(quantity)]))

    def sd(self, quantity: str) -> float:
        """Standard deviation of its logarithm."""
        place = self.index(quantity)
        return float(np.sqrt(self.covariance[place, place]))

    def part(self, quantities: Sequence[str]) -> tuple[Floats, Floats]:
        """Mean and covariance of some quantities."""
        indices = [self.index(name) for name in quantities]
        return self.mean[indices], self.covariance[np.ix_(indices, indices)]

    def moved(self, mean: Floats, covariance: Floats) -> Posterior:
        """The same drive after more was learned of it."""
        return Posterior(self.prior, mean, covariance, self.observations, self.group)


def condition(prior: LearnedPrior, drive: DriveFacts) -> Posterior:
    """Take in what is known of a drive."""
    weight, groups, parts = _mixture(prior, drive)
    mean = sum((w * part[0] for w, part in zip(weight, parts, strict=True)), np.zeros(1))
    covariance = np.zeros((len(mean), len(mean)))
    for w, (own, own_covariance) in zip(weight, parts, strict=True):
        covariance += w * (own_covariance + np.outer(own - mean, own - mean))
    group = np.asarray(weight @ np.array(groups))
    return Posterior(prior, mean, covariance, tuple(drive.observations), group)


def expected_group(prior: LearnedPrior, drive: DriveFacts) -> Floats:
    """Regressors of EFFECTS that a drive most likely has, given its facts; shape (effects,)."""
    return condition(prior, drive).group


def _mixture(
    prior: LearnedPrior, drive: DriveFacts
) -> tuple[Floats, list[Floats], list[tuple[Floats, Floats]]]:
    """Weight, regressors, and mean and covariance of each group that the drive may belong to."""
    groups, log_weights, parts = [], [], []
    for group, share in possible_groups(drive):
        mean, covariance = _group_prior(prior, group)
        mean, covariance, log_likelihood = _update(prior, mean, covariance, drive.observations)
        groups.append(group)
        log_weights.append(np.log(share) + log_likelihood)
        parts.append((mean, covariance))
    weight = np.exp(np.array(log_weights) - max(log_weights))
    return weight / weight.sum(), groups, parts


def possible_groups(drive: DriveFacts) -> list[tuple[Floats, float]]:
    """Every group that the drive may belong to, as regressors of EFFECTS, with its share."""
    shares = load_assumptions()
    generations = [(float(name) - 3.0, share) for name, share in shares.generation_shares.items()]
    if drive.generation is not None:
        generations = [(drive.generation - 3.0, 1.0)]
    groups = []
    for sata, datacentre, xpoint, qlc in product(
        _options(drive.sata, shares.sata_share),
        _options(drive.datacentre, shares.datacentre_share),
        _options(drive.xpoint, shares.xpoint_share),
        _options(drive.qlc, shares.qlc_share),
    ):
        share = sata[1] * datacentre[1] * xpoint[1] * qlc[1]
        for generation in [(0.0, 1.0)] if sata[0] else generations:
            both = sata[0] * datacentre[0]
            regressors = (1.0, sata[0], datacentre[0], xpoint[0], generation[0], qlc[0], both)
            groups.append((np.array(regressors), share * generation[1]))
    return groups


def _options(known: bool | None, share: float) -> list[tuple[float, float]]:
    """Values of a regressor with their shares."""
    return [(0.0, 1.0 - share), (1.0, share)] if known is None else [(float(known), 1.0)]


def _group_prior(prior: LearnedPrior, group: Floats) -> tuple[Floats, Floats]:
    mean = np.array(prior.effects) @ group
    doubt = np.einsum("i,qij,j->q", group, np.array(prior.effect_covariance), group)
    scale = spread_scale(prior.quantities, group)
    return mean, np.array(prior.spread) * np.outer(scale, scale) + np.diag(doubt)


def spread_scale(quantities: Sequence[str], group: Floats) -> Floats:
    """Spread of a group's drives over the learned one, by quantity.

    Args:
        quantities: Names.
        group: Regressors of EFFECTS, expected ones where the group is not known.
    """
    known, sata = load_assumptions().quantities, float(group[EFFECTS.index("sata")])
    return np.array([known[name].sata_scale ** sata for name in quantities])


def _update(
    prior: LearnedPrior, mean: Floats, covariance: Floats, observations: Sequence[Observation]
) -> tuple[Floats, Floats, float]:
    """Mean, covariance and log likelihood after observations."""
    if not observations:
        return mean, covariance, 0.0
    h = design(prior.quantities, observations)
    offsets = np.array([prior.offsets[observation.kind] for observation in observations])
    noise = np.diag([observation.sd**2 for observation in observations])
    for kind in {
        observation.kind for observation in observations
    }:  # facts of a kind share its unknown offset
        same = np.array([observation.kind == kind for observation in observations], dtype=float)
        noise += prior.offsets[kind][1] ** 2 * np.outer(same, same)
    miss = (
        np.array([observation.log_value for observation in observations]) - offsets[:, 0] - h @ mean
    )
    total = h @ covariance @ h.T + noise
    gain = np.linalg.solve(total, h @ covariance).T
    _, log_det = np.linalg.slogdet(total)
    log_likelihood = -0.5 * float(miss @ np.linalg.solve(total, miss) + log_det)
    after = covariance - gain @ h @ covariance
    return mean + gain @ miss, 0.5 * (after + after.T), log_likelihood


def design(quantities: Sequence[str], observations: Sequence[Observation]) -> Floats:
    """Which quantities each observation tells of, shape (observations, quantities)."""
    h = np.zeros((len(observations), len(quantities)))
    for row, observation in enumerate(observations):
        for name, weight in observation.weights.items():
            h[row, list(quantities).index(name)] = weight
    return h
