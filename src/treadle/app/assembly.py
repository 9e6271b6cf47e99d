"""Puts a session together: the only place that knows every class, and lazily what can wait for the first call."""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.app.config.settings import SandboxUse, Settings
from treadle.app.models.choosing import Models
from treadle.app.models.said import with_searches
from treadle.app.places import data_directory, outputs
from treadle.app.security.policy_files import PolicyFiles, usual_places
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.changed_files import changed_files, note_named_changes
from treadle.app.session.checklist_file import ChecklistFile, checklist_file
from treadle.app.session.checkpointing import conversation_at, session_files
from treadle.app.session.confined_commands import ConfinedCommands, recover_changes
from treadle.app.session.instructions import RuleBook
from treadle.app.session.ledger import Ledger, LedgerObserver
from treadle.app.session.live import LiveSession, ModelFinder
from treadle.app.session.offering import NO_SKILLS, offering
from treadle.app.session.own_tools import own_tools
from treadle.app.session.prompting import Prompting, load_skills, session_prompt
from treadle.app.session.roots import Roots
from treadle.engine.core.state import standing
from treadle.engine.ports import Judge, Ports, Tool
from treadle.engine.runtime.session import Session
from treadle.engine.runtime.track import Track
from treadle.engine.runtime.window import in_force, most_of_one_result
from treadle.protocol.errors import StoreError
from treadle.protocol.events import (
    EventData,
    SetModel,
)
from treadle.protocol.models import ModelChoice, Spent
from treadle.protocol.permissions import Allowance, Decision, Mode, Standing
from treadle.protocol.tools import Access, Confinement, ToolSpec
from treadle.store.appending import SessionLog
from treadle.store.sqlite import SessionRow, Store
from treadle.tools.catalogue import builtin_tools, open_browser
from treadle.workspace.conversation import Conversation
from treadle.workspace.environment import EnvironmentBlock
from treadle.workspace.file_access import DiskFiles
from treadle.workspace.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from treadle.app.models.offered import NextRequest, OfferedModel
    from treadle.app.session.mentioning import Enclosed
    from treadle.app.session.own_shell import OwnShell
    from treadle.app.session.recall import Recalled
    from treadle.engine.core.history import Past
    from treadle.policy.secrets import Redactor
    from treadle.workspace.diagnostics.checks import Diagnostics
    from treadle.workspace.jobs import JobBook
    from treadle.workspace.temporary_files import TemporaryFiles


def require_sandbox(mode: Mode, settings: Settings) -> None:
    """Raise `ConfigError` where there must be a sandbox and is none."""
    if mode is Mode.AUTO or settings.sandbox is SandboxUse.REQUIRED:
        from treadle.app.security.sandbox_state import check_sandbox

        check_sandbox(mode, settings.sandbox)


def set_model(models: Models, ref: str = "", thinking: int | None = None) -> SetModel:
    """Choose a model, by default that of the settings, and how much it thinks. Raises `ConfigError`."""
    return SetModel(choice=models.choose(ref, thinking=thinking).use)


async def model_for(models: Models, settings: Settings, mode: Mode) -> ModelChoice | None:
    """Find the model that a mode has of its own; raises `ConfigError` for a mode that cannot be here."""
    require_sandbox(mode, settings)
    if not models.differ_by_mode:
        return None
    await models.ask_local(mode=mode)
    return models.choose(mode=mode).use


class Parts(Struct, frozen=True, kw_only=True):
    """What a session is put together from, with what its log says if it goes on; `notices` come before the rest."""

    row: SessionRow
    trust: SessionTrust
    settings: Settings
    models: Models
    store: Store
    tools: tuple[Tool, ...]
    roots: Roots
    recalled: "Recalled | None" = None
    notices: Sequence[str] = ()

    @property
    def past(self) -> "Past | None":
        """What the log says of the session; None for a new one."""
        return None if self.recalled is None else self.recalled.past


