"""Which tools an agent's file leaves it: lists and maps of names, as five programs call their tools."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from treadle.app.config.foreign_tools import own_tools_of_any
from treadle.context.frontmatter import Header
from treadle.mcp.declaring import slug_of
from treadle.policy.decide import SERVER_TOOLS
from treadle.protocol.patterns import regex
from treadle.protocol.tools import Risk, ToolKind
from treadle.tools.tool_catalogue import SPECS
from treadle.workspace.files.names import shown_name

_EDIT_RIGHT = ("edit", "write")
"""Tools that OpenCode's right `edit` is about."""

_SEPARATOR = regex(r"[,\s]+(?![^(]*\))")
_FOREIGN_GLOB = regex(r"(?:mcp_)?([A-Za-z0-9-]+)_\*")
_DENY, _ASK = regex(r"\bdeny\b"), regex(r"\bask\b")
_ON = frozenset({"true", "yes", "on"})


class AgentTools(Struct, frozen=True, kw_only=True):
    """Names of tools here and globs of servers' tools: those that an agent has (None: all), and those left out.

    `asks`: a right is one that has to be asked for. `notes` say what is not taken as it was written.
    """

    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    asks: bool = False
    notes: tuple[str, ...] = ()


def agent_tools(header: Header) -> AgentTools:
    """Read the tools of an agent from its header. What cannot be said here leaves it less, never more."""
    notes: list[str] = []
    without: list[str] = []
    said = header.maps.get("tools")
    if said is not None:
        tools, off = _switched(said, notes)
        without += off
    else:
        tools = None if "tools" not in header.values else _named(_entries(header, "tools"), notes)
    without += _left_out(_entries(header, "disallowedTools"), notes)
    rights = header.maps.get("permission") or {"*": header.text("permission")}
    without += _denied(rights, notes)
    if _DENY.search(rights.get("*", "")):
        left = {own for name, right in rights.items() if not _DENY.search(right) for own in _with_right(name)}
        tools = tuple(sorted(left)) if tools is None else tuple(name for name in tools if name in left)
    if tools == ():
        notes.append("it has no tools")
    asks = any(_ASK.search(right) for right in rights.values())
    return AgentTools(tools=tools, without=tuple(dict.fromkeys(without)), asks=asks, notes=tuple(notes))


def may_write(tools: Sequence[str] | None, without: Sequence[str]) -> bool:
    """Whether a tool of ours among these changes files or runs commands."""
    return any(
        spec.traits.kind in (ToolKind.EDIT, ToolKind.EXECUTE) and spec.risk in (Risk.WRITE, Risk.EXECUTE)
        for spec in SPECS.values()
        if (tools is None or spec.name in tools) and spec.name not in without
    )


def _entries(header: Header, field: str) -> tuple[str, ...]:
    """Give the names of a field, be it a list or a text with commas or blanks between them."""
    found = header.values.get(field)
    parts = found if isinstance(found, tuple) else (header.text(field),)
    return tuple(name for part in parts for name in _SEPARATOR.split(part.strip()) if name)


def _named(entries: Iterable[str], notes: list[str]) -> tuple[str, ...] | None:
    """Give the tools of a list; None for all. A part of a tool, as `Bash(git diff:*)`, is none of it."""
    found: list[str] = []
    missing: list[str] = []
    parts: list[str] = []
    for entry in entries:
        name = entry.removesuffix("(*)")
        if name == "*":
            return None
        if "(" in name:
            parts.append(entry)
        elif own := _own(name):
            found += own
        else:
            missing.append(name)
    if missing:
        notes.append(f"tools that there are not here: {_shown(missing)}")
    if parts:
        notes.append(f"it has not {_shown(parts)}: a part of a tool cannot be given, and the whole would be more")
    return tuple(dict.fromkeys(found))


def _left_out(entries: Iterable[str], notes: list[str]) -> tuple[str, ...]:
    """Give the tools that are not to be had; of one that is so in part nothing is."""
    found: list[str] = []
    for entry in entries:
        name = entry.removesuffix("(*)")
        if "(" in name:
            name = name.partition("(")[0]
            notes.append(f"{shown_name(entry)} in disallowedTools leaves out all of {shown_name(name)}")
        found += ("*",) if name == "*" else _own(name)  # one that there is not here needs not be left out
    if "*" in found:
        return (*SPECS, f"{SERVER_TOOLS}*")
    return tuple(found)


def _switched(said: Mapping[str, str], notes: list[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Read a map of tools and whether they are on; gives those to be had (None: all), and those left out."""
    on = [name for name, value in said.items() if value.strip().lower() in _ON and name != "*"]
    off = [name for name, value in said.items() if value.strip().lower() not in _ON and name != "*"]
    is_closed = "*" in said and said["*"].strip().lower() not in _ON
    return _named(on, notes) if is_closed else None, tuple(one for name in off for one in _own(name))


def _denied(rights: Mapping[str, str], notes: list[str]) -> tuple[str, ...]:
    """Give the tools that OpenCode's rights deny by name.

    A right by patterns cannot be given here: where it denies anything, the whole tool is denied.
    """
    found: list[str] = []
    for name, right in rights.items():
        if name == "*" or not _DENY.search(right):
            continue
        if right.strip() != "deny":
            notes.append(f"its permission for {shown_name(name)} goes by patterns, so it has nothing of that tool")
        found += _with_right(name)
    return tuple(found)


def _with_right(name: str) -> tuple[str, ...]:
    return tuple(own for one in (_EDIT_RIGHT if name == "edit" else (name,)) for own in _own(one))


def _own(name: str) -> tuple[str, ...]:
    """Name the tools here that do what a tool of some program does; of a server a name or glob. Empty for none."""
    if name.startswith(SERVER_TOOLS):
        server, _, tool = name.removeprefix(SERVER_TOOLS).partition("__")
        slug = server if "*" in server else slug_of(server, {})
        return (f"{SERVER_TOOLS}{slug}__{tool or '*'}",)
    if name == "mcp_*":
        return (f"{SERVER_TOOLS}*",)
    if glob := _FOREIGN_GLOB.fullmatch(name):
        return (f"{SERVER_TOOLS}{slug_of(glob[1], {})}__*",)
    return tuple(one for one in own_tools_of_any(name) if one in SPECS)


def _shown(names: Iterable[str]) -> str:
    return ", ".join(map(shown_name, names))
