"""The subagents of one session: begun, watched, stopped, and taken up again after a restart."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from treadle.app.session.children.child_plans import ChildPlans, child_mode
from treadle.app.session.children.child_run import (
    ChildResult,
    ChildRun,
    child_answer,
    failed,
    how_many_are_done,
    is_done,
    over_before,
    stopped_before,
    stopped_late,
    what_came,
)
from treadle.app.session.children.code_mode import CODE_MODE, program_answer, program_wanted, run_in_session
from treadle.app.session.children.program_model import ProgramModel
from treadle.app.session.children.renaming import as_in_workspace
from treadle.app.session.children.wanted_child import OpenChild, begin_message
from treadle.app.session.children.writing import (
    COPY_GONE,
    Approving,
    FoundOrMade,
    HandedBack,
    changing_for,
    copies_for,
    hand_back,
    left_in_copy,
    remove_applied,
)
from treadle.app.session.parts import new_session_id
from treadle.app.subagents.agent_files import FOREIGN_NAMES, AgentFile
from treadle.app.subagents.writer_copies import WriterCopy, open_copy
from treadle.engine.core.calls import find
from treadle.engine.core.state import standing
from treadle.engine.ports import AskPerson, Output, ask_person
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.children import ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.errors import RefusedError, ToolError, TreadleError
from treadle.protocol.events import Delivery, Prompt, Source
from treadle.protocol.messages import Enclosure, EnclosureKind, Text
from treadle.protocol.notifications import ConversationRewound, ModeChanged
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import CallResult, Origin, Outcome
from treadle.tools.declarations import USE_SUBAGENTS
from treadle.tools.use_subagents import SubagentTask

_MOST_TEXT = 60_000
"""Characters that the subagents of one call bring together."""

_STOPPING = 2.5
"""Seconds that subagents have to end when their call is interrupted."""

_LEFT = "the conversation went back behind where it began"

_LONGEST_LINE = 120
"""Characters of a task where it is named."""

_LONGEST_PROGRAM = 300
"""Characters of a program where it is named as the task of its session, which has the whole of it."""

_Copies = Callable[[], Awaitable[Mapping[str, FoundOrMade]]]
"""Waits for the copies of subagents, by their ids."""


class Subagents:
    """Has subagents work for one session, as it plans them; `open_child` opens their sessions."""

    def __init__(self, plans: ChildPlans, agents: Mapping[str, AgentFile], open_child: OpenChild) -> None:
        self._plans = plans
        self._parts, self._engine = plans.parts, plans.engine
        self._agents = agents
        self._open_child = open_child
        self._runs: dict[str, ChildRun] = {}
        self._interrupted: set[str] = set()
        self._behind: set[asyncio.Task[ChildResult]] = set()
        self._merging = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether one works that nobody waits for: its end will wake the session."""
        return bool(self._behind)

    def settle(self, tasks: Sequence[SubagentTask], *, wait: bool | None) -> bool:
        """Say whether the session waits; where that is not said, it does unless all agents work in the background.

        Raises `ToolError` for a task whose agent there is not, or that cannot be begun so.
        """
        if wait is None:
            wait = not all(self.agent(task.agent).background for task in tasks)
        for task in tasks:
            self._require_allowed(self.agent(task.agent))
            if self.agent(task.agent).writes and not wait:
                raise ToolError(f"{task.agent} may write. Call it without `wait: false`.", invalid=True)
        return wait

    def _require_allowed(self, agent: AgentFile) -> None:
        """Raise `ToolError` where a rule denies the tool, or says else than yes to `Agent(NAME)`, which is no call."""
        names = (agent.name, *(other for other, own in FOREIGN_NAMES.items() if own == agent.name))
        for name in (USE_SUBAGENTS.name, *(f"Agent({one})" for one in names)):
            spec = replace(USE_SUBAGENTS, name=name)
            decided = self._plans.above()(spec, {"tasks": []}, (), standing(self._engine.state))
            if decided.verdict is Verdict.DENY or (spec != USE_SUBAGENTS and decided.verdict is not Verdict.ALLOW):
                raise ToolError(
                    f"{name} is not allowed: {decided.reasons[0].text}. Use another agent, or do it yourself."
                )

    def agent(self, name: str) -> AgentFile:
        """Find an agent by its name. Raises `ToolError`."""
        found = self._agents.get(name) or self._agents.get(FOREIGN_NAMES.get(name, ""))
        if found is None:
            known = ", ".join(sorted(self._agents))
            raise ToolError(f"There is no agent {name!r}. Use one of these: {known}.", invalid=True)
        return found

    def _agent_of(self, started: ChildStarted, task: SubagentTask | None = None) -> AgentFile:
        if started.agent == CODE_MODE.name:
            return CODE_MODE
        found = self.agent(started.agent)
        if task is None:
            return found
        return replace(found, model=task.model or found.model, effort=task.effort or found.effort)

    async def stop(self, session_id: str) -> None:
        """Stop one that works."""
        run = self._runs.get(session_id)
        if run is not None:
            await run.stop()

    async def run(self, call_id: str, tasks: Sequence[SubagentTask], *, wait: bool, tell: Output) -> CallResult:
        """Let subagents work on these tasks side by side, and give what came of them in the order of the tasks.

        Without `wait` they go on by themselves, and each wakes the session with what came of it. After a restart the
        ones of the call that had begun go on where they were. Of an interrupted call `tell` is told what came of them.
        """
        begun = [one for one in self._engine.state.children if one.started.call_id == call_id]
        started = [one.started for one in begun]
        for task in tasks[len(begun) :]:
            one = ChildStarted(
                call_id=call_id,
                session_id=self._new_id(),
                agent=self.agent(task.agent).name,
                task=task.title or task.prompt,
                background=not wait,
            )
            await self._engine.post(one)
            started.append(one)
        ask = ask_person.get()
        if not wait:
            for task, one in zip(tasks, started, strict=True):
                self._begin_behind(one, task, ask)
            names = "\n".join(f"- {one.agent} {one.session_id}: {_line(one.task)}" for one in started)
            text = f"These work by themselves now; you are woken with what each brings:\n{names}"
            return CallResult(outcome=Outcome.OK, content=(Text(text=text),))
        results = await self._together(tasks, started, ask, tell)
        most = _MOST_TEXT // len(tasks)
        told = [child_answer(one, result, most) for one, result in zip(started, results, strict=True)]
        return CallResult(
            outcome=Outcome.OK if any(is_done(one) for one in results) else Outcome.FAILED,
            content=(Text(text="\n\n".join((how_many_are_done(results), *told))),),
            changes=tuple(one for result in results for one in result.applied),
            origin=Origin.WEB if any(one.tainted for one in results) else Origin.TREADLE,
        )

    async def run_program(self, call_id: str, code: str, tell: Output) -> CallResult:
        """Run a program in a session of its own, and give what it printed.

        After a restart the one that had begun goes on where it was. Of one that is interrupted `tell` is told the rest.
        """
        begun = [one.started for one in self._engine.state.children if one.started.call_id == call_id]
        if not begun:
            one = ChildStarted(
                call_id=call_id, session_id=self._new_id(), agent=CODE_MODE.name, task=_line(code, _LONGEST_PROGRAM)
            )
            await self._engine.post(one)
            begun.append(one)
        task = SubagentTask(prompt=code, agent=CODE_MODE.name)
        (result,) = await self._together([task], begun, ask_person.get(), tell)
        return program_answer(result)

    def _new_id(self) -> str:
        """Give an id; that of a session of a run begins with the run's name."""
        run = self._parts.brought.run
        number = new_session_id(self._parts.brought.clock())
        return f"{run}.{number}" if run else number

    async def _together(
        self,
        tasks: Sequence[SubagentTask],
        started: Sequence[ChildStarted],
        ask: AskPerson,
        tell: Output,
    ) -> list[ChildResult]:
        """Wait for all; where the call is interrupted they are, too, and where the program ends they go on with it."""
        copying = asyncio.create_task(self._copies(started), name="copies of subagents")
        works = [
            asyncio.create_task(
                self._work(one, task, ask, partial(asyncio.shield, copying)), name=f"subagent {one.session_id}"
            )
            for task, one in zip(tasks, started, strict=True)
        ]
        try:
            await asyncio.wait(works)
        except asyncio.CancelledError:
            call = find(self._engine.state, started[0].call_id)
            if self._engine.closing or call is None or not call.rerun:
                copying.cancel()  # who waits for a copy yet has nothing to end, but where it is there from before
            if not self._engine.closing:
                self._interrupted.add(started[0].call_id)
                await asyncio.gather(*(self.stop(one.session_id) for one in started))
                await asyncio.wait(works, timeout=_STOPPING)
            for work in (*works, copying):
                work.cancel()
            results = await asyncio.gather(*works, copying, return_exceptions=True)
            if not self._engine.closing:
                tell(what_came(started, results))
            raise
        return [work.result() for work in works]

    async def _copies(self, started: Sequence[ChildStarted]) -> Mapping[str, FoundOrMade]:
        """Give those that may write the copies in which they do; none where their session may not write either."""
        ended = {one.started.session_id for one in self._engine.state.children if one.ended is not None}
        ids = [one.session_id for one in started if one.session_id not in ended and self._writes(one)]
        return await copies_for(ids, self._parts.trust, self._parts.roots.folders) if ids else {}

    def _writes(self, started: ChildStarted) -> bool:
        if self._engine.state.mode is Mode.PLAN:
            return False
        with suppress(ToolError):  # without its agent it does not begin
            return self._agent_of(started).writes
        return False

    def _begin_behind(self, started: ChildStarted, task: SubagentTask, ask: AskPerson) -> None:
        copies = partial(self._copies, (started,))
        work = asyncio.create_task(self._work(started, task, ask, copies), name=f"subagent {started.session_id}")
        self._behind.add(work)
        work.add_done_callback(self._behind.discard)

    async def _wake_with(self, started: ChildStarted, result: ChildResult) -> None:
        """Give the session what came of one that it did not wait for; text from outside goes along as such.

        Its end comes into the log together with that: a kill loses neither, and the turn that it begins has its cost.
        """
        said = (Text(text=child_answer(started, result, _MOST_TEXT)),)
        begin, origin = Text(text="A subagent that you did not wait for has ended."), f"subagent {started.session_id}"
        prompt = Prompt(
            id=f"ended-{started.session_id}",
            content=(begin,) if result.tainted else (begin, *said),
            enclosed=(Enclosure(kind=EnclosureKind.PAGE, origin=origin, content=said),) if result.tainted else (),
            delivery=Delivery.STEER,
        )
        self._engine.post_soon(result.ended)
        with suppress(TreadleError):
            await self._engine.post(prompt, Source(kind="subagent", id=started.session_id))

    async def _work(self, started: ChildStarted, task: SubagentTask, ask: AskPerson, copies: _Copies) -> ChildResult:
        """Let one work to its end, and note in the log of the session how it ended."""
        child = next(one for one in self._engine.state.children if one.started.session_id == started.session_id)
        if child.ended is not None:
            return over_before(child.ended, self._parts.store)
        run = self._runs[started.session_id] = ChildRun(started, self._engine.publish, ask)
        run.stopped = started.call_id in self._interrupted
        self._follow()
        try:
            result = await self._worked(run, task, ask, copies)
        except TreadleError as error:
            result = failed(started, f"{error.what} {error.why}".strip())
        except (ToolError, OSError) as error:
            result = failed(started, str(error))
        except asyncio.CancelledError:
            if self._engine.closing:
                raise
            return await self._note_stopped(run)  # it did not end in time: its own log has what it did
        finally:
            self._runs.pop(started.session_id, None)
        if started.background and not self._has_left(started):
            await self._wake_with(started, result)
        else:
            with suppress(RefusedError):
                await self._engine.post(result.ended)
        return result

    def _has_left(self, started: ChildStarted) -> bool:
        """Whether the conversation went back behind where one began: nothing of it is told there."""
        return any(one.left for one in self._engine.state.children if one.started == started)

    async def _note_stopped(self, run: ChildRun) -> ChildResult:
        """Note that one was stopped; no copy stays of one that did not begin."""
        result = (stopped_late if run.opened else stopped_before)(run.started)
        with suppress(TreadleError):
            await self._engine.post(result.ended)
            copy = None if run.opened else await asyncio.to_thread(open_copy, run.started.session_id)
            if copy is not None:
                await remove_applied(copy)
        return result

    async def _worked(self, run: ChildRun, task: SubagentTask, ask: AskPerson, copies: _Copies) -> ChildResult:
        """Give what came of one; what it changed is in the workspace then, or named with its place."""
        started = run.started
        agent = self._agent_of(started, task)
        program = ProgramModel(task.prompt) if agent is CODE_MODE else None
        known = await self._plans.is_known(started.session_id)
        copy, anew = _copy_of(started, await copies()) if agent.writes else (None, False)
        if copy is not None:
            run.names = as_in_workspace(copy)
        if run.stopped and not known:
            if copy is not None:
                await remove_applied(copy)
            return stopped_before(started)
        wanted = await self._plans.wanted(started, agent, copy)
        if program is not None:
            return await run_in_session(program, run, self._open_child, program_wanted(wanted, program))
        result = await run.work(await self._open_child(wanted), begin_message(task, agent))
        if copy is not None and run.stopped:
            result = _with_changes(result, await left_in_copy(copy))
        elif copy is not None:
            result = await self._handed_back(started, copy, result, ask)
            if known and anew and not result.ended.changes:
                result = replace(result, after=COPY_GONE)
        _, note = self._plans.model(agent)
        if note:
            result = replace(result, after="\n".join(filter(None, (result.after, note))))
        return result

    async def _handed_back(
        self, started: ChildStarted, copy: WriterCopy, result: ChildResult, ask: AskPerson
    ) -> ChildResult:
        """Bring its changes back; one at a time, so that each is merged with those before it."""
        async with self._merging:
            changing = partial(changing_for, self._engine, started.session_id)
            now = lambda: standing(self._engine.state)  # noqa: E731
            by = Approving(self._plans.above(), now, ask, changing, self._plans.unsaved)
            back = await hand_back(started, copy, by)
        return _with_changes(result, back)

    def _follow(self) -> None:
        """Let subagents follow a change of the mode, and stop with what they were begun for."""
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow_session(self._engine.follow()), name="for subagents")

    async def _follow_session(self, feed: Feed) -> None:
        async with feed:
            async for notification in feed:
                for run in tuple(self._runs.values()):
                    if isinstance(notification, ModeChanged):
                        await run.set_mode(child_mode(self._agent_of(run.started), notification.mode))
                    elif isinstance(notification, ConversationRewound) and self._has_left(run.started):
                        await run.stop()

    async def take_up(self) -> None:
        """Let those go on that nobody waited for when the program ended; of a call that is over none goes on else."""
        running = {call.call.id for call in self._engine.state.calls if not call.finished}
        for one in self._engine.state.children:
            started = one.started
            if one.ended is not None or started.call_id in running:
                continue
            if started.background and not one.left:
                task = SubagentTask(prompt=started.task, agent=started.agent)
                self._begin_behind(started, task, partial(self._engine.ask, started.call_id))
            else:
                why = _LEFT if one.left else "its call was interrupted"
                ended = ChildEnded(session_id=started.session_id, outcome=ChildOutcome.INTERRUPTED, why=why)
                with suppress(RefusedError):
                    await self._engine.post(ended)

    async def close(self) -> None:
        """End those that nobody waits for as a program ends: they go on with the session."""
        ended = [*self._behind, *filter(None, [self._following])]
        for work in ended:
            work.cancel()
        await asyncio.gather(*ended, return_exceptions=True)


def _with_changes(result: ChildResult, back: HandedBack) -> ChildResult:
    """Say of one that may write what became of its changes."""
    refused = result.ended.refused + back.refused
    ended = replace(result.ended, changes=back.changed, kept=back.kept, refused=refused)
    return replace(result, ended=ended, applied=back.applied, after=back.text)


def _copy_of(started: ChildStarted, copies: Mapping[str, FoundOrMade]) -> tuple[WriterCopy | None, bool]:
    """Find the copy of one, and whether it was made anew. Raises why there is none for one that may write."""
    found = copies.get(started.session_id, (None, False))
    if isinstance(found, TreadleError):
        raise found
    return found


def _line(text: str, most: int = _LONGEST_LINE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
