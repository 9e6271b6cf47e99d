"""How a session wants its subagents: with which rights, model, bounds and folder."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec import UNSET, Struct

from treadle.app.models.cheaper import cheapest_configured
from treadle.app.models.offered import EFFORT_BUDGETS
from treadle.app.security.trusting import copied_trust
from treadle.app.session.children.child_shape import ChildShape, ParentStanding, narrower_mode
from treadle.app.session.children.fork_shape import fork_shape
from treadle.app.session.children.renaming import IN_SAME_FOLDER, as_in_workspace
from treadle.app.session.children.wanted_child import WantedChild
from treadle.app.session.files.editor_files import unsaved_files
from treadle.app.session.offering import JoinedServers
from treadle.app.session.parts import Parts
from treadle.app.subagents.agent_files import CHEAPER, AgentFile
from treadle.app.subagents.writer_copies import WriterCopy
from treadle.engine.core.state import standing
from treadle.engine.ports import Judge
from treadle.engine.runtime.running_session import Session
from treadle.protocol.children import ChildOf, ChildStarted
from treadle.protocol.errors import ConfigError
from treadle.protocol.limits import Budget, Limits
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Allowance, Mode
from treadle.protocol.sealed import PromptPart

MOST_STEPS = 30
MOST_MINUTES = 10
"""What bounds a subagent whose agent says nothing of it."""

_NO_SOFT_LIMIT = 1_000.0


class ChildPlans(Struct, frozen=True, kw_only=True):
    """Says how the subagents of one session are opened; `judge` is its policy."""

    parts: Parts
    engine: Session
    judge: Judge
    remember: Callable[[Sequence[Allowance]], None]
    servers: JoinedServers | None = None

    async def wanted(self, started: ChildStarted, agent: AgentFile, copy: WriterCopy | None) -> WantedChild:
        """Say how a subagent is opened."""
        parts, state = self.parts, self.engine.state
        choice = state.choice
        model, _ = self.model(agent)
        trust = parts.trust
        if copy is not None:
            trust = await asyncio.to_thread(copied_trust, trust, copy.folder)
        thinking = EFFORT_BUDGETS.get(agent.effort, choice.thinking_budget if model == choice.model else None)
        return WantedChild(
            session_id=started.session_id,
            of=ChildOf(parent=parts.row.id, root=parts.row.id, call_id=started.call_id, agent=agent.name),
            trust=trust,
            roots=parts.roots.folders if copy is None else tuple(str(target) for _, target in copy.roots[1:]),
            model=model,
            thinking=thinking,
            mode=child_mode(agent, state.mode),
            limits=self._limits(agent),
            user_present=state.user_present,
            shape=self._shape(agent, copy),
            known=await self.is_known(started.session_id),
            in_copy=copy is not None,
            keeps=copy is not None or parts.settings.checkpoints.enabled,
            servers=None if agent.of_servers == () else self.servers,
            inherits=_up_to_now(self.engine) if agent.fork else UNSET,
        )

    async def is_known(self, session_id: str) -> bool:
        """Whether it has a log to go on from; where the program ended before that, it is begun anew."""
        store = self.parts.store
        events = store.query("SELECT last_seq FROM sessions WHERE id = ?", (session_id,))
        if events and not events[0][0]:
            await store.discard_empty(session_id)
        return bool(events and events[0][0])

    def model(self, agent: AgentFile) -> tuple[str, str]:
        """Give the model of an agent; where it cannot be called that of the session, and why."""
        own = self.engine.state.choice.model
        if not agent.model:
            return own, ""
        if agent.model == CHEAPER:
            return cheapest_configured(self.parts.models, self.parts.settings, own), ""
        ref = agent.model if "/" in agent.model else f"{own.partition('/')[0]}/{agent.model}"
        try:
            return self.parts.models.choose(ref).spec.ref, ""
        except ConfigError as error:
            return own, f"It used {own}: {error.what}"

    def _limits(self, agent: AgentFile) -> Limits:
        """Bound it by what its agent says, and by its share of what is left for all."""
        state = self.engine.state
        going = sum(one.ended is None for one in state.children) or 1
        budget = state.limits.session
        spent = state.money.spent + self.parts.store.spent_in_tree(self.parts.row.id)
        share = Budget(
            cost=None if budget.cost is None else max(0.0, budget.cost - spent.cost) / going,
            tokens=None if budget.tokens is None else max(0, budget.tokens - spent.tokens) // going,
        )
        return Limits(
            max_steps=agent.max_steps or MOST_STEPS,
            max_seconds=agent.seconds or MOST_MINUTES * 60.0,
            session=share,
            tree=budget,
            day=state.limits.day,
            run=state.limits.run,
            soft=_NO_SOFT_LIMIT,
            max_auto_approved=state.limits.max_auto_approved,
            max_retries=state.limits.max_retries,
            plain_answer_ends=True,
            joins_cut=True,
            counts_work=True,
            counts_refused=True,
            sizes_images=True,
        )

    def unsaved(self, paths: Iterable[str]) -> frozenset[str]:
        """Give those of the paths of which the editor of the session has unsaved text; for a thread."""
        editor = self.parts.brought.editor
        return frozenset() if editor is None else unsaved_files(editor, paths)

    def above(self) -> Judge:
        """Give the policy of the session itself, with what its caller wants different."""
        shape = self.parts.brought.shape
        return self.judge if shape is None else shape.judged(self.judge)

    def _shape(self, agent: AgentFile, copy: WriterCopy | None) -> ChildShape:
        above = self.parts.brought.shape
        shape = ChildShape(
            root=self.parts.trust.workspace if copy is None else copy.folder,
            as_parent=IN_SAME_FOLDER if copy is None else as_in_workspace(copy),
            system="",
            only=None if agent.tools is None else frozenset(agent.tools),
            removed=frozenset(agent.without),
            parent=ParentStanding(self.above(), lambda: standing(self.engine.state), above),
            words=PromptPart(name=f"agent {agent.name}", text=agent.prompt, origin=agent.origin),
            remember=self.remember,
            of_servers=agent.of_servers,
            meant=None if self.servers is None or self.servers.servers is None else self.servers.servers.meant,
        )
        return fork_shape(shape, self.engine.reader.offer) if agent.fork else shape


def _up_to_now(engine: Session) -> tuple[Message, ...]:
    """Give the conversation up to the reply that began the call, which is no part of it: its results are missing."""
    messages = engine.transcript.messages(ToolProtocol.NATIVE)
    return messages[:-1] if messages and messages[-1].role is Role.ASSISTANT else messages


def child_mode(agent: AgentFile, mode: Mode) -> Mode:
    """Give the mode of a subagent: that of the session, or a narrower one that its agent asks for."""
    return narrower_mode(mode, mode if agent.mode is None else agent.mode)
