"""Puts a session together: the only place that knows every class. Each part is built of those before it."""

import asyncio
import os
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from treadle.app.config.places import data_directory, outputs
from treadle.app.models.model_notes import NO_MODELS, with_searches
from treadle.app.security.policy_files import PolicyFiles, usual_places
from treadle.app.session import first_use
from treadle.app.session.commands.confined_commands import ConfinedCommands, recover_changes
from treadle.app.session.commands.lacking import Lacking
from treadle.app.session.commands.policy_judge import answer_commands, policy_judge
from treadle.app.session.files.changed_files import changed_files, note_named_changes
from treadle.app.session.files.checklist_file import ChecklistFile, checklist_file
from treadle.app.session.files.edit_ledger import Ledger, LedgerObserver
from treadle.app.session.files.session_checkpoints import (
    SessionCheckpoints,
    conversation_at,
    looked_after,
    saves_typed,
)
from treadle.app.session.first_use import Hiding, LateSubagents
from treadle.app.session.live import LiveSession
from treadle.app.session.model_finder import model_finder
from treadle.app.session.offering import (
    NO_SUBAGENTS,
    JoinedServers,
    also_left_out,
    joined_servers,
    offering,
    out_of_session,
    without_notebooks,
)
from treadle.app.session.own_tools import own_tools
from treadle.app.session.parts import LoggedBudgets, Parts, turn_places
from treadle.app.session.rules.instructions import RuleBook
from treadle.app.session.rules.prompting import Prompting, load_agents, load_skills, session_prompt
from treadle.engine.core.learning import awaits_subagents
from treadle.engine.core.state import standing
from treadle.engine.ports import Ports, Tool
from treadle.engine.runtime.running_session import Session
from treadle.engine.runtime.track import Track
from treadle.engine.runtime.window import in_force, most_of_one_result
from treadle.protocol.events import EventData
from treadle.protocol.models import ModelSpec
from treadle.protocol.permissions import Situation
from treadle.store.appending import SessionLog
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.tools.tool_catalogue import builtin_tools, open_browser
from treadle.workspace.environment import EnvironmentBlock
from treadle.workspace.workspace import Conversation, Workspace, open_workspace

if TYPE_CHECKING:
    from treadle.app.hooks.session_hooks import SessionHooks
    from treadle.app.session.rules.skills import SkillBook
    from treadle.workspace.diagnostics.checks import Diagnostics


class _Ground(Struct, frozen=True, kw_only=True):
    """What everything else of a session stands on. What is `opened` is closed with the session, the last first."""

    parts: Parts
    engine: Session
    opened: AsyncExitStack
    hiding: Hiding
    subagents: LateSubagents
    policy_files: PolicyFiles
    commands: ConfinedCommands
    workspace: Workspace
    private: Path
    checkpoints: SessionCheckpoints | None
    taken_back: tuple[str, ...]


class _Along(Struct, frozen=True, kw_only=True):
    """What goes along with the conversation: what the model reads beside it, the count of its edits, and hooks."""

    rules: RuleBook
    skills: "SkillBook | None"
    checklist: ChecklistFile
    ledger: Ledger
    hooks: "SessionHooks | None"


class _Offered(Struct, frozen=True, kw_only=True):
    """What the model can call, with `problems` of the tools that cannot be offered."""

    joined: JoinedServers
    left_out: Callable[[str, Situation], Mapping[str, str]]
    specs: Callable[[str], ModelSpec]
    diagnostics: "Diagnostics | None"
    problems: tuple[str, ...]


class _Closes(Protocol):
    async def close(self) -> None: ...


def assemble(parts: Parts, first: Sequence[EventData]) -> LiveSession:
    """Put a session together: its first events are posted when it is entered."""
    track = Track(parts.past, partial(conversation_at, parts.store, parts.row.id))
    ground = _ground(parts, Session(track, parts.brought.clock))
    along = _along(ground)
    offered = _offered(ground, along)
    ports = _ports(ground, along, offered)
    if along.hooks is None or not along.hooks.may_answer:
        offered.joined.ask_policy(
            ports.judge, lambda: ground.engine.state, lambda: ground.policy_files.ruleset().version
        )
    ground.workspace.before_commands.append(
        partial(
            answer_commands,
            ground.commands,
            ground.workspace,
            network=parts.settings.network,
            judge=ports.judge,
            now=lambda: standing(ground.engine.state),
            tell=ground.engine.tell,
        )
    )
    live = _live(ground, along, offered, ports, first=first)
    live.turns = parts.brought.turns
    said = (
        *first_use.goal_notice(ground.engine.state),
        *parts.roots.notices,
        *parts.notices,
        *ground.policy_files.notices(),
        *offered.problems,
    )
    live.notices = (
        *live.notices,
        *said,
        *ground.taken_back,
        *offered.joined.notices,
    )
    return live


