"""From a request to a recommendation."""

from __future__ import annotations

from iojoule.api.http.places import within
from iojoule.api.http.predictors import recommender_for
from iojoule.api.http.recommend.schemas import RecommendationAnswer, RecommendRequest
from iojoule.api.recommendations import answer


def recommend(request: RecommendRequest) -> RecommendationAnswer:
    """The answer; where nothing meets the SLA it holds the nearest misses.

    Raises:
        UnknownDeviceError, NoProfileError: Nothing can be predicted for the drive.
        InputError: The workload asks for what the drive or its profile does not have.
    """
    with within("device"):
        recommender = recommender_for(request.device)
    with within("workload_profile"):
        return answer(recommender, request.workload_profile)
