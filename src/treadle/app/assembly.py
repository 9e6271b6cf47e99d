"""Puts a session together: the only place that knows every class, and lazily what can wait for the first call."""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from treadle.app.models.said import with_searches
from treadle.app.places import data_directory, outputs
from treadle.app.security.policy_files import PolicyFiles, usual_places
from treadle.app.session.changed_files import changed_files, note_named_changes
from treadle.app.session.checklist_file import ChecklistFile, checklist_file
from treadle.app.session.checkpointing import SessionCheckpoints, conversation_at
from treadle.app.session.confined_commands import ConfinedCommands, recover_changes
from treadle.app.session.instructions import RuleBook
from treadle.app.session.lacking import Lacking
from treadle.app.session.ledger import Ledger, LedgerObserver
from treadle.app.session.live import LiveSession
from treadle.app.session.model_finder import model_finder
from treadle.app.session.offering import NO_SKILLS, also_left_out, joined_servers, offering
from treadle.app.session.own_tools import own_tools
from treadle.app.session.parts import Parts
from treadle.app.session.policy_judge import answer_commands, policy_judge
from treadle.app.session.prompting import Prompting, load_skills, session_prompt
from treadle.engine.core.room import focus_wanted
from treadle.engine.core.state import standing
from treadle.engine.ports import Ports, Tool
from treadle.engine.runtime.session import Session
from treadle.engine.runtime.track import Track
from treadle.engine.runtime.window import in_force, most_of_one_result
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import StoreError
from treadle.protocol.events import (
    EventData,
)
from treadle.protocol.models import Spent
from treadle.protocol.notifications import Notice
from treadle.protocol.permissions import Allowance
from treadle.store.appending import SessionLog
from treadle.store.spending import Purpose
from treadle.store.sqlite import Store
from treadle.tools.catalogue import builtin_tools, open_browser
from treadle.workspace.conversation import Conversation
from treadle.workspace.environment import EnvironmentBlock
from treadle.workspace.file_access import DiskFiles
from treadle.workspace.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from treadle.app.hooks.hook_commands import ConfineHook
    from treadle.app.hooks.session_hooks import SessionHooks
    from treadle.app.session.mentioning import Enclosed
    from treadle.app.session.own_shell import OwnShell
    from treadle.policy.secrets import Redactor
    from treadle.workspace.diagnostics.checks import Diagnostics
    from treadle.workspace.jobs import JobBook
    from treadle.workspace.temporary_files import TemporaryFiles
    from treadle.workspace.watchers import Watchers


