"""What a session loads with its first use of it, so that its start does not wait for that."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.app.config.places import data_directory, outputs
from treadle.app.config.sections import Settings
from treadle.app.models.provider_keys import keys_stamp
from treadle.app.security.policy_files import PolicyFiles
from treadle.app.session.commands.policy_judge import policy_judge
from treadle.app.session.parts import Parts
from treadle.engine.core.goal import goal_status, is_wanted
from treadle.engine.core.room import focus_wanted
from treadle.engine.core.state import State, replace
from treadle.engine.runtime.running_session import Session
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import StoreError, ToolError
from treadle.protocol.events import Answer, Prompt
from treadle.protocol.goals import GoalState
from treadle.protocol.messages import EnclosureKind
from treadle.protocol.permissions import Allowance
from treadle.store.appending import tag_of
from treadle.store.damage import event_data
from treadle.store.sqlite import Store
from treadle.tools.declarations import RUN_CODE
from treadle.workspace.files.file_access import DiskFiles, FileAccess

if TYPE_CHECKING:
    from treadle.app.hooks.hook_commands import ConfineHook
    from treadle.app.hooks.session_hooks import SessionHooks
    from treadle.app.session.children.child_book import Subagents
    from treadle.app.session.files.editor_files import SavesTyped
    from treadle.app.session.live import LiveSession
    from treadle.app.session.mentions.mentioning import Enclosed
    from treadle.app.session.offering import JoinedServers
    from treadle.app.session.own_commands.own_shell import OwnShell
    from treadle.app.session.rules.memory_files import SessionMemory
    from treadle.app.session.rules.skills import SkillBook
    from treadle.policy.secrets import Redactor
    from treadle.tools.use_skill import SkillTexts
    from treadle.workspace.commands.background_jobs import JobBook
    from treadle.workspace.commands.watchers import Watchers
    from treadle.workspace.files.temporary_files import TemporaryFiles
    from treadle.workspace.workspace import Workspace


class Hiding:
    """Hides known secrets, and what looks like one, in what a session shows, stores and sends."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._also: list[tuple[str, str]] = []
        self._stamp = keys_stamp()

    def hide(self, secrets: Sequence[tuple[str, str]]) -> None:
        """Hide these too, with their names, from the next text on."""
        self._also += secrets
        self.__dict__.pop("_redactor", None)

    def redactor(self) -> "Redactor":
        """Give what hides them, a key too that was stored since."""
        stamp = keys_stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            self.__dict__.pop("_redactor", None)
        return self._redactor

    @cached_property
    def _redactor(self) -> "Redactor":
        from treadle.app.session.known_values import session_redactor

        parts = self._parts
        return session_redactor(
            str(parts.trust.workspace), parts.settings, roots=parts.roots.folders, also=tuple(self._also)
        )

    def redact(self, text: str) -> str:
        """Give a text without them."""
        return self.redactor().redact(text)

    def trace(self, error: BaseException) -> None:
        """Write down what only a developer wants to read of a tool that failed; the model reads one line."""
        from treadle.app.errors.error_report import write_log

        write_log(self.redact("".join(traceback.format_exception(error))))


def hold_copy_of(parts: Parts, opened: AsyncExitStack) -> None:
    """Keep the copy in which a session works from being applied or removed meanwhile. Raises `SessionError`."""
    if data_directory().name not in str(parts.trust.workspace):  # copies are beside Treadle's own data
        return
    from treadle.app.subagents.copy_holding import hold_copy_around

    if (leave := hold_copy_around(parts.trust.workspace)) is not None:
        opened.callback(leave)


def gpu_line(settings: Settings) -> str:
    """Say which GPUs commands can use; empty where that is none, or not wanted."""
    if not settings.gpu:
        return ""
    from treadle.workspace.gpus import gpu_devices, gpu_words

    return gpu_words(gpu_devices())


def no_code_mode(parts: Parts, left_out: Mapping[str, str]) -> Sequence[str]:
    """Say that the code mode that the user wants cannot be had here, and why."""
    if not parts.settings.code_mode or parts.brought.child is not None:
        return ()
    why = left_out.get(RUN_CODE.name, "")
    return [f"Code mode is not offered: {why.rpartition('. ')[0]}."] if why else []


