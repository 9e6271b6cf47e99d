"""Calls that stand in the text of a reply in a notation of other models, read where they can be nothing else."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.parsing.aliases import PATH_TOOLS, SHELL_TOOL, aliases_of, folded, own_tool, tool_of
from treadle.parsing.framing import unframe
from treadle.parsing.layout import Layout
from treadle.parsing.native import is_strict, one_object
from treadle.parsing.readings import Reading
from treadle.parsing.reply_blocks import CallComplete, CallOpened, ContentDelta, ParameterDelta, ToolGrammar
from treadle.parsing.xml import XmlReader
from treadle.protocol.patterns import regex

_NAME = r"[A-Za-z_][\w.:-]{0,63}"
_NAME_KEYS = frozenset({"name", "tool", "tool_name", "function"})
_ARGUMENT_KEYS = frozenset({"arguments", "parameters", "input", "args", "params", "tool_input"})
_OTHER_KEYS = frozenset({"id", "type"})
_FENCED = regex(
    r"(`{3,})(?:json|tool_calls?|tool_code|tool_use)?[ \t]{0,9}\r?\n(.*?)\r?\n?[ \t]{0,9}\1", re.DOTALL | re.IGNORECASE
)
_TAG_MARKS = r"</?(?:minimax:|antml:|｜DSML｜)?(?:tool_calls?|tool_use|function_calls?|tools?)>"
_DECLARES = "<tools>"
"""A prompt lists tools between these, as some models do with their calls: these have their `arguments`."""
_TOKENS = (
    r"<\|?/?tool_calls?\|>|<\|tool_calls_section_(?:begin|end)\|>|<｜tool▁calls▁(?:begin|end)｜>"
    r"|\[/?TOOL_CALLS\]|<\|(?:python_tag|eom_id|eot_id|im_end|call)\|>"
)
_MARK = regex(rf"\s+|{_TAG_MARKS}|{_TOKENS}")
"""What stands around calls and says nothing itself."""

_NAMED = regex(
    rf"<\|tool_call_begin\|>\s*({_NAME})\s*<\|tool_call_argument_begin\|>"
    rf"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?({_NAME})(?:<｜tool▁sep｜>)?\s*(?:```json\s*)?(?=\{{)"
    rf"|(?<=\[TOOL_CALLS\])\s*({_NAME})(?:\[ARGS\])?\s*(?=\{{)"
    rf"|(?:<\|start\|>assistant)?<\|channel\|>\w+\s+to=functions\.({_NAME})\s*(?:<\|constrain\|>)?\w*<\|message\|>"
    rf"|(?:analysis|commentary)\s{{1,9}}to=functions\.({_NAME}?)(?:\s{{0,9}}json)?\s{{0,9}}(?=\{{)"
)
"""Notations that name the tool in front of the JSON of its arguments."""

_NAMED_END = regex(r"\s*(?:```)?\s*(?:<\|tool_call_end\|>|<｜tool▁call▁end｜>|<\|call\|>)")
_FUNCTION = regex(rf"""<(?:antml:|｜DSML｜)?(function|invoke)(?:=|\s{{1,9}}name=)["']?({_NAME})["']?>""")
_PARAMETER = regex(
    rf"""\s*<(?:antml:|｜DSML｜)?parameter(?:=|\s{{1,9}}name=)["']?({_NAME})["']?(?:\s{{1,9}}string="\w{{4,5}}")?>"""
)
_PARAMETER_END = regex(
    r"</(?:antml:|｜DSML｜)?parameter>(?=\s*<(?:antml:|｜DSML｜)?(?:parameter[=\s]|/))|</(?:antml:|｜DSML｜)?parameter>(?=\s*</)"
)
_FUNCTION_END = regex(r"\s*</(?:antml:|｜DSML｜)?(?:function|invoke)>")
_PAIRED = regex(rf"({_NAME})\s*(?=<arg_key>|</tool_call>)")
_PAIR = regex(rf"<arg_key>\s*({_NAME})\s*</arg_key>\s*<arg_value>(.*?)</arg_value>\s*", re.DOTALL)
_OPENED = regex(
    rf"^[ \t]{{0,9}}(?:{_TAG_MARKS}|<(?:antml:|｜DSML｜)?(?:function|invoke)[=\s]"
    rf"|(?:analysis|commentary)[ \t]{{1,9}}to=functions|<(?P<tag>{_NAME})>)"
    rf"|{_TOKENS}|<\|tool_call_begin\|>|<｜tool▁call▁begin｜>|(?:<\|start\|>assistant)?<\|channel\|>\w+\s+to=",
    re.MULTILINE,
)
"""Where calls may begin: a tag at the start of a line, a token of a model's format anywhere."""

_BARE = regex(rf"\s*<({_NAME})>(.*?)</\1>", re.DOTALL)
_OF_FILES = ("content", "diff")
_SHELL_TAGS = frozenset({"bash", "shell"})
_DECODER = json.JSONDecoder(strict=False)


class _UnreadableError(Exception):
    """The text is no call, or can be read in another way, too."""


class WrittenCalls(Struct, frozen=True):
    """The text in front of the calls, and the calls with their source: all of it joined is the reply."""

    before: str
    calls: tuple[CallComplete, ...]


def written_calls(text: str, tools: Sequence[ToolGrammar]) -> WrittenCalls | None:
    """Read the calls with which a reply ends that has none in the right notation; None unless it is certain.

    That is a reply that is one JSON call and nothing else, in a fence or not; or one that ends with calls in the marks
    of a model's own format or in tags, begun at the start of a line and in no fence or inline code. A quotation in the
    middle of an answer, a fence with words around it and anything that is not whole is no call. Whether the tools may
    be used and the arguments fit is for the caller. Time is linear in the text.
    """
    stripped = text.strip()
    if stripped.startswith(("{", "`")):
        fenced = _FENCED.fullmatch(stripped)
        readings = [Reading.JSON_CALL]
        call = _named_in(one_object(fenced[2] if fenced else stripped, readings), readings)
        return WrittenCalls("", (replace(call, source=text),)) if call is not None else None
    layout, read = Layout(), 0
    for opened in _OPENED.finditer(text):
        at, tag = opened.start(), opened["tag"]
        if tag and _tool_of_tag(tag, tools) is None:
            continue
        layout.write(text[read:at])
        read, place = at, layout.place()
        if place.fenced or place.inline_code:
            continue
        try:
            found = list(_tagged(text, at, tools) if tag else _marked(text, at))
        except _UnreadableError:
            return None
        return _with_sources(text, found) if found else None
    return None


def _with_sources(text: str, found: Sequence[tuple[int, CallComplete]]) -> WrittenCalls:
    starts = [start for start, _ in found]
    if not text[: starts[0]].strip():
        starts[0] = 0
    ends = [*starts[1:], len(text)]
    calls = (replace(call, source=text[start:end]) for start, end, (_, call) in zip(starts, ends, found, strict=True))
    return WrittenCalls(text[: starts[0]], tuple(calls))


def _named_in(found: Any, readings: Sequence[Reading]) -> CallComplete | None:
    """Read an object of a tool's name and its arguments, and of nothing else that says something.

    `readings` were needed to come as far.
    """
    read = list(readings)
    if isinstance(found, dict) and found.get("type") == "function" and isinstance(found.get("function"), dict):
        found = found["function"]
    if not isinstance(found, dict):
        return None
    names, arguments = found.keys() & _NAME_KEYS, found.keys() & _ARGUMENT_KEYS
    if len(names) != 1 or len(arguments) != 1 or found.keys() - names - arguments - _OTHER_KEYS:
        return None
    name, given = found[next(iter(names))], found[next(iter(arguments))]
    if isinstance(given, str):
        given = one_object(given, read)
    if not isinstance(name, str) or not isinstance(given, dict):
        return None
    return CallComplete(-1, name, given, readings=tuple(read))


def _marked(text: str, at: int) -> Iterator[tuple[int, CallComplete]]:
    """Read calls between the marks of a model's format, up to the end of the text."""
    start, declares = at, False
    while at < len(text):
        if mark := _MARK.match(text, at):
            at, declares = mark.end(), declares or mark[0] == _DECLARES
            continue
        calls, end = _marked_calls(text, at)
        if declares and '"arguments"' not in text[at:end]:
            raise _UnreadableError
        for call in calls:
            yield start, call
            start = end
        at = start = end


def _marked_calls(text: str, at: int) -> tuple[list[CallComplete], int]:
    marked = [Reading.MARKED_CALL]
    if named := _NAMED.match(text, at):
        given, end = _json(text, named.end(), marked)
        ended = _NAMED_END.match(text, end)
        return [_call(next(filter(None, named.groups())), given, *marked)], ended.end() if ended else end
    if function := _FUNCTION.match(text, at):
        given, end = _parameters(text, function.end())
        return [_call(function[2], given, Reading.TAGGED_CALL)], end
    if paired := _PAIRED.match(text, at):
        given, end = _pairs(text, paired.end())
        return [_call(paired[1], given, Reading.TAGGED_CALL)], end
    found, end = _json(text, at, marked)
    calls = [_named_in(one, marked) for one in (found if isinstance(found, list) else [found])]
    known = [call for call in calls if call is not None]
    if not known or len(known) < len(calls):
        raise _UnreadableError
    return known, end


def _call(name: str, given: Any, *readings: Reading) -> CallComplete:
    if not isinstance(given, dict):
        raise _UnreadableError
    return CallComplete(-1, name, given, readings=readings)


def _json(text: str, at: int, readings: list[Reading]) -> tuple[Any, int]:
    begun = re.compile(r"\s*").match(text, at)
    at = begun.end() if begun else at
    try:
        found, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        raise _UnreadableError from None
    if isinstance(found, dict) and one_object(text[at:end], readings) is None:
        raise _UnreadableError
    if isinstance(found, list) and not is_strict(text[at:end]):
        readings.append(Reading.RAW_CHARACTERS)
    return found, end


def _parameters(text: str, at: int) -> tuple[dict[str, Any], int]:
    given: dict[str, Any] = {}
    while begun := _PARAMETER.match(text, at):
        ended = _PARAMETER_END.search(text, begun.end())
        if (
            ended is None
            or begun[1] in given
            or _PARAMETER.search(text, begun.end(), ended.start())
            or "<parameter" in text[begun.end() : ended.start()]
        ):
            raise _UnreadableError
        given[begun[1]] = _laid_out(begun, unframe(text[begun.end() : ended.start()]))
        at = ended.end()
    closed = _FUNCTION_END.match(text, at)
    if closed is None:
        raise _UnreadableError
    return given, closed.end()


def _laid_out(begun: re.Match[str], value: str) -> str:
    """Give a line without the blanks that set it in below its tag, where the tag and its end are set in themselves.

    The text of a file keeps its blanks: they may be its own.
    """
    line, _, last = value.rpartition("\n")
    set_in = begun[0][: begun[0].index("<")].rpartition("\n")[2]
    own = folded(begun[1]) in aliases_of(_OF_FILES)
    return value if own or not set_in or last != set_in or "\n" in line else line.strip()


def _pairs(text: str, at: int) -> tuple[dict[str, Any], int]:
    given: dict[str, Any] = {}
    while pair := _PAIR.match(text, at):
        if pair[1] in given:
            raise _UnreadableError
        given[pair[1]] = unframe(pair[2])
        at = pair.end()
    return given, at


def _tool_of_tag(tag: str, tools: Sequence[ToolGrammar]) -> ToolGrammar | None:
    """Find the tool that a tag means; a single common word is a tag of other texts, too."""
    known = tuple(tool.name for tool in tools)
    name = own_tool(tag, known) or tool_of(tag, known)
    plain = "_" not in tag and folded(tag) not in _SHELL_TAGS and tag != name
    return None if plain else next((tool for tool in tools if tool.name == name), None)


def _tagged(text: str, at: int, tools: Sequence[ToolGrammar]) -> Iterator[tuple[int, CallComplete]]:
    """Read calls in tags under the names of any agent, up to the end of the text."""
    found = list(_bare(text, at, tools))
    if found:
        yield from found
        return
    tags = {one["tag"] for one in _OPENED.finditer(text, at) if one["tag"]}
    meant = ((tag, _tool_of_tag(tag, tools)) for tag in sorted(tags))
    reader = XmlReader([replace(tool, name=tag) for tag, tool in meant if tool is not None])
    for block in [*reader.feed(text[at:]), *reader.finish()]:
        if isinstance(block, CallComplete):
            yield at, replace(block, index=-1, readings=(Reading.TAGGED_CALL,))
            at += len(block.source)
        elif isinstance(block, ContentDelta) and not block.text.strip():
            at += len(block.text)
        elif not isinstance(block, CallOpened | ParameterDelta):
            raise _UnreadableError


def _bare(text: str, at: int, tools: Sequence[ToolGrammar]) -> Iterator[tuple[int, CallComplete]]:
    """Read `<bash>ls</bash>` and its like; nothing where not all of the text is that."""
    found: list[tuple[int, CallComplete]] = []
    while one := _BARE.match(text, at):
        tool = _tool_of_tag(one[1], tools)
        value = _only_value(one[2], one[1], tool) if tool is not None else {}
        if not value:
            return
        found.append((at, CallComplete(-1, one[1], value, readings=(Reading.TAGGED_CALL,))))
        at = one.end()
    if not text[at:].strip():
        yield from found


def _only_value(raw: str, tag: str, tool: ToolGrammar) -> dict[str, str]:
    """Read the one text between the tags of a tool as its one parameter; nothing where it may be something else."""
    line = tool.name == SHELL_TOOL
    value = unframe(raw) if line else raw.strip()
    opened = any(f"<{name}>" in raw for name in (tag, *tool.parameters, *tool.aliases))
    if not (line or tool.name in PATH_TOOLS) or not value.strip() or opened or (not line and "\n" in value):
        return {}
    return {tool.required[0]: value}
