"""Composition: the only place that knows every class, and the only one (with the command line) that imports lazily."""

import os
import random
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.app.ledger import EDIT_TOOLS, LedgerLog, LedgerRow, choose_edit_tool, ledger_rows
from treadle.app.live import LiveSession, ModelFinder
from treadle.app.models import Models
from treadle.app.places import config_file, data_directory, database
from treadle.app.prompts import load_parts
from treadle.app.report import describe_mended, tell
from treadle.app.rules import load_rules
from treadle.app.settings import Settings
from treadle.context.system import system_prompt
from treadle.engine.advance import fold
from treadle.engine.ports import Judge, Ports, Redactor, Tool
from treadle.engine.session import Session
from treadle.engine.state import State, replace
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import (
    Event,
    EventData,
    Limits,
    Resumed,
    SessionStarted,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
)
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Decision, Mode
from treadle.protocol.tools import Access, ToolSpec
from treadle.store.sqlite import SessionLog, SessionRow, Store
from treadle.tools.browser_action import BrowserSession, open_chromium
from treadle.tools.catalogue import builtin_tools
from treadle.workspace.environment import Surroundings
from treadle.workspace.workspace import Workspace, open_workspace
from treadle.workspace.wrapping import Wrapping

if TYPE_CHECKING:
    from treadle.policy.context import PolicyContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Which session to open: a new one in `workspace`, or the one of `resume` (an id, or the beginning of one).

    `given` names the settings that came from the command line: only these change a session that is resumed.
    """

    workspace: Path
    settings: Settings
    user_present: bool
    given: frozenset[str] = frozenset()
    resume: str = ""
    title: str = ""


def open_store() -> Store:
    """Open the log; what had to be done about a damaged one is told on standard error and in the program's log."""
    store = Store(database())
    if store.mended is not None:
        tell(describe_mended(store.mended))
    return store


async def open_session(opening: Opening) -> LiveSession:
    """Open a session; enter the result to start it. Raises `ConfigError`, `SessionError` or `StoreError`."""
    store = open_store()
    try:
        if opening.resume:
            return await _resume(opening, store)
        return await _start(opening, store)
    except BaseException:
        store.close()
        raise


def last_session(workspace: Path) -> str:
    """Find the session of this workspace that was used last; raises `SessionError`."""
    store = open_store()
    try:
        rows = store.sessions(str(workspace))
    finally:
        store.close()
    if not rows:
        raise SessionError(
            "session-none",
            "There is no session to continue.",
            why=f"None was ever started in {workspace}.",
            fix="Start one with a task, or name another with --resume ID (`treadle sessions --all` lists them).",
        )
    return rows[0].id


async def _start(opening: Opening, store: Store) -> LiveSession:
    workspace = check_workspace(opening.workspace)
    models = Models(opening.settings)
    await models.ask_local()
    choice = models.choose()
    now = _clock()
    session_id = _new_id(now)
    row = SessionRow(
        id=session_id,
        workspace=str(workspace),
        model=choice.spec.ref,
        title=opening.title,
        created_at=now,
        updated_at=now,
        events=0,
    )
    await store.create(row)
    started = SessionStarted(
        session_id=session_id,
        workspace=str(workspace),
        model=choice.spec.ref,
        tool_protocol=choice.tool_protocol,
        mode=opening.settings.mode,
        limits=Limits(max_steps=opening.settings.max_steps),
    )
    first = (started, SetPresence(user_present=opening.user_present))
    return _live(_Parts(row=row, workspace=workspace, models=models, store=store), first, ())


_MODEL_FLAGS = {"model", "base_url", "tool_protocol"}
"""Settings on the command line that choose the model of a session that is resumed."""


async def _resume(opening: Opening, store: Store) -> LiveSession:
    row = store.find(opening.resume)
    workspace = check_workspace(Path(row.workspace))
    models = Models(opening.settings)
    history = store.read(row.id)
    state = fold(history)
    await models.ask_local("" if _MODEL_FLAGS & opening.given else state.model)
    first: list[EventData] = [*_changed_settings(opening, models, state), Resumed(user_present=opening.user_present)]
    return _live(_Parts(row=row, workspace=workspace, models=models, store=store), first, history)


def _changed_settings(opening: Opening, models: Models, state: State) -> Iterator[EventData]:
    """Give what the command line changes of a session that is resumed; its model must still be there."""
    given = opening.given
    if _MODEL_FLAGS & given:
        yield _set_model(models)
    else:
        models.provider(state.model)
    if "max_steps" in given:
        yield SetLimits(limits=replace(state.limits, max_steps=opening.settings.max_steps))
    if "mode" in given:
        yield SetMode(mode=opening.settings.mode)


def _set_model(models: Models, ref: str = "") -> SetModel:
    choice = models.choose(ref)
    return SetModel(model=choice.spec.ref, tool_protocol=choice.tool_protocol)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    row: SessionRow
    workspace: Path
    models: Models
    store: Store


