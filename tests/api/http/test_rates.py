import pytest

from iojoule.api.http.access import RateLimiter
from iojoule.api.state.api_keys import ApiKey, Scope
from iojoule.api.state.callers import Limits
from iojoule.api.state.errors import RateError


def key(id_: str, rate: float | None, burst: int | None = None) -> ApiKey:
    limits = Limits(requests_per_second=rate, burst=burst)
    return ApiKey(id_, id_, Scope.READ, "", 0.0, None, id_, None, None, limits)


def admitted(rates: RateLimiter, one: ApiKey, times: list[float]) -> list[bool]:
    found = []
    for at in times:
        try:
            rates.admit(one, at)
        except RateError as error:
            left = error.exceeded.frees_in_seconds if error.exceeded else None
            rates.admit(one, at + (left or 0.0) + 1e-9)  # as it says
            found.append(False)
        else:
            found.append(True)
    return found


def test_a_burst_is_admitted_and_then_the_rate() -> None:
    assert admitted(RateLimiter(), key("a", 2.0, 3), [0.0, 0.0, 0.0, 0.0]) == [True] * 3 + [False]
    assert admitted(RateLimiter(), key("a", 2.0), [0.0, 0.0, 0.0]) == [True, True, False]
    assert admitted(RateLimiter(), key("a", 0.1), [0.0, 5.0]) == [True, False]
    steady = [number / 2.0 for number in range(100)]
    assert all(admitted(RateLimiter(), key("a", 2.0, 1), steady))


def test_over_any_time_no_more_is_admitted_than_burst_and_rate() -> None:
    rates, one, count = RateLimiter(), key("a", 5.0, 10), 0
    for number in range(10_000):
        try:
            rates.admit(one, number / 1000.0)
        except RateError:
            continue
        count += 1
    assert count == pytest.approx(10 + 5 * 10, abs=1)


def test_keys_do_not_use_up_each_others_rate() -> None:
    rates, one, other = RateLimiter(), key("a", 1.0), key("b", 1.0)
    rates.admit(one, 0.0)
    with pytest.raises(RateError):
        rates.admit(one, 0.0)
    rates.admit(other, 0.0)


def test_a_key_without_a_rate_asks_as_often_as_it_likes() -> None:
    assert all(admitted(RateLimiter(), key("a", None), [0.0] * 10_000))
