"""The open questions on one terminal, one after the other: keys answer once the typing has paused."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import assert_never

from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Answer
from treadle.protocol.permissions import QuestionKind
from treadle.tui.asking import Answered, Asking, EditFirst, ShowAll, Stage, amend, ask, back, press, say
from treadle.tui.escape import exact
from treadle.tui.items import Block, FullText, Item, Notice, Problem, Said, Tone
from treadle.tui.outbox import Outbox
from treadle.tui.screen import Focus, Screen
from treadle.tui.view import View
from treadle.tui.words import clip

QUIET_BEFORE_ANSWER = 0.4
"""Seconds without a key before keys answer a question: what was typed ahead still goes to the input line."""

_SHOWN_AMENDED = 200


class Questions:
    """Asks the first open question of `view`; answers go to the outbox, what they show is given to `show`."""

    def __init__(
        self, *, screen: Screen, outbox: Outbox, show: Callable[[Item], None], view: Callable[[], View]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._screen = screen
        self._outbox = outbox
        self._show = show
        self._view = view
        self._asking: Asking | None = None
        self._set_aside: Asking | None = None
        self._arming: asyncio.TimerHandle | None = None
        self._begun = False

    @property
    def asking(self) -> Asking | None:
        """The question that is being asked."""
        return self._asking

    def begin(self) -> None:
        """Ask from now on: questions are on the screen."""
        self._begun = True
        self.follow()

    def follow(self) -> None:
        """Ask the first open question; what asked about another one is over."""
        questions = self._view().questions
        first = questions[0] if questions else None
        if self._asking is not None and (first is None or first.id != self._asking.question.id):
            self._asking = None
            self._screen.focus(Focus.PROMPT)
        if first is not None and self._asking is None and self._arming is None:
            self._arm()

    def touched(self) -> None:
        """A key came: an answer needs a pause first."""
        if self._arming is not None:
            self._arm()

    def press(self, key: str) -> None:
        """Take a key."""
        if self._asking is not None:
            self._take(self._asking, press(self._asking, key))

    def say(self, text: str) -> None:
        """Take a line of words."""
        if self._asking is not None:
            self._take(self._asking, say(self._asking, text))

    def back(self) -> bool:
        """Go back to the keys; says whether there was something to go back from."""
        earlier = None if self._asking is None else back(self._asking)
        if earlier is None:
            return False
        self._ask(earlier)
        return True

    def _arm(self) -> None:
        if self._arming is not None:
            self._arming.cancel()
        self._arming = self._loop.call_later(QUIET_BEFORE_ANSWER, self._armed)

    def _armed(self) -> None:
        self._arming = None
        questions, again = self._view().questions, self._set_aside
        if not questions or not self._begun:
            return
        question = questions[0]
        self._ask(again if again is not None and again.question.id == question.id else ask(question))

    def _ask(self, asking: Asking) -> None:
        self._asking = asking
        self._screen.focus(Focus.KEYS if asking.stage in (Stage.KEYS, Stage.BLOCKS) else Focus.WORDS)

    def _take(self, asking: Asking, answer: Answered) -> None:
        match answer:
            case Asking():
                if answer.stage is Stage.BLOCKS and answer is not asking:
                    self._show(Block(number=len(answer.kept) + 1, count=len(answer.blocks), text=answer.block))
                self._ask(answer)
            case Answer():
                if asking.question.kind is QuestionKind.GUIDANCE:
                    self._show(Said(answer.text))
                self._outbox.put(answer)
            case ShowAll():
                self._show(FullText(asking.question, self._view().roots))
            case EditFirst(text=text):
                self._screen.edit(text, ".txt", done=partial(self._edited, asking, answer), failed=self._not_edited)
            case _:
                assert_never(answer)

    def _edited(self, asking: Asking, wanted: EditFirst, text: str) -> None:
        """Approve the call with the text as it is now; without a change nothing is approved."""
        if self._asking is None or self._asking.question.id != asking.question.id:
            self._show(Notice("The question is over; your change was not used.", Tone.WARNING))
        elif text == wanted.text or not text.strip():
            self._show(Notice("Nothing was changed; the question is still open."))
            self._ask_again(asking)
        else:
            self._show(Notice(f"Approved with this {wanted.name}: {exact(clip(text, _SHOWN_AMENDED))}"))
            self._outbox.put(amend(asking, wanted.name, text))

    def _not_edited(self, error: ConfigError) -> None:
        self._show(Problem(error.what, error.why, error.fix))
        if self._asking is not None:
            self._ask_again(self._asking)

    def _ask_again(self, asking: Asking) -> None:
        """Wait for a pause again: keys that were meant for the editor answer nothing."""
        self._set_aside = asking
        self._asking = None
        self._screen.focus(Focus.PROMPT)
        self.follow()
