"""What becomes of a reply: its calls, its message, and what the model made up."""

from collections.abc import AsyncGenerator, Sequence
from functools import cache

import pytest

from treadle.context.xml_protocol import as_xml_message
from treadle.engine.runtime.model_call import CallBill, ModelCall, call_model
from treadle.engine.runtime.model_requests import RequestSize
from treadle.engine.runtime.reply_reader import ReplyPiece, ReplyReader
from treadle.protocol.events import CallProposed, EventData, ReplyFinished
from treadle.protocol.messages import Message, Role, Text, ToolUse
from treadle.protocol.models import (
    ModelRequest,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamStop,
    StreamText,
    StreamThinking,
    ToolProtocol,
)
from treadle.protocol.tools import Risk, ToolSpec, ToolTraits
from treadle.protocol.usage import Usage


def tool(name: str, parameter: str) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
        "additionalProperties": False,
    }
    return ToolSpec(name=name, description="", parameters=schema, traits=ToolTraits(), risk=Risk.READ)


TOOLS = {"read_file": tool("read_file", "path"), "execute_command": tool("execute_command", "command")}
CALL = "<execute_command>\n<command>ls</command>\n</execute_command>"
SECOND = "<read_file>\n<path>a.py</path>\n</read_file>"
INVENTED = [
    "[execute_command] Result:\na.py\n\n",
    "[execute_command for 'ls'] Result:\na.py\n",
    "<function_results>\na.py\n",
]


class Script:
    """A model that says what it is given."""

    def __init__(self, pieces: Sequence[StreamEvent]) -> None:
        self._pieces = pieces

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        for piece in self._pieces:
            yield piece

    async def close(self) -> None:
        pass


async def finished(pieces: Sequence[StreamEvent], protocol: ToolProtocol) -> tuple[list[CallProposed], ReplyFinished]:
    posted: list[EventData] = []
    call = ModelCall(
        step=1,
        attempt=1,
        provider=Script([*pieces, StreamStop(reason=ReplyStop.END_TURN, usage=Usage())]),
        request=ModelRequest(id="r", model="m", system="", messages=()),
        size=RequestSize(tokens=0, cached=0, bytes_per_token=4.0),
        reader=cache(lambda: ReplyReader(TOOLS, protocol, step=1, attempt=1)),
        bill=CallBill(),
        jitter=lambda: 0.0,
        redact=str,
    )
    await call_model(call, posted.append, lambda _: None)
    *proposed, reply = posted
    assert isinstance(reply, ReplyFinished)
    return [one for one in proposed if isinstance(one, CallProposed)], reply


def in_pieces(text: str, size: int) -> list[StreamEvent]:
    return [StreamText(text=text[at : at + size]) for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("invented", INVENTED)
async def test_a_written_reply_ends_where_it_invents_a_result(invented: str, size: int) -> None:
    text = f"I look.\n\n{CALL}\n\nNow I wait.\n{invented}I read it.\n{SECOND}"
    calls, reply = await finished(in_pieces(text, size), ToolProtocol.XML)
    assert [one.call.arguments for one in calls] == [{"command": "ls"}]
    assert as_xml_message(reply.message).content == (Text(text=f"I look.\n\n{CALL}\n\nNow I wait.\n"),)
    assert reply.hint == ""


@pytest.mark.parametrize("invented", INVENTED)
async def test_a_native_reply_ends_where_it_invents_a_result(invented: str) -> None:
    pieces: list[ReplyPiece] = [
        StreamCallStart(index=0, name="execute_command"),
        StreamCallArguments(index=0, text='{"command":'),
        StreamText(text=f"I wait.\n{invented}"),
        StreamThinking(text="It is there."),
        StreamCallStart(index=1, name="read_file"),
        StreamCallArguments(index=1, text='{"path": "a.py"}'),
        StreamCallDone(index=1),
        StreamText(text="Done."),
        StreamCallArguments(index=0, text=' "ls"}'),
        StreamCallDone(index=0),
    ]
    calls, reply = await finished(pieces, ToolProtocol.NATIVE)
    assert [one.call.arguments for one in calls] == [{"command": "ls"}]
    use = ToolUse(id="call_1_1_1", name="execute_command", arguments={"command": "ls"})
    assert reply.message == Message(role=Role.ASSISTANT, content=(use, Text(text="I wait.\n")))


async def test_a_result_right_behind_a_call_is_invented_whatever_came_before_the_call() -> None:
    text = f"{CALL}\nand then\n{SECOND}[read_file] Result: x\n"
    calls, reply = await finished(in_pieces(text, 3), ToolProtocol.XML)
    assert len(calls) == 2
    assert as_xml_message(reply.message).content == (Text(text=f"{CALL}\nand then\n{SECOND}"),)


async def test_a_quoted_result_before_any_call_is_text() -> None:
    text = f"It said:\n{INVENTED[0]}{CALL}"
    calls, reply = await finished(in_pieces(text, 9), ToolProtocol.XML)
    assert len(calls) == 1
    assert as_xml_message(reply.message).content == (Text(text=text),)


@pytest.mark.parametrize("protocol", ToolProtocol)
async def test_a_call_in_another_notation_is_hinted_at_and_its_text_stays(protocol: ToolProtocol) -> None:
    text = 'I look.\n\n<function_calls>\n<invoke name="execute_command">\n</invoke>\n</function_calls>'
    calls, reply = await finished(in_pieces(text, 4), protocol)
    assert (calls, reply.message.content) == ([], (Text(text=text),))
    assert reply.hint.startswith("Nothing was run: your reply has a call of execute_command ")


@pytest.mark.parametrize("protocol", ToolProtocol)
async def test_an_answer_and_a_reply_with_a_call_get_no_hint(protocol: ToolProtocol) -> None:
    _, answer = await finished(in_pieces("All is done.", 4), protocol)
    assert answer.hint == ""
    _, called = await finished(in_pieces(f"<invoke name='read_file'>\n{CALL}", 4), ToolProtocol.XML)
    assert called.hint == ""


@pytest.mark.parametrize("protocol", list(ToolProtocol))
async def test_calls_that_a_gateway_made_native_by_itself_stand_once_in_the_message(protocol: ToolProtocol) -> None:
    text: list[ReplyPiece] = [StreamText(text=CALL)] if protocol is ToolProtocol.XML else []
    native: list[ReplyPiece] = [
        StreamCallStart(index=0, name="read_file", wire_id="w"),
        StreamCallArguments(index=0, text='{"path": "a.py"}'),
        StreamCallDone(index=0),
    ]
    reader = ReplyReader(TOOLS, protocol, step=1, attempt=1)
    found = [item for piece in (*native, *text) for item in reader.feed(piece)] + reader.finish()
    calls = [item.call for item in found if isinstance(item, CallProposed)]
    uses = [block for block in reader.message().content if isinstance(block, ToolUse)]
    assert [(use.id, use.name, use.arguments) for use in uses] == [
        (call.id, call.name, call.arguments) for call in calls
    ]
    assert [call.name for call in calls] == ["read_file", "execute_command"][: 1 + len(text)]
