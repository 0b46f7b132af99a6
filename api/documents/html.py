"""A document as one HTML page that needs nothing else: no script, font or picture from elsewhere.

The page forbids itself everything but its own style, so that it cannot load or run anything
whatever stands in it. It is well-formed XML too.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from iojoule.api.documents.content import Document, Picture

if TYPE_CHECKING:
    from jinja2 import Template

INK, PAPER = "#1b1b1b", "#ffffff"
"""Colours of drawings that the page replaces by its own, which change in the dark."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content Security Policy level 3 (W3C) of every document."""

DATA_TYPE = "application/json"


def to_html(document: Document) -> str:
    """The page."""
    style = _resource("page.css")
    return template("page.html").render(document=document, style=Markup(style), policy=POLICY)


@cache
def template(name: str) -> Template:
    """A template of this package; everything that is put into it is escaped."""
    from jinja2 import Environment, StrictUndefined  # slow to import, and few ask for a page

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"anchor": _anchor, "words": _words, "drawn": _drawn, "data": _data}
    return environment.from_string(_resource(name))


def _resource(name: str) -> str:
    return resources.files("iojoule.api.documents").joinpath(name).read_text("utf-8")


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _words(text: str) -> Markup:
    """Escaped, with what stands between backticks as code, and intervals that do not break."""
    said = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"\[[-+\d., ]+\]", r'<span class="interval">\g<0></span>', said))


def _drawn(picture: Picture) -> Markup:
    return Markup(picture.svg.replace(INK, "currentColor").replace(PAPER, "transparent"))


def _data(value: Any) -> Markup:
    """JSON that no parser of HTML or XML takes for mark-up: what could begin any is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
