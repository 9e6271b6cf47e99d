"""Whatever JSON a server sends, a reader of it gives events or a typed failure, and at most one stop."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.providers.support import APIS

from treadle.protocol.models import StreamStop
from treadle.providers.endpoint import Endpoint
from treadle.providers.sse import SseEvent
from treadle.providers.wire import CallFailedError

KEYS = {
    "anthropic": "type index message usage content_block delta text thinking signature partial_json input id name "
    "error data",
    "chat": "choices delta content tool_calls index id function name arguments finish_reason usage error reasoning "
    "reasoning_details type text thinking data code",
    "responses": "type output_index delta item response usage incomplete_details reason id call_id name arguments "
    "summary content text error code summary_index",
    "gemini": "candidates content parts text thought thoughtSignature functionCall name args partialArgs jsonPath "
    "stringValue willContinue finishReason usageMetadata promptFeedback blockReason error",
    "bedrock": "contentBlockIndex start delta toolUse toolUseId name type input text reasoningContent signature "
    "redactedContent stopReason usage inputTokens message",
}
WORDS = {
    "anthropic": "message_start content_block_start content_block_delta content_block_stop message_delta message_stop "
    "error tool_use text thinking redacted_thinking text_delta thinking_delta signature_delta input_json_delta",
    "chat": "stop tool_calls length error reasoning.text",
    "responses": "response.output_item.added response.output_item.done response.output_text.delta response.completed "
    "response.function_call_arguments.delta response.failed response.incomplete error function_call reasoning message",
    "gemini": "STOP MAX_TOKENS $.a $.a[0].b x SAFETY",
    "bedrock": "tool_use end_turn malformed_tool_use server_tool_use aGk=",
}


NAMES = {
    "bedrock": "messageStart contentBlockStart contentBlockDelta contentBlockStop messageStop metadata "
    "exception:throttlingException"
}
"""What the events of an API are called, where that is not in their JSON."""


def values(api: str) -> st.SearchStrategy[object]:
    leaves = st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(WORDS[api].split()) | st.just(1.5)
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS[api].split()), inner, max_size=4)
        ),
        max_leaves=10,
    )


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=60)
@given(data=st.data())
def test_no_json_breaks_a_reader(api: str, data: st.DataObject) -> None:
    reader = APIS[api][0](Endpoint(name="x", base_url="http://x")).reader()
    events = data.draw(st.lists(values(api), max_size=4))
    items = []
    try:
        for value in events:
            name = data.draw(st.sampled_from(NAMES.get(api, " ").split(" ")))
            items += list(reader.read(SseEvent(name, msgspec.json.encode(value))))
            if any(isinstance(item, StreamStop) for item in items):
                break
        else:
            items += list(reader.end())
    except (CallFailedError, msgspec.MsgspecError):
        pass
    assert sum(isinstance(item, StreamStop) for item in items) <= 1
    assert reader.usage.context_tokens >= 0
