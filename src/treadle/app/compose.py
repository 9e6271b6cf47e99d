"""Opens sessions: which one, in which folder, with which settings, and what the log holds of them."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from treadle.app.assembly import assemble
from treadle.app.config.addresses import bind_base_url
from treadle.app.config.places import check_workspace, database, outputs, session_folder
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models
from treadle.app.models.model_notes import NO_MODELS, named_profile, plain_ref
from treadle.app.security.trusting import SessionTrust, session_trust
from treadle.app.session.files.roots import further_roots, past_roots
from treadle.app.session.live import LiveSession
from treadle.app.session.model_finder import model_for, require_model, require_sandbox, set_model
from treadle.app.session.parts import Brought, Parts, new_session_id, require_queue
from treadle.engine.core.state import Idle, State
from treadle.protocol.codec import encode
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import (
    IMPORTED,
    EventData,
    Interrupt,
    Resumed,
    SessionStarted,
    SetFallback,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
)
from treadle.protocol.limits import OF_NEW_SESSIONS, Budget, Limits
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import ToolSpec
from treadle.providers.breaker import process_circuits
from treadle.store.sqlite import SessionRow, Store
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.files.names import logged_path
from treadle.workspace.workspace import open_workspace

if TYPE_CHECKING:
    from treadle.app.session.children.wanted_child import WantedChild
    from treadle.engine.core.past_history import Past
    from treadle.store.reading import Damage


class Opening(Brought, frozen=True, kw_only=True):
    """Which session to open: a new one in `workspace`, or the one of `resume` (an id, or the beginning of one).

    `given` names the settings of the command line that change a session that is resumed; `said_mode` is its mode where
    it is for new sessions only. `trust` is the user's word on the workspace; None is what they said of it before.
    `session_id` names a new session, which no other one may have. A turn that was going on in a session that is resumed
    goes on, unless the opening `stops` it, or only `looks` at the session: then it stays as it was. With `one_task` it
    is opened for that alone: limits of steps and time are of all its turns together.
    """

    workspace: Path
    settings: Settings
    user_present: bool
    given: frozenset[str] = frozenset()
    said_mode: Mode | None = None
    resume: str = ""
    trust: SessionTrust | None = None
    session_id: str = ""
    stops: bool = False
    looks: bool = False
    one_task: bool = False


def open_store() -> Store:
    """Open the log; what had to be done about a damaged one is told on standard error and in the program's log."""
    store = Store(database(), _tell)
    if store.repaired is not None:
        from treadle.app.errors.error_report import describe_repaired

        _tell(describe_repaired(store.repaired))
    return store


def _tell(notice: str) -> None:
    from treadle.app.errors.error_report import print_notice

    print_notice(notice)


async def open_session(opening: Opening) -> LiveSession:
    """Open a session; enter the result to start it. Raises `ConfigError`, `SessionError` or `StoreError`."""
    if opening.child is None:
        require_queue(opening.turns)
    if opening.open_child is None and opening.child is None:
        opening = replace(opening, open_child=partial(_open_child, opening))
    store = open_store()
    try:
        if opening.resume:
            return await _resume(opening, store)
        return await _start(opening, store)
    except BaseException:
        store.close()
        raise


async def _open_child(opening: Opening, wanted: "WantedChild") -> LiveSession:
    from treadle.app.session.children.child_opening import child_opening

    return await open_session(child_opening(opening, opening.settings, wanted))


def session_workspace(prefix: str) -> Path:
    """Find the folder of a session; raises `SessionError`, or `ConfigError` when it cannot be worked in any more."""
    store = open_store()
    try:
        row = store.find(prefix)
    finally:
        store.close()
    return session_folder(row.id, Path(logged_path(row.workspace)))


def last_session(workspace: Path) -> str:
    """Find the session of this workspace that was used last; raises `SessionError`."""
    store = open_store()
    try:
        rows = [row for row in store.sessions(str(workspace)) if row.title and not row.archived]
    finally:
        store.close()
    if not rows:
        raise SessionError(
            "session-none",
            "There is no session to continue.",
            why=f"No session was started in {workspace} yet.",
            fix="Start one with a task, or name another with --resume ID (`treadle sessions --all` lists them).",
        )
    return rows[0].id


