"""Traces of requests by OpenTelemetry, where its own environment variables say whereto."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iojoule import __version__
from iojoule.api.http.operations import route_of
from iojoule.datasets.errors import InputError

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Of the OTLP exporter's specification; where one is set, requests are traced."""


def configured() -> bool:
    """Whether traces are asked for."""
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return not off and any(os.environ.get(name) for name in ENDPOINTS)


def provider() -> Any:
    """What makes spans and sends them, by OpenTelemetry's environment variables.

    Raises:
        InputError: Its libraries are not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError:
        raise InputError(
            f"{' or '.join(ENDPOINTS)} asks for traces, and their libraries are not installed: "
            "pip install 'iojoule[otel]', or unset it"
        ) from None
    named = {SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "iojoule")}
    made = TracerProvider(resource=Resource.create({**named, SERVICE_VERSION: __version__}))
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return made


class Traced:
    """One span a request, below the one that its `traceparent` names (W3C Trace Context).

    Names and attributes are those of OpenTelemetry's semantic conventions for HTTP servers.
    """

    def __init__(self, app: ASGIApp, provider: Any) -> None:
        self._app, self._tracer = app, provider.get_tracer("iojoule", __version__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier: Mapping[str, str] = dict(Headers(scope=scope).items())
        above = TraceContextTextMapPropagator().extract(carrier)
        route = route_of(scope["method"], scope["path"])
        asked = {"http.request.method": scope["method"], "url.path": scope["path"]}
        asked |= {"http.route": route} if route else {}
        name = f"{scope['method']} {route}" if route else scope["method"]
        with self._tracer.start_as_current_span(
            name, context=above, kind=SpanKind.SERVER, attributes=asked
        ) as span:

            async def noting(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                    span.set_attribute("iojoule.request_id", scope["state"]["request_id"])
                await send(message)

            await self._app(scope, receive, noting)