def called_skills(parts: Parts, skills: "SkillBook") -> "SkillTexts":
    """Give the skills of a session as its model calls them; a subagent itself follows those that ask for one."""

    def entered(origin: str) -> bool:
        rows = parts.store.of_types(parts.row.id, (tag_of(Prompt), tag_of(Answer)))
        said = (event_data(row[2], row[3]) for row in rows)
        return any(
            one.kind is EnclosureKind.SKILL and one.origin == origin
            for event in said
            if isinstance(event, Prompt | Answer)
            for one in event.enclosed
        )

    return partial(skills.called, subagents=parts.brought.open_child is not None, entered=entered)


def session_memory(parts: Parts, hiding: Hiding) -> "SessionMemory":
    """Open the memory files for the tool that proposes to extend them."""
    from treadle.app.session.rules.memory_files import SessionMemory

    def today() -> date:
        return date.fromtimestamp(parts.brought.clock() / 1000)  # noqa: DTZ012 - the day where the user is

    return SessionMemory(parts.trust, hiding.redact, today)


def session_hooks(
    parts: Parts, workspace: "Workspace", engine: Session, *, hiding: Hiding, confine: "ConfineHook"
) -> "SessionHooks | None":
    """Get the hooks ready to run, where there are some. Raises `ConfigError`."""
    if not (parts.brought.hooks or parts.settings.hooks or parts.settings.hooks_from):
        return None
    from treadle.app.hooks.opening_hooks import open_hooks
    from treadle.app.hooks.session_hooks import HookSession

    session = HookSession(
        session_id=parts.row.id,
        root=workspace.root,
        mode=lambda: engine.state.mode,
        redact=hiding.redact,
        focus=lambda: focus_wanted(engine.state),
    )
    return open_hooks(parts, parts.brought.hooks, workspace, session=session, confine=confine, tell=engine.tell)


class LateSubagents:
    """The subagents of a session, whose book is made with the first of them; `lent` are the servers that they use."""

    lent: "JoinedServers | None" = None

    def __init__(self, make: "Callable[[JoinedServers | None], Subagents]") -> None:
        self._make = make
        self._made: Subagents | None = None

    def __call__(self) -> "Subagents":
        """Give the book."""
        if self._made is None:
            self._made = self._make(self.lent)
        return self._made

    @property
    def running(self) -> bool:
        """Whether one works whose end will wake the session."""
        return self._made is not None and self._made.running

    async def close(self) -> None:
        """End those that nobody waits for."""
        if self._made is not None:
            await self._made.close()


def session_files(parts: Parts, typed: "Callable[[], SavesTyped]") -> FileAccess:
    """Give what the tools of a session read and save files through."""
    disk = parts.brought.files(DiskFiles(temporary_files=temporary_files), parts.folders)
    if parts.brought.editor is None:
        return disk
    from treadle.app.session.files.editor_files import editor_files

    return editor_files(disk, parts.folders, parts.brought.editor, typed())


def session_subagents(
    parts: Parts,
    engine: Session,
    policy_files: PolicyFiles,
    lent: "JoinedServers | None",
    *,
    hiding: Hiding,
    own_ports: Callable[[], frozenset[int]],
) -> "Subagents":
    """Make what has subagents work for a session."""
    from treadle.app.session.children.child_book import Subagents
    from treadle.app.session.children.child_plans import ChildPlans
    from treadle.app.subagents.agent_files import read_agents

    if parts.brought.open_child is None:
        raise ToolError("A subagent begins no others, and runs no programs. Do the task yourself.")
    agents, _ = read_agents(parts.trust, Path.home())
    servers = None if lent is None else lent.servers
    plans = ChildPlans(
        parts=parts,
        engine=engine,
        judge=policy_judge(parts, policy_files, hiding.redactor, servers=servers, own_ports=own_ports),
        servers=None if servers is None else lent,
        remember=partial(remember_here, str(parts.trust.workspace)),
    )
    return Subagents(plans, {**agents, **{one.name: one for one in parts.brought.agents}}, parts.brought.open_child)


@asynccontextmanager
async def with_subagents(subagents: LateSubagents, live: "LiveSession") -> AsyncIterator[None]:  # noqa: ARG001 - beside it
    """Take up the subagents of a session that goes on."""
    await subagents().take_up()
    yield


