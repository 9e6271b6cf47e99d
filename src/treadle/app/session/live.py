"""A session as surfaces see it: post an op, follow the notifications, close."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from treadle.app.models.model_notes import as_now
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.model_finder import ModelFinder
from treadle.app.session.ops import NOT_SENT, asked_aside, has_more_than_words, own_words, post_first
from treadle.engine.core.budgets import session_budget
from treadle.engine.core.goal import goal_status, is_due, is_wanted
from treadle.engine.core.state import phase
from treadle.engine.core.turn_end import turn_by_now
from treadle.engine.core.turns import queued
from treadle.engine.ports import Ports
from treadle.engine.runtime.assembling import CACHE_SECONDS
from treadle.engine.runtime.feeds import Feed
from treadle.engine.runtime.model_requests import offered_tools
from treadle.engine.runtime.running_session import Session
from treadle.protocol.attach import ListedAgent, SessionStatus, Stamped
from treadle.protocol.errors import RefusedError, StoreError, TreadleError, first_in
from treadle.protocol.events import Answer, EditQueued, EventData, Op, Prompt, SessionStarted, SetMode, SetModel, Source
from treadle.protocol.messages import origins
from treadle.protocol.notifications import Notification, Phase, TurnOutcome
from treadle.protocol.sealed import SideAnswered
from treadle.store.leases import LEASE_SECONDS
from treadle.store.sqlite import Store

if TYPE_CHECKING:
    from treadle.app.hooks.session_hooks import SessionHooks
    from treadle.app.models.offered import OfferedModel
    from treadle.app.servers.session_servers import SessionServers
    from treadle.app.session.mentions.mentioning import Enclosed
    from treadle.app.session.own_commands.own_shell import OwnShell
    from treadle.app.session.parts import TurnRoom
    from treadle.app.session.shared.access import PortsAccess
    from treadle.app.session.shared.sharing import Attendance


_LEAST_COSTLY = 20_000
"""Tokens; whether a shorter request is costly is not looked at."""

_SHARED_AFTER = 0.3
"""Seconds; a short run has nobody who attaches to it."""


class LiveSession:
    """One open session; an async context manager that holds the lease and runs the loop while it is entered.

    `notices` are what a person should know before anything happens, such as a rule file that cannot be used. `roots`
    are the folders of the workspace besides the one that it is worked in. `source` is as whom its own terminal posts.
    `past` is what surfaces were told before this process took it up, `agents` those that it was given when it opened.
    What is `beside` it is entered when it has begun, and left before it ends; what was `opened` for it is closed then,
    the last first. `wakes` says whether something will wake it, `awaits` whether subagents will. In the background it
    has an `attendance`, set before it is entered. `others` counts attached surfaces of other processes but pages.
    """

    source = Source(kind="tui", id="main")
    continues = False
    others = 0
    attendance: "Attendance | None" = None
    turns: "TurnRoom | None" = None

    def __init__(  # noqa: PLR0913 - what a session is made of
        self,
        *,
        session_id: str,
        trust: SessionTrust,
        engine: Session,
        works_with: Ports,
        store: Store,
        first: Sequence[EventData],
        models: ModelFinder,
        checklist_file: Path,
        own_shell: "Callable[[], OwnShell]",
        enclose: "Callable[[str], Awaitable[Enclosed]]",
        roots: Sequence[str] = (),
        past: Sequence[Stamped] = (),
        agents: Sequence[ListedAgent] = (),
        hooks: "SessionHooks | None" = None,
        opened: AsyncExitStack,
        beside: "Sequence[Callable[[LiveSession], AbstractAsyncContextManager[None]]]" = (),
        servers: "SessionServers | None" = None,
        ports: "Callable[[], PortsAccess]",
        wakes: Callable[[], bool] = lambda: False,
        awaits: Callable[[], bool] = lambda: False,
    ) -> None:
        self.id = session_id
        self.workspace = trust.workspace
        self.trust = trust
        self.roots = tuple(roots)
        self.notices: Sequence[str] = tuple(filter(None, [trust.notice()]))
        self._engine = engine
        self._store = store
        self._first = first
        self._models = models
        self.settings = models.settings
        self.checklist_file = checklist_file
        self._works_with = works_with
        self._own_shell = own_shell
        self._enclose = enclose
        self.past = past
        self.agents = tuple(agents)
        self._hooks = hooks
        self._opened = opened
        self._beside = beside
        self._company = AsyncExitStack()
        self.servers = servers
        self.ports = ports
        self.wakes = wakes
        self.awaits_subagents = awaits
        self._tasks: list[asyncio.Task[None]] = []
        self._asides: list[asyncio.Task[SideAnswered]] = []
        self._told_costly: set[str] = set()
        self._failure_shown = False
        self._opening: Sequence[Notification] = ()
        self._untouched = False

    @property
    def opening(self) -> Sequence[Notification]:
        """What was told while the session was taken up: who listens from here on has not heard it."""
        return self._opening

    @property
    def resumed(self) -> bool:
        """Whether the session existed before."""
        return not any(isinstance(event, SessionStarted) for event in self._first)

    @property
    def empty(self) -> bool:
        """Whether there was no prompt yet: it is not listed, and not kept if nothing else was done in it."""
        state = self._engine.state
        return not (state.turns or state.turn or state.queue)

    @property
    def title(self) -> str:
        """What it is called, the beginning of its first prompt; empty where that cannot be read."""
        with suppress(StoreError):
            return self._store.title(self.id)
        return ""

    @property
    def before(self) -> tuple[str, int] | None:
        """Title and time (ms since 1970) of the session of this folder that was used last; None for one taken up."""
        if not self.resumed:
            with suppress(StoreError):
                return self._store.last_used(str(self.workspace), self.id)
        return None

    @property
    def closed(self) -> bool:
        """Whether the loop has ended, by itself or by leaving: everything is refused."""
        return self._engine.closed

    @property
    def status(self) -> SessionStatus:
        """Where the session stands now."""
        state = self._engine.state
        return SessionStatus(
            phase=phase(state),
            mode=state.mode,
            model=state.choice.model,
            tool_protocol=state.choice.tool_protocol,
            turn_active=state.turn is not None and bool(self._first),  # who only looks goes on with none
            questions=state.questions,
            queue=queued(state.queue),
            held=queued(state.held),
            allowances=state.allowances,
            pins=state.space.pins,
            checklist=state.checklist.text,
            goal=goal_status(state),
            checking=is_due(state),
            tokens=self._engine.transcript.tokens,
            window=self._models.spec(state.choice.model).context_window,
            thinking=state.choice.thinking_budget,
            budget=session_budget(state),
        )

    @property
    def by_now(self) -> TurnOutcome | None:
        """What the turn that goes on has come to; None where none does."""
        return turn_by_now(self._engine.state)

    @property
    def quiet(self) -> bool:
        """Whether nothing goes on, and nothing waits for anybody."""
        state = self._engine.state
        return phase(state) is Phase.WAITING_FOR_EVENT and state.files.restoring is None and not is_wanted(state)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model is offered now."""
        return offered_tools(self._works_with, self._engine.state)

    @property
    def own_shell(self) -> "OwnShell":
        """The person's own commands."""
        return self._own_shell()

    @property
    def sees_images(self) -> bool:
        """Whether the model is shown images."""
        return self._models.spec(self._engine.state.choice.model).images is not False

    def choose(self, ref: str, thinking: int | None = None) -> SetModel:
        """Find another model under the settings of this session, which say how much it thinks unless `thinking` does.

        Raises `ConfigError` when it cannot be called.
        """
        return self._models.choose(as_now(ref, self.status.model), thinking)

    def offered_models(self) -> "Sequence[OfferedModel]":
        """List the models to choose from. To be called in a thread; raises `ConfigError`."""
        return self._models.offered()

    def keep(self) -> None:
        """Keep the session though nothing was done in it: somebody knows its id."""
        self._untouched = False

    async def post(self, op: Op, source: Source) -> None:
        """Ask for something; returns when it is in the log. Raises `RefusedError` with the reason when it cannot be.

        With the mode the model changes where the settings give the mode one of its own; raises `ConfigError` when that
        cannot be called, and then the mode stays.
        """
        await self._post(op, source)
        self._untouched = False

    async def _post(self, op: Op, source: Source) -> None:
        if question := asked_aside(op):
            if has_more_than_words(op):
                self.tell(NOT_SENT)
            self._asides.append(asyncio.create_task(self._answer_aside(question), name="side question"))
            return
        op = await self._with_mentions(op)
        if isinstance(op, SetMode):
            wanted = await self._models.for_mode(op.mode, self._engine.state.choice.model)
            if wanted is not None and wanted != self._engine.state.choice:
                op = SetMode(mode=op.mode, choice=wanted)
        if self._hooks is not None:
            from treadle.app.hooks.sending import heard_op

            op = await heard_op(self._hooks, op, source, status=self.status, tell=self.tell)
        if isinstance(op, Prompt):
            self._name_cheaper(op)
        other = isinstance(op, SetModel) and op.choice.model != self._engine.state.choice.model
        await self._engine.post(op, source)
        for said in self._models.notices(op.choice.model) if isinstance(op, SetModel) and other else ():
            self.tell(said)

    def _name_cheaper(self, prompt: Prompt) -> None:
        """Say once for each model that the next request is costly, and which configured model takes less for it."""
        reader, ref = self._engine.reader, self._engine.state.choice.model
        blocks = (*prompt.content, *(block for one in prompt.enclosed for block in one.content))
        new = reader.transcript.tokens_of(sum(map(reader.transcript.size_of_block, blocks)))
        known = reader.transcript.tokens
        if ref in self._told_costly or known + new < _LEAST_COSTLY:
            return
        warm = time.time() * 1_000 - reader.replied_at < CACHE_SECONDS * 1_000
        cached = known if warm else 0
        from treadle.app.models.offered import NextRequest

        if said := self._models.cheaper(NextRequest(model=ref, cached=cached, new=known + new - cached)):
            self._told_costly.add(ref)
            self.tell(said)

    async def asides(self) -> tuple[SideAnswered, ...]:
        """Wait until every question beside the work is answered."""
        return tuple(await asyncio.gather(*self._asides))

    async def ask_unseen(self, question: str, named: str) -> SideAnswered:
        """Ask the model beside the work, which no surface shows; the log has what is `named` for the question."""
        from treadle.engine.runtime.side_question import answer_aside

        return await self._engine.aside(partial(answer_aside, question, named=named))

    async def _answer_aside(self, question: str) -> SideAnswered:
        from treadle.engine.runtime.side_question import answer_aside

        return await self._engine.aside(partial(answer_aside, question))

    async def _with_mentions(self, op: Op) -> Op:
        """Let go along what the user's words mention; what does not is said."""
        text = own_words(op)
        if not text or not isinstance(op, Prompt | EditQueued | Answer):
            return op
        found = await self._enclose(text)
        from treadle.present.words import enclosed_line

        named = (enclosed_line(origins(found.enclosures)),) if found.enclosures and isinstance(op, Answer) else ()
        for notice in (*named, *found.notices):
            self.tell(notice)
        return replace(op, enclosed=(*op.enclosed, *found.enclosures))

    async def wake(self, op: Op, source: Source) -> None:
        """Post what no person wrote: nothing in it is a mention or a command. Raises `RefusedError`."""
        await self._engine.post(op, source)

    def tell(self, text: str) -> None:
        """Let every surface show a line that nothing waits for."""
        self._engine.tell(text)

    def follow(self) -> Feed:
        """Listen from now on (a session that is not started yet: from its start), until it is left or closed."""
        return self._engine.follow()

    def answer_to(self, source: Source, handler: Callable[[TurnOutcome], None]) -> None:
        """Bring the ends of turns that this source asked for to `handler`."""
        self._engine.answer_to(source, handler)

    async def failure(self) -> None:
        """Wait until the loop ends; raises what ended it, such as an unwritable log, which leaving does not again."""
        try:
            await asyncio.shield(self._tasks[0])
        except TreadleError:
            self._failure_shown = True
            raise

    async def __aenter__(self) -> Self:
        try:
            await self._store.acquire(self.id)
        except BaseException:
            with suppress(TreadleError):
                await self._store.release(self.id)
            self._store.close()
            raise
        if self.servers is not None:
            self.servers.hub.start()
        self._tasks = [
            asyncio.create_task(self._run(), name="session"),
            asyncio.create_task(self._beat(), name="lease"),
            asyncio.create_task(self._share(), name="share"),
        ]
        try:
            async with self._engine.follow() as begun:
                await post_first(self._engine.post, self._first)
                for one in self._beside:
                    await self._company.enter_async_context(one(self))
                self._opening = begun.taken()
            self._untouched = True
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._company.aclose()
        for aside in self._asides:
            aside.cancel()
        await asyncio.gather(*self._asides, return_exceptions=True)
        await self._engine.close()
        loop, *others = self._tasks
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        try:
            await loop
        except TreadleError:
            # A refusal is then only what the end of the loop looks like from outside.
            if not self._failure_shown and (error is None or isinstance(error, RefusedError)):
                raise
        finally:
            async with AsyncExitStack() as last:
                last.callback(self._store.close)
                last.push_async_callback(self._store.leave, self.id, untouched=self._untouched)
                await self._opened.aclose()

    async def _run(self) -> None:
        """Run the loop; what ends it is raised as itself, not as the group that its tasks make of it."""
        try:
            await self._engine.run(self._works_with)
        except BaseExceptionGroup as group:
            known, other = group.split(TreadleError)
            if known is None or other is not None:
                raise
            raise first_in(known) from group

    async def _share(self) -> None:
        """Let other terminals attach, once the first work is under way."""
        if self.attendance is None:
            await asyncio.sleep(_SHARED_AFTER)
        from treadle.app.session.shared.sharing import share_session

        await share_session(self, self._engine)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            await self._store.heartbeat(self.id)