def _live(parts: _Parts, first: Sequence[EventData], history: Sequence[Event]) -> LiveSession:
    private = data_directory() / "output" / parts.row.id
    running: list[Session] = []

    def confine_command() -> Wrapping:
        from treadle.app.confinement import confine

        return confine(running[0].state.mode, workspace.root, data_directory(), private)

    workspace = open_workspace(parts.workspace, spool=private, confine=confine_command)
    browser = BrowserSession(open_chromium)
    tools = {tool.spec.name: tool for tool in builtin_tools(workspace, browser)}
    offered = _offered(tools, parts.store)
    ports = Ports(
        log=LedgerLog(SessionLog(parts.store, parts.row.id), parts.store, history),
        environment=Surroundings(workspace=workspace),
        judge=_judge(workspace),
        redactor=_redactor,
        tools=tools,
        offered=offered,
        provider=parts.models.provider,
        model=parts.models.spec,
        system=_system(parts.workspace, tools, offered),
        clock=_clock,
        chance=random.random,
    )

    async def clean_up() -> None:
        await browser.close()
        await workspace.close()
        await parts.models.close()

    running.append(Session(ports, history))
    return LiveSession(
        session_id=parts.row.id,
        workspace=parts.workspace,
        engine=running[0],
        store=parts.store,
        first=first,
        models=ModelFinder(spec=parts.models.spec, choose=partial(_set_model, parts.models)),
        clean_up=clean_up,
    )


def _offered(tools: Mapping[str, Tool], store: Store) -> Callable[[str], Collection[str]]:
    """Tell a model of the one edit tool that suits it, and of everything else that can run here."""
    missing = frozenset() if find_spec("playwright") else frozenset({"browser_action"})

    @cache
    def offered(model: str) -> Collection[str]:
        edit_tool = choose_edit_tool(model, store.edit_counts(model))
        return frozenset(tools) - (EDIT_TOOLS - {edit_tool}) - missing

    return offered


@cache
def _redactor() -> Redactor:
    """Hide the values of secret variables and what looks like a secret; loaded with the first call that runs."""
    from treadle.policy.secrets import known_secrets

    return known_secrets(os.environ)


def _judge(workspace: Workspace) -> Judge:
    """Bind the policy to a workspace; it is loaded with the first call that is judged, after the first request."""
    home = str(Path.home())

    def judge(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], mode: str) -> Decision:
        from treadle.app.confinement import confines
        from treadle.policy.decide import decide

        sandboxed = confines(Mode(mode))
        context = policy_context(root=workspace.root, mode=mode, home=home, trusted=True, sandboxed=sandboxed)
        return decide(spec, arguments, accesses, context)

    return judge


def policy_context(*, root: str, mode: str, home: str, trusted: bool, sandboxed: bool = False) -> "PolicyContext":
    """Put together what the policy knows of a workspace at `root`, which is absolute and resolved."""
    from treadle.app.file_view import DiskView
    from treadle.policy.context import PolicyContext

    state = (str(data_directory()), str(config_file().parent))
    chosen = bool(os.environ.get("TREADLE_HOME"))
    return PolicyContext(
        mode=Mode(mode),
        roots=(root,),
        files=DiskView(),
        home=home,
        state=() if chosen else state,
        own=state if chosen else (),
        trusted=trusted,
        sandboxed=sandboxed,
        sandbox="usual" if sandboxed else "",
    )


def _system(
    workspace: Path, tools: Mapping[str, Tool], offered: Callable[[str], Collection[str]]
) -> Callable[[str, ToolProtocol], str]:
    """Build the prompt once for each model and tool protocol, so that it stays the same byte for byte."""
    parts, rules = load_parts(), load_rules(workspace)

    @cache
    def system(model: str, protocol: ToolProtocol) -> str:
        specs = [tool.spec for name, tool in tools.items() if name in offered(model)]
        return system_prompt(parts, protocol, tools=specs, rules=rules)

    return system


def check_workspace(path: Path) -> Path:
    """Resolve the folder to work in; raises `ConfigError` when it is none, or too wide to be a workspace."""
    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(
            "workspace-missing",
            f"There is no folder {folder} to work in.",
            why="It is not a folder." if folder.exists() else "It does not exist.",
            fix="Give an existing folder with --directory.",
        )
    resolved = folder.resolve()
    if resolved == Path(resolved.anchor) or resolved == Path.home():
        raise ConfigError(
            "workspace-too-wide",
            f"{resolved} is too wide to be a workspace.",
            why="Everything in it could be read, and changed in the wider modes.",
            fix="Start in a project's folder, or name one with --directory.",
        )
    return resolved


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _new_id(now: int) -> str:
    """Ids sort by time; the end keeps two of one millisecond apart."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now / 1000))
    return f"{stamp}-{secrets.token_hex(3)}"


def list_sessions(workspace: Path | None) -> list[SessionRow]:
    """List sessions, the last used first; of one workspace if given."""
    store = open_store()
    try:
        return store.sessions(None if workspace is None else str(workspace))
    finally:
        store.close()


def read_session(prefix: str) -> tuple[SessionRow, list[Event]]:
    """Read a session by its id or the beginning of it; raises `SessionError`."""
    store = open_store()
    try:
        row = store.find(prefix)
        return row, store.read(row.id)
    finally:
        store.close()


def tool_specs(workspace: Path = Path()) -> tuple[ToolSpec, ...]:
    """Give the declarations of the built-in tools."""
    return tuple(tool.spec for tool in builtin_tools(open_workspace(workspace)))


def edit_ledger() -> list[LedgerRow]:
    """Sum up the ledger of edits, a row for each model and format."""
    store = open_store()
    try:
        return ledger_rows(store.edit_counts())
    finally:
        store.close()