def _ground(parts: Parts, engine: Session) -> _Ground:
    opened, private, hiding = AsyncExitStack(), outputs() / parts.row.id, Hiding(parts)
    first_use.hold_copy_of(parts, opened)
    opened.push_async_callback(first_use.tidy_up, parts.store)
    opened.push_async_callback(parts.models.close)
    checkpoints: SessionCheckpoints | None = None
    if parts.settings.checkpoints.enabled:
        checkpoints = SessionCheckpoints(parts.store, parts.row.id, parts.folders, parts.settings.checkpoints)
        opened.push_async_callback(checkpoints.close)
    policy_files = PolicyFiles(usual_places(parts.trust.workspace))
    commands = ConfinedCommands(
        trust=parts.trust,
        roots=parts.roots,
        private=private,
        gpu=parts.settings.gpu,
        standing=lambda: standing(engine.state),
        rules=policy_files.ruleset,
    )
    opened.push_async_callback(commands.close)
    if (data_directory() / "saving").is_dir():
        first_use.temporary_files().sweep()
    taken_back = recover_changes()
    workspace = open_workspace(
        parts.trust.workspace,
        roots=parts.roots.folders,
        variables={**os.environ, **parts.brought.variables} if parts.brought.variables else None,
        pass_on=(*parts.settings.pass_variables, *parts.brought.variables),
        spool=private,
        confine=commands.set_up,
        files=first_use.session_files(parts, partial(saves_typed, checkpoints, engine)),
        open_jobs=partial(first_use.job_book, private, hiding),
        open_watchers=partial(first_use.session_watchers, engine, private),
        hide=lambda: hiding.redactor().stream(),
        is_secret=first_use.is_secret_file,
        conversation=_conversation(parts, engine, hiding),
        open_servers=commands.servers,
    )
    opened.push_async_callback(workspace.close)
    make = first_use.session_subagents
    subagents = LateSubagents(
        partial(make, parts, engine, policy_files, hiding=hiding, own_ports=lambda: commands.servers().ports())
    )
    opened.push_async_callback(subagents.close)
    return _Ground(
        parts=parts,
        engine=engine,
        opened=opened,
        hiding=hiding,
        subagents=subagents,
        policy_files=policy_files,
        commands=commands,
        workspace=workspace,
        private=private,
        checkpoints=checkpoints,
        taken_back=tuple(taken_back),
    )


def _conversation(parts: Parts, engine: Session, hiding: Hiding) -> Conversation:
    def room() -> int:
        # What a tool says below its lines must fit too.
        state = engine.state
        return most_of_one_result(in_force(parts.models.spec(state.choice.model), state)) * 9 // 10

    child = parts.brought.child
    if child is not None and child.program is not None:
        return Conversation(room=room)  # what a program reads a second time it wants again
    return Conversation(room=room, holds=lambda text: engine.transcript.holds(hiding.redact(text)))


def _along(ground: _Ground) -> _Along:
    parts, engine = ground.parts, ground.engine
    rules, ledger = RuleBook(parts.trust, hide=ground.hiding.redact), Ledger()
    if parts.recalled is not None:
        parts.recalled.files.note(ground.workspace.seen)
        ledger = parts.recalled.ledger
        rules.recall(parts.recalled.rules.read, parts.recalled.rules.left)
    checklist = ChecklistFile(file=checklist_file(parts.row.id), checklist=lambda: engine.state.checklist.text)
    hooks = first_use.session_hooks(
        parts, ground.workspace, engine, hiding=ground.hiding, confine=ground.commands.set_up_hook
    )
    if hooks is not None:
        ground.policy_files.changed = hooks.rules_changed
    return _Along(hooks=hooks, rules=rules, skills=load_skills(parts.trust), checklist=checklist, ledger=ledger)


def _offered(ground: _Ground, along: _Along) -> _Offered:
    parts, workspace, skills = ground.parts, ground.workspace, along.skills
    skill = None if skills is None else first_use.called_skills(parts, skills)
    built_in = builtin_tools(
        workspace,
        browser=_late(ground, partial(open_browser, workspace)),
        skills=skill,
        memory=partial(first_use.session_memory, parts, ground.hiding),
        subagents=ground.subagents,
    )
    own = own_tools([tool.spec.name for tool in built_in], parts.brought.tools)
    tools: Mapping[str, Tool] = {one.spec.name: one for one in (*built_in, *own.tools) if parts.offers(one.spec.name)}
    diagnostics: Diagnostics | None = None
    if parts.settings.diagnostics and parts.trust.trusted:
        from treadle.app.session.files.edit_diagnostics import CheckerFolders, diagnosed, open_diagnostics

        around = CheckerFolders(workspace=workspace, private=ground.private, mode=lambda: ground.engine.state.mode)
        diagnostics = open_diagnostics(parts.settings.diagnostics, around)
        ground.opened.push_async_callback(diagnostics.close)
        tools = diagnosed(tools, diagnostics, workspace)
    joined = joined_servers(parts, tools, ground.hiding.redactor, ground.engine, book=ground.subagents)
    ground.opened.push_async_callback(joined.close)
    ground.hiding.hide(joined.secrets)
    specs = with_searches(parts.models) if parts.settings.web_search else parts.models.spec
    here_out = out_of_session(parts.settings, skills=skills is not None and skills.callable)
    always_out = {**here_out, **(NO_SUBAGENTS if parts.brought.open_child is None else {})}
    return _Offered(
        joined=joined,
        left_out=also_left_out(
            also_left_out(offering(parts.store, specs, always_out), without_notebooks(workspace.root, workspace.seen)),
            joined.left_out,
        ),
        specs=specs,
        diagnostics=diagnostics,
        problems=(*own.problems, *first_use.no_code_mode(parts, here_out)),
    )


