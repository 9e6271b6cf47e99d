"""The terminal surface: what happens is printed and drawn, intents become ops."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace
from prompt_toolkit.history import History

from treadle.door.open_session import SessionAccess
from treadle.door.opening import branch_of
from treadle.present.items import NoteItem, ProblemItem
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import RefusedError, TreadleError
from treadle.protocol.events import Answer, EditQueued, Interrupt, MoveQueued, Op, Prompt, SetMode
from treadle.protocol.notifications import (
    CallChanged,
    ContextCompacted,
    ConversationRewound,
    MessageDone,
    ModeChanged,
    ModelChanged,
    QuestionAsked,
    QuestionClosed,
    TextDelta,
    TurnEnded,
)
from treadle.tui.draft.input_line import InputLine
from treadle.tui.intents import Entered, Face, Intent, Pasted, Picked, Pressed, Tabbed, Wish
from treadle.tui.lists.filter_list import Pick
from treadle.tui.lists.open_list import Lists
from treadle.tui.paint.hyperlinks import FileLinks
from treadle.tui.paint.lines import fragments
from treadle.tui.paint.look import Look
from treadle.tui.paint.pager_pages import question_pager, session_pager
from treadle.tui.paint.printed_items import PrintedItem
from treadle.tui.paint.scrollback import open_scrollback
from treadle.tui.question.dialog import Key, Press
from treadle.tui.question.low_window import QuestionRows
from treadle.tui.question.question_lines import question_lines, waiting_line
from treadle.tui.question.question_queue import Questions
from treadle.tui.screen import Screen
from treadle.tui.session.attention import call_for_attention, show_state
from treadle.tui.session.bottom import FRAMES_PER_SECOND, BottomState, above_rule, clock_runs, placeholder, rule, status
from treadle.tui.session.entered_lines import mode_words, next_mode
from treadle.tui.session.greeting import first_items, kept_line
from treadle.tui.session.moments import Moments
from treadle.tui.session.outbox import Outbox
from treadle.tui.session.own_commands import OwnCommands
from treadle.tui.session.person_requests import Requests
from treadle.tui.session.printing import Printing
from treadle.tui.session.slash import SlashCommands
from treadle.tui.session.status_line import StatusLine
from treadle.tui.windows import ROWS_IN_SIGHT

if TYPE_CHECKING:
    from treadle.tui.paint.painter import Painter

_METERED = (MessageDone, ModelChanged, ContextCompacted, ConversationRewound, TurnEnded)
"""After these the context may have another size."""

_SCREENS = 3
"""Screens full of what happened before that are printed when a session is taken up."""


class Surface:
    """One session on one terminal; `switch` takes the session that is to be opened in the place of this one."""

    def __init__(
        self, live: SessionAccess, history: History, look: Look, switch: Callable[[str], None] | None = None
    ) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._scrollback, self._past = open_scrollback(live)
        self._roots = (str(live.workspace), *live.roots)
        self._context = live.status.tokens, live.status.window
        self._animated = look.animated
        self._branch = branch_of(live.workspace)
        self.outbox = Outbox(live, refused=self._refused, failed=self._failed)
        self._laid, self._turns = QuestionRows(above=[]), 0
        self.ticking = asyncio.Event()
        self.screen = Screen(
            face=self._face,
            act=self.act,
            can=self._can,
            touched=lambda: self._questions.touched(),  # noqa: PLW0108 - built below
            typed=lambda by_hand: self._lists.typed(by_hand),  # noqa: PLW0108
            history=history,
            look=look,
        )
        self._moments = Moments(self.screen.refresh)
        self.own = OwnCommands(live.own_shell, show=self.show, changed=self._own_changed)
        self.requests = Requests(self.outbox, lambda: self._view, self.screen.draft.pieces, self.own)
        self._input = InputLine(live, screen=self.screen, own=self.own, show=self.show, failed=self._failed)
        self._questions = Questions(
            screen=self.screen,
            outbox=self.outbox,
            show=self.show,
            view=lambda: self._view,
            stop=self._stop,
            show_whole=self._show_whole_question,
            busy=lambda: self.screen.busy or self._lists.pickers.open,
        )
        self._lists = Lists(
            live,
            screen=self.screen,
            outbox=self.outbox,
            show=self.show,
            view=lambda: self._view,
            failed=self._failed,
            switch=switch,
        )
        links = FileLinks(str(live.workspace)) if look.links else None
        self._printing = Printing(self._lists.aside, links, self.screen.refresh_now)
        self.commands = self._slash_commands(switch)
        self.status_line = StatusLine(
            look.status_line, live, lambda: (self._view, self._context), refresh=self.screen.refresh, show=self.show
        )

    def _slash_commands(self, switch: Callable[[str], None] | None) -> SlashCommands:
        return SlashCommands(
            self._live,
            screen=self.screen,
            outbox=self.outbox,
            requests=self.requests,
            pickers=self._lists.pickers,
            aside=self._lists.aside,
            show=self.show,
            view=lambda: self._view,
            failed=self._failed,
            switch=switch,
        )

    @property
    def _view(self) -> SessionView:
        return self._scrollback.view

    # What comes from the session

    def start_painting(self, painter: "type[Painter]") -> None:
        """Print the beginning and what has waited for the painter, and ask what is open."""
        self._printing.painter = painter
        columns, rows = self.screen.size
        past = painter(columns, self.screen.theme).last_of(self._past, rows * _SCREENS)
        begin = first_items(self._live, self._view, self._branch, left_out=len(self._past) - len(past))
        self._printing.held[:0] = [*begin, *past]
        self._past = []
        self.show()
        self._questions.begin()
        show_state(self.screen, self._view, self._turns, self._live.workspace.name)

    def hear(self, stamped: Stamped) -> None:
        """Take a notification."""
        before, notification = self._view, stamped.notification
        if isinstance(notification, QuestionClosed):
            self._say_for_a_moment(self._scrollback.answered_elsewhere(notification))
        items = self._scrollback.take(stamped)
        if isinstance(notification, _METERED):
            self._context = self._live.status.tokens, self._live.status.window
        self.commands.hear(notification)
        self.status_line.changed()
        if isinstance(notification, ModeChanged):
            self._say_for_a_moment(mode_words(notification.mode))
        if self._view.checklist != before.checklist:
            self._moments.unfold()
        if isinstance(notification, TurnEnded):
            self._turns += 1
            self._lists.files.grow_old()
            self._branch = branch_of(self._live.workspace)
        if isinstance(notification, CallChanged | TurnEnded):
            self._printing.files_changed()
        if isinstance(notification, QuestionAsked | TurnEnded):
            call_for_attention(self.screen, notification, before, time.time())
        self._printing.held += self.requests.as_written(items)
        if self._printing.held and not isinstance(notification, TextDelta):
            self.screen.refresh_now()
        self._questions.follow()
        show_state(self.screen, self._view, self._turns, self._live.workspace.name)
        self._own_changed()

    def _own_changed(self) -> None:
        if clock_runs(self._view) or self.own.active:
            self.ticking.set()
        else:
            self.ticking.clear()
        self.screen.refresh()

    def show(self, *items: PrintedItem) -> None:
        """Print items into the scrollback, as soon as they can be painted."""
        self._printing.held += items
        self.screen.refresh_now()

    def finish(self, *, kept: bool) -> str:
        """Give what is printed last: what was held back, and what the session was where it is `kept`."""
        self._printing.held += self._scrollback.rest()
        if self._turns and kept:
            self._printing.held.append(NoteItem(kept_line(self._live.title, self._view, self._turns)))
        return self._printing.text(self.screen.columns, self.screen.theme, at_once=True)

    @property
    def tick_pause(self) -> float:
        """Seconds between two pictures of what moves."""
        return 1 / FRAMES_PER_SECOND if self._animated else 1.0

    # What is drawn

    def _face(self, columns: int, rows: int) -> Face:
        now, signs = time.time(), self.screen.theme.signs
        around = self._around(now)
        below = [*self.own.rows(self._loop.time(), columns, signs), *above_rule(self._view, around, columns, signs)]
        menu = self._lists.rows(columns, rows - len(below), signs, vim=bool(self.screen.draft.vim_mode))
        own = self.status_line.rows(columns, self.screen.theme)
        rows -= len(below) + len(menu) + len(own)
        asked = self._laid = self._asked(columns, rows)
        rows = 0 if asked.alone else rows - len(asked.above) - len(asked.under)
        above, moving = self._printing.text(columns, self.screen.theme), self._scrollback.unprinted
        living = self._printing.living(columns, self.screen.theme, moving, rows=rows, now=now, blinks=self._animated)
        return Face(
            above=above,
            living=living.split("\n") if living else (),
            question=fragments(asked.above),
            field=fragments([asked.field]),
            under=fragments(asked.under),
            alone=asked.alone,
            words=asked.words,
            panel=below,
            rule=rule(self._view, columns, signs),
            placeholder=placeholder(self._view, around, columns),
            menu=fragments(menu),
            toolbar=[status(self._view, around, columns, signs), *own],
        )

    def _around(self, now: float) -> BottomState:
        moves = self._animated and clock_runs(self._view)
        tokens, window = self._context
        return BottomState(
            now=now,
            tokens=tokens,
            window=window,
            branch=self._branch,
            shown=self.requests.shown,
            held=self.requests.held,
            left=self._scrollback.just_left,
            unfolded=self._moments.unfolded and bool(self._view.checklist),
            frame=int(now * FRAMES_PER_SECOND) if moves else -1,
            editing=self.screen.draft.vim_mode,
            hint=self._hint(),
            flash=self._moments.note,
        )

    def _hint(self) -> str:
        if again := self._moments.again(draft=bool(self.screen.text)):
            return again
        if self._view.questions:
            return "" if self._questions.dialog.focused else "tab to answer"
        usual = "↓ subagents" if self._can(Wish.SUBAGENTS) else "? for keys"
        return self.screen.draft.hint or ("esc to stop" if self.own.active else usual)

    def _asked(self, columns: int, rows: int) -> QuestionRows:
        dialog, signs = self._questions.dialog, self.screen.theme.signs
        if dialog.asking is None:
            return QuestionRows(above=[])
        if not dialog.focused:
            return QuestionRows(above=[waiting_line(dialog, columns, signs)])
        screen = self.screen.size[1] - ROWS_IN_SIGHT
        return question_lines(dialog, self._roots, width=columns, rows=rows, signs=signs, screen=screen)

    def _say_for_a_moment(self, text: str) -> None:
        if text:
            self._moments.say(text)
            self.screen.refresh_now()

    # What comes from the user

    def _can(self, wish: Wish) -> bool:
        """Whether a key means this now; else it means what it usually does."""
        empty = not self.screen.text
        match wish:
            case Wish.MENU_UP | Wish.MENU_DOWN | Wish.MENU_TAKE | Wish.MENU_ENTER:
                return self._lists.can(wish)
            case Wish.TAKE_BACK:
                return empty and bool(self._view.waiting)
            case Wish.SUBAGENTS:
                return empty and bool(self._view.children)
            case Wish.SEND_HELD | Wish.DROP_HELD:
                return empty and bool(self.requests.held)
            case Wish.SHOW_KEYS:
                return empty and not self._view.questions
            case Wish.OPEN_PIECE if self._view.questions:
                return False
            case _:
                return self._input.can(wish)

    def act(self, intent: Intent) -> None:
        """Do what the user wants."""
        match intent:
            case Entered(text=text, steer=steer):
                self._entered(text, steer=steer)
            case Pasted(text=text):
                self._input.pasted(text)
            case Pressed(press=Press(key=Key.DETAILS)) if self._laid.pager:
                self._show_whole_question()
            case Pressed(press=pressed):
                self._questions.press(replace(pressed, drawn=self._laid.drawn))
            case Tabbed(alone=alone):
                self._questions.press(Press(Key.TAB, alone=alone))
            case Picked(key=Pick.TAB) if self._view.questions:
                self._lists.pickers.close()
                self._questions.press(Press(Key.TAB))
            case Picked(key=key, text=text):
                self._lists.pickers.press(key, text)
            case Wish():
                self._wish(intent)
            case _:
                assert_never(intent)
        self.screen.refresh_now()

    def _show_whole_question(self) -> None:
        self.screen.page(question_pager(self._questions, self._roots, self.screen.theme.signs))

    def _wish(self, wish: Wish) -> None:  # noqa: C901 - one line for each key
        match wish:
            case Wish.ESCAPE:
                self._escape()
            case Wish.STOP:
                self._ctrl_c()
            case Wish.END:
                self._end()
            case Wish.NEXT_MODE:
                self.outbox.put(SetMode(mode=next_mode(self._view.mode)))
            case Wish.TODO:
                self._moments.fold_or_unfold()
            case Wish.TAKE_BACK:
                self.screen.put(self.requests.take_back(self._view.waiting[-1]))
            case Wish.SEND_HELD:
                self.requests.send_held()
            case Wish.DROP_HELD:
                self.requests.drop_held()
            case Wish.EDIT | Wish.SHELL | Wish.OPEN_PIECE | Wish.CLIPBOARD:
                self._input.do(wish)
            case Wish.PAGER:
                self.screen.page(session_pager(self._scrollback, self._live.source.name, self.screen.theme.signs))
            case _:
                self._lists.act(wish)

    def _entered(self, text: str, *, steer: bool) -> None:
        if self._input.runs(text):
            return
        line = self._lists.entered(text, steer=steer)
        if line is not None:
            self.commands.run(line, steer=steer)

    def _stop(self) -> None:
        if self.requests.can_stop():
            self.requests.stop()

    def _escape(self) -> None:
        if self._lists.close() or self._input.stops(back=True):
            return
        if self.requests.can_stop():
            self.requests.stop()
        elif (self.screen.text or not self._view.active) and self._moments.is_second(Wish.ESCAPE):
            if self.screen.text:
                self.screen.clear()
            else:
                self.commands.run("/rewind", steer=False)

    def _ctrl_c(self) -> None:
        if self._input.stops(back=False):
            pass
        elif self.requests.can_stop():
            self.requests.stop()
        elif self.screen.text and not self._view.active:
            self.screen.clear()
        elif self._moments.is_second(Wish.STOP):
            self.screen.leave(0)

    def _end(self) -> None:
        if self.own.active:
            self._say_for_a_moment("Your command is still running. Esc stops it; /quit ends it and quits.")
        elif self._view.works and not self._live.continues:
            self._say_for_a_moment("Treadle is still working. Esc stops it; /quit quits, and the session is kept.")
        else:
            self.screen.leave(0)

    def _refused(self, op: Op, refusal: RefusedError) -> None:
        if self._live.closed or isinstance(op, Interrupt | Answer | EditQueued | MoveQueued):
            return  # it came too late: what it was about is over, and that is shown
        self.show(NoteItem(f"Not possible now: {refusal.why}.", warns=True))
        self._give_back(op)

    def _failed(self, error: TreadleError, op: Op | None = None) -> None:
        self.show(ProblemItem(error.what, error.why, error.fix))
        self._give_back(op)

    def _give_back(self, op: Op | None) -> None:
        if isinstance(op, Prompt) and op.content:
            self.screen.give_back(self.requests.draft_of(op.id, op.content))
