"""A session that the page shows, as long as it is open."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

from treadle.door.open_session import (
    LiveSession,
    Reach,
    RemoteSession,
    SessionClient,
    answer_effect,
    mode_effect,
    op_effect,
)
from treadle.door.trust import SessionTrust
from treadle.present.items import Item, Placed
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import ConfigError, RefusedError
from treadle.protocol.events import Answer, Interrupt, Op, SetMode, Source
from treadle.protocol.notifications import (
    CallDelta,
    CallOutput,
    TextDelta,
    ThinkingDelta,
)
from treadle.protocol.permissions import Mode, Question
from treadle.web.closing import SessionUse, until_turn_ended
from treadle.web.once import Once
from treadle.web.page_keys import Visitor
from treadle.web.page_view import PageContent, page_content
from treadle.web.person_commands import PageCommands
from treadle.web.question_cards import question_html
from treadle.web.rights import may, require
from treadle.web.seen_jobs import look_at_jobs
from treadle.web.signals import Signal

"""Requests of browsers that are remembered, in case they come a second time."""

_NARROWEST = next(iter(Mode))

KIND = "web"


class PageSession:
    """A session that is open, here or elsewhere, and its page.

    `changed` tells of whatever is new on it, `moved` of all but the pieces of a text that is written. `hears` is
    told what the session tells, with its id and its model. That of an `agent` works for another session, which puts
    its questions.
    """

    def __init__(
        self,
        session: LiveSession | RemoteSession,
        own_mode: Callable[[SessionTrust], Mode],
        hears: Callable[[str, str, Stamped], None] | None = None,
        *,
        agent: bool = False,
    ) -> None:
        self.session = session
        self.agent = agent
        self._hears = hears
        self._own_mode = own_mode
        self._known_mode = _NARROWEST  # the user's own, as far as it is known
        self.own = isinstance(session, LiveSession)
        self.changed, self.moved = Signal(), Signal()
        self.content = PageContent(str(session.workspace), session=session.id)
        self._early: list[Stamped] | None = []
        self.commands = PageCommands(lambda: self.session.own_shell, self._show)
        self.once = Once()
        self._cards: dict[tuple[str, Mode, Mode, bool, str], str] = {}
        self.client = SessionClient(session, Source(kind=KIND, id="page"), self._hear)
        self.use = SessionUse(session, self._waits) if isinstance(session, LiveSession) else None

    async def open(self) -> None:
        """Enter the session, and take what was before."""
        await self.client.__aenter__()
        session = self.session
        live = () if self.own else session.opening
        content = await asyncio.to_thread(
            page_content, str(session.workspace), session.status.model, session.past, live, session=session.id
        )
        for stamped in self._early or ():
            content.take(stamped)
        self.content, self._early = content, None
        await self._read_mode()

    async def _read_mode(self) -> None:
        self._known_mode = _NARROWEST  # of settings that cannot be read
        with suppress(ConfigError):
            self._known_mode = await asyncio.to_thread(self._own_mode, self.session.trust)

    async def stop(self, visitor: Visitor) -> None:
        """Stop the work that goes on as a person does, and wait for its end; what waits to be sent is held."""
        status = self.session.status
        if not (status.turn_active or status.checking):
            return
        with suppress(RefusedError):
            await self.post(Interrupt(hold=True), visitor)
        await until_turn_ended(self.session)

    async def follow_jobs(self) -> None:
        """Have the conversation show how what runs in the background goes on, where somebody looks at it."""
        looks = self.changed.heard.is_set() and self.content.has_jobs
        if looks and self.content.know_jobs(await asyncio.to_thread(look_at_jobs, self.session.id)):
            self.changed.set()

    async def close(self) -> None:
        """Leave it; one of this process ends, and can be resumed."""
        await self.commands.close()
        await self.client.__aexit__(None, None, None)

    def has_prompt(self, prompt_id: str) -> bool:
        """Whether a prompt with this id is here already."""
        status = self.session.status
        return prompt_id in self.content.delivered or any(one.id == prompt_id for one in (*status.queue, *status.held))

    def touch(self) -> None:
        """Note that somebody needs it now."""
        if self.use is not None:
            self.use.touch()

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Keep it open as long as this is entered."""
        if self.use is None:
            yield
            return
        self.use.lookers += 1
        try:
            yield
        finally:
            self.use.lookers -= 1
            self.use.touch()

    def _waits(self) -> bool:
        """Whether a command of the person's own runs, or what it printed goes along with the next message."""
        return self.commands.busy

    async def post(self, op: Op, who: Visitor) -> None:
        """Ask for something as a browser that may; raises `RefusedError`, `ConfigError` or `HTTPException`."""
        if isinstance(op, SetMode):
            await self._read_mode()
        require(who, self._effect(op))
        await self.client.post(op, name=who.name)

    def refused(self, op: Op, who: Visitor) -> Reach | None:
        """Give the effect of an op that a browser may not have; None where it may ask for it."""
        effect = self._effect(op)
        return None if may(who, effect) else effect

    def modes(self, who: Visitor) -> Sequence[Mode]:
        """List the modes that a browser may go to."""
        return [mode for mode in Mode if self.refused(SetMode(mode=mode), who) is None]

    def _effect(self, op: Op) -> Reach:
        match op:
            case SetMode(mode=mode):
                return mode_effect(mode, self._known_mode, self.session.status.mode)
            case Answer(question_id=wanted):
                asked = next((one for one in self.questions if one.id == wanted), None)
                heard = any(one.id == wanted for one in self.content.view.questions)  # and so all that came before it
                return answer_effect(op, asked, raised=self.content.raised or not heard)
            case _:
                return op_effect(op)

    @property
    def questions(self) -> Sequence[Question]:
        """What waits for a person here."""
        return () if self.agent else self.session.status.questions

    @property
    def behind(self) -> bool:
        """Whether it missed so much that it is to be made anew."""
        return isinstance(self.session, RemoteSession) and self.session.behind

    @property
    def roots(self) -> Sequence[str]:
        """The folders that it works in, the first one first."""
        return (str(self.session.workspace), *self.session.roots)

    def cards(self, who: Visitor, *, apart: bool = False) -> list[tuple[str, str]]:
        """Give the ids of the questions, each with the card that a browser gets: with the answers that it may give.

        Those that stand `apart` from the conversation have the model's words above the call, too. One is drawn once
        for each mode and kind of browser.
        """
        mode, found = self.session.status.mode, self.questions
        known, ids = self._cards, {question.id for question in found}
        self._cards = {key: html for key, html in known.items() if key[0] in ids}
        cards = []
        for question in found:
            said = self.content.words_before(question.call_id) if apart and not question.child else ""
            key = (question.id, mode, self._known_mode, who.here, said)
            if key not in self._cards:
                self._cards[key] = question_html(
                    self.session.id, question, self.roots, mode, refused=partial(self.refused, who=who), said=said
                )
            cards.append((question.id, self._cards[key]))
        return cards

    def _show(self, item: Item, place: Placed | None) -> Placed:
        placed = self.content.show(item, place)
        self.changed.set()
        return placed

    def _hear(self, stamped: Stamped) -> None:
        if self._hears is not None:
            self._hears(self.session.id, self.session.status.model, stamped)
        if self._early is not None:
            self._early.append(stamped)  # after what was before, which is still read
            return
        self.content.take(stamped)
        self.changed.set()
        if not isinstance(stamped.notification, TextDelta | ThinkingDelta | CallDelta | CallOutput):
            self.moved.set()
