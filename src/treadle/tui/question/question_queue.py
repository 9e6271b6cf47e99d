"""The open questions on one terminal, one after the other: brings keys and time to the dialog, and its answers away."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import assert_never

from treadle.present.answer_rows import EditFirst
from treadle.present.items import NoteItem, ProblemItem
from treadle.present.view import SessionView
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import SetMode
from treadle.protocol.permissions import Mode, Question
from treadle.tui.intents import Focus
from treadle.tui.question.asked import GivenAnswer, ShowWhole, change
from treadle.tui.question.dialog import (
    Dialog,
    DialogEffect,
    NextMode,
    Open,
    Pass,
    Press,
    StopTurn,
    ToDraft,
    closed,
    due,
    moment,
    opened,
    press,
    question_changed,
    touched,
)
from treadle.tui.screen import Screen
from treadle.tui.session.entered_lines import next_mode
from treadle.tui.session.outbox import Outbox


class Questions:
    """Asks the first open question of `view`; answers go to the outbox, what they show is given to `show`.

    While the person is `busy`, with a draft or a list to choose from, a question takes no keys by itself.
    """

    def __init__(
        self,
        *,
        screen: Screen,
        outbox: Outbox,
        show: Callable[..., None],
        view: Callable[[], SessionView],
        stop: Callable[[], None],
        show_whole: Callable[[], None],
        busy: Callable[[], bool],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._screen = screen
        self._outbox = outbox
        self._show = show
        self._view = view
        self._stop = stop
        self._show_whole = show_whole
        self._busy = busy
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        self.dialog = self._shown = Dialog()

    def begin(self) -> None:
        """Ask from now on: questions are on the screen."""
        self._begun = True
        self.follow()

    def follow(self) -> None:
        """Ask the first open question; what was asked about another one is over."""
        questions = self._view().questions if self._begun else ()
        first = questions[0] if questions else None
        asking = self.dialog.asking
        if first is not None and (asking is None or asking.question.id != first.id):
            self._leave_field()
            now = self._loop.time()
            self.dialog = opened(self.dialog, first, self._view().mode, now, draft=self._busy())
        elif first is None and asking is not None:
            self._leave_field()
            self.dialog = closed(self.dialog)
        self._sync()

    def touched(self) -> None:
        """A key came, for whomever."""
        self.dialog = touched(self.dialog, self._loop.time())
        self._sync()

    def press(self, pressed: Press) -> None:
        """Take a key while the question has them, or Tab."""
        before = self.dialog
        self.dialog, effects = press(before, pressed, self._loop.time())
        if before.in_field and not self.dialog.in_field:
            self._screen.words = ""
        elif self.dialog.in_field and not before.in_field and self.dialog.asking is not None:
            self._screen.words = self.dialog.asking.comment
        for effect in effects:
            self._do(effect)
        self._sync()

    def _leave_field(self) -> None:
        """Give what was being written for a question that is over to the draft: nothing typed is lost."""
        if self.dialog.in_field and self._screen.words.strip():
            draft, words = self._screen.text, self._screen.draft.pieces.embed(self._screen.words)
            self._screen.put(f"{draft}\n{words}" if draft.strip() else words)
        self._screen.words = ""

    def _sync(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = due(self.dialog)
        if at is not None:
            self._timer = self._loop.call_at(at, self._moment)
        dialog = self.dialog
        if dialog is not self._shown:
            self._shown = dialog
            self._screen.refresh_now()
        self._screen.focus(Focus.WORDS if dialog.in_field else Focus.KEYS if dialog.in_list else Focus.PROMPT)

    def _moment(self) -> None:
        self._timer = None
        self.dialog = moment(self.dialog, self._loop.time(), draft=self._busy())
        self._sync()

    def _do(self, effect: DialogEffect) -> None:
        match effect:
            case GivenAnswer():
                self._give(effect)
            case ShowWhole():
                self._show_whole()
            case ToDraft(text=text):
                self._screen.insert(text)
            case Pass():
                self._screen.pass_on()
            case NextMode():
                self._outbox.put(SetMode(mode=next_mode(self._view().mode)))
            case StopTurn():
                self._stop()
            case Open(wanted=wanted):
                self._edit(wanted)
            case _:
                assert_never(effect)

    def _give(self, given: GivenAnswer) -> None:
        asking = self.dialog.asking
        if asking is None:
            return
        self._screen.words = ""
        if given.edits:
            self._outbox.put(SetMode(mode=Mode.EDITS))
        self._outbox.put(given.answer)

    def _edit(self, wanted: EditFirst) -> None:
        question = self.dialog.asking.question if self.dialog.asking is not None else None
        if question is not None:
            edited = partial(self._edited, question, wanted)
            self._screen.edit(wanted.text, ".txt", done=edited, failed=self._not_edited)

    def _edited(self, question: Question, wanted: EditFirst, text: str) -> None:
        """Ask about the call with the text as it is now; saving it answers nothing."""
        asking = self.dialog.asking
        if asking is None or asking.question.id != question.id:
            self._show(NoteItem("The question is over. Your change was not used.", warns=True))
            return
        if text == wanted.text or not text.strip():
            self._show(NoteItem("Nothing was changed. The question is still open."))
        else:
            asking = change(asking, wanted.name, text)
        self.dialog = question_changed(self.dialog, asking, self._loop.time())
        self._sync()

    def _not_edited(self, error: ConfigError) -> None:
        self._show(ProblemItem(error.what, error.why, error.fix))
