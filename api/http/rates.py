"""How often each key may ask: a bucket of tokens for each, filled steadily."""

from __future__ import annotations

import math
import time

from iojoule.api.state.api_keys import ApiKey
from iojoule.api.state.errors import Exceeded, RateError


class Rates:
    """Counts the requests of keys in this process; several replicas count each for itself."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}

    def admit(self, key: ApiKey, at: float | None = None) -> None:
        """Return where a key may ask once more, and count that.

        Args:
            key: Which.
            at: Seconds of the monotonic clock; None: now.

        Raises:
            RateError: It has asked too often; says when it may again.
        """
        rate = key.limits.requests_per_second
        if rate is None:
            return
        at = time.monotonic() if at is None else at
        size = float(key.limits.burst or max(1, math.ceil(rate)))
        tokens, since = self._buckets.get(key.id, (size, at))
        tokens = min(size, tokens + (at - since) * rate)
        if tokens < 1.0:
            self._buckets[key.id] = tokens, at
            raise RateError.of(
                f"key {key.id} asks more than {rate:g} times a second ({size:g} at once)",
                Exceeded("rate", rate, rate, (1.0 - tokens) / rate),
            )
        self._buckets[key.id] = tokens - 1.0, at
