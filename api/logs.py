"""What processes log: lines for people or, for programs, one JSON object a line."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson

LOG_VARIABLE = "IOJOULE_LOG"
"""Form of the log, also for the workers that a service starts."""

request_id: ContextVar[str | None] = ContextVar("iojoule-request-id", default=None)
"""Of the request that is being answered."""

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogForm(StrEnum):
    """How a log is written."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, request_id, what `extra` holds.

    What a record holds is written as JSON, so that nobody can forge a line by what they ask.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (asked := request_id.get()) is not None:
            line["request_id"] = asked
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info))
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def set_up(form: LogForm | None = None) -> LogForm:
    """Write the log of this process to standard error; the form that it has then.

    Args:
        form: None takes $IOJOULE_LOG, else text: warnings and worse. JSON has every request too.
    """
    chosen = form or LogForm(os.environ.get(LOG_VARIABLE, LogForm.TEXT))
    handler = logging.StreamHandler(sys.stderr)
    as_json = chosen is LogForm.JSON
    plain = logging.Formatter("%(levelname)s: %(message)s")
    handler.setFormatter(JsonLines() if as_json else plain)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("iojoule").setLevel(logging.INFO if as_json else logging.WARNING)
    return chosen
