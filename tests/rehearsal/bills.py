"""Interrupts at random moments of real sessions over HTTP: what they report as cost, and what the server counted."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.rehearsal.sessions import KEY, PATHS, TEST, WIRE_APIS, events_of
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, ProviderSettings, Settings
from treadle.app.models.model_choice import Models
from treadle.app.reports.usage_sums import UsageReader
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.live import LiveSession
from treadle.engine.runtime.model_requests import cost
from treadle.protocol.errors import RefusedError
from treadle.protocol.events import Interrupt, Prompt
from treadle.protocol.messages import Text
from treadle.protocol.models import ErrorKind
from treadle.protocol.notifications import Notification, TurnEnded, TurnOutcome, TurnStop
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import BreakOff, MakeCall, Pace, SayText, SayThinking, Script, ScriptItem, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.trusted_folders import Trust, TrustState

WITHIN = 0.10
"""How far a reported cost may be from the one that was billed."""

_TOKEN = re.compile(r"[A-Za-z]{1,6}|\d{1,3}|[^\sA-Za-z\d]{1,3}|\n+")
"""Gives 4.8 characters of English to a token and 3.6 of JSON, as usual tokenizers do."""

_WORDS = (
    *("the", "parser", "reads", "a", "file", "and", "returns", "its", "tree", "while", "another", "function"),
    *("checks", "whether", "every", "name", "is", "known", "here", "before", "it", "writes", "results", "into"),
    *("the", "table", "of", "symbols", "because", "later", "passes", "depend", "on", "them"),
)
_MOST = 150
"""Notifications after which an interrupt comes at the latest."""


@dataclass(frozen=True, slots=True)
class BilledSession:
    """One session: what it reported, and what was billed (US dollars)."""

    seed: str
    wire: str
    reported: float | None
    estimated: bool
    billed: float
    cut: bool
    outcome: TurnOutcome

    @property
    def off(self) -> float:
        """How far the report is from the bill, as a part of that."""
        if self.reported is None:
            return 1.0
        return abs(self.reported - self.billed) / self.billed if self.billed else self.reported

    @property
    def trouble(self) -> str:
        """Say what is wrong with the report; empty where nothing is."""
        if self.reported is None:
            return f"{self.seed} {self.wire}: the cost is unknown, the bill is {self.billed:.6f}"
        if self.off > WITHIN:
            return f"{self.seed} {self.wire}: {self.reported:.6f} was reported, {self.billed:.6f} billed"
        interrupted = self.outcome.stop is TurnStop.CANCELLED  # maybe when all was sent, but nobody had read it yet
        if (self.cut and not self.estimated) or (self.estimated and not (self.cut or interrupted)):
            return f"{self.seed} {self.wire}: estimated is {self.estimated}, a reply was cut: {self.cut}"
        if self.outcome.cost is None or abs(self.outcome.cost - self.reported) > 1e-9:
            return f"{self.seed} {self.wire}: the turn says {self.outcome.cost}, the log {self.reported}"
        return ""


def count_tokens(text: str) -> int:
    """Count as a usual tokenizer does, roughly: short words and marks are one token each."""
    return len(_TOKEN.findall(text))


def _words(chance: Random, count: int) -> str:
    return " ".join(chance.choices(_WORDS, k=count))


def _script(chance: Random) -> Script:
    """A turn of some steps: the model thinks, says something, reads; now and then a reply breaks in the middle."""
    turns = []
    for number in range(chance.randint(0, 3)):
        items: list[ScriptItem] = [
            SayThinking(text=_words(chance, chance.randint(5, 80)), signature="s"),
            SayText(text=_words(chance, chance.randint(5, 80))),
        ]
        if chance.random() < 0.2:
            items.append(BreakOff(kind=ErrorKind.OVERLOADED, times=1))
        turns.append(Turn(items=(*items, MakeCall(name="read_file", arguments={"path": f"part{number}.txt"}))))
    turns.append(Turn(items=(SayThinking(text=_words(chance, 150), signature="s"), SayText(text=_words(chance, 400)))))
    return Script(turns=tuple(turns), pace=Pace(chunk=40, delay=0.004))


async def billed_session(seed: str, folder: Path) -> BilledSession:
    """Run one session over a random wire API and interrupt it at a random moment."""
    chance = Random(seed)
    wire = chance.choice([*PATHS])
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"part{number}.txt").write_text("\n".join(_words(chance, 12) for _ in range(60)))
    async with ScriptedServer(_script(chance), tokens=count_tokens) as server:
        assert server.billing is not None
        said = _settings(wire, server.base_url, f"billed-{seed}")
        trust = SessionTrust(trust=Trust(workspace=folder, state=TrustState.TRUSTED, items=()))
        live = await open_session(Opening(workspace=folder, settings=said, user_present=False, trust=trust))
        feed = live.follow()
        async with live:
            await live.post(Prompt(id="task", content=(Text(text="Please read the parts."),)), TEST)
            async with asyncio.timeout(60):
                outcome = await _interrupted(live, feed, chance)
        while len(server.billing.bills) < sum(one.method == "POST" for one in server.requests):
            await asyncio.sleep(0.002)
        reader = UsageReader()
        for event in events_of(live.id):
            reader.take(event)
        spending = reader.logged().spending
        price = partial(cost, Models(said).spec(said.model))
        bills = server.billing.bills
    return BilledSession(
        seed=seed,
        wire=wire,
        reported=None if spending.unpriced else spending.total,
        estimated=spending.estimated,
        billed=sum(price(one.usage) or 0.0 for one in bills),
        cut=any(not one.whole for one in bills),
        outcome=outcome,
    )


def _settings(wire: str, base_url: str, name: str) -> Settings:
    ref = f"rehearsal/{name}"
    place = ProviderSettings(base_url=base_url + PATHS[wire], wire_api=WIRE_APIS[wire], api_key_env=KEY)
    prices = ModelSettings(context_window=200_000, input_price=3.0, output_price=15.0)
    return Settings(model=ref, mode=Mode.FULL, providers={"rehearsal": place}, models={ref: prices})


async def _interrupted(live: LiveSession, feed: AsyncIterator[Notification], chance: Random) -> TurnOutcome:
    """Interrupt the turn once so many things have happened, or before; gives how it ended."""
    left = chance.randrange(_MOST)
    async for item in feed:
        if isinstance(item, TurnEnded):
            return item.outcome
        if left == 0:
            await asyncio.sleep(chance.random() * 0.003)
            with suppress(RefusedError):
                await live.post(Interrupt(), TEST)
        left -= 1
    raise RuntimeError("the session ended before its turn")


async def billed_sessions(seed: int, count: int, folder: Path) -> list[BilledSession]:
    """Interrupt sessions, one after the other."""
    return [await billed_session(f"{seed}-{number}", folder / str(number)) for number in range(count)]
