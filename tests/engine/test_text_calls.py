"""Calls in the text of a reply, in notations of other models: taken where they can be nothing else."""

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.context.focus import with_progress
from treadle.context.xml_protocol import as_xml_message, render_call
from treadle.engine.replay.recorded_replies import RecordedReply, read_again
from treadle.engine.runtime.reply_reader import ReplyReader
from treadle.protocol.events import CallProposed, OfferChanged, ReplyFinished
from treadle.protocol.messages import Message, Role, Text, ToolUse, text_of
from treadle.protocol.models import ReplyStop, StreamText, ToolProtocol
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import ToolCall, ToolSpec
from treadle.protocol.usage import Usage
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import open_workspace

Form = Callable[[str, Mapping[str, Any]], str]
PROTOCOLS = (ToolProtocol.NATIVE, ToolProtocol.XML)
RUN: dict[str, Any] = {"command": "ls -la 'a b'"}
WRITE: dict[str, Any] = {"path": "a.py", "content": 'x = "1"\n\n\tprint(x)\n'}
LINES: dict[str, Any] = {"path": "a.py", "start_line": 3, "end_line": 9}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, ToolSpec]:
    root = tmp_path_factory.mktemp("root")
    specs = (tool.spec for tool in builtin_tools(open_workspace(root, spool=Path(f"{root}-spool"))))
    return {spec.name: with_progress(spec) for spec in specs}


def read(
    tools: Mapping[str, ToolSpec], text: str, protocol: ToolProtocol, size: int = 10**6, refused: Mapping[str, str] = {}
) -> tuple[list[ToolCall], Message, str]:
    found, message, hint = proposed_in(tools, text, protocol, size, refused)
    return [one.call for one in found], message, hint


def proposed_in(
    tools: Mapping[str, ToolSpec], text: str, protocol: ToolProtocol, size: int = 10**6, refused: Mapping[str, str] = {}
) -> tuple[list[CallProposed], Message, str]:
    reader = ReplyReader(tools, protocol, step=1, attempt=1, refused=refused)
    found = [one for at in range(0, len(text), size) for one in reader.feed(StreamText(text=text[at : at + size]))]
    found += reader.finish()
    return [one for one in found if isinstance(one, CallProposed)], reader.message(), reader.hint()


def as_json(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _parameters(arguments: Mapping[str, Any], opening: str, closing: str) -> str:
    return "".join(f"{opening.format(name)}\n{value}\n{closing}\n" for name, value in arguments.items())


ALONE: dict[str, Form] = {
    "fence": lambda name, given_: f"```json\n{as_json(name, given_)}\n```",
    "bare fence": lambda name, given_: f"\n```\n{as_json(name, given_)}\n```\n",
    "fence of a call": lambda name, given_: (
        f'```tool_call\n{{"tool": "{name}", "parameters": {json.dumps(given_)}}}\n```'
    ),
    "bare": as_json,
    "pretty": lambda name, given_: json.dumps({"name": name, "input": given_}, indent=2),
    "function": lambda name, given_: json.dumps(
        {"type": "function", "id": "c1", "function": {"name": name, "arguments": json.dumps(given_)}}
    ),
}
"""Notations that are a call only where they are the whole reply."""

MARKED: dict[str, Form] = {
    "hermes": lambda name, given_: f"<tool_call>\n{as_json(name, given_)}\n</tool_call>",
    "hermes, not closed": lambda name, given_: f"<tool_call>\n{as_json(name, given_)}",
    "qwen coder": lambda name, given_: (
        f"<tool_call>\n<function={name}>\n{_parameters(given_, '<parameter={}>', '</parameter>')}"
        "</function>\n</tool_call>"
    ),
    "qwen coder, bare": lambda name, given_: (
        f"<function={name}>\n{_parameters(given_, '<parameter={}>', '</parameter>')}</function>"
    ),
    "glm": lambda name, given_: (
        f"<tool_call>{name}\n"
        + "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in given_.items())
        + "</tool_call>"
    ),
    "invoke": lambda name, given_: (
        f'<function_calls>\n<invoke name="{name}">\n'
        + "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in given_.items())
        + "</invoke>\n</function_calls>"
    ),
    "minimax": lambda name, given_: (
        f'<minimax:tool_call>\n<invoke name="{name}">\n'
        + "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in given_.items())
        + "</invoke>\n</minimax:tool_call>"
    ),
    "mistral": lambda name, given_: f"[TOOL_CALLS][{as_json(name, given_)}]",
    "mistral, named": lambda name, given_: f"[TOOL_CALLS]{name}[ARGS]{json.dumps(given_)}",
    "llama": lambda name, given_: f'<|python_tag|>{{"name": "{name}", "parameters": {json.dumps(given_)}}}<|eom_id|>',
    "deepseek": lambda name, given_: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{json.dumps(given_)}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek 3.1": lambda name, given_: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{json.dumps(given_)}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>"
    ),
    "kimi": lambda name, given_: (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>"
        f"{json.dumps(given_)}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "harmony": lambda name, given_: (
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json.dumps(given_)}<|call|>"
    ),
    "granite": lambda name, given_: f"<|tool_call|>[{as_json(name, given_)}]",
}
"""Notations of which the marks say that they are a call; text may stand before them."""

