"""Which tools a model is not told of, and why: what cannot work here or now."""

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from treadle.app.config.places import data_directory, servers_file
from treadle.app.models.model_notes import plain_ref
from treadle.app.session.files.edit_ledger import EDIT_TOOLS, choose_edit_tool, today
from treadle.engine.core.state import State
from treadle.engine.ports import BeforeStep, Judge, Tool
from treadle.engine.runtime.running_session import Session
from treadle.protocol.models import ModelSpec, ToolProtocol
from treadle.protocol.permissions import Mode, Situation
from treadle.protocol.sealed import PromptPart
from treadle.store.activation import ActiveKind
from treadle.store.sqlite import Store
from treadle.tools.declarations import (
    ASK_FOLLOWUP_QUESTION,
    BROWSER_ACTION,
    EDIT_NOTEBOOK,
    NEW_TASK,
    PLAN_MODE_RESPOND,
    RUN_CODE,
    SET_TIMER,
    USE_SKILL,
    USE_SUBAGENTS,
)

if TYPE_CHECKING:
    from treadle.app.config.sections import Settings
    from treadle.app.servers.session_servers import SessionServers
    from treadle.app.session.parts import Parts
    from treadle.policy.secrets import Redactor
    from treadle.workspace.files.seen import SeenFiles

ANSWERED = Situation(mode=Mode.ASK, user_present=True)
"""A session as a person has it in a terminal."""


def left_out(model: str, store: Store, spec: ModelSpec | None = None) -> Mapping[str, str]:
    """Give the tools that a model (`provider/name`) is told of in no situation, each with the reason."""
    edit_tool = choose_edit_tool(model, store.edit_counts(plain_ref(model)), today())
    reasons = dict.fromkeys(EDIT_TOOLS - {edit_tool}, f"this model edits with {edit_tool}")
    if find_spec("playwright") is None:
        reasons[BROWSER_ACTION.name] = (
            "Playwright is not installed; the user sees how to add it with: treadle update --with browser"
        )
    elif spec is not None and spec.images is False:
        reasons[BROWSER_ACTION.name] = "this model cannot see screenshots"
    return reasons


def left_out_now(situation: Situation) -> Mapping[str, str]:
    """Give the tools that no model is told of in a situation."""
    reasons: dict[str, str] = {}
    if situation.mode is not Mode.PLAN:
        reasons[PLAN_MODE_RESPOND.name] = (
            "it works in plan mode only. Continue with the task, then use attempt_completion"
        )
    if not situation.user_present:
        reasons[ASK_FOLLOWUP_QUESTION.name] = "nobody is here to answer"
        reasons[SET_TIMER.name] = "the run ends with your turn. Use execute_command with sleep to wait"
        reasons[NEW_TASK.name] = "nobody is here to agree to it. Continue with the task"
    return reasons


NO_SKILLS: Mapping[str, str] = {USE_SKILL.name: "there are no skills here. Continue without one"}
"""What a session without skills leaves out."""

NO_SUBAGENTS: Mapping[str, str] = {
    USE_SUBAGENTS.name: "there are no subagents here. Do the task yourself",
    RUN_CODE.name: "there are no programs here. Make the calls one by one",
}
"""What a session leaves out that cannot begin others, such as a subagent."""


def no_programs(settings: "Settings") -> Mapping[str, str]:
    """Leave the tool out that runs programs where it is not wanted, or where nothing shuts a program off."""
    if not settings.code_mode:
        return {RUN_CODE.name: "code mode is off here. Make the calls one by one"}
    from treadle.workspace.programs.program_process import why_no_programs

    why = why_no_programs()
    return {RUN_CODE.name: f"programs cannot run here: {why}. Make the calls one by one"} if why else {}


def out_of_session(settings: "Settings", *, skills: bool) -> Mapping[str, str]:
    """Give what no model is told of in a session with these settings, which has `skills` that a model may call."""
    return {**({} if skills else NO_SKILLS), **no_programs(settings)}


NO_NOTEBOOKS: Mapping[str, str] = {EDIT_NOTEBOOK.name: "no notebook was read yet. Read it with read_file first"}
"""What a session leaves out that has met no notebook."""

_NOTEBOOK = ".ipynb"
_LOOKED_AT, _LOOKED_INTO = 1_000, 30
"""Entries that are looked at for a notebook, and folders that are looked into: about a millisecond."""


def has_notebooks(root: str) -> bool:
    """Whether a notebook lies in a folder or in one right below it, as far as a short look shows."""
    left, folders = _LOOKED_AT, [root]
    for folder in folders:
        if not left:
            break
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, left):
                    left -= 1
                    if entry.name.endswith(_NOTEBOOK):
                        return True
                    is_below = folder is root and len(folders) <= _LOOKED_INTO and not entry.name.startswith(".")
                    if is_below and entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return False


