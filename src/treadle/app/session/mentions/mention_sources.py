"""Where the mentions of one session come from: its files and tools, its repository, its checkers and its commands."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.session.mentions.command_outputs import terminal_text
from treadle.app.session.mentions.enclosing import NotEnclosedError, head_and_tail
from treadle.app.session.mentions.git_mentions import Repository
from treadle.app.session.mentions.mentioning import (
    Enclosed,
    JudgedCalls,
    MentionSources,
    call_allowed,
    resolve_mentions,
    why_not,
)
from treadle.app.session.own_commands.command_files import find_text
from treadle.app.session.own_commands.expanding import written_out
from treadle.app.session.own_commands.slash_lines import slash_word
from treadle.engine.core.state import standing
from treadle.present.words import plain
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Enclosure, EnclosureKind, Text
from treadle.protocol.models import ToolProtocol
from treadle.tools.declarations import EXECUTE_COMMAND, READ_FILE
from treadle.workspace.diagnostics.problems import report
from treadle.workspace.files.judged import judge_path
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    from treadle.app.security.trusting import SessionTrust
    from treadle.app.servers.session_servers import SessionServers
    from treadle.app.session.own_commands.own_shell import OwnShell
    from treadle.app.session.rules.instructions import RuleBook
    from treadle.engine.ports import Ports
    from treadle.engine.runtime.running_session import Session
    from treadle.workspace.diagnostics.checks import Diagnostics
    from treadle.workspace.workspace import Workspace

_MOST_CHECKED = 100
_MOST_PROBLEMS = 200
_LINE_SECONDS = 60
_NO_FAILURE = "Exit status 0.\n"


class SessionParts(Struct, frozen=True, kw_only=True):
    """What mentions need of a session."""

    workspace: "Workspace"
    ports: "Ports"
    engine: "Session"
    trust: "SessionTrust"
    diagnostics: "Diagnostics | None"
    rules: "RuleBook"
    own_shell: "Callable[[], OwnShell]"
    servers: "SessionServers | None" = None


async def enclosed_in(text: str, parts: SessionParts) -> Enclosed:
    """Read what a text mentions, and the text of the command that it begins with."""
    sources = _sources(parts)
    name = slash_word(text)
    named = find_text(name, parts.trust) if name else None
    if named is None:
        return await resolve_mentions(text, sources)
    if named.unused:
        return Enclosed(notices=(f"/{name} is not used: {named.unused}.",))

    async def run(line: str) -> str:
        if not parts.trust.trusted:
            raise NotEnclosedError("shell lines of commands run only in a folder that you trust.")
        result = await call_allowed(sources, EXECUTE_COMMAND, {"command": line, "timeout": _LINE_SECONDS})
        return plain(result.content).removeprefix(_NO_FAILURE)

    argument = text[1 + len(name) :].strip()
    if named.server:
        try:
            if parts.servers is None:
                raise ToolError(f"the MCP server {visible(named.server)} is not connected. Use /mcp to see why.")
            written = await parts.servers.prompt(named.server, named.prompt, argument)
        except ToolError as error:
            return Enclosed(notices=(f"/{name} is not used: {error.text}",))
        named = replace(named, body=lambda _: written)
    command = await written_out(named, argument, run)
    found = await resolve_mentions(f"{text}\n{command.body}", sources)
    content = (Text(text=parts.ports.redactor().redact(command.text)),)
    whole = Enclosure(kind=named.kind, origin=named.origin, content=content)
    return Enclosed(enclosures=(whole, *found.enclosures), notices=(*command.notices, *found.notices))


def _files_there(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).is_file()]


def _rule(parts: SessionParts, name: str) -> tuple[str, str] | None:
    found = parts.rules.by_name(name)
    return None if found is None else (found.origin, "\n\n".join(block.text for block in found.blocks))


def _sources(parts: SessionParts) -> MentionSources:
    workspace = parts.workspace
    calls = JudgedCalls(ports=parts.ports, standing=lambda: standing(parts.engine.state))

    def unreadable(path: str) -> str:
        return why_not(calls, READ_FILE, {"path": path}, judge_path(path).accesses())

    async def problems(room: int) -> str:
        if parts.diagnostics is None:
            raise NotEnclosedError("no linter or language server is set up (see docs/diagnostics.md).")
        there = await asyncio.to_thread(_files_there, workspace.seen.latest(_MOST_CHECKED))
        paths = [path for path in there if parts.diagnostics.covers(path) and not unreadable(path)]
        if not paths:
            raise NotEnclosedError("no file that a checker covers was read or edited in this session yet.")
        found = await parts.diagnostics.now(paths)
        rows = [report(found.problems, workspace.paths.display, most=_MOST_PROBLEMS)]
        rows += [f"[Did not run: {visible(fault)}]" for fault in found.faults]
        names = ", ".join(map(workspace.paths.display, paths))
        return head_and_tail("\n".join(filter(None, rows)) or f"No problems were found in {names}.", room)

    async def terminal(room: int) -> str:
        own = tuple(parts.own_shell().last)
        said = parts.engine.transcript.messages(ToolProtocol.NATIVE, images=False, documents=False)
        return await asyncio.to_thread(terminal_text, said, own, workspace.commands, room)

    def repository() -> Repository:
        if not parts.trust.trusted:
            raise NotEnclosedError("git does not run in a folder that you do not trust.")
        return Repository(root=workspace.root, why_not=unreadable)

    async def changes(room: int) -> str:
        return await asyncio.to_thread(repository().changes, room)

    async def commit(name: str, room: int) -> str:
        return await asyncio.to_thread(repository().commit, name, room) if parts.trust.trusted else ""

    return MentionSources(
        workspace=workspace,
        ports=calls.ports,
        standing=calls.standing,
        sees_images=lambda: parts.ports.model(parts.engine.state.choice.model).images is not False,
        words={
            "problems": (EnclosureKind.PROBLEMS, problems),
            "terminal": (EnclosureKind.TERMINAL, terminal),
            "git-changes": (EnclosureKind.CHANGES, changes),
        },
        commit=commit,
        rule=partial(_rule, parts),
    )