CALLS = [("execute_command", RUN), ("write_to_file", WRITE), ("read_file", LINES)]
AT_TAGS = {"invoke", "minimax", "glm"}
"""Notations whose values have no line breaks around them."""


@pytest.mark.sample(42)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("name", "arguments"), CALLS)
@pytest.mark.parametrize("form", [*ALONE, *MARKED])
def test_a_call_in_a_notation_of_other_models_is_the_call_in_ours(
    tools: Mapping[str, ToolSpec], form: str, name: str, arguments: dict[str, Any], protocol: ToolProtocol
) -> None:
    text = {**ALONE, **MARKED}[form](name, arguments)
    wanted = arguments
    if form in AT_TAGS and name == "write_to_file":
        wanted = {**arguments, "content": arguments["content"].removesuffix("\n")}
    for before, size in itertools.product(("", "I look at it.\n\n") if form in MARKED else ("",), (1, 7, 10**6)):
        (call,), message, hint = read(tools, before + text, protocol, size)
        assert (call.name, call.arguments, call.problem, hint) == (name, wanted, "", "")
        (use,) = (block for block in message.content if isinstance(block, ToolUse))
        said = text_of(tuple(block for block in message.content if isinstance(block, Text)))
        assert (use.id, use.name, use.arguments, said) == (call.id, name, wanted, before)
        if protocol is ToolProtocol.XML:
            assert text_of(as_xml_message(message).content) == before + text


