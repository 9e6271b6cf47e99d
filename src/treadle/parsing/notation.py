"""Calls that a reply holds in a notation that is not read: found, and answered with an example of the right one."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from treadle.parsing.aliases import folded, near_tool
from treadle.parsing.blocks import ToolGrammar

_NAME = r"[A-Za-z_][\w.:-]{0,63}"
_NAMED = re.compile(rf'"(?:name|tool|tool_name|function|recipient_name)"\s{{0,9}}:\s{{0,9}}"({_NAME})"')
_WITH_ARGUMENTS = re.compile(r'"(?:arguments|parameters|input|args|params|tool_input)"\s{0,9}:')
_JSON_REACH = 4_000
"""How far into a JSON text the name of its tool is looked for, in characters."""

_MARKUP = re.compile(
    rf"""<(?:antml:)?invoke\s{{1,9}}name=["']?({_NAME})["'>]"""
    rf"""|<function[\s=]{{1,9}}(?:name=)?["']?({_NAME})["'>]"""
    rf"""|<tool_name>\s{{0,9}}({_NAME})\s{{0,9}}</tool_name>"""
    rf"""|\bto=(?:functions\.)?({_NAME})"""
)
"""Notations that name the tool in tags of their own."""

_JSON = re.compile(
    r"<(?:\|?tool_calls?\|?|tool_use|function_calls?|tool_code|\|python_tag\|)>\s*(?=[\[{])"
    r"|\[TOOL_CALLS\]\s*(?=[\[{])"
    r"|<｜tool▁call▁begin｜>"
    r"|^[ \t]*`{3,}[ \t]*(?:json|tool_calls?|tool_code|tool_use)?[ \t]*\r?\n[ \t]*(?=[\[{])"
    r"|^(?=[\[{])",
    re.MULTILINE,
)
"""Where JSON may begin that is a call."""

_TAG = re.compile(r"^[ \t]*<([A-Za-z_][\w.:-]{1,63})(?=[\s/>])", re.MULTILINE)


class ForeignCall(Struct, frozen=True):
    """A call in another notation: where its text begins, the tool that it means, and what to say to the model."""

    start: int
    tool: str
    hint: str


def foreign_call(text: str, tools: Sequence[ToolGrammar], *, native: bool = False) -> ForeignCall | None:
    """Find the first call in the text of a reply without calls that is written in a notation of other agents.

    `native`: calls are made through the provider's interface, so that none belongs into the text; a tag alone is a
    call there only with a parameter inside. Otherwise calls are tags, and what is found is a near miss of them. Only
    calls of `tools`, whatever the name they go by, are found. Time is linear in the text.
    """
    known = {tool.name: tool for tool in tools}
    found = (
        (start, known[meant])
        for candidates in (_markup(text), _json(text), _tags(text, known, native=native))
        for start, name in candidates
        if (meant := near_tool(name, tuple(known)))
    )
    first = next(found, None)
    if first is None:
        return None
    start, tool = first
    return ForeignCall(start, tool.name, _native_hint(tool) if native else _tags_hint(tool))


def _markup(text: str) -> Iterator[tuple[int, str]]:
    for found in _MARKUP.finditer(text):
        yield found.start(), next(filter(None, found.groups()))


def _json(text: str) -> Iterator[tuple[int, str]]:
    reached = 0
    for found in _JSON.finditer(text):
        if found.end() < reached:
            continue
        reached = found.end() + _JSON_REACH
        if found[0].endswith("begin｜>"):
            name = re.search(rf"<｜tool▁sep｜>({_NAME})", text[found.end() : reached])
        else:
            name = _NAMED.search(text, found.end(), reached)
            name = name if _WITH_ARGUMENTS.search(text, found.end(), reached) else None
        if name is not None:
            yield found.start(), name[1]


def _tags(text: str, known: dict[str, ToolGrammar], *, native: bool) -> Iterator[tuple[int, str]]:
    names = {folded(name): name for name in known}
    for found in _TAG.finditer(text):
        tool = names.get(folded(found[1].rpartition(":")[2]))
        if tool is not None and not (native and not _has_parameter(text, found.end(), known[tool])):
            yield found.start(), tool


def _has_parameter(text: str, at: int, tool: ToolGrammar) -> bool:
    """Whether one of the tool's parameters begins right behind its tag."""
    following = re.compile(r"\s{0,99}>?\s{0,99}<?").match(text, at)
    return following is not None and text.startswith(
        tuple(f"{name}{end}" for name in tool.parameters for end in (">", "=")), following.end()
    )


def example_call(tool: ToolGrammar) -> str:
    """Write a call of the tool as tags, with the parameters that it must have."""
    lines = (f"<{name}>the {name.replace('_', ' ')}</{name}>" for name in _shown(tool))
    return "\n".join((f"<{tool.name}>", *lines, f"</{tool.name}>"))


def _shown(tool: ToolGrammar) -> Sequence[str]:
    return tool.required or tool.parameters[:1]


def _tags_hint(tool: ToolGrammar) -> str:
    return (
        f"Nothing was run: your reply holds a call of {tool.name} in a notation that is not read here. Write it with "
        f"these tags, at the start of a line and without attributes:\n{example_call(tool)}"
    )


def _native_hint(tool: ToolGrammar) -> str:
    values = ", ".join(f'"{name}": "the {name.replace("_", " ")}"' for name in _shown(tool))
    return (
        f"Nothing was run: your reply holds a call of {tool.name} as text. Make calls through the function interface "
        f"only, never in the text: call the function {tool.name} with the arguments {{{values}}}."
    )
