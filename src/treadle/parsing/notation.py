"""Calls that a reply holds in a notation that is not read: found, and answered with an example of the right one."""

import itertools
import re
from collections.abc import Iterator, Sequence

import msgspec

from treadle.parsing.aliases import folded, misspelt_tool, near_tool, own_tool
from treadle.parsing.reply_blocks import ToolGrammar
from treadle.protocol.patterns import regex

_NAME = r"[A-Za-z_][\w.:-]{0,63}"
_NAMED = regex(rf'"(?:name|tool|tool_name|function|recipient_name)"\s{{0,9}}:\s{{0,9}}"({_NAME})"')
_WITH_ARGUMENTS = regex(r'"(?:arguments|parameters|input|args|params|tool_input)"\s{0,9}:')
_JSON_REACH = 4_000
"""How far into a JSON text the name of its tool is looked for, in characters."""

_MARKUP = regex(
    rf"""<(?:antml:)?invoke\s{{1,9}}name=["']?({_NAME})["'>]"""
    rf"""|<function[\s=]{{1,9}}(?:name=)?["']?({_NAME})["'>]"""
    rf"""|<tool_name>\s{{0,9}}({_NAME})\s{{0,9}}</tool_name>"""
    rf"""|\bto=functions\.({_NAME})"""
)
"""Notations that name the tool in tags of their own."""

_JSON = regex(
    r"<(?:\|?tool_calls?\|?|tool_use|function_calls?|tool_code|\|python_tag\|)>\s*(?=[\[{])"
    r"|\[TOOL_CALLS\]\s*(?=[\[{])"
    r"|<｜tool▁call▁begin｜>"
    r"|^[ \t]{0,9}`{3,}(?:json|tool_calls?|tool_code|tool_use)?[ \t]{0,9}\r?\n[ \t]{0,9}(?=[\[{])"
    r"|^(?=[\[{])",
    re.MULTILINE,
)
"""Where JSON may begin that is a call."""

_TAG = regex(r"<([A-Za-z_][\w.:-]{1,63})(?=[\s/>])")
_CLOSING = regex(r"</([A-Za-z_][\w.-]{1,63})>")
_VALUE = regex(r"\s*<([A-Za-z_]\w{0,63})>")
_NAMES = ("tool", "tool_name", "name", "function")
_ENDS = (">", "}", "]", "`")
"""How a text ends that ends with a call."""


def foreign_call(text: str, tools: Sequence[ToolGrammar], *, native: bool) -> str:
    """Say how to write the call that the text of a reply without calls holds in a notation of other agents.

    `native`: calls are made through the provider's interface, and text is an answer unless it ends with a call of one
    of the `tools`. Otherwise calls are tags and a reply without one is wrong anyway, so that near misses and other
    names of tools are taken, too. Empty if there is no such call. Time is linear in the text.
    """
    known = {tool.name: tool for tool in tools}
    if native and not text.rstrip().endswith(_ENDS):
        return ""
    names = tuple(known)
    called = itertools.chain(_markup(text), _json(text), _tags(text, known, native=native))
    if not native:
        called = itertools.chain(called, _misspelt(text, known), _flat_json(text, known))
    meant = (own_tool(name, names) if native else near_tool(name, names) for name in called)
    tool = next((known[name] for name in meant if name), None)
    if tool is None:
        return ""
    return _native_hint(tool) if native else _tags_hint(tool)


def _markup(text: str) -> Iterator[str]:
    for found in _MARKUP.finditer(text):
        yield next(filter(None, found.groups()))


def _json(text: str) -> Iterator[str]:
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
            yield name[1]


def _tags(text: str, known: dict[str, ToolGrammar], *, native: bool) -> Iterator[str]:
    names = {folded(name): name for name in known}
    for found in _TAG.finditer(text):
        tool = names.get(folded(found[1].rpartition(":")[2]))
        if tool is not None and not (native and not _has_parameter(text, found.end(), known[tool])):
            yield tool


def _misspelt(text: str, known: dict[str, ToolGrammar]) -> Iterator[str]:
    """Name the tool of a call that ends the text, whose tag is misspelt and whose parameters are those of the tool."""
    text = text.rstrip()
    end = _CLOSING.fullmatch(text, text.rfind("</"))
    tool = None if end is None else known.get(misspelt_tool(end[1], tuple(known)))
    if end is None or tool is None:
        return
    begins = [one.end() for one in re.finditer(rf"^ {{0,3}}<{re.escape(end[1])}>", text, re.MULTILINE)]
    names, at = [], begins[-1] if begins else len(text)
    while (one := _VALUE.match(text, at, end.start())) is not None:
        names.append(one[1])
        at = max(text.find(f"</{one[1]}>", one.end(), end.start()) + len(one[1]) + 3, one.end())
    if not text[at : end.start()].strip() and _are_those_of(tool, names):
        yield tool.name


def _flat_json(text: str, known: dict[str, ToolGrammar]) -> Iterator[str]:
    """Name the tool of an object that ends the text, with the tool's name beside its parameters."""
    try:
        found = msgspec.json.decode(text[text.rfind("\n{") + 1 :])
    except (ValueError, RecursionError):
        return
    key = next((key for key in _NAMES if isinstance(found, dict) and isinstance(found.get(key), str)), "")
    tool = known.get(own_tool(found[key], tuple(known))) if key else None
    if tool is not None and _are_those_of(tool, [name for name in found if name != key]):
        yield tool.name


def _are_those_of(tool: ToolGrammar, names: Sequence[str]) -> bool:
    """Whether all of these are parameters of the tool, and all that it must have is among them."""
    meant = {tool.aliases.get(name, name) for name in names}
    return bool(meant) and meant.issubset(tool.parameters) and meant.issuperset(tool.required)


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
        f"Nothing was run: your reply has a call of {tool.name} in a notation that does not work here. Write it with "
        f"these tags, at the start of a line and without attributes:\n{example_call(tool)}"
    )


def _native_hint(tool: ToolGrammar) -> str:
    values = ", ".join(f'"{name}": "the {name.replace("_", " ")}"' for name in _shown(tool))
    return (
        f"Nothing was run: your reply has a call of {tool.name} as text. Make calls through the function interface "
        f"only, never in the text: call the function {tool.name} with the arguments {{{values}}}."
    )
