"""Lists of tools in Claude Code's notation, such as `Bash(git diff:*),Edit`, as what a session allows and offers."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from treadle.app.config.foreign_tools import own_tools_of
from treadle.app.importing.foreign_permissions import ImportContext, permission_of
from treadle.app.importing.server_permissions import tool_globs
from treadle.app.security.trusting import session_trust
from treadle.app.session.commands.judging import policy_context
from treadle.app.session.shape import SessionShape
from treadle.policy.allowances import allowance_of
from treadle.policy.rules import Rule, Ruleset
from treadle.protocol.permissions import Allowance, Mode, Standing, Verdict

_SEPARATOR = re.compile(r"[,\s]+(?![^(]*\))")
_EDITS = frozenset({"Edit", "Write", "MultiEdit"})
_WIDE = frozenset({"Bash", "WebFetch"})
_AGENT = re.compile(r"(?:Agent|Task)\(([^()*]+)\)")
_SERVER_TOOL = re.compile(r"mcp__.+")


class ListedTools(Struct, frozen=True, kw_only=True):
    """What lists of tools come to. `edits`: they let files of the folder be changed, which the mode `edits` does.

    `notes` say what is not taken as it was written.
    """

    shape: SessionShape
    edits: bool = False
    notes: tuple[str, ...] = ()


def split_tools(text: str) -> tuple[str, ...]:
    """Part a list at its commas and blanks; those in brackets belong to a rule."""
    return tuple(filter(None, _SEPARATOR.split(text.strip())))


def server_tools(allowed: Sequence[str]) -> tuple[str, ...]:
    """Name the tools of MCP servers in a list, as `mcp__SERVER__TOOL` or, for all of a server, `mcp__SERVER`."""
    return tuple(name.removesuffix("__*") for name in allowed if _SERVER_TOOL.fullmatch(name))


def listed_tools(
    root: Path, *, allowed: Sequence[str] = (), disallowed: Sequence[str] = (), only: Sequence[str] | None = None
) -> ListedTools:
    """Say what lists of tools mean in the folder `root`. What they allow is never more than "always allow" would."""
    notes: list[str] = []
    allowances: list[Allowance] = []
    where = _where(root) if any("(" in entry or _is_server(entry) for entry in (*allowed, *disallowed)) else None
    bare = {entry.removesuffix("(*)") for entry in allowed}
    for entry in allowed:
        if entry in _WIDE:
            notes.append(f"{entry} is not allowed as a whole: {_NARROWER[entry]}")
        elif where is not None and ("(" in entry or _is_server(entry)):
            taken = permission_of(entry, Verdict.ALLOW, where)
            allowances += map(allowance_of, taken.rules)
            # A tool that is not approved here may be one of the caller's own servers, which it vouches for.
            notes += [f"{entry}: {taken.note}"] if taken.note and not taken.rules and not _is_server(entry) else []
    denied: list[Rule] = []
    removed: set[str] = set()
    for entry in disallowed:
        if (agent := _AGENT.fullmatch(entry)) is not None:
            removed.add(f"Agent({agent[1]})")
        elif "(" in entry and not entry.endswith("(*)"):
            taken = permission_of(entry, Verdict.DENY, where or _where(root))
            denied += taken.rules
            if not taken.rules:
                removed.update(_removed(entry.partition("(")[0], where))
                notes.append(f"{entry}: {taken.note}, so nothing of that tool is offered")
        else:
            removed.update(_removed(entry.removesuffix("(*)"), where))
    shape = SessionShape(
        root=root,
        only=None if only is None else frozenset(own for name in only for own in own_tools_of(name)),
        removed=frozenset(removed),
        allowances=tuple(allowances),
        denied=tuple(denied),
    )
    return ListedTools(
        shape=shape,
        edits=bool(_EDITS & bare),
        notes=tuple(notes),
    )


_NARROWER = {
    "Bash": "name commands, such as Bash(git diff:*), or choose the mode auto",
    "WebFetch": "name hosts, such as WebFetch(domain:docs.python.org)",
}


def _is_server(entry: str) -> bool:
    return _SERVER_TOOL.fullmatch(entry) is not None


def _removed(name: str, where: ImportContext | None) -> Iterator[str]:
    if where is not None and _is_server(name):
        yield from tool_globs(name, where.servers)
    yield name
    yield from own_tools_of(name)


def _where(root: Path) -> ImportContext:
    """Give what rules are read in: nothing is allowed there yet, so that each is tried."""
    from treadle.app.compose import tool_specs
    from treadle.app.servers.approved import approved_servers

    context = policy_context(str(root), Standing(mode=Mode.ASK), trusted=False, rules=Ruleset())
    specs = {spec.name: spec for spec in tool_specs(root)}
    return ImportContext(context, str(root / ".claude"), specs, approved_servers(session_trust(root)))
