"""Every place that shows what a session cost and changed shows the same, and what is so: live, resumed, closed."""

import asyncio
import random
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.app.rehearsal import call, run
from tests.rehearsal.bills import count_tokens
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.points import Points
from treadle.app.compose import Opening, open_session, session_log
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.history.offline import restore_closed
from treadle.app.reports.known_sessions import listed_in
from treadle.app.reports.session_review import open_review
from treadle.app.reports.session_text import session_past
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.app.slash import do_command
from treadle.present.fold import fold_notification
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.checkpoints import Restore
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol, money
from treadle.protocol.notifications import FilesRestored, QuestionAsked, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.tui.session.greeting import kept_line

SAMPLE, ALL = 2, 200
PATIENCE = 60.0
ME = Source(kind="test")
MODEL = "anthropic-compatible/scripted"
PRICES = {
    "priced": ModelSettings(context_window=200_000, input_price=3.0, output_price=15.0),
    "free": ModelSettings(context_window=200_000),
}
Content: TypeAlias = dict[str, tuple[str, ...]]


def files_of(folder: Path) -> Content:
    """The lines of each file; no line stands in two files or twice in one."""
    return {file.name: tuple(file.read_text().splitlines()) for file in sorted(folder.iterdir()) if file.is_file()}


def amount(before: Content, after: Content) -> tuple[int, int]:
    """How many lines came and went."""
    came = gone = 0
    for name in before.keys() | after.keys():
        old, new = set(before.get(name, ())), set(after.get(name, ()))
        came, gone = came + len(new - old), gone + len(old - new)
    return came, gone


@dataclass
class Figured:
    """A session that is opened again and again, and what is compared after each step. All is drawn from `chance`."""

    folder: Path
    chance: random.Random
    prices: ModelSettings
    began: Content
    id: str = ""
    costs: list[float] = field(default_factory=list)
    compared: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def calls(self) -> list[MakeCall]:
        """Some edits and commands that change files."""
        return [self._call() for _ in range(self.chance.randint(1, 3))]

    def _call(self) -> MakeCall:
        name, number = f"{self.chance.choice('abcd')}.txt", next(self.numbers)
        lines = [f"{number} {line}" for line in range(self.chance.randint(1, 4))]
        match self.chance.choice(("write", "append", "command", "remove")):
            case "write":
                return call("write_to_file", path=f"new{number}.txt", content="".join(f"{line}\n" for line in lines))
            case "append":
                return run(f"echo '{lines[0]}' >> {name}")
            case "command":
                return run(f"printf '%s\\n' {shlex.join(lines)} > {name}")
            case _:
                return run(f"rm -f {name}")

    @asynccontextmanager
    async def opened(self, calls: list[MakeCall]) -> AsyncIterator["Open"]:
        """Open the session, with a model that makes these calls and ends."""
        done = call("attempt_completion", result="Done.")
        script = Script(turns=tuple(Turn(items=(one,)) for one in (*calls, done)))
        async with ScriptedServer(script, tokens=count_tokens) as server:
            settings = Settings(
                model=MODEL,
                base_url=server.base_url,
                mode=Mode.ASK,
                tool_protocol=ToolProtocol.NATIVE,
                models={MODEL: self.prices},
            )
            opening = Opening(
                workspace=self.folder,
                settings=settings,
                user_present=True,
                trust=session_trust(self.folder, once=True),
                resume=self.id,
            )
            async with await open_session(opening) as live:
                self.id = live.id
                view = SessionView()
                for one in live.past:
                    view = fold_notification(view, one)[0]
                async with live.follow() as feed:
                    opened = Open(self, live, view, aiter(feed.stamped()))
                    if live.past:
                        await self.check(opened)
                    yield opened

    async def check(self, opened: "Open | None" = None) -> None:
        """Compare every place with the folder and the bill; `opened` is the session where it is open."""
        expected, cost = amount(self.began, files_of(self.folder)), sum(self.costs)
        with session_log(self.id) as (row, store):
            (listed,) = listed_in(store, [row])
            review = open_review(store, row)
        told = SessionView()
        for one in session_past(self.id)[1]:
            told = fold_notification(told, one)[0]
        changed = {"list": (listed.added, listed.removed), "told again": (told.added, told.removed)}
        words = {"list": listed.spending.words, "told again": told.spending.words}
        if review is not None:
            with closing(review):
                own = [one for one in review.files if one.own]
            changed["review"] = sum(one.added for one in own), sum(one.removed for one in own)
        if opened is not None:
            changed["live"] = opened.view.added, opened.view.removed
            words["live"] = opened.view.spending.words
            words["page"] = opened.view.spending.words
            status = (await asyncio.to_thread(do_command, "status", "", opened.live)).text
            spent = (await asyncio.to_thread(do_command, "cost", "", opened.live)).text
            lines = f"+{expected[0]} -{expected[1]}" if any(expected) else ""
            assert status.endswith(f"\nchanged  {lines or 'no'} lines")
            words["status"] = status.partition("\ncost     ")[2].partition("\n")[0]
            words["cost"] = spent.partition("so far: ")[2].partition(", ")[0]
            kept = kept_line(opened.live.title, opened.view, 1).partition(" · 1 turn · ")[2]
            assert kept == " · ".join(filter(None, (lines, money(cost))))
        assert changed == dict.fromkeys(changed, expected)
        assert words == dict.fromkeys(words, money(cost))
        self.compared += 1


