"""From a request to a recommendation."""

from __future__ import annotations

from iojoule.api.application.recommend import answer
from iojoule.api.http import figures
from iojoule.api.http.predictors import ServedProfiles
from iojoule.api.http.recommend.schemas import RecommendationAnswer, RecommendRequest
from iojoule.datasets.errors import within


def recommend(profiles: ServedProfiles, request: RecommendRequest) -> RecommendationAnswer:
    """The answer; where nothing meets the SLA it holds the nearest misses.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for the drive.
        InputError: The workload or the conditions ask for what the drive or its profile does not
            have.
    """
    with within("device"):
        device = profiles.device_id(request.device)
    with within("conditions"):
        recommender = profiles.recommender_under(device, request.conditions)
    with within("workload_profile"):
        found = answer(recommender, request.workload_profile)
    figures.count_recommendation(found.evidence.values())
    return found
