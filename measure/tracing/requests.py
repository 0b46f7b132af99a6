"""Requests of the block layer, put together from its events.

Events, in the order a request meets them (include/trace/events/block.h of Linux 6.1): a bio is
queued, gets a request or is merged into one that waits; the request is issued to the driver and
completed, perhaps in parts. A request is found by device, direction and first sector; of several
the oldest is meant. A bio that is split has no event for its second part, which is queued when it
gets its request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

QUEUE, GET, BACK, FRONT, MERGE, ISSUE, REQUEUE, COMPLETE = (
    "block_bio_queue",
    "block_getrq",
    "block_bio_backmerge",
    "block_bio_frontmerge",
    "block_rq_merge",
    "block_rq_issue",
    "block_rq_requeue",
    "block_rq_complete",
)
EVENTS = (QUEUE, GET, BACK, FRONT, MERGE, ISSUE, REQUEUE, COMPLETE)

OPERATIONS = {"R": "read", "W": "write", "D": "discard", "F": "flush"}
"""By the letter in `rwbs`; all others are `other`."""

UNKNOWN = -1
"""A time that no event states."""


class Event(NamedTuple):
    """One event; `sectors` is the length, `error` 0 without one."""

    name: str
    at_ns: int
    sector: int
    sectors: int
    rwbs: str
    error: int = 0

    @property
    def operation(self) -> str:
        """Letter of the operation; a flush before it is another request."""
        letters = self.rwbs
        return letters[1] if letters[:1] == "F" and letters[1:2] in OPERATIONS else letters[:1]


@dataclass(slots=True, eq=False)
class Request:
    """One request; times are CLOCK_MONOTONIC, `UNKNOWN` where no event states them."""

    operation: str
    sector: int
    sectors: int
    queued_ns: int
    issued_ns: int = UNKNOWN
    completed_ns: int = UNKNOWN
    merges: int = 0
    requeues: int = 0
    error: int = 0
    rwbs: str = ""
    left: int = 0


_Key = tuple[str, int]


@dataclass
class _Waiting:
    """Requests that have not reached a state, by operation and sector, oldest first."""

    by_key: dict[_Key, list[Request]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: _Key, request: Request) -> None:
        self.by_key[key].append(request)

    def take(self, key: _Key) -> Request | None:
        waiting = self.by_key.get(key)
        if not waiting:
            return None
        oldest = waiting.pop(0)
        if not waiting:
            del self.by_key[key]
        return oldest

    def remove(self, key: _Key, request: Request) -> None:
        waiting = self.by_key.get(key, [])
        if request in waiting:
            waiting.remove(request)
        if not waiting:
            self.by_key.pop(key, None)


@dataclass
class Assembly:
    """Puts requests together; events are to come in order of time.

    Attributes:
        done: Completed requests, in order of completion.
        merges: Bios and requests that were merged into a waiting request.
        requeues: Requests that the driver gave back.
        unmatched: Completions of data whose issue was not seen.
    """

    done: list[Request] = field(default_factory=list)
    merges: int = 0
    requeues: int = 0
    unmatched: int = 0
    _bios: dict[_Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    _starts: _Waiting = field(default_factory=_Waiting)
    _ends: _Waiting = field(default_factory=_Waiting)
    _issued: _Waiting = field(default_factory=_Waiting)

    def add(self, events: Iterable[Event]) -> None:
        """Take in events."""
        steps = {
            QUEUE: self._queue,
            GET: self._get,
            BACK: self._back,
            FRONT: self._front,
            MERGE: self._merge,
            ISSUE: self._issue,
            REQUEUE: self._requeue,
            COMPLETE: self._complete,
        }
        for event in events:
            steps[event.name](event)

    def _queue(self, event: Event) -> None:
        if event.sectors:
            self._bios[event.operation, event.sector].append(event.at_ns)

    def _queued(self, event: Event) -> int:
        """When the bio of an event was queued; without such an event, now."""
        times = self._bios.get((event.operation, event.sector))
        if not times:
            return event.at_ns
        queued_ns = times.pop(0)
        if not times:
            del self._bios[event.operation, event.sector]
        return queued_ns

    def _get(self, event: Event) -> None:
        if event.sectors:
            queued = self._queued(event)
            request = Request(event.operation, event.sector, event.sectors, queued)
            self._wait(request)

    def _wait(self, request: Request) -> None:
        self._starts.add((request.operation, request.sector), request)
        self._ends.add((request.operation, request.sector + request.sectors), request)

    def _back(self, event: Event) -> None:
        self.merges += 1
        self._queued(event)
        request = self._ends.take((event.operation, event.sector))
        if request is not None:
            self._starts.remove((request.operation, request.sector), request)
            request.sectors += event.sectors
            request.merges += 1
            self._wait(request)

    def _front(self, event: Event) -> None:
        self.merges += 1
        self._queued(event)
        request = self._starts.take((event.operation, event.sector + event.sectors))
        if request is not None:
            self._ends.remove((request.operation, request.sector + request.sectors), request)
            request.sector, request.sectors = event.sector, request.sectors + event.sectors
            request.merges += 1
            self._wait(request)

    def _merge(self, event: Event) -> None:
        """The request of the event becomes part of the one that ends where it begins."""
        self.merges += 1
        merged = self._starts.take((event.operation, event.sector))
        if merged is None:
            return
        self._ends.remove((merged.operation, merged.sector + merged.sectors), merged)
        request = self._ends.take((event.operation, merged.sector))
        if request is not None:
            self._starts.remove((request.operation, request.sector), request)
            request.sectors += merged.sectors
            request.merges += merged.merges + 1
            request.queued_ns = min(request.queued_ns, merged.queued_ns)
            self._wait(request)

    def _issue(self, event: Event) -> None:
        if not event.sectors and event.operation in "RWD":
            return
        request = self._starts.take((event.operation, event.sector))
        if request is None:
            request = Request(event.operation, event.sector, event.sectors, UNKNOWN)
        else:
            self._ends.remove((request.operation, request.sector + request.sectors), request)
        request.issued_ns, request.rwbs = event.at_ns, event.rwbs
        request.sectors = request.left = event.sectors
        self._issued.add((request.operation, request.sector), request)

    def _requeue(self, event: Event) -> None:
        self.requeues += 1
        request = self._issued.take((event.operation, event.sector))
        if request is not None:
            request.requeues += 1
            self._wait(request)

    def _complete(self, event: Event) -> None:
        if not event.sectors and event.operation in "RWD":
            return  # a request that only flushes; its flush is a request of its own
        request = self._issued.take((event.operation, event.sector))
        if request is None:
            self.unmatched += 1
            return
        request.error = request.error or event.error
        request.left -= event.sectors
        if request.left > 0 and event.sectors:
            self._issued.add((request.operation, event.sector + event.sectors), request)
            return
        request.completed_ns = event.at_ns
        self.done.append(request)