TAGS = [
    ("<bash>ls</bash>", "execute_command", {"command": "ls"}),
    ("<bash>\ncd a &&\n  ls\n</bash>\n", "execute_command", {"command": "cd a &&\n  ls"}),
    ("<execute_bash>\n<command>ls</command>\n</execute_bash>", "execute_command", {"command": "ls"}),
    ("<run_command>ls</run_command>", "execute_command", {"command": "ls"}),
    ("<execute_command>ls</execute_command>", "execute_command", {"command": "ls"}),
    ("<read_file>a.py</read_file>", "read_file", {"path": "a.py"}),
    ("<view_file>\n<path>a.py</path>\n</view_file>", "read_file", {"path": "a.py"}),
    (
        (
            "<apply_diff>\n<path>a.py</path>\n<diff>\n<<<<<<< SEARCH\n:start_line:3\n-------\nold\n=======\nnew\n"
            ">>>>>>> REPLACE\n</diff>\n</apply_diff>"
        ),
        "replace_in_file",
        {
            "path": "a.py",
            "diff": "<<<<<<< SEARCH\n:start_line:3\n-------\nold\n=======\nnew\n>>>>>>> REPLACE",
        },
    ),
    (
        "<str_replace>\n<path>a.py</path>\n<old_str>old</old_str>\n<new_str>new</new_str>\n</str_replace>",
        "replace_in_file",
        {"path": "a.py", "diff": "------- SEARCH\nold\n=======\nnew\n+++++++ REPLACE"},
    ),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("before", ["", "First this:\n\n"])
@pytest.mark.parametrize(("text", "name", "arguments"), TAGS)
def test_tags_under_the_names_of_others_are_calls_of_ours(
    tools: Mapping[str, ToolSpec],
    text: str,
    name: str,
    arguments: dict[str, Any],
    before: str,
    protocol: ToolProtocol,
) -> None:
    for size in (1, 5, 10**6):
        (call,), _, hint = read(tools, before + text, protocol, size)
        assert (call.name, call.arguments, call.problem, hint) == (name, arguments, "", "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", [name for name in MARKED if "closed" not in name])
def test_several_calls_in_a_row_are_several_calls(
    tools: Mapping[str, ToolSpec], form: str, protocol: ToolProtocol
) -> None:
    text = "\n".join(MARKED[form]("read_file", {"path": path}) for path in ("a", "b", "c"))
    calls, message, _ = read(tools, text, protocol)
    assert [(call.name, call.arguments) for call in calls] == [
        ("read_file", {"path": path}) for path in ("a", "b", "c")
    ]
    assert [block.id for block in message.content if isinstance(block, ToolUse)] == [call.id for call in calls]


FENCE = ALONE["fence"]("execute_command", RUN)
HERMES = MARKED["hermes"]("execute_command", RUN)
TWINS = {
    "an example in an answer": f"The request looks like this:\n\n{FENCE}",
    "an example with words behind it": f"{FENCE}\n\nThat is all it takes.",
    "an object behind a text": f"The body is:\n{as_json('execute_command', RUN)}",
    "two fences": f"{FENCE}\n{FENCE}",
    "a list": f"[{as_json('execute_command', RUN)}]",
    "two objects": f"{as_json('execute_command', RUN)}\n{as_json('read_file', {'path': 'a'})}",
    "more than a call": json.dumps({"name": "execute_command", "arguments": RUN, "description": "an entry of a file"}),
    "two names": json.dumps({"name": "execute_command", "tool": "read_file", "arguments": RUN}),
    "a tool that is not there": as_json("launch_missiles", {"command": "ls"}),
    "a tool that is not there, marked": MARKED["hermes"]("launch_missiles", {"command": "ls"}),
    "arguments of another tool": as_json("read_file", {"command": "ls"}),
    "too few arguments": MARKED["hermes"]("write_to_file", {"path": "a"}),
    "one of two does not fit": f"{HERMES}\n{MARKED['hermes']('read_file', {'lines': 3})}",
    "marks in a fence": f"```\n{HERMES}\n```",
    "marks in inline code": f"Qwen writes `<tool_call>{as_json('execute_command', RUN)}</tool_call>`",
    "marks with words behind them": f"{HERMES}\nThis runs ls.",
    "words between marks": f"{HERMES}\nand then\n{HERMES}",
    "cut": HERMES[:40],
    "cut parameters": MARKED["qwen coder"]("execute_command", RUN)[:70],
    "a parameter twice": "<function=bash>\n<parameter=cmd>a</parameter>\n<parameter=cmd>b</parameter>\n</function>",
    "a call in a value": MARKED["qwen coder"]("write_to_file", {"path": "a", "content": "<parameter=x>1</parameter>"}),
    "a tag in a fence": "```\n<bash>ls</bash>\n```",
    "a tag in a line": "Then <bash>ls</bash>",
    "a tag with words behind it": "<bash>ls</bash>\nlists the files.",
    "two texts in one tag": "<bash>ls <bash>pwd</bash></bash>",
    "a common word": "<list>src</list>",
    "another common word": "<view><path>a</path></view>",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("text", TWINS.values(), ids=TWINS)
def test_what_may_be_something_else_is_no_call(
    tools: Mapping[str, ToolSpec], text: str, protocol: ToolProtocol
) -> None:
    for size in (1, 10**6):
        calls, message, _ = read(tools, text, protocol, size)
        assert (calls, text_of(message.content)) == ([], text)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("text", [FENCE, HERMES, "<bash>ls</bash>", MARKED["kimi"]("execute_command", RUN)])
def test_a_tool_that_is_not_offered_is_not_taken_from_a_text(
    tools: Mapping[str, ToolSpec], text: str, protocol: ToolProtocol
) -> None:
    calls, message, _ = read(tools, text, protocol, refused={"execute_command": "the session only reads"})
    assert (calls, text_of(message.content)) == ([], text)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_with_a_call_in_the_right_notation_has_no_others(
    tools: Mapping[str, ToolSpec], protocol: ToolProtocol
) -> None:
    text = f"{render_call('read_file', {'path': 'a.py'})}\n\n{HERMES}"
    calls, _, _ = read(tools, text, protocol)
    assert [call.name for call in calls] == (["read_file"] if protocol is ToolProtocol.XML else [])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", [*ALONE, *MARKED, "bash"])
def test_a_recorded_reply_is_read_the_same_again(
    tools: Mapping[str, ToolSpec], form: str, protocol: ToolProtocol
) -> None:
    forms: dict[str, Form] = {**ALONE, **MARKED, "bash": lambda name, given_: f"<bash>{given_['command']}</bash>"}
    text = ("" if form in ALONE else "So:\n\n") + forms[form]("execute_command", RUN)
    calls, message, hint = proposed_in(tools, text, protocol)
    proposed = tuple(calls)
    assert [len(one.readings) for one in proposed] == [2 if form in ("bash", "kimi") else 1]
    finished = ReplyFinished(step=1, attempt=1, message=message, stop=ReplyStop.END_TURN, usage=Usage())
    offered = tuple(tools.values()) if protocol is ToolProtocol.NATIVE else ()
    words = "" if offered else "".join(f"<{name}>" for name in tools)
    offer = OfferChanged(step=1, system=(PromptPart(name="tools", text=words),), tools=offered)
    again = read_again(RecordedReply(step=1, attempt=1, calls=proposed, finished=finished), offer, protocol, tools)
    assert (again.calls, again.message, again.hint) == (proposed, message, hint)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_older_log_keeps_such_a_reply_as_the_text_that_it_was(
    tools: Mapping[str, ToolSpec], protocol: ToolProtocol
) -> None:
    message = Message(role=Role.ASSISTANT, content=(Text(text=HERMES),))
    finished = ReplyFinished(step=1, attempt=1, message=message, stop=ReplyStop.END_TURN, usage=Usage())
    offer = OfferChanged(step=1, system=(), tools=tuple(tools.values()) if protocol is ToolProtocol.NATIVE else ())
    again = read_again(RecordedReply(step=1, attempt=1, finished=finished), offer, protocol, tools)
    assert (again.calls, again.message) == ((), message)
    assert "execute_command" in again.hint


@settings(max_examples=60)
@given(
    form=st.sampled_from([*ALONE, *(form for form in MARKED if form not in AT_TAGS)]),
    content=st.text(st.characters(codec="utf-8", exclude_characters="\r")),
    protocol=st.sampled_from(PROTOCOLS),
    size=st.integers(1, 40),
)
def test_any_text_of_a_file_comes_through_or_is_refused(
    tools: Mapping[str, ToolSpec], form: str, content: str, protocol: ToolProtocol, size: int
) -> None:
    arguments = {"path": "a", "content": content}
    calls, _, _ = read(tools, {**ALONE, **MARKED}[form]("write_to_file", arguments), protocol, size)
    assert not calls or [(call.name, call.arguments) for call in calls] == [("write_to_file", arguments)]
    assert calls or "parameter" in content or "function" in content


@settings(max_examples=80)
@given(
    st.lists(
        st.sampled_from(
            [
                "<tool_call>",
                "</tool_call>",
                "```json\n",
                "{",
                '"name": ',
                '"execute_command"',
                " ",
                "\n",
                "[TOOL_CALLS]",
                "<bash>",
                "</bash>",
                "<function=bash>",
                "<parameter=command>",
                "</parameter>",
                "</function>",
                "`",
                "ls",
                "<|channel|>x to=functions.bash<|message|>",
                as_json("bash", {"command": "ls"}),
                "<arg_key>command</arg_key>",
                "<arg_value>",
                "</arg_value>",
                "execute_command",
                "<｜tool▁call▁begin｜>",
            ]
        )
    ),
    st.sampled_from(PROTOCOLS),
)
def test_no_text_raises_and_nothing_of_it_is_lost(
    tools: Mapping[str, ToolSpec], pieces: list[str], protocol: ToolProtocol
) -> None:
    text = "".join(pieces)
    calls, message, _ = read(tools, text, protocol)
    assert (calls, message) == read(tools, text, protocol, 3)[:2]
    assert all(call.problem == "" for call in calls if call.arguments)
    if protocol is ToolProtocol.XML and text.strip():
        assert text_of(as_xml_message(message).content) == text
