"""GET /audit."""

from __future__ import annotations

from fastapi import APIRouter

from iojoule.api.http.audit.schemas import AuditEntry, AuditList
from iojoule.api.http.problems import RESPONSES
from iojoule.api.http.stored import Cursor, Limit, Store, off_loop
from iojoule.api.state import audit
from iojoule.api.state.place import State

router = APIRouter(prefix="/audit", tags=["service"], responses=RESPONSES)


@router.get("", summary="Who changed what?")
async def list_changes(store: Store, limit: Limit = 50, cursor: Cursor = None) -> AuditList:
    """List changes of what is kept and of keys, the newest first."""
    return await off_loop(_page, store, limit, cursor)


def _page(store: State, limit: int, cursor: str | None) -> AuditList:
    with store.database.read() as connection:
        found = audit.page(connection, limit, cursor)
    entries = [AuditEntry.model_validate(one) for one in found.items]
    return AuditList(entries=entries, next_cursor=found.next_cursor)
