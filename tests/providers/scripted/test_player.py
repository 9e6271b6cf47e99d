"""Which turn answers, and what it plays in process."""

from pathlib import Path

import pytest
from tests.providers.support import called, collect, failure_of, request, result, user

from treadle.protocol.errors import ConfigError
from treadle.protocol.messages import Message, Role, Text
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.provider import ScriptedProvider
from treadle.providers.scripted.script import (
    BreakOff,
    Cut,
    Expectation,
    MakeCall,
    Pace,
    Refuse,
    SayText,
    SayThinking,
    Script,
    Texts,
    Turn,
    Wait,
    load_script,
)

ANSWER = Message(role=Role.USER, content=(result("print()"),))


def say(text: str, **turn: object) -> Turn:
    return Turn(items=(SayText(text=text),), **turn)  # type: ignore[arg-type]


async def first_text(provider: ScriptedProvider, *messages: Message) -> str:
    event = (await collect(provider, request(*messages)))[0]
    return event.text if isinstance(event, StreamText) else repr(event)


async def test_what_no_turn_answers_is_answered_by_the_turn_for_that() -> None:
    script = Script(turns=(say("One", expect=Expectation(last_user=Texts(contains=("x",)))),), otherwise=say("Else"))
    provider = ScriptedProvider(script)
    assert await first_text(provider, user("x")) == "One"
    assert await first_text(provider, user("y")) == "Else"
    assert await first_text(provider, user("x"), called(), ANSWER) == "Else"


async def test_a_turn_is_chosen_by_the_replies_before_it_so_that_a_restart_changes_nothing() -> None:
    script = Script(turns=(say("One"), say("Two"), say("Three")))
    conversation = (user("Hello"), called(), ANSWER)
    assert await first_text(ScriptedProvider(script), *conversation) == "Two"
    provider = ScriptedProvider(script)
    assert [await first_text(provider, *conversation) for _ in range(2)] == ["Two", "Two"]
    assert await first_text(provider, user("Hello")) == "One"
    said = Message(role=Role.ASSISTANT, content=(Text(text="Yes"),))
    assert await first_text(provider, user("Hello"), said, said, user("So?")) == "Two"


@pytest.mark.parametrize(
    "when",
    [
        Expectation(last_user=Texts(contains=("magic",), not_contains=("no magic",))),
        Expectation(system=Texts(contains=("brief",)), messages=1),
        Expectation(conversation=Texts(contains=("magic",)), assistant_messages=0),
        Expectation(tools=Texts(contains=("read_file",), not_contains=("write_file",)), model="scripted", messages=1),
        Expectation(result_is_error=False, last_user=Texts(contains=("magic",))),
    ],
)
async def test_a_turn_whose_condition_holds_comes_before_the_count(when: Expectation) -> None:
    script = Script(turns=(say("Plain"), say("Never", when=Expectation(messages=99)), say("Matched", when=when)))
    assert await first_text(ScriptedProvider(script), user("magic")) == "Matched"
    failed = Message(role=Role.USER, content=(result("no", is_error=True), Text(text="no magic")))
    assert await first_text(ScriptedProvider(script), user("magic"), called(), failed) != "Matched"


async def test_what_is_not_expected_is_refused_and_noted() -> None:
    expect = Expectation(
        last_result=Texts(contains=("x",), not_contains=("print",)),
        tools=Texts(not_contains=("read_file",)),
        messages=4,
    )
    provider = ScriptedProvider(Script(turns=(say("One"), say("Two", expect=expect))))
    failed = await failure_of(provider, request(user("Hello"), called(), ANSWER))
    problem = (
        "turn 2 of the script expected something else: last_result lacks 'x'; last_result contains 'print'; "
        "tools have 'read_file'; messages is 3, not 4"
    )
    assert failed.error == ModelError(
        kind=ErrorKind.BAD_REQUEST, message=f"scripted refused the request: {problem}.", status=400
    )
    assert provider.violations == [problem]


async def test_a_script_that_is_over_says_so() -> None:
    failed = await failure_of(ScriptedProvider(Script(turns=())), request())
    assert "no turn for a request with 0 replies" in failed.error.message


