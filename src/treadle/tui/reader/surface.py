"""The surface of a session in plain lines: notifications become lines in their order, entered lines become ops."""

import asyncio
import re
from collections.abc import Callable, Sequence

from treadle.app.session.access import SessionAccess
from treadle.present.escape import printable
from treadle.present.words import describe_call, enclosed_line
from treadle.protocol.errors import RefusedError, TreadleError
from treadle.protocol.events import Answer, EditQueued, Interrupt, Op, Prompt, SetMode
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ModeChanged,
    Notification,
    PromptDelivered,
    QueueChanged,
    RetryScheduled,
    TurnEnded,
)
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Flow
from treadle.tui.aside import Aside
from treadle.tui.asking import WITH_NO, Asking, GivenAnswer, ShowWhole, no
from treadle.tui.cards import item_lines
from treadle.tui.commands import MODE_TEXTS
from treadle.tui.dialog import QUIET_SECONDS
from treadle.tui.diffs import diff_lines
from treadle.tui.greeting import branch_of, greeting, kept_line
from treadle.tui.items import DiffItem, NoticeItem, OwnDone, ProblemItem, Prose, Said, ScreenItem, Tone
from treadle.tui.lines import line_text
from treadle.tui.outbox import Outbox
from treadle.tui.own_commands import OwnCommands
from treadle.tui.past import first_view, new_view
from treadle.tui.pieces import Pieces
from treadle.tui.question_lines import whole_question
from treadle.tui.reader.lists import NumberedLists
from treadle.tui.reader.numbered import NotUnderstood, asked_lines, opening, spoken, take_line
from treadle.tui.requests import Requests
from treadle.tui.slash import SlashCommands
from treadle.tui.theme import Signs
from treadle.tui.view import answered, held_back, update

_WIDTH = 100_000
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
        self._view, past = first_view(new_view(live), live.past, live.opening, live.status)
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
        self._commands = SlashCommands(
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
        begin = greeting(live, self._view, branch_of(live.workspace))
        self.show(begin, *(NoticeItem(text, Tone.WARNING) for text in live.notices), *past)
        self._say("Type a message and press Enter. /help lists the commands. Ctrl-C stops, Ctrl-D quits.")
        self._follow()

    def _say(self, *lines: str) -> None:
        self._write("".join(f"{printable(line)}\n" for line in lines))

    def show(self, *items: ScreenItem) -> None:
        """Write items as lines."""
        for item in items:
            if isinstance(item, Said) and item.quiet:
                continue  # it was just typed
            if isinstance(item, Prose):
                self._say(item.markdown.strip("\n"))
            else:
                # There is no pager: what is asked about is read out whole.
                rows = (
                    diff_lines(item.text, _WIDTH, _SIGNS, whole=True)
                    if isinstance(item, DiffItem)
                    else item_lines(item, _WIDTH, _SIGNS)
                )
                self._say(*(_SIGNLESS.sub("", _KEY.sub(r"\1", spoken(row))) for row in rows))
            if isinstance(item, OwnDone):
                self._say("Its output goes with your next message.")

    # What comes from the session

    def hear(self, notification: Notification) -> None:
        """Take a notification."""
        before = self._view
        self._view, items = update(before, notification, self._loop.time())
        match notification:
            case CallChanged(status=CallStatus.RUNNING) if notification.flow is Flow.RUN:
                name = describe_call(notification)
                self._say(f"Running: {name.verb} {name.about}".rstrip())
            case ModeChanged(mode=mode):
                self._say(f"Mode is now {mode}: {MODE_TEXTS[mode]}.")
            case RetryScheduled(seconds=seconds):
                self._say(f"The model did not answer. Trying again in {seconds:.0f} s.")
            case QueueChanged(prompts=prompts) if before.busy and len(prompts) > len(before.queue):
                self._waited.add(prompts[-1].id)
                self._say("Your message waits for the end of the turn.")
            case TurnEnded():
                self._turns += 1
            case _:
                pass
        if isinstance(notification, PromptDelivered):
            # It was just typed, but for one that has waited.
            typed = notification.prompt_id not in self._waited and not notification.by
            items = tuple(item for item in items if not typed or not isinstance(item, Said))
            if notification.enclosed and typed:
                self._say(enclosed_line(notification.enclosed))
        self.show(*self.requests.as_written(notification, items))
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
        self._asking, lines = opening(first, self._view.mode, self._view.roots)
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
        self._say(*asked_lines(asking, self._view.roots))
        self._asked_at = self._loop.time()

    def finish(self, *, kept: bool) -> None:
        """Write what was held back, and what the session was."""
        self.show(*held_back(self._view))
        if self._turns and kept:
            self._say(kept_line(self._live, self._view, self._turns))

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
            self._commands.run(draft, steer=False)

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
                self._give(asking, taken)
            case ShowWhole():
                self._say(*(line_text(row) for row in whole_question(asking, self._view.roots, _WIDTH, _SIGNS)))
            case NotUnderstood():
                self._keep(f"{line}\n")
                self._say("A question is open. Type the number of a choice and press Enter.")
            case _:
                self._ask(taken)

    def _give(self, asking: Asking, given: GivenAnswer) -> None:
        if given.edits:
            self.outbox.put(SetMode(mode=Mode.EDITS))
        self._view = answered(self._view, asking.question, given.answer)
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
                self._give(asking, no(asking))
            self.requests.stop()
        elif again:
            self.leave(0)
        else:
            self._say("", "Ctrl-C again quits.")

    # What commands want

    def put(self, draft: str) -> None:
        """Make something the draft."""
        self._keep(draft)

    def written(self, draft: str) -> str:
        """Give a draft as it is shown."""
        return draft

    def leave(self, code: int) -> None:
        """End with this exit code."""
        if not self.code.done():
            self.code.set_result(code)

    def _refused(self, op: Op, refusal: RefusedError) -> None:
        if self._live.closed or isinstance(op, Interrupt | Answer | EditQueued):
            return
        self._say(f"Not possible now: {refusal.why}.")
        if isinstance(op, Prompt):
            self._keep(self.requests.draft_of(op.id, op.content))

    def _failed(self, error: TreadleError) -> None:
        self.show(ProblemItem(error.what, error.why, error.fix))