def assemble(parts: Parts, first: Sequence[EventData]) -> LiveSession:
    """Put a session together: its first events are posted when it is entered."""
    private, files = outputs() / parts.row.id, session_files(parts.store, parts.row, parts.roots, parts.settings)
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

    redactor = _redactor(parts)
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
        files=DiskFiles(temporary_files=_temporary_files),
        open_jobs=partial(_open_jobs, private, redactor),
        hide=lambda: redactor().stream(),
        is_secret=_is_secret,
        conversation=conversation,
    )
    rules, skills = RuleBook(parts.trust, hide=lambda text: redactor().redact(text)), load_skills(parts.trust)
    recalled, ledger = parts.recalled, Ledger()
    if recalled is not None:
        recalled.files.note(workspace.seen)
        ledger = recalled.ledger
        rules.recall(recalled.rules.read, recalled.rules.left)
    checklist = ChecklistFile(file=checklist_file(parts.row.id), checklist=lambda: track.state.checklist.text)
    built_in = builtin_tools(
        workspace, (browser := cache(open_browser)), None if skills is None else partial(skills.text, by_model=True)
    )
    own = own_tools([tool.spec.name for tool in built_in], parts.tools)
    tools: Mapping[str, Tool] = {tool.spec.name: tool for tool in (*built_in, *own.tools)}
    diagnostics: Diagnostics | None = None
    if parts.settings.diagnostics and parts.trust.trusted:
        from treadle.app.session.diagnostics import CheckerFolders, diagnosed, open_diagnostics

        around = CheckerFolders(workspace=workspace, private=private, mode=lambda: track.state.mode)
        diagnostics = open_diagnostics(parts.settings.diagnostics, around)
        tools = diagnosed(tools, diagnostics, workspace)
    specs = with_searches(parts.models) if parts.settings.web_search else parts.models.spec
    left_out = offering(parts.store, specs, NO_SKILLS if skills is None or not skills.for_model else {})
    prompting = Prompting(
        settings=parts.settings,
        rules=rules,
        skills=skills,
        specs={name: tool.spec for name, tool in tools.items()},
        window=lambda model: parts.models.spec(model).context_window,
    )
    ports = Ports(
        log=SessionLog(parts.store, parts.row.id),
        observers=(
            partial(note_named_changes, workspace.seen),
            LedgerObserver(parts.store, ledger),
            checklist.observe,
            rules.observe,
        ),
        before_step=(checklist.before_step, rules.before_step, partial(changed_files, workspace)),
        environment=EnvironmentBlock(
            workspace=workspace,
            repository=partial(_repository, parts),
            approved=tuple(frozenset(parts.settings.approve).difference(parts.trust.unapproved)),
        ),
        trace=partial(_trace, redactor),
        judge=_judge(parts, policy_files, redactor, workspace.shell),
        redactor=redactor,
        tools=tools,
        left_out=left_out,
        provider=parts.models.provider,
        model=specs,
        system=session_prompt(prompting, left_out),
        clock=clock,
        jitter=random.random,
        day_budget=_DayBudget(parts.store, parts.row.id),
        remember=partial(_remember, workspace.root),
        checklist=parts.settings.checklist,
        compaction=parts.settings.context.compaction,
        keep=commands.keep,
        checkpoints=files if parts.settings.checkpoints.enabled else None,
    )

    async def clean_up() -> None:
        if browser.cache_info().currsize:
            await browser().close()
        if diagnostics is not None:
            await diagnostics.close()
        await workspace.close()
        await commands.close()
        await files.close()
        await parts.models.close()
        from treadle.workspace.retention import remove_old_outputs_now

        with suppress(StoreError):
            leased = parts.store.leased()
            await asyncio.to_thread(remove_old_outputs_now, outputs(), leased)
            _tidy_sockets(leased)

    live: LiveSession = LiveSession(
        session_id=parts.row.id,
        engine=Session(ports, track),
        past=() if recalled is None else recalled.past.notifications,
        store=parts.store,
        first=first,
        trust=parts.trust,
        models=model_finder(parts.models, parts.settings),
        checklist_file=checklist.file,
        open_shell=partial(_open_shell, workspace, private, redactor),
        enclose=partial(
            _enclose,
            workspace=workspace,
            ports=ports,
            track=track,
            trust=parts.trust,
            diagnostics=diagnostics,
            rules=rules,
            own_shell=lambda: live.own_shell,
        ),
        roots=parts.roots.folders,
        clean_up=clean_up,
    )
    said = (*parts.roots.notices, *parts.notices, *policy_files.notices(), *own.problems, *taken_back)
    live.notices = (*live.notices, *said)
    return live


async def _enclose(text: str, /, **session: Any) -> "Enclosed":
    """Read what a message mentions; what that takes is loaded with the first one that does."""
    from treadle.app.session.mention_sources import SessionParts, enclosed_in

    return await enclosed_in(text, SessionParts(**session))


def _open_jobs(private: Path, redactor: "Callable[[], Redactor]") -> "JobBook":
    from treadle.workspace.jobs import JobBook

    return JobBook(private, lambda text: redactor().redact(text))