def without_notebooks(root: str, seen: "SeenFiles") -> Callable[[], Mapping[str, str]]:
    """Leave the tool for notebooks out until one is met: in the folder at first, or among the files that were seen."""
    at_first = cache(has_notebooks)
    return lambda: {} if _NOTEBOOK in seen.endings or at_first(root) else NO_NOTEBOOKS


def offering(
    store: Store, spec: Callable[[str], ModelSpec], always_out: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str, Situation], Mapping[str, str]]:
    """Find what a model is not told of; for the same model and situation it is the same each time.

    `always_out` names what no model is told of in the session.
    """

    @cache
    def always(model: str) -> Mapping[str, str]:
        return {**left_out(model, store, spec(model)), **always_out}

    return lambda model, situation: {**always(model), **left_out_now(situation)}


LeftOut = Callable[[str, Situation], Mapping[str, str]]


def also_left_out(base: LeftOut, now: Callable[[], Mapping[str, str]]) -> LeftOut:
    """Leave out besides what cannot be offered at the moment, such as a tool of a server that is gone."""
    return lambda model, situation: {**base(model, situation), **now()}


class JoinedServers(Struct, frozen=True, kw_only=True):
    """The MCP servers of a session, if any: what they add to it. `known` are the tools that a prompt may describe.

    Those that are `lent` are of the session that began a subagent, and end with that.
    """

    offered: Mapping[str, Tool]
    known: Mapping[str, Tool]
    servers: "SessionServers | None" = None
    left_out: Callable[[], Mapping[str, str]] = dict
    before_step: tuple[BeforeStep, ...] = ()
    prompt_parts: Callable[[], tuple[PromptPart, ...]] = tuple
    notices: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    lent: bool = False

    def ask_policy(self, judge: Judge, state: Callable[[], State], rules: Callable[[], str]) -> None:
        """Leave out the tools that need a yes while nobody is here, as the policy says; `rules` is their version."""
        if self.servers is not None:
            from treadle.app.servers.denied import DeniedTools

            self.servers.ask_policy(DeniedTools(judge, state, rules))

    async def close(self) -> None:
        """End the servers."""
        if self.servers is not None and not self.lent:
            await self.servers.hub.close()


class ToLend(Protocol):
    """What takes the servers of a session, for subagents."""

    lent: "JoinedServers | None"


def joined_servers(
    parts: "Parts", tools: Mapping[str, Tool], redactor: "Callable[[], Redactor]", engine: Session, *, book: ToLend
) -> JoinedServers:
    """Find the MCP servers of a session put together from `parts`, which are asked of as the `engine` stands.

    What they take is loaded only where some are configured. `book` takes them for subagents; a subagent has those of
    the session that began it, as far as its agent may use them, and starts none.
    """
    if parts.brought.child is not None:
        lent = parts.brought.child.servers
        return JoinedServers(offered=tools, known=tools) if lent is None else _borrowed(lent, parts, tools, engine)
    book.lent = _own_servers(parts, tools, redactor, engine)
    return book.lent


def _borrowed(lent: JoinedServers, parts: "Parts", tools: Mapping[str, Tool], engine: Session) -> JoinedServers:
    from treadle.app.servers.session_servers import SessionServers

    assert lent.servers is not None  # noqa: S101 - they were lent
    servers = SessionServers(
        lent.servers.hub,
        native=lambda: engine.state.choice.tool_protocol is ToolProtocol.NATIVE,
        window=lambda: parts.models.spec(engine.state.choice.model).context_window,
        sent=lambda: engine.reader.offer.tools,
    )
    return JoinedServers(
        offered=servers.tools(tools),
        known={**tools, **servers.fixed},
        servers=servers,
        left_out=servers.left_out,
        prompt_parts=servers.prompt_parts,
        secrets=lent.secrets,
        lent=True,
    )


def _own_servers(
    parts: "Parts", tools: Mapping[str, Tool], redactor: "Callable[[], Redactor]", engine: Session
) -> JoinedServers:
    of_folder = parts.trust.trusted and any(item.kind is ActiveKind.SERVERS for item in parts.trust.items)
    others = not parts.brought.only_servers and (of_folder or os.path.lexists(servers_file()))
    if not (parts.brought.servers or others):
        return JoinedServers(offered=tools, known=tools)
    from treadle.app.servers.joining_servers import ServersWanted, join_servers

    wanted = ServersWanted(
        trust=parts.trust,
        roots=parts.roots.folders,
        private=data_directory() / "mcp" / "run",
        redactor=redactor,
        pass_on=parts.settings.pass_variables,
        given=parts.brought.servers,
        others=others,
        exchanges=parts.brought.exchanges,
        native=lambda: engine.state.choice.tool_protocol is ToolProtocol.NATIVE,
        window=lambda: parts.models.spec(engine.state.choice.model).context_window,
        sent=lambda: engine.reader.offer.tools,
        tell=engine.tell,
        aside=engine.aside,
        tools=tools,
    )
    return JoinedServers(**{"offered": tools, "known": tools, **join_servers(wanted)})
