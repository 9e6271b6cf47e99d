"""Traces for OpenTelemetry: what a receiver of OTLP gets of a turn, and that nothing of what was said is in it."""

import gzip
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make
from tests.needed import needs
from tests.web.service.serving import service_here
from treadle.providers.scripted.script import SayText, Turn

pytestmark = needs("opentelemetry.sdk")

SECRET = "what-alice-said-4411"
TURNS = (
    Turn(items=(make("read_file", path="plan.txt"),)),
    Turn(items=(SayText(text=f"It says {SECRET}."),)),
)


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes what is sent to it."""
    taken: list[bytes] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            taken.append(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of its base
            return

    server = HTTPServer(("127.0.0.1", 0), Taking)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", taken
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_turn_is_a_span_with_its_model_calls_and_tools_and_without_a_word_of_it(
    tmp_path: Path, receiver: tuple[str, list[bytes]]
) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    address, taken = receiver
    async with service_here(tmp_path, TURNS, "--traces", address, users={"alice": ()}) as service:
        alice = await service.sign_in("alice")
        (alice.folder / "projects" / "plan.txt").write_text(f"{SECRET}\n")
        session = await alice.start(f"Read it: {SECRET}")
        await alice.shows(session, f"It says {SECRET}.")
        service.send(signal.SIGTERM)
        assert await service.ended() == 0
    assert SECRET.encode() not in b"".join(taken)
    requests = [ExportTraceServiceRequest.FromString(one) for one in taken]
    resources = [resource for one in requests for resource in one.resource_spans]
    named = {one.key: one.value.string_value for one in resources[0].resource.attributes}
    assert (named["service.name"], named["enduser.id"]) == ("treadle", "alice")
    spans = [span for resource in resources for scope in resource.scope_spans for span in scope.spans]
    (turn,) = [span for span in spans if span.name == "invoke_agent treadle"]
    inner = sorted(span.name for span in spans if span.parent_span_id == turn.span_id)
    assert inner == ["chat scripted", "chat scripted", "execute_tool read_file"]
    assert all(turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    chat = {one.key: one.value for one in next(one for one in spans if one.name == "chat scripted").attributes}
    assert chat["gen_ai.usage.input_tokens"].int_value > 0
    assert chat["gen_ai.provider.name"].string_value == "anthropic-compatible"
    said = {one.key: one.value.string_value for one in turn.attributes}
    assert (said["gen_ai.conversation.id"], said["treadle.stop"]) == (session, "end_turn")