async def _start(opening: Opening, store: Store) -> LiveSession:
    workspace = check_workspace(opening.workspace)
    mode, trust = _begin(opening, workspace, opening.settings.mode)
    roots = further_roots(workspace, opening.settings.add_dirs)
    models = Models(opening.settings, own=opening.models, circuits=process_circuits())
    await models.ask_server(mode=mode)
    choice = models.choose(mode=mode)
    now = opening.clock()
    session_id = opening.session_id or new_session_id(now)
    of = UNSET if opening.child is None else opening.child.of
    row = SessionRow(
        id=session_id,
        workspace=str(workspace),
        model=choice.spec.ref,
        title="",
        created_at=now,
        updated_at=now,
        events=0,
    )
    if of is not UNSET:
        row = replace(row, parent=of.parent, root=of.root, agent=of.agent)
    await store.create(row)
    started = SessionStarted(
        session_id=session_id,
        workspace=str(workspace),
        roots=roots.folders,
        choice=choice.use,
        mode=mode,
        limits=_bounded(opening, limits_of(opening.settings) if opening.child is None else opening.child.limits),
        fallback=models.fallback(),
        child_of=of,
        inherits=UNSET if opening.child is None else opening.child.inherits,
    )
    first = (started, SetPresence(user_present=opening.user_present))
    parts = Parts(
        row=row,
        trust=trust,
        settings=opening.settings,
        models=models,
        store=store,
        brought=opening,
        roots=roots,
        notices=(*_unattended(opening, mode, trust), *choice.notices),
    )
    return assemble(parts, first)


MODEL_FLAGS = {"model", "profile", "tool_protocol", "thinking_budget"}
"""Settings on the command line that change the model of a session that is resumed, or how it is used."""


async def _resume(opening: Opening, store: Store) -> LiveSession:
    from treadle.app.errors.error_report import missing_events
    from treadle.app.session.recall import recall

    row = store.find(opening.resume)
    workspace = session_folder(row.id, Path(logged_path(row.workspace)))
    missing, _ = store.missing(row.id)
    recalled = recall(log := store.read(row.id, whole=False))
    lost = [] if missing is None else [missing_events(missing)]
    if log.damage is not None:
        lost.append(await _leave_out(store, row, log.damage))
        recalled = recall(store.read(row.id, whole=False))  # what was left by a way back that is gone is back
    state = recalled.past.state
    require_model(state.choice.model, opening.models)
    settings = bind_base_url(opening.settings, opening.settings.model or state.choice.model)
    if "profile" not in opening.given:
        settings = replace(settings, profile=named_profile(state.choice.model))
    models = Models(settings, own=opening.models, circuits=process_circuits())
    await models.ask_server("" if "model" in opening.given else state.choice.model)
    mode, trust = _begin(opening, workspace, opening.settings.mode if "mode" in opening.given else state.mode)
    # Whoever made an imported log may name any folder in it.
    began = () if store.has_source(row.id, encode(IMPORTED)) else store.read(row.id, before=2)
    roots = past_roots(workspace, began, opening.settings.add_dirs if "add_dirs" in opening.given else None)
    first = [*_lost_calls(models, recalled.past), *_changed_settings(opening, models, state)]
    own = None
    if mode is not state.mode and not MODEL_FLAGS & opening.given:
        own = await model_for(models, settings, mode, state.choice.model)
    if mode is not state.mode or "mode" in opening.given:
        first.append(SetMode(mode=mode, choice=own))
    first.append(Resumed(user_present=opening.user_present, keeps=True))
    if opening.stops and state.turn is not None and not state.cancelling:
        first.append(Interrupt(hold=True))
    if any((outputs() / row.id).glob("watchers*.json")):
        from treadle.app.session.waking import take_ended

        first += filter(None, [take_ended(outputs() / row.id)])
    parts = Parts(
        row=row,
        trust=trust,
        settings=settings,
        models=models,
        store=store,
        brought=opening,
        roots=roots,
        recalled=recalled,
        notices=(
            *_unattended(opening, mode, trust),
            *lost,
            *_of_another_provider(opening, state.choice.model),
            *_of_its_model(opening, models, state),
        ),
    )
    return assemble(parts, () if opening.looks else first)


def _lost_calls(models: Models, past: "Past") -> Iterator[EventData]:
    """Give what the model calls have used that were going on when the session's program was killed."""
    idle = isinstance(past.state.activity, Idle) and not past.state.asked
    if idle or past.state.choice.model in NO_MODELS:
        return
    from treadle.engine.runtime.lost import lost_calls

    try:
        spec = models.spec(past.state.choice.model)
    except ConfigError:
        spec = None
    yield from lost_calls(past.state, past.reader, spec)


async def _leave_out(store: Store, row: SessionRow, damage: "Damage") -> str:
    """Let a session go on after its last event before the damage; gives what to say. Raises `StoreError`."""
    if damage.first == 1:
        raise damage.error()
    await store.set_aside(row.id, damage.first - 1)
    from treadle.app.errors.error_report import damaged_events

    return damaged_events(damage, row.events)


def _of_its_model(opening: Opening, models: Models, state: State) -> tuple[str, ...]:
    """Say of the model that a session goes on with that it is retired meanwhile, and which one takes its place."""
    return models.notices(opening.settings.model if "model" in opening.given else state.choice.model)


def _of_another_provider(opening: Opening, model: str) -> tuple[str, ...]:
    """Say that an address of the command line is not that of the session's own model, which it goes on with."""
    named, own = (plain_ref(ref).partition("/")[0] for ref in (opening.settings.model, model))
    if "base_url" not in opening.given or "model" in opening.given or named in ("", own):
        return ()
    text = f"--base-url is for {named}, the provider in your settings, but this session uses {model}."
    return (f"{text} To use the address for this session, add --model {model}.",)