def _late(ground: _Ground, make: Callable[[], Any]) -> Callable[[], Any]:
    """Make something with its first use, and close it with the session where it was made."""

    @cache
    def made() -> Any:
        thing: _Closes = make()
        ground.opened.push_async_callback(thing.close)
        return thing

    return made


def _ports(ground: _Ground, along: _Along, offered: _Offered) -> Ports:
    parts, commands, workspace = ground.parts, ground.commands, ground.workspace
    rules, checklist, joined = along.rules, along.checklist, offered.joined
    share, places = parts.brought.share, turn_places(parts, ground.engine, ground.opened)
    prompting = Prompting(
        settings=parts.settings,
        rules=rules,
        skills=along.skills,
        agents={} if parts.brought.open_child is None else load_agents(parts.trust, parts.brought.agents),
        specs={name: tool.spec for name, tool in joined.known.items()},
        window=lambda model: parts.models.spec(model).context_window,
        of_servers=joined.prompt_parts,
    )
    ports = Ports(
        log=SessionLog(parts.store, parts.row.id),
        observers=(
            *(one.observe for one in places),  # before anything else of a next turn
            partial(note_named_changes, workspace.seen),
            LedgerObserver(parts.store, along.ledger),
            checklist.observe,
            rules.observe,
        ),
        before_step=(
            *joined.before_step,
            *(checklist.before_step, rules.before_step, partial(changed_files, workspace)),
            *([] if share is None or parts.brought.child else [partial(share.before_step, parts.row.id)]),
            *(one.before_step for one in places),
        ),
        environment=_environment(ground),
        trace=ground.hiding.trace,
        judge=policy_judge(
            parts,
            ground.policy_files,
            ground.hiding.redactor,
            servers=joined.servers,
            own_ports=lambda: commands.servers().ports(),
        ),
        redactor=ground.hiding.redactor,
        tools=joined.offered,
        left_out=offered.left_out,
        provider=parts.models.provider,
        model=offered.specs,
        system=session_prompt(prompting, offered.left_out),
        clock=parts.brought.clock,
        jitter=random.random,
        shared_budgets=LoggedBudgets(parts.store, parts.row.id, parts.brought, parts.models.spec),
        remember=partial(first_use.remember_here, workspace.root),
        check_tool=EXECUTE_COMMAND.name,
        checklist=parts.settings.checklist,
        compaction=parts.settings.context.compaction,
        keep=commands.keep,
        hooks=along.hooks,
        checkpoints=ground.checkpoints,
        unbilled=NO_MODELS,
    )
    return ports if parts.brought.shape is None else parts.brought.shape.applied(ports)


def _environment(ground: _Ground) -> EnvironmentBlock:
    parts = ground.parts
    return EnvironmentBlock(
        workspace=ground.workspace,
        repository=partial(first_use.repository_words, parts),
        approved=tuple(frozenset(parts.settings.approve).difference(parts.trust.unapproved)),
        trusted=parts.trust.lets_code_run,
        try_first=parts.settings.try_first,
        lacking=Lacking(),
        gpu=partial(first_use.gpu_line, parts.settings),
    )


def _live(
    ground: _Ground,
    along: _Along,
    offered: _Offered,
    ports: Ports,
    *,
    first: Sequence[EventData],
) -> LiveSession:
    parts, hooks, servers = ground.parts, along.hooks, offered.joined.servers
    own_shell = _late(ground, partial(first_use.person_shell, ground.workspace, ground.private, ground.hiding))
    return LiveSession(
        session_id=parts.row.id,
        engine=ground.engine,
        works_with=ports,
        past=first_use.heard_before(parts),
        agents=[one.listed for one in parts.brought.agents],
        store=parts.store,
        first=first,
        trust=parts.trust,
        models=model_finder(parts.models, parts.settings),
        checklist_file=along.checklist.file,
        own_shell=own_shell,
        enclose=partial(
            first_use.enclosed,
            workspace=ground.workspace,
            ports=ports,
            engine=ground.engine,
            trust=parts.trust,
            diagnostics=offered.diagnostics,
            rules=along.rules,
            own_shell=own_shell,
            servers=servers,
        ),
        roots=parts.roots.folders,
        opened=ground.opened,
        hooks=hooks,
        beside=[
            *([] if hooks is None else [partial(first_use.watched, hooks, ground.engine)]),
            *([] if (kept := ground.checkpoints) is None else [partial(looked_after, ground.engine, kept)]),
            *([partial(first_use.with_subagents, ground.subagents)] if ground.engine.state.children else []),
        ],
        servers=servers,
        ports=partial(ground.commands.ports, asyncio.get_running_loop()),
        wakes=lambda: ground.workspace.wakes() or ground.subagents.running,
        awaits=lambda: awaits_subagents(ground.engine.state),
    )