@dataclass
class Open:
    """The session while it is open, as a terminal sees it."""

    figured: Figured
    live: LiveSession
    view: SessionView
    feed: AsyncIterator[Stamped]

    async def turn(self, number: int) -> None:
        """Have a turn worked at; some of its calls are denied."""
        before, chance = files_of(self.figured.folder), self.figured.chance
        await self.live.post(Prompt(id=f"p{number}", content=(Text(text=f"Work {number}."),)), ME)
        ended = await self._until(TurnEnded)
        assert isinstance(ended, TurnEnded)
        outcome = ended.outcome
        assert outcome.cost is not None
        self.figured.costs.append(outcome.cost)
        assert outcome.exact or not outcome.changes, chance
        sums = sum(one.added for one in outcome.changes), sum(one.removed for one in outcome.changes)
        assert sums == amount(before, files_of(self.figured.folder))
        await self.figured.check(self)

    async def go_back(self, command: str) -> None:
        """Undo the last turn, or rewind to a message."""
        argument = "" if command == "undo" else "1"
        answer = await asyncio.to_thread(do_command, command, argument, self.live)
        for op in answer.ops:
            await self.live.post(op, ME)
            await self._until(FilesRestored)
        await self.figured.check(self)

    async def _until(self, kind: type[TurnEnded | FilesRestored]) -> object:
        async with asyncio.timeout(PATIENCE):
            async for one in self.feed:
                self.view = fold_notification(self.view, one)[0]
                match one.notification:
                    case QuestionAsked(question=question):
                        chosen = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
                        option = self.figured.chance.choices(chosen, (4, 1))[0]
                        await self.live.post(Answer(question_id=question.id, option=option), ME)
                    case TurnEnded() | FilesRestored() as found if isinstance(found, kind):
                        return found
                    case _:
                        pass
        raise AssertionError("the session ended")


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.soak if n >= SAMPLE else ()) for n in range(ALL)])
async def test_every_place_shows_the_same_money_and_changes_and_they_are_so(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = (tmp_path / "ws").resolve()
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"{name} one\n{name} two\n")
    chance = random.Random(seed)
    figured = Figured(folder, chance, PRICES[chance.choice(["free", "priced", "priced"])], files_of(folder))
    for number in range(3):
        async with figured.opened(figured.calls()) as opened:
            await opened.turn(number)
            if chance.random() < 0.6:
                await opened.go_back(chance.choice(("undo", "rewind")))
        await figured.check()
        if chance.random() < 0.5:
            with session_log(figured.id) as (row, store):
                taken = len(Points(store, row.id).checkpoints)
                if taken:
                    wanted = Restore(
                        checkpoint=chance.randint(1, taken), files=True, conversation=chance.random() < 0.5
                    )
                    await restore_closed(store, row.id, opened_checkpoints(store, row), wanted)
            await figured.check()
    assert figured.compared >= 6
