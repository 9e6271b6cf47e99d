"""Getting a request ready: the tools and the surroundings of a step, the check of the window, and making room in it."""

from collections.abc import Mapping
from typing import Protocol

from treadle.context.log_reader import TranscriptReader, offer_size
from treadle.engine.core.machine_effects import MakeRoom
from treadle.engine.core.state import State, replace
from treadle.engine.ports import Ports
from treadle.engine.runtime.model_requests import (
    OfferedTools,
    build_request,
    known_tools,
    offer_now,
    reserved_terms,
    situation_of,
)
from treadle.engine.runtime.window import (
    bytes_of,
    compact_at,
    in_force,
    largest_conversation,
    next_message,
    shorten_environment,
)
from treadle.protocol.events import ENGINE, FILES, ContextExceeded, EventData, Source, SummaryWritten
from treadle.protocol.messages import Message, Role
from treadle.protocol.models import ModelSpec
from treadle.protocol.notifications import Notification
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import OF_SUMMARY, SideAsked
from treadle.protocol.tools import Flow, ToolSpec

CACHE_SECONDS = 300.0
"""How long providers keep the beginning of a request at the usual price."""

_COLD = 0.75
"""Part of the bound at which room is made early, where the cache is cold and nothing is lost by it."""


class SessionPort(Protocol):
    """What performing needs of the session: its state, its queue, its surfaces."""

    @property
    def state(self) -> State:
        """The state after the last event."""
        ...

    @property
    def reader(self) -> TranscriptReader:
        """The conversation so far, as the log tells it."""
        ...

    def post_soon(self, data: EventData, source: Source = ENGINE, /) -> None:
        """Queue an event of the engine; a refusal is of no interest any more."""
        ...

    async def post(self, data: EventData, source: Source = ENGINE, /) -> None:
        """Queue an event and wait until it is in the log; raises `RefusedError`."""
        ...

    def tell(self, text: str, *, quiet: bool = False) -> None:
        """Let every surface show a line."""
        ...

    def publish(self, notification: Notification) -> None:
        """Tell every surface."""
        ...


class Assembler:
    """Gets the requests of one session ready."""

    def __init__(self, ports: Ports, session: SessionPort) -> None:
        self._ports = ports
        self._session = session
        self._specs: tuple[ToolSpec, ...] = ()
        self._known: OfferedTools = {}
        self._offered: dict[tuple[str, ...], OfferedTools] = {}
        self._told: Situation | None = None

    @property
    def spec(self) -> ModelSpec:
        """What is known of the model, with the window in force."""
        return in_force(self._ports.model(self._session.state.choice.model), self._session.state)

    async def make_room(self, effect: MakeRoom) -> None:
        """Choose what leaves the conversation; first have the model sum it up where that is wanted."""
        from treadle.engine.runtime import compacting  # no request waits for it

        session, ports = self._session, self._ports
        self._told = None  # what leaves may be where it was said
        plan = compacting.plan_room(session.state, session.reader, self.spec, ports.compaction, wanted=effect.wanted)
        if compacting.asks_model(effect, plan, self.spec, ports.compaction):
            await session.post(await self._summary(effect))
            return
        await session.post(
            compacting.carried_out(
                plan,
                session.state,
                session.reader,
                self.spec,
                step=effect.step,
                written=effect.summary,
                offer=offer_now(ports, session.state, self.tools()),
            )
        )

    async def _summary(self, effect: MakeRoom) -> SummaryWritten:
        """Have the model sum the conversation up; says why where it could not."""
        from treadle.engine.runtime.summary import ask_for_summary, written_summary
        from treadle.engine.runtime.whole_reply import whole_reply

        session, ports = self._session, self._ports
        state = session.state
        results = session.reader.blocks(next_message(state, session.reader, "").results, ())
        pending = session.reader.transcript.projected(
            Message(role=Role.USER, content=results),
            state.choice.tool_protocol,
            images=self.spec.images is not False and session.reader.takes_images,
            documents=self.spec.documents is not False,
        )
        request = build_request(ports, state, session.reader)
        request = ask_for_summary(request, pending.content, effect.focus, self.spec)
        reply = await whole_reply(
            ports, state, session.reader, request, asked=SideAsked(question=OF_SUMMARY), log=session
        )
        return written_summary(reply, effect.step)

    async def assemble(self, step: int) -> None:
        """Seal the user message of a step, or say that it does not fit."""
        session = self._session
        for look in self._ports.before_step:
            if (op := await look()) is not None:
                await session.post(op, FILES)
        situation = situation_of(session.state)
        described = await self._ports.environment.describe(
            first=session.reader.transcript.is_empty, situation=None if situation == self._told else situation
        )
        state, transcript, spec = session.state, session.reader.transcript, self.spec
        message = next_message(state, session.reader, shorten_environment(described, spec))
        new = bytes_of(message, session.reader)
        if not transcript.is_measured:
            new += offer_size(offer_now(self._ports, state, self.tools()))
        tokens = transcript.tokens + transcript.tokens_of(new)
        window = self._exceeded(state, spec, tokens)
        if window is not None:
            await session.post(ContextExceeded(step=step, tokens=tokens, window=window))
        else:
            terms = await reserved_terms(self._ports, state, transcript, new)
            await session.post(replace(message, tokens=tokens, terms=terms))
            self._told = situation

    def _exceeded(self, state: State, spec: ModelSpec, tokens: int) -> int | None:
        """Give the bound that so many tokens are beyond; None where they fit, or where room would win too little."""
        most = largest_conversation(spec)
        if most is None or tokens > most:
            return most
        bound = compact_at(spec, self._ports.compaction)
        if bound is None or state.space.compactions:
            return None
        early = int(bound * _COLD) if self._is_cold(state) else bound
        if tokens <= early:
            return None
        from treadle.engine.runtime.compacting import is_worth, plan_room

        over = replace(state, space=replace(state.space, exceeded=tokens))
        plan = plan_room(over, self._session.reader, spec, self._ports.compaction)
        return early if is_worth(plan, spec) else None

    def _is_cold(self, state: State) -> bool:
        """Whether the provider's cache has forgotten the conversation by now: nothing is lost when it changes."""
        begins = state.turn is not None and state.turn.steps == 1
        since = self._ports.clock() - self._session.reader.replied_at
        return begins and since > CACHE_SECONDS * 1_000

    def _left_out(self) -> Mapping[str, str]:
        return self._ports.left_out(self._session.state.choice.model, situation_of(self._session.state))

    @property
    def known(self) -> OfferedTools:
        """Every tool of the session."""
        return self._known

    def tools(self) -> OfferedTools:
        """Give the tools that the model is told of; the same names are the same object, whose wire bytes are kept."""
        specs = tuple(tool.spec for tool in self._ports.tools.values())
        if specs != self._specs:
            self._specs, self._known, self._offered = specs, known_tools(self._ports), {}
        left_out = self._left_out()
        names = tuple(name for name in self._known if name not in left_out)
        return self._offered.setdefault(names, {name: self._known[name] for name in names})

    def refused(self) -> Mapping[str, str]:
        """Name the tools whose calls get the reason as their result, where there is one; others are judged.

        A question to nobody has a result of its own.
        """
        asks = {name for name, spec in self._known.items() if spec.traits.flow is Flow.ASK}
        return {name: why for name, why in self._left_out().items() if why and name not in asks}