async def test_all_items_are_played_in_order() -> None:
    items = (
        SayThinking(text="Hm", signature="s"),
        SayThinking(redacted="xyz"),
        Wait(seconds=0),
        SayText(text="Hello"),
        MakeCall(name="a", arguments={"x": 1}),
        MakeCall(name="b", raw='{"x":', id="mine"),
    )
    usage = Usage(input_tokens=5)
    provider = ScriptedProvider(Script(turns=(Turn(items=items, usage=usage, pace=Pace(chunk=4)),)))
    asked = request()
    assert await collect(provider, asked) == [
        StreamThinking(text="Hm"),
        StreamThinkingDone(signature="s"),
        StreamThinkingDone(redacted="xyz"),
        StreamText(text="Hell"),
        StreamText(text="o"),
        StreamCallStart(index=0, name="a", wire_id="call_0_0"),
        StreamCallArguments(index=0, text='{"x"'),
        StreamCallArguments(index=0, text=":1}"),
        StreamCallDone(index=0),
        StreamCallStart(index=1, name="b", wire_id="mine"),
        StreamCallArguments(index=1, text='{"x"'),
        StreamCallArguments(index=1, text=":"),
        StreamCallDone(index=1),
        StreamStop(reason=ReplyStop.TOOL_USE, usage=usage),
    ]
    assert provider.requests == [asked]


async def test_figures_are_estimated_where_the_script_gives_none_and_the_stop_can_be_set() -> None:
    provider = ScriptedProvider(Script(turns=(say("12345678", stop=ReplyStop.MAX_TOKENS),)))
    events = await collect(provider, request(user("1234567")))
    assert events[-1] == StreamStop(reason=ReplyStop.MAX_TOKENS, usage=Usage(input_tokens=5, output_tokens=3))


async def test_errors_cuts_and_breaks_happen_as_often_as_they_should() -> None:
    items = (
        Refuse(status=429, headers={"Retry-After": "2"}, times=1),
        SayText(text="A"),
        BreakOff(times=2),
        Cut(times=3),
    )
    provider = ScriptedProvider(Script(turns=(Turn(items=items),)))
    ends = [(await collect(provider, request()))[-1] for _ in range(4)]
    kinds = [end.error.kind if isinstance(end, StreamFailure) else None for end in ends]
    assert kinds == [ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.NETWORK, None]
    assert isinstance(ends[0], StreamFailure)
    assert ends[0].error.retry_after == 2.0


async def test_in_the_xml_protocol_the_last_result_is_the_last_user_message() -> None:
    script = Script(turns=(say("One"), say("Two", expect=Expectation(last_result=Texts(contains=("Result: 7",))))))
    said = Message(role=Role.ASSISTANT, content=(Text(text="<a></a>"),))
    events = await collect(ScriptedProvider(script), request(user("Hi"), said, user("Result: 7"), tools=()))
    assert events[0] == StreamText(text="Two")


TOML = """
model = "demo"
pace = {chunk = 3}

[[turns]]
expect = {last_user = {contains = ["bug"]}}
items = [
  {type = "thinking", text = "Hm"},
  {type = "text", text = "Let me look."},
  {type = "call", name = "read_file", arguments = {path = "a.py"}},
]

[[turns]]
items = [{type = "error", status = 529, times = 1}, {type = "text", text = "Done."}]
"""


def test_scripts_are_read_from_toml_and_json(tmp_path: Path) -> None:
    toml, json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text(TOML)
    json.write_text(
        '{"model":"demo","pace":{"chunk":3},"turns":[{"expect":{"last_user":{"contains":["bug"]}},"items":'
        '[{"type":"thinking","text":"Hm"},{"type":"text","text":"Let me look."},'
        '{"type":"call","name":"read_file","arguments":{"path":"a.py"}}]},'
        '{"items":[{"type":"error","status":529,"times":1},{"type":"text","text":"Done."}]}]}'
    )
    items = (
        SayThinking(text="Hm"),
        SayText(text="Let me look."),
        MakeCall(name="read_file", arguments={"path": "a.py"}),
    )
    whole = Script(
        model="demo",
        pace=Pace(chunk=3),
        turns=(
            Turn(items=items, expect=Expectation(last_user=Texts(contains=("bug",)))),
            Turn(items=(Refuse(status=529, times=1), SayText(text="Done."))),
        ),
    )
    assert load_script(toml) == load_script(json) == whole


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("turns = [", "Invalid"),
        ("[[turns]]\nitem = []", "unknown field `item`"),
        ('[[turns]]\nitems = [{type = "sing"}]', "Invalid value 'sing'"),
        ('[[turns]]\nitems = [{type = "text", text = "a"}, {type = "error", status = 500}]', "use 'stream_error'"),
    ],
)
def test_a_script_that_is_wrong_says_where(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert caught.value.code == "script-invalid"
    assert why in caught.value.why


def test_a_script_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_script(tmp_path / "none.toml")
