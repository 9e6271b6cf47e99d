"""From the transcript to a model request, and from usage to money."""

from treadle.context.transcript import Transcript
from treadle.engine.ports import Ports
from treadle.engine.state import State
from treadle.protocol.models import ModelRequest, ModelSpec, ToolProtocol, Usage
from treadle.protocol.tools import ToolSpec

_ROOM_FOR_REPLY = 8_192
_TOKENS_IN_PRICE = 1_000_000


def build_request(ports: Ports, state: State, transcript: Transcript) -> ModelRequest:
    """Build the request of the present step. The id is the same for every attempt of a step."""
    spec = ports.model(state.model)
    native = state.tool_protocol is ToolProtocol.NATIVE
    return ModelRequest(
        id=f"{state.session_id}-{state.step}",
        model=spec.name,
        system=ports.system(state.model, state.tool_protocol),
        messages=transcript.messages(state.tool_protocol),
        tools=tuple(offered_tools(ports, state.model).values()) if native else (),
        max_tokens=spec.max_output,
    )


def offered_tools(ports: Ports, model: str) -> dict[str, ToolSpec]:
    """Give the tools that a model is told of, by name and in their order."""
    names = ports.offered(model)
    return {name: tool.spec for name, tool in ports.tools.items() if name in names}


def room(spec: ModelSpec) -> int | None:
    """Say how many tokens of conversation fit beside the reply; None where the window is unknown."""
    if spec.context_window is None:
        return None
    reply = min(spec.max_output or _ROOM_FOR_REPLY, spec.context_window // 4)
    return spec.context_window - reply


def cost(spec: ModelSpec, usage: Usage) -> float | None:
    """Price a model call in US dollars; None where the price is unknown."""
    prices = spec.prices
    if prices is None:
        return None
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    total = (
        usage.input_tokens * prices.input
        + usage.output_tokens * prices.output
        + usage.cache_read_tokens * read
        + usage.cache_write_tokens * write
    )
    return total / _TOKENS_IN_PRICE
