"""The terminal surface: notifications change the view and are printed, intents become ops."""

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace
from prompt_toolkit.history import History

from treadle import __version__
from treadle.app.presentation.escape import exact
from treadle.app.presentation.words import allowance_of, clip, plain
from treadle.app.security.trusting import trust_report
from treadle.app.session.live import LiveSession
from treadle.protocol.errors import ConfigError, RefusedError
from treadle.protocol.events import (
    Answer,
    Delivery,
    EditQueued,
    Interrupt,
    Op,
    Prompt,
    RevokeAllowance,
    SetMode,
)
from treadle.protocol.messages import Text, UserContent
from treadle.protocol.notifications import (
    ContextCompacted,
    MessageDone,
    ModelChanged,
    Notification,
    Phase,
    QuestionAsked,
    QueuedPrompt,
    TurnEnded,
)
from treadle.protocol.permissions import Allowance
from treadle.tui.bars import clock_runs, panel, rows_of, toolbar
from treadle.tui.commands import (
    HELP,
    KEYS,
    Drop,
    Edit,
    ListApprovals,
    ListQueue,
    Quit,
    Revoke,
    Send,
    ShowChecklist,
    ShowHelp,
    ShowTrust,
    UseMode,
    UseModel,
    Wrong,
    as_table,
    completed,
    matching,
    next_mode,
    parse,
)
from treadle.tui.dialog import Key, Press
from treadle.tui.items import Item, Notice, Problem, Tone
from treadle.tui.lines import Line, fragments
from treadle.tui.outbox import Outbox
from treadle.tui.past import first_view
from treadle.tui.question_lines import question_lines, waiting_line
from treadle.tui.questions import Questions
from treadle.tui.screen import (
    CycledMode,
    Ended,
    Entered,
    Escaped,
    Face,
    Intent,
    Pressed,
    Screen,
    Stopped,
    Tabbed,
)
from treadle.tui.theme import present_theme
from treadle.tui.view import View, shown_before, update

if TYPE_CHECKING:
    from treadle.tui.paint import Painter

_METERED = (MessageDone, ModelChanged, ContextCompacted, TurnEnded)
"""After these the context has another size."""

_BELL_AFTER = 10.0
_LEAVE_WITHIN = 3.0