def _open_shell(workspace: Workspace, private: Path, redactor: "Callable[[], Redactor]") -> "OwnShell":
    from treadle.app.session.own_shell import OwnShell

    return OwnShell(shell=workspace.shell, directory=workspace.root, spool=private, hide=lambda: redactor().stream())


def _temporary_files() -> "TemporaryFiles":
    """Give what notes the files that are being written."""
    from treadle.workspace.temporary_files import TemporaryFiles

    return TemporaryFiles(str(data_directory() / "saving"), saved=_allow_saved)


def _tidy_sockets(leased: Collection[str]) -> None:
    """Take away the sockets of sessions whose processes were killed."""
    if (data_directory() / "live").is_dir():
        from treadle.app.session.wire import remove_stale_sockets

        remove_stale_sockets(leased)


def model_finder(models: Models, settings: Settings) -> ModelFinder:
    """Give a session what it asks about models."""
    return ModelFinder(
        spec=models.spec,
        choose=partial(set_model, models),
        for_mode=partial(model_for, models, settings),
        offered=partial(_offered, models),
        cheaper=partial(_cheaper, models, settings),
    )


def _cheaper(models: Models, settings: Settings, sent: "NextRequest") -> str:
    from treadle.app.models.cheaper import cheaper_model

    return cheaper_model(models, settings, sent)


def _offered(models: Models) -> "Sequence[OfferedModel]":
    """List the models to choose from; what reads them is loaded when somebody wants to choose."""
    from treadle.app.models.listing import offered_models

    return offered_models(models)


def _repository(parts: Parts) -> str:
    """Say how the workspace's repository stands; in a folder that is not trusted no git runs for it."""
    if not parts.trust.trusted:
        return ""
    from treadle.app.session.repository_state import describe_repository

    return describe_repository(str(parts.trust.workspace))


class _DayBudget(Struct, frozen=True):
    store: Store
    session_id: str

    async def reserve(self, worst: Spent, /) -> Spent:
        """Reserve in the log's file, which all sessions of the user share."""
        return await self.store.reserve(self.session_id, clock(), worst)


def _remember(workspace: str, allowances: Sequence[Allowance]) -> None:
    from treadle.app.security.approvals import remember

    remember(allowances, workspace)


def _trace(redactor: "Callable[[], Redactor]", error: BaseException) -> None:
    """Write down what only a developer wants to read of a tool that failed; the model reads one line."""
    import traceback

    from treadle.app.report import write_log

    write_log(redactor().redact("".join(traceback.format_exception(error))))


def _is_secret(path: str) -> bool:
    from treadle.policy.names import secret_name

    return secret_name(path) is not None


def _allow_saved(path: str) -> None:
    """Let a control file stay that a tool writes while commands run: somebody said yes to that."""
    from treadle.workspace.sandbox import allow_made

    allow_made(data_directory(), path)


def _redactor(parts: Parts) -> "Callable[[], Redactor]":
    """Hide known secrets and what looks like one; loaded with the first call that is judged."""

    @cache
    def redactor() -> "Redactor":
        from treadle.app.session.known_values import session_redactor

        return session_redactor(str(parts.trust.workspace), parts.settings, roots=parts.roots.folders)

    return redactor


def _judge(parts: Parts, files: PolicyFiles, redactor: "Callable[[], Redactor]", shell: str) -> Judge:
    """Bind the policy to a session; it is loaded with the first call that is judged, after the first request."""
    root, trusted = str(parts.trust.workspace), parts.trust.lets_code_run
    approved = frozenset(parts.settings.approve).difference(parts.trust.unapproved)

    def judge(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing) -> Decision:
        from treadle.app.security.confining import confining_here
        from treadle.app.security.shell_syntax import refuse_broken_shell
        from treadle.app.session.judging import policy_context
        from treadle.policy.allowances import decide_and_offer, with_allowances
        from treadle.policy.disclosure import asked_for_secrets

        context = policy_context(
            root,
            standing,
            trusted=trusted,
            further=parts.roots,
            confining=confining_here(try_first=parts.settings.try_first),
            approved=approved,
            rules=with_allowances(files.ruleset(), standing.allowances),
        )
        decision = decide_and_offer(spec, arguments, accesses, context)
        refuse_broken_shell(decision, accesses, shell)
        if decision.confinement is Confinement.GIT:
            from treadle.app.security.branches import asked_for_control_files

            decision = asked_for_control_files(decision, accesses, context)
        return asked_for_secrets(decision, spec, arguments, redactor())

    return judge


def clock() -> int:
    """Give the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