def assemble(parts: Parts, first: Sequence[EventData]) -> LiveSession:
    """Put a session together: its first events are posted when it is entered."""
    private = outputs() / parts.row.id
    track = Track(parts.past, partial(conversation_at, parts.store, parts.row.id))
    policy_files = PolicyFiles(usual_places(parts.trust.workspace))
    commands = ConfinedCommands(
        root=str(parts.trust.workspace),
        roots=parts.roots,
        private=private,
        trusted=parts.trust.lets_code_run,
        standing=lambda: standing(track.state),
        rules=policy_files.ruleset,
    )

    def room() -> int:
        # What a tool says below its lines must fit too.
        state = track.state
        return most_of_one_result(in_force(parts.models.spec(state.choice.model), state)) * 9 // 10

    secrets: list[tuple[str, str]] = []
    redactor = _redactor(parts, secrets)
    conversation = Conversation(room=room, holds=lambda text: track.transcript.holds(redactor().redact(text)))
    if (data_directory() / "saving").is_dir():
        _temporary_files().sweep()
    taken_back = recover_changes()
    workspace = open_workspace(
        parts.trust.workspace,
        roots=parts.roots.folders,
        pass_on=parts.settings.pass_variables,
        spool=private,
        confine=commands.set_up,
        files=parts.brought.files(DiskFiles(temporary_files=_temporary_files), parts.folders),
        open_jobs=partial(_open_jobs, private, redactor),
        open_watchers=lambda: _open_watchers(live, private),
        hide=lambda: redactor().stream(),
        is_secret=_is_secret,
        conversation=conversation,
        open_servers=commands.servers,
    )
    rules, skills = RuleBook(parts.trust, hide=lambda text: redactor().redact(text)), load_skills(parts.trust)
    recalled, ledger = parts.recalled, Ledger()
    if recalled is not None:
        recalled.files.note(workspace.seen)
        ledger = recalled.ledger
        rules.recall(recalled.rules.read, recalled.rules.left)
    checklist = ChecklistFile(file=checklist_file(parts.row.id), checklist=lambda: track.state.checklist.text)
    built_in = builtin_tools(
        workspace,
        (browser := cache(partial(open_browser, workspace))),
        None if skills is None else partial(skills.text, by_model=True),
    )
    own = own_tools([tool.spec.name for tool in built_in], parts.brought.tools)
    tools: Mapping[str, Tool] = {one.spec.name: one for one in (*built_in, *own.tools) if parts.offers(one.spec.name)}
    diagnostics: Diagnostics | None = None
    if parts.settings.diagnostics and parts.trust.trusted:
        from treadle.app.session.diagnostics import CheckerFolders, diagnosed, open_diagnostics

        around = CheckerFolders(workspace=workspace, private=private, mode=lambda: track.state.mode)
        diagnostics = open_diagnostics(parts.settings.diagnostics, around)
        tools = diagnosed(tools, diagnostics, workspace)
    specs = with_searches(parts.models) if parts.settings.web_search else parts.models.spec
    left_out = offering(parts.store, specs, NO_SKILLS if skills is None or not skills.for_model else {})
    joined = joined_servers(parts, tools, redactor, lambda: engine)
    secrets += joined.secrets
    left_out = also_left_out(left_out, joined.left_out)
    prompting = Prompting(
        settings=parts.settings,
        rules=rules,
        skills=skills,
        specs={name: tool.spec for name, tool in joined.known.items()},
        window=lambda model: parts.models.spec(model).context_window,
        of_servers=joined.prompt_parts,
    )
    hooks = _hooks(parts, workspace, track, redactor, confine=commands.set_up_hook)
    if hooks is not None:
        policy_files.changed = hooks.rules_changed
    files = _checkpoints(parts)
    ports = Ports(
        log=SessionLog(parts.store, parts.row.id),
        observers=(
            partial(note_named_changes, workspace.seen),
            LedgerObserver(parts.store, ledger),
            checklist.observe,
            rules.observe,
        ),
        before_step=(
            *joined.before_step,
            *(checklist.before_step, rules.before_step, partial(changed_files, workspace)),
        ),
        environment=EnvironmentBlock(
            workspace=workspace,
            repository=partial(_repository, parts),
            approved=tuple(frozenset(parts.settings.approve).difference(parts.trust.unapproved)),
            trusted=parts.trust.lets_code_run,
            try_first=parts.settings.try_first,
            lacking=Lacking(),
        ),
        trace=partial(_trace, redactor),
        judge=policy_judge(
            parts, policy_files, redactor, servers=joined.servers, own_ports=lambda: commands.servers().ports()
        ),
        redactor=redactor,
        tools=joined.offered,
        left_out=left_out,
        provider=parts.models.provider,
        model=specs,
        system=session_prompt(prompting, left_out),
        clock=parts.brought.clock,
        jitter=random.random,
        day_budget=_DayBudget(parts.store, parts.row.id, parts.brought.clock),
        remember=partial(_remember, workspace.root),
        checklist=parts.settings.checklist,
        compaction=parts.settings.context.compaction,
        keep=commands.keep,
        hooks=hooks,
        checkpoints=files,
    )

    shaped = ports if parts.brought.shape is None else parts.brought.shape.applied(ports)
    workspace.before_commands.append(
        partial(
            answer_commands,
            commands,
            workspace,
            network=parts.settings.network,
            judge=shaped.judge,
            now=lambda: standing(track.state),
            tell=lambda text: engine.publish(Notice(text=text)),
        )
    )
    engine: Session = Session(shaped, track)
    if hooks is None:  # a hook may say yes in the user's place
        joined.ask_policy(shaped.judge, lambda: engine.state, lambda: policy_files.ruleset().version)

    live: LiveSession = LiveSession(
        session_id=parts.row.id,
        engine=engine,
        past=_past(parts),
        store=parts.store,
        first=first,
        trust=parts.trust,
        models=model_finder(parts.models, parts.settings),
        checklist_file=checklist.file,
        open_shell=partial(_open_shell, workspace, private, redactor),
        enclose=partial(
            _enclose,
            workspace=workspace,
            ports=shaped,
            track=track,
            trust=parts.trust,
            diagnostics=diagnostics,
            rules=rules,
            own_shell=lambda: live.own_shell,
            servers=joined.servers,
        ),
        roots=parts.roots.folders,
        clean_up=partial(
            _clean_up, browser, parts.store, (joined, diagnostics, workspace, commands, files, parts.models)
        ),
        hooks=hooks,
        beside=[] if hooks is None else [partial(_watched, hooks)],
        servers=joined.servers,
        ports=partial(commands.ports, asyncio.get_running_loop()),
        wakes=workspace.wakes,
    )
    said = (*parts.roots.notices, *parts.notices, *policy_files.notices(), *own.problems, *taken_back, *joined.notices)
    live.notices = (*live.notices, *said)
    return live


def _hooks(
    parts: Parts,
    workspace: Workspace,
    track: Track,
    redactor: "Callable[[], Redactor]",
    *,
    confine: "ConfineHook",
) -> "SessionHooks | None":
    """Get the hooks ready to run; what that takes is loaded where there are some. Raises `ConfigError`."""
    if not (parts.brought.hooks or parts.settings.hooks or parts.settings.hooks_from):
        return None
    from treadle.app.hooks.opening_hooks import open_hooks

    return open_hooks(
        parts,
        parts.brought.hooks,
        workspace,
        confine=confine,
        mode=lambda: track.state.mode,
        redact=lambda text: redactor().redact(text),
        focus=lambda: focus_wanted(track.state),
    )


