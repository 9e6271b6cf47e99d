"""Turns, model calls and tool calls as traces for OpenTelemetry: names, times, tokens and costs, never what was said.

Names of spans and attributes are those of its conventions for generative AI. Needs the extra `telemetry`.
"""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    MessageDone,
    Phase,
    PhaseChanged,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    TurnStop,
)

_NANO = 1_000_000
"""Nanoseconds in a millisecond."""

_FAILED = (TurnStop.ERROR, TurnStop.MISTAKES, TurnStop.LOOP)


class _Turn:
    def __init__(self, span: Span) -> None:
        self.span = span
        self.asked_at = 0
        self.calls: dict[str, Span] = {}


class TurnTraces:
    """Sends spans to an address of OTLP over HTTP, in a thread of its own. `user` is whose sessions these are."""

    def __init__(self, address: str, user: str) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "treadle", "enduser.id": user}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=address)))
        self._tracer = self._provider.get_tracer("treadle")
        self._turns: dict[str, _Turn] = {}

    def hear(self, session_id: str, model: str, stamped: Stamped) -> None:
        """Take what a session tells; `model` is the one that works in it, as PROVIDER/NAME."""
        at, turn = stamped.at * _NANO, self._turns.get(session_id)
        match stamped.notification:
            case TurnStarted() | TurnResumed():
                self._begin(session_id, at)
            case PhaseChanged(phase=Phase.AWAITING_LLM_RESPONSE) if turn is not None:
                turn.asked_at = at
            case MessageDone() as done if turn is not None:
                self._model_call(turn, model, done, at)
            case CallChanged() as changed if turn is not None:
                self._tool_call(turn, changed, at)
            case TurnEnded(outcome=outcome) if turn is not None:
                turn.span.set_attribute("treadle.stop", outcome.stop.value)
                if outcome.cost is not None:
                    turn.span.set_attribute("treadle.cost_usd", outcome.cost)
                if outcome.stop in _FAILED:
                    turn.span.set_status(Status(StatusCode.ERROR))
                self._end(session_id, at)
            case _:
                return

    def _begin(self, session_id: str, at: int) -> None:
        self._end(session_id, at)
        names = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "treadle",
            "gen_ai.conversation.id": session_id,
        }
        self._turns[session_id] = _Turn(
            self._tracer.start_span("invoke_agent treadle", start_time=at, attributes=names)
        )

    def _model_call(self, turn: _Turn, model: str, done: MessageDone, at: int) -> None:
        provider, _, name = model.partition("/")
        usage = done.usage
        attributes: dict[str, str | int | float] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": name,
            "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
        }
        if done.cost is not None:  # an unknown cost is not zero
            attributes["treadle.cost_usd"] = done.cost
        around = set_span_in_context(turn.span)
        span = self._tracer.start_span(
            f"chat {name}", context=around, start_time=turn.asked_at or at, attributes=attributes
        )
        span.end(at)

    def _tool_call(self, turn: _Turn, changed: CallChanged, at: int) -> None:
        call = changed.call
        if changed.status is CallStatus.RUNNING and call.id not in turn.calls:
            names = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.call.id": call.id,
            }
            turn.calls[call.id] = self._tracer.start_span(
                f"execute_tool {call.name}", context=set_span_in_context(turn.span), start_time=at, attributes=names
            )
        elif changed.status is CallStatus.FINISHED and (span := turn.calls.pop(call.id, None)) is not None:
            span.end(at)

    def _end(self, session_id: str, at: int) -> None:
        turn = self._turns.pop(session_id, None)
        if turn is not None:
            for span in (*turn.calls.values(), turn.span):
                span.end(at)

    def close(self) -> None:
        """Send what is left, and end. Takes its time."""
        self._provider.shutdown()
