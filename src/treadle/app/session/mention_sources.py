"""Where the mentions of one session come from: its files and tools, its repository, its checkers and its commands."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from treadle.app.session.command_outputs import terminal_text
from treadle.app.session.enclosing import head_and_tail
from treadle.app.session.git_mentions import Repository
from treadle.app.session.mentioning import Enclosed, MentionSources, resolve_mentions, why_not
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import EnclosureKind
from treadle.tools.declarations import READ_FILE
from treadle.workspace.diagnostics.problems import report
from treadle.workspace.judged import judge_path
from treadle.workspace.text import visible

if TYPE_CHECKING:
    from treadle.app.session.own_shell import OwnShell
    from treadle.engine.ports import Ports
    from treadle.protocol.messages import Message
    from treadle.protocol.permissions import Standing
    from treadle.workspace.diagnostics.checks import Diagnostics
    from treadle.workspace.workspace import Workspace

_MOST_CHECKED = 100
_MOST_PROBLEMS = 200


class SessionParts(Struct, frozen=True, kw_only=True):
    """What mentions need of a session. `trusted`: git may run in its folder."""

    workspace: "Workspace"
    ports: "Ports"
    standing: "Callable[[], Standing]"
    sees_images: Callable[[], bool]
    trusted: bool
    diagnostics: "Diagnostics | None"
    conversation: "Callable[[], Sequence[Message]]"
    own_shell: "OwnShell"


async def enclosed_in(text: str, parts: SessionParts) -> Enclosed:
    """Read what a text mentions."""
    return await resolve_mentions(text, _sources(parts))


def _files_there(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if Path(path).is_file()]


def _sources(parts: SessionParts) -> MentionSources:
    workspace = parts.workspace

    def unreadable(path: str) -> str:
        return why_not(sources, READ_FILE, {"path": path}, judge_path(path).accesses())

    async def problems(room: int) -> str:
        if parts.diagnostics is None:
            raise ToolError("no linter or language server is set up (see docs/diagnostics.md).")
        there = await asyncio.to_thread(_files_there, workspace.seen.latest(_MOST_CHECKED))
        paths = [path for path in there if parts.diagnostics.covers(path) and not unreadable(path)]
        if not paths:
            raise ToolError("no file that a checker covers was read or edited in this session yet.")
        found = await parts.diagnostics.now(paths)
        rows = [report(found.problems, workspace.paths.display, most=_MOST_PROBLEMS)]
        rows += [f"[Did not run: {visible(fault)}]" for fault in found.faults]
        names = ", ".join(map(workspace.paths.display, paths))
        return head_and_tail("\n".join(filter(None, rows)) or f"No problems were found in {names}.", room)

    async def terminal(room: int) -> str:
        own, said = tuple(parts.own_shell.last), parts.conversation()
        return await asyncio.to_thread(terminal_text, said, own, workspace.commands, room)

    def repository() -> Repository:
        if not parts.trusted:
            raise ToolError("git does not run in a folder that you do not trust.")
        return Repository(root=workspace.root, why_not=unreadable)

    async def changes(room: int) -> str:
        return await asyncio.to_thread(repository().changes, room)

    async def commit(name: str, room: int) -> str:
        return await asyncio.to_thread(repository().commit, name, room) if parts.trusted else ""

    sources = MentionSources(
        workspace=workspace,
        ports=parts.ports,
        standing=parts.standing,
        sees_images=parts.sees_images,
        words={
            "problems": (EnclosureKind.PROBLEMS, problems),
            "terminal": (EnclosureKind.TERMINAL, terminal),
            "git-changes": (EnclosureKind.CHANGES, changes),
        },
        commit=commit,
    )
    return sources