class _Closes(Protocol):
    async def close(self) -> None: ...


async def _enclose(text: str, /, **session: Any) -> "Enclosed":
    """Read what a message mentions; what that takes is loaded with the first one that does."""
    from treadle.app.session.mention_sources import SessionParts, enclosed_in

    return await enclosed_in(text, SessionParts(**session))


def _open_jobs(private: Path, redactor: "Callable[[], Redactor]") -> "JobBook":
    from treadle.workspace.jobs import JobBook

    return JobBook(private, lambda text: redactor().redact(text))


def _open_watchers(live: LiveSession, private: Path) -> "Watchers":
    from treadle.app.session.waking import open_watchers

    return open_watchers(live, private)


def _open_shell(workspace: Workspace, private: Path, redactor: "Callable[[], Redactor]") -> "OwnShell":
    from treadle.app.session.own_shell import OwnShell

    return OwnShell(shell=workspace.shell, directory=workspace.root, spool=private, hide=lambda: redactor().stream())


def _temporary_files() -> "TemporaryFiles":
    """Give what notes the files that are being written."""
    from treadle.workspace.temporary_files import TemporaryFiles

    return TemporaryFiles(str(data_directory() / "saving"), saved=_allow_saved)


async def _clean_up(browser: Any, store: Store, used: Sequence["_Closes | None"]) -> None:
    """End what a session used, in this order; remove old outputs, and what sessions of killed processes left."""
    if browser.cache_info().currsize:
        await browser().close()
    for one in used:
        if one is not None:
            await one.close()
    from treadle.workspace.retention import remove_old_outputs_now

    with suppress(StoreError):
        leased = store.leased()
        await asyncio.to_thread(remove_old_outputs_now, outputs(), leased)
        _tidy_sockets(leased)


def _tidy_sockets(leased: Collection[str]) -> None:
    """Take away the sockets of sessions whose processes were killed."""
    if (data_directory() / "live").is_dir():
        from treadle.app.session.wire import remove_stale_sockets

        remove_stale_sockets(leased)


def _watched(hooks: "SessionHooks", live: LiveSession) -> AbstractAsyncContextManager[None]:
    """Let hooks look on while a session is open."""
    from treadle.app.hooks.watching import watched_by_hooks

    return watched_by_hooks(hooks, live)


def _checkpoints(parts: Parts) -> SessionCheckpoints | None:
    wanted = parts.settings.checkpoints
    return SessionCheckpoints(parts.store, parts.row.id, parts.folders, wanted) if wanted.enabled else None


def _past(parts: Parts) -> Sequence[Stamped]:
    """Say what surfaces have heard of the session, also of what has left its conversation."""
    if parts.past is None:
        return ()
    if not parts.store.left_behind(parts.row.id):
        return parts.past.stamped
    from treadle.context.notified import stamped_notifications

    return stamped_notifications(parts.store.read(parts.row.id))


def _repository(parts: Parts) -> str:
    """Say how the workspace's repository stands; in a folder that is not trusted no git runs for it."""
    if not parts.trust.trusted:
        return ""
    from treadle.app.session.repository_state import describe_repository

    return describe_repository(str(parts.trust.workspace))


class _DayBudget(Struct, frozen=True):
    store: Store
    session_id: str
    clock: Callable[[], int]

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> Spent:
        """Reserve in the log's file, which all sessions of the user share."""
        purpose = Purpose.ASIDE if aside else Purpose.STEP
        return await self.store.reserve(self.session_id, purpose, self.clock(), worst)


def _remember(workspace: str, allowances: Sequence[Allowance]) -> None:
    from treadle.app.security.approvals import remember

    remember(allowances, workspace)


def _trace(redactor: "Callable[[], Redactor]", error: BaseException) -> None:
    """Write down what only a developer wants to read of a tool that failed; the model reads one line."""
    import traceback

    from treadle.app.report import write_log

    write_log(redactor().redact("".join(traceback.format_exception(error))))


def _is_secret(path: str) -> bool:
    from treadle.protocol.protected_names import secret_name

    return secret_name(path) is not None


def _allow_saved(path: str) -> None:
    """Let a control file stay that a tool writes while commands run: somebody said yes to that."""
    from treadle.workspace.sandbox import allow_made

    allow_made(data_directory(), path)


def _redactor(parts: Parts, also: Sequence[tuple[str, str]]) -> "Callable[[], Redactor]":
    """Hide known secrets and what looks like one; loaded with the first call that is judged."""

    @cache
    def redactor() -> "Redactor":
        from treadle.app.session.known_values import session_redactor

        return session_redactor(str(parts.trust.workspace), parts.settings, roots=parts.roots.folders, also=also)

    return redactor
