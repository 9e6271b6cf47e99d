"""Sessions of the real engine with the real tools, in this process, with a model that reacts."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.engine.world import check_messages
from tests.rehearsal.model import ReactingModel
from tests.rehearsal.replays import replay_trouble
from treadle.app.assembly import assemble
from treadle.app.compose import Opening, limits_of, open_session, open_store
from treadle.app.config.sections import ModelSettings, ProviderSettings, Settings
from treadle.app.models.model_choice import Models
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.files.roots import further_roots
from treadle.app.session.live import LiveSession
from treadle.app.session.parts import Parts, clock
from treadle.app.session.recall import Recalled, recall
from treadle.engine.core.past_history import read_past
from treadle.engine.ports import Provider
from treadle.protocol.events import (
    Delivery,
    Event,
    EventData,
    Prompt,
    Resumed,
    SessionStarted,
    SetPresence,
    Source,
)
from treadle.protocol.messages import Role, Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.notifications import Notification, TurnEnded, TurnOutcome
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.provider import ScriptedProvider
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import SessionRow
from treadle.store.trusted_folders import Trust, TrustState

TEST = Source(kind="test")
PATIENCE = 90.0
"""Seconds without any notification after which a session hangs."""

TASK = "Please do what has to be done here."
KEY = "REHEARSAL_KEY"
"""The variable that holds the key of the provider: some wire APIs refuse a request without one."""

PATHS = {"anthropic": "", "chat": "/v1", "responses": "/v1", "gemini": "/v1beta", "bedrock": ""}
WIRE_APIS = {
    "anthropic": "anthropic_messages",
    "chat": "openai_chat",
    "responses": "openai_responses",
    "gemini": "gemini",
    "bedrock": "bedrock_converse",
}
_NUMBERS = itertools.count(1)
_Opened = Callable[[str], Awaitable[LiveSession]]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one session is made of. `wishes` is filled while the model works."""

    folder: Path
    model: ReactingModel
    protocol: ToolProtocol
    wire: str = ""
    window: int | None = None
    retries: int | None = None
    wishes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a session ended: its turns, its log, and what was wrong with its requests or its replay."""

    outcomes: tuple[TurnOutcome, ...]
    events: tuple[Event, ...]
    violations: tuple[str, ...]


class _OneModel(Models):
    """Models of which each is answered in process by the same provider."""

    def __init__(self, settings: Settings, provider: ScriptedProvider) -> None:
        super().__init__(settings)
        self._only = provider

    def provider(self, ref: str) -> Provider:
        return self._only


def settings(run: Run, name: str, base_url: str = "") -> Settings:
    """The settings of a session: in mode full, with a model of its own name."""
    provider = "rehearsal" if run.wire else "scripted"
    ref = f"{provider}/{name}"
    said = ProviderSettings(base_url=base_url, wire_api=WIRE_APIS[run.wire], api_key_env=KEY) if run.wire else None
    return Settings(
        model=ref,
        mode=Mode.FULL,
        tool_protocol=run.protocol,
        max_retries=run.retries,
        providers={"rehearsal": said} if said else {},
        models={ref: ModelSettings(context_window=run.window)},
    )


async def perform(run: Run) -> Ending:
    """Run a session to its end; every request must have been a valid conversation."""
    async with _opener(run) as (opened, violations, said):
        outcomes, session_id = await _work(run, opened)
    differs = filter(None, [replay_trouble(session_id, said)])
    return Ending(outcomes=outcomes, events=tuple(events_of(session_id)), violations=(*violations, *differs))


def events_of(session_id: str) -> list[Event]:
    """Read the log of a session."""
    store = open_store()
    try:
        return list(store.read(session_id))
    finally:
        store.close()


def check_log(events: Sequence[Event]) -> None:
    """The log folds to a session at rest, and tells a conversation that any provider takes."""
    past = read_past(events)
    assert (past.state.turn, past.state.questions, past.state.queue) == (None, (), ())
    assert all(call.finished for call in past.state.calls)
    for protocol in ToolProtocol:
        check_messages(past.transcript.messages(protocol))


@asynccontextmanager
async def _opener(run: Run) -> AsyncIterator[tuple[_Opened, list[str], Settings]]:
    """Give how the session is opened, or taken up again by its id, where the model complains, and the settings."""
    name = f"model-{next(_NUMBERS)}"
    if run.wire:
        async with ScriptedServer(run.model) as server:
            said = settings(run, name, server.base_url + PATHS[run.wire])
            yield partial(_open_over_http, run, said), server.violations, said
        return
    provider = ScriptedProvider(run.model)
    said = settings(run, name)
    yield partial(_open_in_process, run, said, provider), provider.violations, said
    for request in provider.requests:
        check_messages(request.messages)
        assert request.messages[-1].role is Role.USER


def _trust(folder: Path) -> SessionTrust:
    return SessionTrust(trust=Trust(workspace=folder, state=TrustState.TRUSTED, items=()))


async def _open_over_http(run: Run, said: Settings, resume: str) -> LiveSession:
    opening = Opening(workspace=run.folder, settings=said, user_present=False, resume=resume, trust=_trust(run.folder))
    return await open_session(opening)


async def _open_in_process(run: Run, said: Settings, provider: ScriptedProvider, resume: str) -> LiveSession:
    models = _OneModel(said, provider)
    store = open_store()
    recalled: Recalled | None = None
    if resume:
        row, recalled = store.find(resume), recall(store.read(resume))
        first: tuple[EventData, ...] = (Resumed(user_present=False),)
    else:
        row = SessionRow(
            id=f"{said.model.partition('/')[2]}-{run.folder.name}",
            workspace=str(run.folder),
            model=said.model,
            title="",
            created_at=clock(),
            updated_at=clock(),
            events=0,
        )
        await store.create(row)
        started = SessionStarted(
            choice=ModelChoice(model=row.model, tool_protocol=run.protocol),
            session_id=row.id,
            workspace=row.workspace,
            mode=said.mode,
            limits=limits_of(said),
        )
        first = (started, SetPresence(user_present=False))
    parts = Parts(
        row=row,
        trust=_trust(run.folder),
        settings=said,
        models=models,
        store=store,
        roots=further_roots(run.folder, ()),
        recalled=recalled,
    )
    return assemble(parts, first)


async def _work(run: Run, opened: _Opened) -> tuple[tuple[TurnOutcome, ...], str]:
    outcomes: list[TurnOutcome] = []
    session_id = ""
    while True:
        live = await opened(session_id)
        feed = live.follow()
        async with live:
            if not session_id:
                await live.post(Prompt(id="task", content=(Text(text=TASK),)), TEST)
            session_id = live.id
            if await _follow(run, live, feed, outcomes):
                return tuple(outcomes), session_id


async def _follow(run: Run, live: LiveSession, feed: AsyncIterator[Notification], outcomes: list[TurnOutcome]) -> bool:
    """Be the person beside the session until its last turn ends; False when the program is to be ended instead."""
    while True:
        async with asyncio.timeout(PATIENCE):
            notification = await anext(feed)
        if isinstance(notification, TurnEnded):
            outcomes.append(notification.outcome)
            if not live.status.turn_active:
                return True
        while run.wishes:
            wish, _, text = run.wishes.pop(0).partition(" ")
            if wish == "restart":
                return False
            delivery = Delivery.STEER if wish == "steer" else Delivery.QUEUE
            await live.post(Prompt(id=text, content=(Text(text=text),), delivery=delivery), TEST)