def _begin(opening: Opening, workspace: Path, wanted: Mode) -> tuple[Mode, SessionTrust]:
    """Settle the mode to begin with, by trust and by what the system has; raises `ConfigError`."""
    # Who only looks at a session lets it keep its mode, and runs nothing in it.
    said, approve = opening.looks or _said(opening, wanted), opening.settings.approve
    mode, trust = _trust(opening, workspace).begin(wanted, said=said, approve=approve, resumed=bool(opening.resume))
    if not opening.looks:
        require_sandbox(mode, opening.settings)
    return mode, trust


def _unattended(opening: Opening, mode: Mode, trust: SessionTrust) -> tuple[str, ...]:
    """Say what is denied for want of trust in a session that nobody attends."""
    silent = opening.user_present or opening.looks or opening.child is not None
    return tuple(filter(None, () if silent else (trust.unattended_notice(mode),)))


def _trust(opening: Opening, workspace: Path) -> SessionTrust:
    """Take the word that was given with the opening if it is about this workspace."""
    if opening.trust is not None and opening.trust.workspace == workspace:
        return opening.trust
    return session_trust(workspace)


def _said(opening: Opening, mode: Mode) -> bool:
    """Whether the user said a mode for this run, rather than once and for all in the settings."""
    return "mode" in opening.given or mode in (opening.said_mode, os.environ.get("TREADLE_MODE"))


def _changed_settings(opening: Opening, models: Models, state: State) -> Iterator[EventData]:
    """Give what the command line changes of a session that is resumed, but its mode; its model must still be there."""
    given = opening.given
    if MODEL_FLAGS & given:
        yield _changed_model(given, models, state)
    else:
        models.provider(state.choice.model)
    limits = _bounded(opening, limits_of(opening.settings, given, state.limits))
    if limits != state.limits:
        yield SetLimits(limits=limits)
    if opening.settings.fallback and (fallback := models.fallback()) != state.model.fallback:
        yield SetFallback(choice=fallback)


def _changed_model(given: Collection[str], models: Models, state: State) -> SetModel:
    """Choose the model that the command line names; without a name the session's own, used as it says."""
    if "model" in given:
        return set_model(models)
    own = state.choice
    kept = {name: getattr(own, name) for name in ("tool_protocol", "thinking_budget") if name not in given}
    ref = plain_ref(own.model) if "profile" in given else own.model
    return SetModel(choice=replace(set_model(models, ref).choice, **kept))


def limits_of(settings: Settings, given: Collection[str] | None = None, base: Limits | None = None) -> Limits:
    """Put the bounds of a session together; with `given`, only those settings change the bounds `base`."""
    base = OF_NEW_SESSIONS if base is None else base
    said = settings.budget
    changed: dict[str, Any] = {
        name: getattr(settings, name) for name in ("max_steps", "max_seconds", "max_auto_approved")
    }
    changed["wait_for_reset"] = settings.wait_for_reset
    if settings.max_retries is not None:
        changed["max_retries"] = settings.max_retries
    changed["budget"] = {
        "turn": Budget(cost=said.turn_cost, tokens=said.turn_tokens),
        "session": Budget(cost=said.session_cost, tokens=said.session_tokens),
        "day": Budget(cost=said.day_cost, tokens=said.day_tokens),
        "soft": said.ask_at,
    }
    if given is not None:
        changed = {name: value for name, value in changed.items() if name in given}
    budgets = changed.pop("budget", {})
    return replace(base, **changed, **budgets)


def _bounded(opening: Opening, limits: Limits) -> Limits:
    """Bound a session as it is used now: by its run and its task, with its hooks asked at the end of turns."""
    hooked = bool(opening.hooks or opening.settings.hooks or opening.settings.hooks_from)
    if hooked is not (limits.asks_end is True):
        limits = replace(limits, asks_end=hooked)
    together = opening.one_task and opening.child is None
    if together is not (limits.turns_together is True):
        limits = replace(limits, turns_together=together)
    return replace(limits, run=Budget(cost=opening.run_cost)) if opening.run else limits


def list_sessions(workspace: Path | None) -> list[SessionRow]:
    """List sessions, the last used first; of one workspace if given."""
    store = open_store()
    try:
        return store.sessions(None if workspace is None else str(workspace))
    finally:
        store.close()


@contextmanager
def session_log(prefix: str) -> Iterator[tuple[SessionRow, Store]]:
    """Find a session by its id or the beginning of it, to read its log; raises `SessionError`."""
    store = open_store()
    try:
        yield store.find(prefix), store
    finally:
        store.close()


def tool_specs(workspace: Path = Path()) -> tuple[ToolSpec, ...]:
    """Give the declarations of the built-in tools."""
    return tuple(tool.spec for tool in builtin_tools(open_workspace(workspace)))
