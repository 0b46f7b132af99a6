"""Pages of a list: each names where the next one begins, so that new rows shift nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, RowMapping, Select

Item = TypeVar("Item")


@dataclass(frozen=True)
class Page(Generic[Item]):
    """A part of a list.

    Attributes:
        next_cursor: What to ask for next; None: this is the end.
    """

    items: list[Item]
    next_cursor: str | None


def page_of(
    connection: Connection,
    query: Select[Any],
    key: ColumnElement[Any],
    limit: int,
    after: Any,
    read: Callable[[RowMapping], Item],
) -> Page[Item]:
    """The rows of a query by descending key.

    Args:
        connection: The transaction.
        query: What is listed.
        key: A column that no two rows share.
        limit: At most so many.
        after: The key of the last row of the page before; None: the first page.
        read: Makes an item of a row.
    """
    if after is not None:
        query = query.where(key < after)
    rows = connection.execute(query.order_by(key.desc()).limit(limit + 1)).mappings().all()
    items = [read(row) for row in rows[:limit]]
    last = rows[limit - 1][key] if len(rows) > limit else None
    return Page(items, None if last is None else str(last))