def watched(hooks: "SessionHooks", engine: Session, live: "LiveSession") -> AbstractAsyncContextManager[None]:
    """Let hooks look on while a session is open, and keep the files around them."""
    from treadle.app.hooks.hook_changes import HookChanges
    from treadle.app.hooks.watching import watched_by_hooks

    hooks.work_within(HookChanges(engine).around)
    return watched_by_hooks(hooks, live)


async def enclosed(text: str, /, **session: Any) -> "Enclosed":
    """Read what a message mentions; `session` has the fields of `SessionParts`."""
    from treadle.app.session.mentions.mention_sources import SessionParts, enclosed_in

    return await enclosed_in(text, SessionParts(**session))


def job_book(private: Path, hiding: Hiding) -> "JobBook":
    """Make what runs commands in the background."""
    from treadle.workspace.commands.background_jobs import JobBook

    return JobBook(private, hiding.redact)


def session_watchers(engine: Session, private: Path) -> "Watchers":
    """Make what wakes the session. Needs a running event loop."""
    from treadle.app.session.waking import open_watchers

    # Where nobody is there, whoever gave the task closes the session with the answer.
    return open_watchers(engine, private, lambda: engine.state.user_present)


def person_shell(workspace: "Workspace", private: Path, hiding: Hiding) -> "OwnShell":
    """Make what runs the person's own commands."""
    from treadle.app.session.own_commands.own_shell import OwnShell

    return OwnShell(
        shell=workspace.shell, directory=workspace.root, spool=private, hide=lambda: hiding.redactor().stream()
    )


def temporary_files() -> "TemporaryFiles":
    """Give what notes the files that are being written."""
    from treadle.workspace.files.temporary_files import TemporaryFiles

    return TemporaryFiles(str(data_directory() / "saving"), saved=_allow_saved)


def _allow_saved(path: str) -> None:
    """Let a control file stay that a tool writes while commands run: somebody said yes to that."""
    from treadle.workspace.sandbox import allow_made

    allow_made(data_directory(), path)


def is_secret_file(path: str) -> bool:
    """Whether a file is one of secrets by its name."""
    from treadle.protocol.protected_names import secret_name

    return secret_name(path) is not None


def repository_words(parts: Parts) -> str:
    """Say how the workspace's repository stands; in a folder that is not trusted no git runs for it."""
    if not parts.trust.trusted:
        return ""
    from treadle.app.session.mentions.repository_state import describe_repository

    return describe_repository(str(parts.trust.workspace))


def remember_here(workspace: str, allowances: Sequence[Allowance]) -> None:
    """Keep what the user allows in a workspace for its next sessions."""
    from treadle.app.security.approvals import remember

    remember(allowances, workspace)


def goal_notice(state: State) -> Sequence[str]:
    """Say of a session that is taken up what its goal is, and what goes on with it."""
    goal = goal_status(state)
    if goal is None or goal.state is GoalState.MET:
        return ()
    from treadle.present.goal_words import goal_words

    if goal.state is not GoalState.ACTIVE:
        return (goal_words(goal),)
    goes_on = "It is worked on now." if state.turn is not None or is_wanted(state) else "/goal resume continues it."
    return (f"{goal_words(replace(goal, reason=''))}. {goes_on}",)


def heard_before(parts: Parts) -> Sequence[Stamped]:
    """Say what surfaces have heard of the session, also of what has left its conversation."""
    if parts.past is None:
        return ()
    if not parts.store.left_behind(parts.row.id):
        return parts.past.stamped
    from treadle.context.notified import stamped_notifications

    return stamped_notifications(parts.store.read(parts.row.id))


async def tidy_up(store: Store) -> None:
    """Remove old outputs, and what sessions of killed processes left."""
    from treadle.workspace.commands.retention import remove_old_outputs_now

    with suppress(StoreError):
        leased = store.leased()
        await asyncio.to_thread(remove_old_outputs_now, outputs(), leased)
        _tidy_sockets(leased)


def _tidy_sockets(leased: Collection[str]) -> None:
    """Take away the sockets of sessions whose processes were killed."""
    if (data_directory() / "live").is_dir():
        from treadle.app.session.shared.session_wire import remove_stale_sockets

        remove_stale_sockets(leased)
