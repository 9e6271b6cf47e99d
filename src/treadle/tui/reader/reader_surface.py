"""The surface of a session in plain lines: notifications become lines in their order, entered lines become ops."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence

from treadle.door.open_session import SessionAccess
from treadle.door.opening import branch_of
from treadle.door.settings import Colours
from treadle.present.escape import printable
from treadle.present.items import Item, ModeItem, ProblemItem, ProseItem, RetryItem, SaidItem
from treadle.present.view import SessionView
from treadle.present.words import counted, describe_call, enclosed_line, span
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import ConfigError, RefusedError, TreadleError
from treadle.protocol.events import Answer, EditQueued, Interrupt, MoveQueued, Op, Prompt, SetMode
from treadle.protocol.models import ModelError
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ModeChanged,
    PromptDelivered,
    QuestionClosed,
    QueueChanged,
    RetryScheduled,
    TurnEnded,
)
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Flow
from treadle.tui.draft.clipboard import terminal_copy
from treadle.tui.draft.draft_pieces import Pieces
from treadle.tui.paint.context_bar import context_words
from treadle.tui.paint.diff_rows import diff_lines
from treadle.tui.paint.lines import line_text
from treadle.tui.paint.printed_items import ContextItem, DiffItem, EnteredCommand, OwnDone, PrintedItem
from treadle.tui.paint.printed_lines import item_lines
from treadle.tui.paint.scrollback import open_scrollback
from treadle.tui.paint.theme import Signs
from treadle.tui.question.asked import WITH_NO, Asking, GivenAnswer, ShowWhole, no
from treadle.tui.question.dialog import QUIET_SECONDS
from treadle.tui.question.question_lines import whole_question
from treadle.tui.reader.numbered import NotUnderstood, asked_lines, opening, spoken, take_line
from treadle.tui.reader.reader_lists import NumberedLists
from treadle.tui.session.aside import Aside
from treadle.tui.session.entered_lines import mode_words
from treadle.tui.session.greeting import first_items, kept_line
from treadle.tui.session.outbox import Outbox
from treadle.tui.session.own_commands import OwnCommands
from treadle.tui.session.person_requests import Requests
from treadle.tui.session.slash import SlashCommands

_WIDTH = 100_000
_PAST_LINES = 60
"""Lines of what happened before that are written when a session is taken up."""

_AGAIN_WITHIN = 3.0
_KEY = re.compile(r"^(\s*\.\.\. .*|.*Thought.*?)(?:,| -) ctrl-o$")
_SIGNLESS = re.compile("[∴▞▚]+ ")
_SIGNS = Signs(
    bar="",
    chosen="",
    prompt="You:",
    ok="Done:",
    failed="Failed:",
    refused="Not done:",
    running="Running:",
    ended="End:",
    more="...",
    rule="-",
    arrows="",
    dot="-",
)


class Reader:
    """One session as lines. `write` gets whole lines, `begun` gives what was typed and not entered yet."""

    def __init__(
        self,
        live: SessionAccess,
        *,
        write: Callable[[str], None],
        begun: Callable[[], str],
        switch: Callable[[str], None] | None = None,
    ) -> None:
        self._live = live
        self._write = write
        self._begun = begun
        self._loop = asyncio.get_running_loop()
        self._scrollback, past = open_scrollback(live, aloud=_aloud)
        self._roots = (str(live.workspace), *live.roots)
        self.own_keys: Mapping[str, str] = {}
        self._draft = ""
        self._kept = False
        self._turns = 0
        self._waited: set[str] = set()
        self._asking: Asking | None = None
        self._asked_at = 0.0
        self._stopped_at = float("-inf")
        self.code: asyncio.Future[int] = self._loop.create_future()
        self.outbox = Outbox(live, refused=self._refused, failed=self._failed)
        self.own = OwnCommands(live.own_shell, show=self.show, changed=lambda: None)
        self.requests = Requests(self.outbox, lambda: self._view, Pieces(), self.own)
        aside = Aside(self._failed)
        self.lists = NumberedLists(
            live,
            aside=aside,
            outbox=self.outbox,
            show=self.show,
            shown=self._list,
            view=lambda: self._view,
            switch=self._go_to if switch is not None else None,
        )
        self._switch = switch
        self.commands = SlashCommands(
            live,
            screen=self,
            outbox=self.outbox,
            requests=self.requests,
            pickers=self.lists,
            aside=aside,
            show=self.show,
            view=lambda: self._view,
            failed=self._failed,
            switch=switch,
        )
        self.show(*first_items(live, self._view, branch_of(live.workspace)))
        self._show_past(past)
        self._say("Type a message and press Enter. /help lists the commands. Ctrl-C stops, Ctrl-D quits.")
        self._follow()

    @property
    def _view(self) -> SessionView:
        return self._scrollback.view

    def _say(self, *lines: str) -> None:
        self._write("".join(f"{printable(line)}\n" for line in lines))

    def show(self, *items: PrintedItem) -> None:
        """Write items as lines."""
        for item in items:
            self._say(*_lines_of(item))

    def _show_past(self, past: Sequence[PrintedItem]) -> None:
        """Write the end of what happened before, and say how much more there is."""
        lines: list[str] = []
        for position in range(len(past) - 1, -1, -1):
            more = _lines_of(past[position])
            if len(lines) + len(more) > _PAST_LINES:
                left_out = counted(position + 1, "earlier item")
                self._say(f"{left_out} of this session: treadle show {self._live.id}")
                break
            lines[:0] = more
        self._say(*lines)

    # What comes from the session

    def hear(self, stamped: Stamped) -> None:
        """Take a notification."""
        before, notification = self._view, stamped.notification
        if isinstance(notification, QuestionClosed) and (said := self._scrollback.answered_elsewhere(notification)):
            self._say(said)
        items = self._scrollback.take(stamped)
        self.commands.hear(notification)
        match notification:
            case CallChanged(status=CallStatus.RUNNING) if notification.flow is Flow.RUN:
                name = describe_call(notification)
                self._say(f"Running: {name.verb} {name.about}".rstrip())
            case ModeChanged(mode=mode):
                self._say(mode_words(mode))
            case RetryScheduled(seconds=seconds, error=error, until=until):
                self._say(_retry_words(seconds, error, until))
            case QueueChanged(prompts=prompts) if before.active and len(prompts) > len(before.queue):
                self._waited.add(prompts[-1].id)
                self._say("Your message waits for the end of the turn.")
            case QueueChanged(held=held) if len(held) > len(before.held):
                self._say(f"{counted(len(held), 'message')} held. Enter on an empty line sends the next one.")
            case TurnEnded():
                self._turns += 1
            case _:
                pass
        if isinstance(notification, PromptDelivered):
            # It was just typed, but for one that has waited.
            typed = notification.prompt_id not in self._waited and not notification.by
            items = [item for item in items if not typed or not isinstance(item, SaidItem)]
            if notification.enclosed and typed:
                self._say(enclosed_line(notification.enclosed))
        self.show(*self.requests.as_written(items))
        self._follow()

    def _follow(self) -> None:
        """Ask the first open question; what was typed before it is the draft's."""
        first = self._view.questions[0] if self._view.questions else None
        now = None if self._asking is None else self._asking.question
        if first is None or (now is not None and now.id == first.id):
            self._asking = self._asking if first is not None else None
            return
        self.lists.close()
        self._keep(self._begun())
        self._asking, lines = opening(first, self._view.mode, self._roots)
        self._say(*lines)
        self._asked_at = self._loop.time()

    def _list(self, lines: Sequence[str]) -> None:
        """Read a list out; what was typed before it is the draft's."""
        self._keep(self._begun())
        self._say(*lines)
        self._asked_at = self._loop.time()

    def _go_to(self, session: str) -> None:
        """End this session for another one."""
        if self._switch is not None:
            self._switch(session)
        self.leave(0)

    def _ask(self, asking: Asking) -> None:
        self._asking = asking
        self._say(*asked_lines(asking, self._roots))
        self._asked_at = self._loop.time()

    def finish(self, *, kept: bool) -> None:
        """Write what was held back, and what the session was."""
        self.show(*self._scrollback.rest())
        if self._turns and kept:
            self._say(kept_line(self._live.title, self._view, self._turns))

    # What comes from the person

    def entered(self, lines: Sequence[str]) -> None:
        """Take lines that came together; more than one are a paste, which answers nothing and runs nothing."""
        if len(lines) > 1:
            self._keep("".join(f"{line}\n" for line in lines))
            return
        (line,) = lines
        asking = self._asking
        asked = "question" if asking is not None else "list" if self.lists.open else ""
        if asked and self._loop.time() - self._asked_at < QUIET_SECONDS:
            self._keep(f"{line}\n" if line else "")
            self._say(f"This came before the {asked} was read, so it answers nothing.")
        elif asking is not None and (line.strip() or asking.field):
            self._answer(asking, line)
        elif self.lists.open and not line.startswith(("/", "!")):
            self.lists.take(line)
        elif line.startswith(("/", "!")) and self._kept:
            self._send(line)
        elif line.endswith("\\"):
            command = (self._draft or line).startswith("!")
            self._draft += f"{line if command else line[:-1]}\n"
        else:
            draft, self._draft = self._draft + line, ""
            typed, self._kept = not self._kept, False
            self._send(draft.removesuffix("\n"), typed=typed)

    def _send(self, draft: str, *, typed: bool = True) -> None:
        """Send a draft; a command of the person's own is one only where it was `typed` and entered line by line."""
        if typed and draft.startswith("!") and draft[1:].strip():
            self._say(f"Running: {draft[1:].strip()}")
            self.own.start(draft[1:])
        elif draft.strip():
            self.commands.run(draft, steer=False)
        else:
            self.requests.send_held()

    def _keep(self, text: str) -> None:
        """Add to the draft, which an empty line sends."""
        if text:
            self._draft += text
            self._kept = True
            self._say(
                "",
                f"Kept as your draft, not sent: {self._draft.removesuffix(chr(10))}",
                "Enter on an empty line sends it.",
            )

    def _answer(self, asking: Asking, line: str) -> None:
        if line.startswith(("/", "!")) and not asking.field:
            self._send(line)
            return
        taken = take_line(asking, line)
        match taken:
            case GivenAnswer():
                self._give(taken)
            case ShowWhole():
                self._say(*(line_text(row) for row in whole_question(asking, self._roots, _WIDTH, _SIGNS)))
            case NotUnderstood():
                self._keep(f"{line}\n")
                self._say("A question is open. Type the number of a choice and press Enter.")
            case _:
                self._ask(taken)

    def _give(self, given: GivenAnswer) -> None:
        if given.edits:
            self.outbox.put(SetMode(mode=Mode.EDITS))
        self.outbox.put(given.answer)

    def interrupt(self) -> None:
        """Stop a command of the person's own, or the turn; twice with nothing to stop quits."""
        now = self._loop.time()
        again, self._stopped_at = now - self._stopped_at < _AGAIN_WITHIN, now
        if self.own.stop():
            self._say("", "Stopping your command.")
        elif self.requests.can_stop():
            asking = self._asking
            if asking is not None and asking.question.kind in WITH_NO:
                self._give(no(asking))
            self.requests.stop()
        elif again:
            self.leave(0)
        else:
            self._say("", "Ctrl-C again quits.")

    # What commands want

    def put(self, draft: str) -> None:
        """Make something the draft."""
        self._keep(draft)

    def give_back(self, draft: str) -> None:
        """Make a message that was not sent, or taken back, the draft again."""
        self._keep(draft)

    def written(self, draft: str) -> str:
        """Give a draft as it is shown."""
        return draft

    def copy(self, text: str) -> bool:
        """Let the terminal copy a text; gives whether it was sent."""
        sequence = terminal_copy(text, os.environ)
        self._write(sequence)
        return bool(sequence)

    def recolour(self, colours: Colours, said: Callable[[str], None]) -> None:  # noqa: ARG002 - what was saved is said
        """Say that lines have no colours."""
        said("It shows in other terminals: lines for a screen reader have no colours.")

    def edit(
        self,
        text: str,  # noqa: ARG002 - no editor is opened among the lines
        suffix: str,  # noqa: ARG002
        *,
        done: Callable[[str], None],  # noqa: ARG002
        failed: Callable[[ConfigError], None],
    ) -> None:
        """Say where the person's editor opens."""
        failed(ConfigError("editor", "No editor opens here.", fix="In another terminal: treadle memory edit"))

    def leave(self, code: int) -> None:
        """End with this exit code."""
        if not self.code.done():
            self.code.set_result(code)

    def _refused(self, op: Op, refusal: RefusedError) -> None:
        if self._live.closed or isinstance(op, Interrupt | Answer | EditQueued | MoveQueued):
            return
        self._say(f"Not possible now: {refusal.why}.")
        self._keep_unsent(op)

    def _failed(self, error: TreadleError, op: Op | None = None) -> None:
        self.show(ProblemItem(error.what, error.why, error.fix))
        self._keep_unsent(op)

    def _keep_unsent(self, op: Op | None) -> None:
        if isinstance(op, Prompt):
            self._keep(self.requests.draft_of(op.id, op.content))


def _retry_words(seconds: float, error: ModelError, until: int) -> str:
    if until or error.paced:
        return f"Waiting until the provider's limit resets, in {span(round(seconds))}."
    return f"The model did not answer. Trying again in {seconds:.0f} s."


def _aloud(item: Item) -> str:
    """Say what a screen shows beside the scrollback."""
    match item:
        case ModeItem(mode=mode):
            return mode_words(mode)
        case RetryItem(seconds=seconds, error=error, until=until):
            return _retry_words(seconds, error, until)
        case _:
            return ""


def _lines_of(item: PrintedItem) -> list[str]:
    match item:
        case EnteredCommand():
            return []  # it was just typed
        case ProseItem(markdown=markdown):
            return markdown.strip("\n").split("\n")
        case ContextItem(use=use):
            return [context_words(use)]
        case DiffItem(text=text):  # there is no pager: what is asked about is read out whole
            rows = diff_lines(text, _WIDTH, _SIGNS, whole=True)
        case _:
            rows = item_lines(item, _WIDTH, _SIGNS)
    lines = [_SIGNLESS.sub("", _KEY.sub(r"\1", spoken(row))) for row in rows]
    return [*lines, "Its output goes with your next message."] if isinstance(item, OwnDone) else lines
