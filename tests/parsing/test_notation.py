"""Calls in a notation that is not read: found for exactly the tool they mean, with an example of the right notation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.parsing import ToolGrammar, XmlReader, foreign_call
from treadle.parsing.reply_blocks import CallComplete

TOOLS = (
    ToolGrammar("read_file", ("path", "start_line"), ("path",)),
    ToolGrammar("execute_command", ("command", "timeout"), ("command",)),
    ToolGrammar("search_files", ("path", "regex"), ("path", "regex")),
)
RUN = '{"command": "ls"}'
MARKED = {
    "anthropic": '<function_calls>\n<invoke name="NAME">\n<parameter name="command">ls</parameter>\n</invoke>\n'
    "</function_calls>",
    "hermes": f'<tool_call>\n{{"name": "NAME", "arguments": {RUN}}}\n</tool_call>',
    "late name": f'<tool_call>{{"arguments": {RUN}, "name": "NAME"}}</tool_call>',
    "qwen coder": "<tool_call>\n<function=NAME>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
    "mistral": f'[TOOL_CALLS][{{"name": "NAME", "arguments": {RUN}}}]',
    "fence": f'```json\n{{"name": "NAME", "arguments": {RUN}}}\n```',
    "fence without a language": f'```\n{{"tool": "NAME", "parameters": {RUN}}}\n```',
    "bare": f'{{"name": "NAME", "input": {RUN}}}',
    "list": f'[{{"name": "NAME", "arguments": {RUN}}}]',
    "llama": f'<|python_tag|>{{"name": "NAME", "parameters": {RUN}}}',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n"
    f"```json\n{RUN}\n```<｜tool▁call▁end｜>",
    "tool_use": f'<tool_use>\n{{"tool_name": "NAME", "args": {RUN}}}\n</tool_use>',
    "named tags": "<tool_use><tool_name>NAME</tool_name><command>ls</command></tool_use>",
}
NEAR_MISSES = {
    "attributes": '<execute_command command="ls"/>',
    "no parameter tag": "<execute_command>ls</execute_command>",
    "in the middle of a line": "I run <execute_command>ls</execute_command>",
    "another case": "<Execute_Command>\n<command>ls</command>\n</Execute_Command>",
    "no underscore": "<executecommand>\n<command>ls</command>\n</executecommand>",
    "namespace": "<tool:execute_command><command>ls</command></tool:execute_command>",
}
MISSPELT = {
    "a letter is missing": "<execute_comand>\n<command>ls</command>\n</execute_comand>",
    "a letter too many": "<execute_commandd><command>ls</command></execute_commandd>",
    "another letter": "<executa_command>\n<command>ls</command>\n</executa_command>",
    "two letters swapped": "<exceute_command>\n<command>ls</command>\n</exceute_command>",
    "another case": "<Execute_Comand>\n<command>ls</command>\n</Execute_Comand>",
    "more parameters": "<execute_comand>\n<timeout>9</timeout>\n<command>\necho '<b>'\n</command>\n</execute_comand>\n",
    "the second of two": "<execute_comand><command>ls</command></execute_comand>\n"
    "<execute_comand><command>ls -l</command></execute_comand>",
    "JSON without arguments": '{"tool": "execute_command", "command": "ls"}',
    "JSON on several lines": '{\n  "name": "execute_command",\n  "timeout": 9,\n  "command": "ls"\n}\n',
}
NOT_MISSPELT = {
    "prose": "The tag <execute_comand> is misspelt, and </execute_comand>",
    "in the middle of a line": "Write <execute_comand><command>ls</command></execute_comand>",
    "in code": "Write `<execute_comand><command>ls</command></execute_comand>`",
    "in a fence": "```xml\n<execute_comand>\n<command>ls</command>\n</execute_comand>\n```",
    "indented": "    <execute_comand>\n    <command>ls</command>\n    </execute_comand>",
    "not at the end": "<execute_comand>\n<command>ls</command>\n</execute_comand>\nis what I sent before.",
    "no parameter": "<execute_comand>\n</execute_comand>",
    "a parameter of no tool": "<execute_comand>\n<command>ls</command>\n<shell>sh</shell>\n</execute_comand>",
    "text besides": "<execute_comand>\nthis: <command>ls</command>\n</execute_comand>",
    "what it must have is missing": "<execute_comand>\n<timeout>9</timeout>\n</execute_comand>",
    "another word": "<execution_command>\n<command>ls</command>\n</execution_command>",
    "JSON of something else": '{"tool": "execute_command", "command": "ls", "owner": "Ada"}',
    "JSON in prose": 'The log has {"tool": "execute_command", "command": "ls"}',
    "JSON in a fence": '```json\n{"tool": "execute_command", "command": "ls"}\n```',
    "JSON without a parameter": '{"tool": "execute_command"}',
}
HINT = (
    "Nothing was run: your reply has a call of execute_command in a notation that does not work here. Write it with "
    "these tags, at the start of a line and without attributes:\n"
    "<execute_command>\n<command>the command</command>\n</execute_command>"
)
NATIVE_HINT = (
    "Nothing was run: your reply has a call of execute_command as text. Make calls through the function interface "
    'only, never in the text: call the function execute_command with the arguments {"command": "the command"}.'
)


def read(text: str) -> bool:
    reader = XmlReader(TOOLS)
    return any(isinstance(block, CallComplete) for block in [*reader.feed(text), *reader.finish()])


@pytest.mark.parametrize("name", ["execute_command", "Bash", "functions.execute_command"])
@pytest.mark.parametrize("text", MARKED.values(), ids=MARKED)
def test_a_call_in_a_notation_of_others_is_answered_with_the_tags(text: str, name: str) -> None:
    text = f"I look at it.\n\n{text.replace('NAME', name)}"
    assert not read(text)
    assert foreign_call(text, TOOLS, native=False) == HINT


@pytest.mark.parametrize("text", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_tags_that_nearly_are_a_call_are_answered_with_the_tags(text: str) -> None:
    assert not read(text)
    assert foreign_call(text, TOOLS, native=False) == HINT


@pytest.mark.parametrize("text", MISSPELT.values(), ids=MISSPELT)
def test_a_misspelt_call_with_the_parameters_of_the_tool_is_answered_with_the_tags(text: str) -> None:
    for before in ("", "I look at it.\n\n"):
        assert not read(before + text)
        assert foreign_call(before + text, TOOLS, native=False) == HINT
        assert foreign_call(before + text, TOOLS, native=True) == ""


@pytest.mark.parametrize("text", NOT_MISSPELT.values(), ids=NOT_MISSPELT)
def test_a_misspelt_name_that_is_quoted_or_has_other_parameters_is_no_call(text: str) -> None:
    assert foreign_call(text, TOOLS, native=False) == ""


def test_a_name_that_is_as_near_to_two_tools_is_none() -> None:
    tools = tuple(ToolGrammar(f"read_{kind}", ("path",), ("path",)) for kind in ("files", "tiles"))
    assert foreign_call("<read_xiles>\n<path>a</path>\n</read_xiles>", tools, native=False) == ""


@pytest.mark.parametrize("text", [*MARKED.values(), "<execute_command>\n<command>ls</command>\n</execute_command>"])
def test_a_call_in_the_text_of_a_native_reply_is_answered_with_the_function(text: str) -> None:
    text = f"I look at it.\n\n{text.replace('NAME', 'execute_command')}\n"
    assert foreign_call(text, TOOLS, native=True) == NATIVE_HINT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done: the tests pass.",
        'The body is {"name": "Ada", "input": 3}',
        '```json\n{"name": "create-app", "scripts": {}, "arguments": []}\n```',
        '{"name": "read_file"}',
        "<html><list>x</list></html>",
        '<button name="invoke">',
    ],
)
@pytest.mark.parametrize("native", [True, False])
def test_other_text_is_no_call(text: str, native: bool) -> None:
    assert foreign_call(text, TOOLS, native=native) == ""


@pytest.mark.parametrize(
    "text",
    [
        f'It sends ```json\n{{"name": "execute_command", "arguments": {RUN}}}\n``` and waits for the answer.',
        f'The API takes:\n```json\n{{"name": "search", "parameters": {RUN}}}\n```',
        "Use `<execute_command>` for that>",
        "<execute_command>ls</execute_command>",
    ],
)
def test_a_native_answer_about_calls_is_an_answer(text: str) -> None:
    assert foreign_call(text, TOOLS, native=True) == ""


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["<", "```json\n", "{", '"name": ', '"execute_command"', " ", "\n", "[TOOL_CALLS]"])))
def test_no_text_raises(pieces: list[str]) -> None:
    for native in (True, False):
        assert foreign_call("".join(pieces), TOOLS, native=native) in ("", HINT, NATIVE_HINT)
