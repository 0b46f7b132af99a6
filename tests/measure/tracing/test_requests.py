"""Requests put together from block events."""

from iojoule.measure.tracing.requests import (
    BACK,
    COMPLETE,
    FRONT,
    GET,
    ISSUE,
    MERGE,
    QUEUE,
    REQUEUE,
    UNKNOWN,
    Assembly,
    Event,
)


def assembled(*events: Event) -> Assembly:
    made = Assembly()
    made.add(events)
    return made


def bio(at: int, sector: int, sectors: int = 8, rwbs: str = "R") -> list[Event]:
    return [
        Event(QUEUE, at, sector, sectors, rwbs),
        Event(GET, at + 1, sector, sectors, rwbs),
    ]


def served(at: int, sector: int, sectors: int = 8, rwbs: str = "R") -> list[Event]:
    return [
        Event(ISSUE, at, sector, sectors, rwbs),
        Event(COMPLETE, at + 100, sector, sectors, rwbs),
    ]


def test_a_request_is_queued_issued_and_completed() -> None:
    [one] = assembled(*bio(10, 64), *served(30, 64)).done
    assert (one.queued_ns, one.issued_ns, one.completed_ns) == (10, 30, 130)
    assert (one.operation, one.sector, one.sectors, one.merges) == ("R", 64, 8, 0)


def test_merges_belong_to_the_request_that_waits() -> None:
    made = assembled(
        *bio(10, 64),
        Event(QUEUE, 12, 72, 8, "R"),
        Event(BACK, 13, 72, 8, "R"),
        Event(QUEUE, 14, 56, 8, "R"),
        Event(FRONT, 15, 56, 8, "R"),
        *bio(16, 80),
        Event(MERGE, 18, 80, 8, "R"),
        *served(30, 56, 32),
    )
    [one] = made.done
    assert (one.sector, one.sectors, one.merges, one.queued_ns) == (56, 32, 3, 10)
    assert (made.merges, made.unmatched) == (3, 0)


def test_a_write_is_not_merged_into_a_read() -> None:
    made = assembled(
        *bio(10, 64),
        *bio(11, 56, rwbs="W"),
        Event(BACK, 13, 72, 8, "W"),
        *served(30, 64),
    )
    [one] = made.done
    assert (one.sectors, one.merges) == (8, 0)


def test_the_second_part_of_a_split_bio_is_queued_when_it_gets_its_request() -> None:
    made = assembled(
        Event(QUEUE, 10, 0, 16, "R"),
        Event(GET, 11, 0, 8, "R"),
        Event(GET, 12, 8, 8, "R"),
        *served(20, 0),
        *served(21, 8),
    )
    assert [one.queued_ns for one in made.done] == [10, 12]


def test_of_two_requests_for_a_sector_the_older_one_is_meant() -> None:
    made = assembled(
        *bio(10, 64),
        *bio(20, 64),
        Event(ISSUE, 30, 64, 8, "R"),
        Event(ISSUE, 40, 64, 8, "R"),
        Event(COMPLETE, 50, 64, 8, "R"),
        Event(COMPLETE, 70, 64, 8, "R"),
    )
    assert [one.completed_ns - one.issued_ns for one in made.done] == [20, 30]
    assert [one.issued_ns - one.queued_ns for one in made.done] == [20, 20]


def test_a_request_that_is_completed_in_parts_ends_with_the_last() -> None:
    made = assembled(
        *bio(10, 64, 16),
        Event(ISSUE, 30, 64, 16, "R"),
        Event(COMPLETE, 50, 64, 8, "R"),
        Event(COMPLETE, 70, 72, 8, "R", -5),
    )
    [one] = made.done
    assert (one.completed_ns, one.sectors, one.error) == (70, 16, -5)


def test_a_request_that_the_driver_gave_back_is_issued_again() -> None:
    made = assembled(
        *bio(10, 64),
        Event(ISSUE, 30, 64, 8, "R"),
        Event(REQUEUE, 35, 64, 8, "R"),
        *served(60, 64),
    )
    [one] = made.done
    assert (one.queued_ns, one.issued_ns, one.requeues, made.requeues) == (10, 60, 1, 1)


def test_a_flush_is_a_request_and_who_asked_for_it_is_none() -> None:
    made = assembled(
        Event(QUEUE, 10, 0, 0, "FWS"),
        Event(GET, 11, 0, 0, "FWS"),
        Event(ISSUE, 12, 0, 0, "FF"),
        Event(COMPLETE, 40, 0, 0, "FF"),
        Event(COMPLETE, 41, 0, 0, "WS"),
    )
    [one] = made.done
    assert (one.operation, one.queued_ns, one.completed_ns) == ("F", UNKNOWN, 40)
    assert made.unmatched == 0


def test_a_write_behind_a_flush_is_a_write() -> None:
    [one] = assembled(*bio(10, 64, rwbs="FWFS"), *served(30, 64, rwbs="WFS")).done
    assert (one.operation, one.queued_ns) == ("W", 10)


def test_what_was_under_way_at_the_ends_is_counted_and_not_guessed() -> None:
    made = assembled(
        Event(COMPLETE, 5, 8, 8, "R"),
        *served(10, 64),
        *bio(20, 96),
        Event(ISSUE, 30, 96, 8, "R"),
    )
    [one] = made.done
    assert one.queued_ns == UNKNOWN
    assert made.unmatched == 1
