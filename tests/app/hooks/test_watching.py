"""Moments at which hooks only look on, in a real session; here the hooks are those of the program that drives it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from treadle.app.compose import Opening, open_session
from treadle.app.config.hook_settings import HookEvent
from treadle.app.config.settings import Settings
from treadle.app.hooks.hook_rows import HookRow
from treadle.app.hooks.session_hooks import HookSession, SessionHooks
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.protocol.attach import SessionStatus
from treadle.protocol.events import Answer, Prompt, SetModel, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.notifications import ContextCompacted, Notification, Phase, PhaseChanged, QuestionAsked, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind
from treadle.providers.scripted.script import MakeCall, Refuse, SayText, Script, Turn
from treadle.providers.scripted.server import ScriptedServer

ME = Source(kind="test")
LOOKING_ON = (
    *(HookEvent.SESSION_START, HookEvent.SESSION_END, HookEvent.NOTIFICATION, HookEvent.PERMISSION_DENIED),
    *(HookEvent.PRE_COMPACT, HookEvent.POST_COMPACT, HookEvent.POST_MODEL_SWITCH, HookEvent.STOP_FAILURE),
)


OTHER = ModelChoice(model="anthropic-compatible/other", tool_protocol=ToolProtocol.NATIVE)


class Host:
    """Hooks of a host for every event; keeps what each is given."""

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()

    async def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        self.given.append(given)
        self._arrived.set()
        return {}

    def rows(self, *events: HookEvent) -> tuple[HookRow, ...]:
        return tuple(HookRow(event=event, handler=self) for event in events)

    async def until(self, event: HookEvent) -> dict[str, Any]:
        """Wait until an event came, and give what it was given."""
        while True:
            for given in self.given:
                if given["hook_event_name"] == event:
                    return given
            self._arrived.clear()
            async with asyncio.timeout(20):
                await self._arrived.wait()


async def ended(live: LiveSession, feed: AsyncIterator[Notification], text: str) -> None:
    """Ask for something, say no to every question, and wait for the end."""
    await live.post(Prompt(id=text, content=(Text(text=text),)), ME)
    async for notification in feed:
        match notification:
            case QuestionAsked(question=question):
                await live.post(Answer(question_id=question.id, option=OptionKind.REJECT_ONCE), ME)
            case TurnEnded():
                return
            case _:
                pass


async def test_a_host_is_notified_of_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    host = Host()
    write = MakeCall(name="write_to_file", arguments={"path": "a.txt", "content": "x"})
    broken = Turn(items=(Refuse(status=400, message="Bad."),))
    turns = (Turn(items=(write,)), Turn(items=(SayText(text="Well."),)), broken)
    async with ScriptedServer(Script(turns=turns)) as server:
        settings = Settings(
            model="anthropic-compatible/scripted",
            base_url=server.base_url,
            mode=Mode.ASK,
            tool_protocol=ToolProtocol.NATIVE,
        )
        trust = session_trust(tmp_path / "ws", once=True)
        opening = Opening(
            workspace=tmp_path / "ws", settings=settings, user_present=True, trust=trust, hooks=host.rows(*LOOKING_ON)
        )
        session = await open_session(opening)
        feed = session.follow()
        async with session as live:
            await ended(live, feed, "Write it.")
            assert (await host.until(HookEvent.SESSION_START))["source"] == "startup"
            asked = await host.until(HookEvent.NOTIFICATION)
            assert (asked["notification_type"], asked["title"]) == ("permission_prompt", "Treadle")
            denied = await host.until(HookEvent.PERMISSION_DENIED)
            assert (denied["tool_name"], denied["tool_input"]["content"]) == ("Write", "x")
            await live.post(SetModel(choice=OTHER), ME)
            switched = await host.until(HookEvent.POST_MODEL_SWITCH)
            models = ("anthropic-compatible/scripted", "anthropic-compatible/other")
            assert (switched["from_model"], switched["to_model"]) == models
            await ended(live, feed, "Go on.")
            # The session is left at once: what happened last is told all the same.
        failed = await host.until(HookEvent.STOP_FAILURE)
        assert ("Bad." in failed["error"], failed["last_assistant_message"]) == (True, "Well.")
        assert host.given[-1]["hook_event_name"] == "SessionEnd"
    assert {given["session_id"] for given in host.given} == {live.id}


class Compacting:
    """A session in which older messages leave the prompt."""

    resumed = True
    status = SessionStatus(
        phase=Phase.COMPACTING,
        mode=Mode.ASK,
        model="a/b",
        tool_protocol=ToolProtocol.NATIVE,
        turn_active=True,
    )

    def __init__(self) -> None:
        self.told: list[str] = []

    async def follow(self) -> AsyncIterator[Notification]:
        for notification in (PhaseChanged(phase=Phase.COMPACTING), ContextCompacted(dropped=3, summary="All of it.")):
            yield notification

    def tell(self, text: str) -> None:
        self.told.append(text)


async def test_hooks_learn_when_older_messages_leave_the_prompt() -> None:
    host, live = Host(), Compacting()
    session = HookSession(session_id="s1", root="/ws", mode=lambda: Mode.ASK)
    hooks = SessionHooks(host.rows(*LOOKING_ON), session, ["One does not run."])
    async with hooks.watch(live):
        before = await host.until(HookEvent.PRE_COMPACT)
        after = await host.until(HookEvent.POST_COMPACT)
    assert (before["trigger"], after["trigger"], after["compact_summary"]) == ("auto", "auto", "All of it.")
    assert [one["source"] for one in host.given if one["hook_event_name"] == "SessionStart"] == ["resume"]
    assert live.told == ["One does not run."]
