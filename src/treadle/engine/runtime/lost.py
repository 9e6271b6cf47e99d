"""What a model call has used whose program ended before its reply did."""

from collections.abc import Iterator

from msgspec.structs import replace

from treadle.context.log_reader import LEFT, TranscriptReader
from treadle.context.sizes import size_of_block
from treadle.engine.core.state import AwaitingReply, State
from treadle.engine.runtime.model_call import left_reply
from treadle.engine.runtime.model_requests import priced, request_size
from treadle.protocol.events import EventData, ReplyFailed
from treadle.protocol.messages import ToolUse
from treadle.protocol.models import ModelSpec
from treadle.protocol.sealed import SideAnswered
from treadle.protocol.usage import Usage


def lost_calls(state: State, reader: TranscriptReader, spec: ModelSpec | None) -> Iterator[EventData]:
    """Report the model calls that were going on when the program was killed.

    What the provider had said of them is lost, so all of it is estimated: the request, and what was kept of the
    reply. Without `spec` their cost is unknown.
    """
    size = request_size(reader)
    used = Usage(input_tokens=size.tokens - size.cached, cache_read_tokens=size.cached, estimated=True)
    for question in state.asked:
        asked, cost = priced(spec, used)
        yield SideAnswered(question=question, error=LEFT.message, usage=asked, cost=cost)
    if isinstance(state.activity, AwaitingReply):
        kept = reader.begun.message()
        read = sum(size_of_block(ToolUse(id="", name=c.call.name, arguments=c.call.arguments)) for c in state.calls)
        read += sum(map(size_of_block, kept.content)) if kept is not None else 0
        used, cost = priced(spec, replace(used, output_tokens=round(read / size.bytes_per_token)))
        step, attempt = state.activity.step, state.activity.attempt
        failed = ReplyFailed(step=step, attempt=attempt, error=LEFT, partial=kept, usage=used, cost=cost)
        yield failed if state.cancelling else left_reply(failed)
