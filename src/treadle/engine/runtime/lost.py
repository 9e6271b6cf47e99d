"""What a model call has used whose program ended before its reply did."""

from msgspec.structs import replace

from treadle.context.log_reader import LEFT, TranscriptReader
from treadle.context.sizes import size_of_block
from treadle.engine.core.state import AwaitingReply, Compacting, State
from treadle.engine.runtime.model_call import left_reply
from treadle.engine.runtime.model_requests import priced, request_size
from treadle.protocol.events import EventData, ReplyFailed
from treadle.protocol.messages import ToolUse
from treadle.protocol.models import ModelSpec
from treadle.protocol.sealed import OF_SUMMARY, SideAnswered
from treadle.protocol.usage import Usage


def lost_call(state: State, reader: TranscriptReader, spec: ModelSpec | None) -> EventData | None:
    """Report the model call that was going on when the program was killed; None where none was.

    What the provider had said of it is lost, so all of it is estimated: the request, and what was kept of the
    reply. Without `spec` its cost is unknown.
    """
    size = request_size(reader)
    used = Usage(input_tokens=size.tokens - size.cached, cache_read_tokens=size.cached, estimated=True)
    match state.activity:
        case AwaitingReply(step=step, attempt=attempt):
            kept = reader.begun.message()
            read = sum(size_of_block(ToolUse(id="", name=c.call.name, arguments=c.call.arguments)) for c in state.calls)
            read += sum(map(size_of_block, kept.content)) if kept is not None else 0
            used = replace(used, output_tokens=round(read / size.bytes_per_token))
            used, cost = priced(spec, used)
            failed = ReplyFailed(step=step, attempt=attempt, error=LEFT, partial=kept, usage=used, cost=cost)
            return failed if state.cancelling else left_reply(failed)
        case Compacting(written=False, attempt=0):  # what was too long to be sent is not summed up either
            used, cost = priced(spec, used)
            return SideAnswered(question=OF_SUMMARY, error=LEFT.message, usage=used, cost=cost)
        case _:
            return None