class Surface:
    """One session on one terminal."""

    def __init__(self, live: LiveSession, history: History) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._view, past = first_view(live.past, live.opening, live.status, (str(live.workspace), *live.roots))
        self._unprinted: list[Item] = [_greeting(live), *_warnings(live), *past]
        self.outbox = Outbox(live, refused=self._refused, failed=self._failed)
        self._editing = ""
        self._hint = ""
        self._leave_until = 0.0
        self._painter: type[Painter] | None = None
        self._colour = not os.environ.get("NO_COLOR")
        self.ticking = asyncio.Event()
        self._theme = present_theme()
        self.screen = Screen(face=self._face, act=self.act, touched=self._touched, history=history, theme=self._theme)
        self._questions = Questions(
            screen=self.screen,
            outbox=self.outbox,
            show=self.show,
            view=lambda: self._view,
            change_view=self._change_view,
        )
        if self._view.questions:
            self._unprinted += shown_before(self._view.questions[0])

    # What comes from the session

    def start_painting(self, painter: "type[Painter]") -> None:
        """Print what has waited for the painter, and ask what is open."""
        self._painter = painter
        self.show()
        self._questions.begin()

    def hear(self, told: Notification) -> None:
        """Take a notification."""
        now = self._loop.time()
        before = self._view
        self._view, items = update(before, told, now)
        waited = before.started is not None and now - before.started > _BELL_AFTER
        if waited and isinstance(told, QuestionAsked | TurnEnded):
            self.screen.bell()
        if isinstance(told, _METERED):
            status = self._live.status
            self._view = replace(self._view, tokens=status.tokens, window=status.window)
        self.show(*items)
        self._questions.follow()
        if clock_runs(self._view):
            self.ticking.set()
        else:
            self.ticking.clear()
        self.screen.refresh()

    def show(self, *items: Item) -> None:
        """Print items into the scrollback, as soon as they can be painted."""
        self._unprinted += items
        if self._painter is None or not self._unprinted:
            return
        painter = self._painter(self.screen.columns, colour=self._colour)
        self.screen.print(painter.items(self._unprinted))
        self._unprinted.clear()

    def _face(self, columns: int, rows: int) -> Face:
        now = self._loop.time()
        below = panel(self._view, now, self._hint_now(now))
        rows -= rows_of(below, columns)
        question, field, under = self._asked(columns, rows)
        rows -= len(question) + len(under)
        living = ""
        if self._painter is not None:
            living = self._painter(columns, colour=self._colour).living(self._view, rows)
        return Face(
            living=living,
            question=fragments(question),
            field=fragments([field]),
            under=fragments(under),
            panel=below,
            toolbar=toolbar(self._view, now, columns),
        )

    def _asked(self, columns: int, rows: int) -> tuple[list[Line], Line, list[Line]]:
        dialog, signs = self._questions.dialog, self._theme.signs
        if dialog.asking is None:
            return [], (), []
        if not dialog.focused:
            return [waiting_line(dialog, columns, signs)], (), []
        return question_lines(dialog, self._view.roots, width=columns, rows=rows, signs=signs)

    def _change_view(self, view: View) -> None:
        self._view = view

    def _hint_now(self, now: float) -> str:
        if now < self._leave_until:
            return "Ctrl-C again leaves."
        if self._editing:
            return "Enter changes the waiting prompt, Esc leaves it as it was."
        return as_table(matching(self.screen.text))

    # What comes from the user

    def _touched(self) -> None:
        self._questions.touched()

    def act(self, intent: Intent) -> None:
        """Do what the user wants."""
        match intent:
            case Entered(text=text, steer=steer):
                self._entered(text, steer=steer)
            case Pressed(press=pressed):
                self._questions.press(pressed)
            case Escaped():
                self._escape()
            case Stopped():
                self._stop()
            case Ended():
                self._end()
            case Tabbed(alone=alone):
                self._tab(alone=alone)
            case CycledMode():
                self.outbox.put(SetMode(mode=next_mode(self._view.mode)))
            case _:
                assert_never(intent)

    def _entered(self, text: str, *, steer: bool) -> None:
        if self._editing:
            self.outbox.put(EditQueued(prompt_id=self._editing, content=(Text(text=text.strip()),)))
            self._editing = ""
        else:
            self._command(text, steer=steer)

    def _tab(self, *, alone: bool) -> None:
        text = self.screen.text
        if completed(text) != text:
            self.screen.put(completed(text))
        elif not matching(text):
            self._questions.press(Press(Key.TAB, alone=alone))

    def _command(self, text: str, *, steer: bool) -> None:
        command = parse(text, steer=steer)
        match command:
            case Send(text=said, delivery=delivery):
                self.prompt(said, delivery)
            case ListQueue() | ShowTrust() | ShowChecklist() | ListApprovals() | ShowHelp():
                self.show(Notice(self._told(command)))
            case Drop(position=position):
                self._with_waiting(position, lambda waiting: self.outbox.put(EditQueued(prompt_id=waiting.id)))
            case Edit(position=position):
                self._with_waiting(position, self._edit)
            case UseMode(mode=mode):
                self.outbox.put(SetMode(mode=mode))
            case UseModel(name=name):
                self.outbox.put_made(lambda: self._live.choose(name))
            case Revoke(position=position):
                self._revoke(position)
            case Quit():
                self.screen.leave(0)
            case Wrong(text=why):
                self.show(Notice(why, Tone.WARNING))
                self.screen.put(text)
            case _:
                assert_never(command)

    def _told(self, command: ListQueue | ShowTrust | ShowChecklist | ListApprovals | ShowHelp) -> str:
        match command:
            case ListQueue():
                return _listed(self._view.queue)
            case ShowTrust():
                return trust_report(self._live.trust)
            case ShowChecklist():
                return _checklist(self._view.checklist, self._live.checklist_file)
            case ListApprovals():
                return _allowed(self._view.allowances)
            case ShowHelp():
                return as_table((*HELP, *KEYS))
            case _:
                assert_never(command)

    def prompt(self, text: str, delivery: Delivery = Delivery.QUEUE) -> None:
        """Send a prompt of text."""
        self.send((Text(text=text),), delivery)

    def send(self, content: tuple[UserContent, ...], delivery: Delivery = Delivery.QUEUE) -> None:
        """Send a prompt."""
        self.outbox.put(Prompt(id=uuid.uuid4().hex, content=content, delivery=delivery))

    def _with_waiting(self, position: int, do: Callable[[QueuedPrompt], None]) -> None:
        if position <= len(self._view.queue):
            do(self._view.queue[position - 1])
        else:
            self.show(Notice(_listed(self._view.queue), Tone.WARNING))

    def _revoke(self, position: int) -> None:
        allowed = self._view.allowances
        if position <= len(allowed):
            self.outbox.put(RevokeAllowance(allowance_id=allowed[position - 1].id))
        else:
            self.show(Notice(_allowed(allowed), Tone.WARNING))

    def _edit(self, waiting: QueuedPrompt) -> None:
        self._editing = waiting.id
        self.screen.put(plain(waiting.content))

    def _escape(self) -> None:
        if self._editing:
            self._editing = ""
            self.screen.put("")
        elif self._view.busy and self._view.phase is not Phase.CANCELLING:
            self.outbox.put(Interrupt())

    def _stop(self) -> None:
        now = self._loop.time()
        if self._view.busy and self._view.phase is not Phase.CANCELLING:
            self.outbox.put(Interrupt())
        elif self.screen.text and not self._view.busy:
            self._editing = ""
            self.screen.put("")
        elif now < self._leave_until:
            self.screen.leave(0)
        else:
            self._leave_until = now + _LEAVE_WITHIN
            self.screen.refresh_now()

    def _end(self) -> None:
        if self._view.busy:
            self.show(Notice("Still at work: Esc interrupts; /quit leaves, and the session can be resumed."))
        else:
            self.screen.leave(0)

    def _refused(self, op: Op, refusal: RefusedError) -> None:
        if self._live.closed or isinstance(op, Interrupt | Answer):
            return  # it came too late: what it was about is over, and that is shown
        self.show(Notice(f"Not possible now: {refusal.why}.", Tone.WARNING))
        if isinstance(op, EditQueued | Prompt) and op.content and not self.screen.text:
            self.screen.put(plain(op.content))

    def _failed(self, error: ConfigError) -> None:
        self.show(Problem(error.what, error.why, error.fix))


def _greeting(live: LiveSession) -> Notice:
    folders = ", ".join((str(live.workspace), *live.roots))
    return Notice(f"Treadle {__version__}, {live.status.model}, {folders}. /help lists commands and keys.")


def _warnings(live: LiveSession) -> list[Item]:
    return [Notice(notice, Tone.WARNING) for notice in live.notices]


def _listed(queue: Sequence[QueuedPrompt]) -> str:
    if not queue:
        return "No prompt waits."
    return "\n".join(f"{number}: {clip(plain(one.content), 200)}" for number, one in enumerate(queue, start=1))


def _allowed(allowances: Sequence[Allowance]) -> str:
    if not allowances:
        return "Nothing is allowed for this session beyond its mode and your rules (`treadle policy show`)."
    return "\n".join(f"{number}: {exact(allowance_of(one))}" for number, one in enumerate(allowances, start=1))


def _checklist(text: str, file: Path) -> str:
    return f"{text}\n({file} holds it; what you change there counts.)" if text else "The task has no checklist yet."
