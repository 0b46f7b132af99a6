import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from iojoule.api.http import telemetry
from iojoule.api.state.place import Place, State
from iojoule.datasets.errors import InputError
from tests.api.http.conftest import serving

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(HTTPServer):
    """Takes what is exported."""

    def __init__(self) -> None:
        self.taken: list[ExportTraceServiceRequest] = []
        super().__init__(("127.0.0.1", 0), Taking)


class Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert isinstance(self.server, Collector)
        self.server.taken.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """What the environment names as the place to send traces to."""
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_request_is_a_span_below_that_of_who_asks(collector: Collector, tmp_path: Path) -> None:
    with serving(State(Place.of(tmp_path))) as client:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Request-Id": "a-1"}
        client.get("/devices/nothing", headers=headers)
    spans = [
        span
        for taken in collector.taken
        for resource in taken.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    (span,) = [one for one in spans if one.trace_id.hex() == TRACE]
    assert span.parent_span_id.hex() == SPAN
    assert span.name == "GET /devices/{id}"
    told = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
    assert told["http.route"] == "/devices/{id}"
    assert told["http.response.status_code"] == 404
    assert told["iojoule.request_id"] == "a-1"


def test_without_an_endpoint_nothing_of_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in telemetry.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert not telemetry.traces_configured()
    code = (
        "import sys; from iojoule.api.http.app import create_app; create_app(); "
        "sys.exit('opentelemetry.sdk' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InputError, match=r"iojoule\[otel\]"):
        telemetry.trace_provider()
