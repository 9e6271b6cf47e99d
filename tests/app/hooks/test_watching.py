"""Moments at which hooks only look on, in a real session; here the hooks are those of the program that drives it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.feed import FakeFeed
from treadle.app.compose import Opening, open_session
from treadle.app.config.hook_settings import HookEvent
from treadle.app.config.sections import ModeSettings, Settings
from treadle.app.hooks.hook_rows import HookAnswer, HookRow
from treadle.app.hooks.session_hooks import HookSession, SessionHooks
from treadle.app.hooks.watching import watched_by_hooks
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.attach import SessionStatus
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Answer, CompactNow, Prompt, SetMode, SetModel, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelChoice, ToolProtocol
from treadle.protocol.notifications import (
    ContextCompacted,
    Notice,
    Notification,
    Phase,
    PhaseChanged,
    QuestionAsked,
    TurnEnded,
)
from treadle.protocol.permissions import Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import RunCommand
from treadle.providers.scripted.script import MakeCall, Refuse, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ME = Source(kind="test")
LOOKING_ON = (
    *(HookEvent.SESSION_START, HookEvent.SESSION_END, HookEvent.NOTIFICATION, HookEvent.PERMISSION_DENIED),
    *(HookEvent.PRE_COMPACT, HookEvent.POST_COMPACT, HookEvent.POST_MODEL_SWITCH, HookEvent.STOP_FAILURE),
    *(HookEvent.POST_TOOL_BATCH, HookEvent.CONFIG_CHANGE, HookEvent.ELICITATION),
)


OTHER = ModelChoice(model="anthropic-compatible/other", tool_protocol=ToolProtocol.NATIVE)


class Host:
    """Hooks of a host for every event; keeps what each is given."""

    def __init__(self) -> None:
        self.given: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()

    async def __call__(self, given: dict[str, Any]) -> HookAnswer:
        self.given.append(given)
        self._arrived.set()
        return HookAnswer()

    def rows(self, *events: HookEvent) -> tuple[HookRow, ...]:
        return tuple(HookRow(event=event, handler=self) for event in events)

    async def until(self, event: HookEvent) -> dict[str, Any]:
        """Wait until an event came, and give what it was given."""
        while True:
            for given in self.given:
                if given["hook_event_name"] == event:
                    return given
            self._arrived.clear()
            async with asyncio.timeout(90):
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
            assert (asked["notification_type"], asked["title"]) == ("permission_prompt", "Write it.")
            assert asked["message"] == "Create a.txt (+1 -0)?"
            denied = await host.until(HookEvent.PERMISSION_DENIED)
            assert (denied["tool_name"], denied["tool_input"]["content"]) == ("Write", "x")
            (call,) = (await host.until(HookEvent.POST_TOOL_BATCH))["tool_calls"]
            assert (call["tool_name"], call["tool_input"]["content"]) == ("Write", "x")
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


async def test_a_host_is_notified_when_a_rule_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    host = Host()
    write = MakeCall(name="write_to_file", arguments={"path": "a.txt", "content": "x"})
    async with ScriptedServer(Script(turns=(Turn(items=(write,)), Turn(items=(SayText(text="Well."),))) * 2)) as server:
        opening = Opening(
            workspace=tmp_path / "ws",
            settings=Settings(model="anthropic-compatible/scripted", base_url=server.base_url),
            user_present=True,
            hooks=host.rows(HookEvent.CONFIG_CHANGE),
        )
        session = await open_session(opening)
        feed = session.follow()
        async with session as live:
            await ended(live, feed, "Write it.")
            assert host.given == []
            file = tmp_path / "home" / "policy.toml"
            file.write_text("[[rule]]\nid = 'no'\nverdict = 'deny'\nargv = ['make']\n")
            await ended(live, feed, "Write it again.")
            told = await host.until(HookEvent.CONFIG_CHANGE)
    assert (told["source"], told["file_path"], len(host.given)) == ("user_settings", str(file), 1)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "Too dear."}}, "Too dear"),
        ({"hookSpecificOutput": {"permissionDecision": "ask"}}, "It gave no reason"),
        ({"decision": "block", "reason": "Not now."}, "Not now"),
        ({"continue": False}, "A hook ended the turn"),
        ({"decision": "odd"}, "its decision 'odd' is unknown"),
        ({"hookSpecificOutput": {"permissionDecision": "allow"}}, ""),
    ],
)
async def test_a_hook_keeps_another_model_from_being_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], why: str
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    given: list[dict[str, Any]] = []

    async def handler(event: dict[str, Any]) -> HookAnswer:
        given.append(event)
        return HookAnswer(objects=(answer,))

    settings = Settings(
        model="openai/one",
        base_url="http://localhost:1/v1",
        modes={Mode.PLAN: ModeSettings(model="openai/planner")},
    )
    row = HookRow(event=HookEvent.PRE_MODEL_SWITCH, handler=handler)
    opening = Opening(workspace=tmp_path / "ws", settings=settings, user_present=True, hooks=(row,))
    async with await open_session(opening) as live:
        feed = live.follow()
        same = ModelChoice(model="openai/one", tool_protocol=ToolProtocol.NATIVE, thinking_budget=2_000)
        await live.post(SetModel(choice=same), ME)
        assert given == []
        if why:
            with pytest.raises(RefusedError) as raised:
                await live.post(SetModel(choice=OTHER), ME)
            assert why in raised.value.why
            assert raised.value.what == f"A hook kept the model {OTHER.model} from being used."
        else:
            await live.post(SetModel(choice=OTHER), Source(kind="sdk"))
        assert live.status.model == ("openai/one" if why else OTHER.model)
        assert (given[0]["from_model"], given[0]["to_model"]) == ("openai/one", OTHER.model)
        assert given[0]["source"] == ("command" if why else "sdk")
        # A mode is never kept from changing, which would keep a person from a stricter one.
        await live.post(SetMode(mode=Mode.PLAN), ME)
        assert live.status.mode is Mode.PLAN
        assert (live.status.model == "openai/planner") is (not why)
        if why:
            notices = (one.text async for one in feed if isinstance(one, Notice))
            assert "A hook kept the model openai/planner from being used." in await anext(notices)


async def test_hooks_learn_what_a_person_who_has_room_made_wants_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    host = Host()
    turns = tuple(Turn(items=(SayText(text=f"Answer {number}. " * 400),)) for number in range(9))
    rows = tuple(
        HookRow(event=event, matcher="manual", handler=host)
        for event in (HookEvent.PRE_COMPACT, HookEvent.POST_COMPACT)
    )
    async with ScriptedServer(Script(turns=turns)) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url)
        opening = Opening(workspace=tmp_path / "ws", settings=settings, user_present=False, hooks=rows)
        session = await open_session(opening)
        feed = session.follow()
        async with session as live:
            for number in range(9):
                await ended(live, feed, f"Question {number}.")
            await live.post(CompactNow(focus="the tests"), ME)
            before, after = await host.until(HookEvent.PRE_COMPACT), await host.until(HookEvent.POST_COMPACT)
    assert (before["trigger"], before["custom_instructions"]) == ("manual", "the tests")
    assert (after["trigger"], "Question 1." in after["compact_summary"]) == ("manual", True)


def test_a_question_is_told_with_its_command_and_without_secrets() -> None:
    def hidden(text: str) -> str:
        return text.replace("hunter2", "[hidden]")

    hooks = SessionHooks((), HookSession(session_id="s1", root="/ws", mode=lambda: Mode.ASK, redact=hidden))
    runs = RunCommand(command="curl -u me:hunter2 example.org", cwd="/ws")
    asked = Question(id="q", kind=QuestionKind.PERMISSION, text="Run", accesses=(runs,))
    assert hooks.question(asked) == "Run curl -u me:[hidden] example.org?"


class Compacting:
    """A session in which older messages leave the prompt."""

    resumed = True
    title = "Long work."
    status = SessionStatus(
        phase=Phase.COMPACTING,
        mode=Mode.ASK,
        model="a/b",
        tool_protocol=ToolProtocol.NATIVE,
        turn_active=True,
    )

    def __init__(self) -> None:
        self.told: list[str] = []

        self.feed = FakeFeed()

    def follow(self) -> Feed:
        question = Question(
            id="q", kind=QuestionKind.ELICITATION, text="every asks: Who?", call_id="1", form={"type": "object"}
        )
        self.feed.tell(PhaseChanged(phase=Phase.COMPACTING))
        self.feed.tell(ContextCompacted(dropped=3, summary="All of it."))
        self.feed.tell(QuestionAsked(question=question))
        return self.feed

    def tell(self, text: str) -> None:
        self.told.append(text)


async def test_hooks_learn_when_older_messages_leave_the_prompt() -> None:
    host, live = Host(), Compacting()
    session = HookSession(session_id="s1", root="/ws", mode=lambda: Mode.ASK)
    hooks = SessionHooks(host.rows(*LOOKING_ON), session, ["One does not run."])
    async with watched_by_hooks(hooks, live):
        before = await host.until(HookEvent.PRE_COMPACT)
        after = await host.until(HookEvent.POST_COMPACT)
        form = await host.until(HookEvent.ELICITATION)
    assert (form["message"], form["mode"], form["requested_schema"]) == ("every asks: Who?", "form", {"type": "object"})
    assert (before["trigger"], after["trigger"], after["compact_summary"]) == ("auto", "auto", "All of it.")
    assert [one["source"] for one in host.given if one["hook_event_name"] == "SessionStart"] == ["resume"]
    assert live.told == ["One does not run."]
    assert live.feed.left
