"""The page of one session as a value that notifications change: its items, each with the version it changed in.

A browser that knows version 7 is brought up to date by the items that changed after 7, whatever it missed: nothing is
lost, and nothing comes twice.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from treadle.present.failures import advice, describe_failure, facts_of
from treadle.present.prose import LONGEST_BLOCK, Growing, grow
from treadle.present.words import ANSWERS, elsewhere, plain, room_made, seen_from, written_by, written_text
from treadle.protocol.errors import TreadleError
from treadle.protocol.messages import Text, Thinking, ToolUse
from treadle.protocol.notifications import (
    AllowancesChanged,
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notice,
    Notification,
    OwnWorkChanged,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    ReplyDropped,
    ResultPresented,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStarted,
)
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import CallResult, Flow, Outcome
from treadle.web.facts import PageFacts
from treadle.web.items import (
    CallCard,
    Note,
    PageEntry,
    PageItem,
    Problem,
    ProseItem,
    SaidItem,
    ThoughtItem,
    TurnEnd,
    Writing,
    with_output,
)

_SHOWN_WRITING = 2_000
"""Characters of the end of a call that is still being written."""

_MOST_THOUGHT = 40_000
_MOST_ANSWERED = 200


class PageContent:
    """Takes notifications one after the other. `root` is the workspace, as seen from which files are named.

    `answered` says of the last questions how and where they were answered; `delivered` are the ids of prompts.
    """

    def __init__(self, root: str, model: str = "") -> None:
        self.run = f"{time.time_ns():x}"  # a browser that knows another one's versions begins anew
        self.version = 0
        self.facts = PageFacts()
        self.facts_version = 0
        self.entries: list[PageEntry] = []
        self.answered: OrderedDict[str, str] = OrderedDict()
        self.delivered: set[str] = set()
        self._root = root
        self._model = model
        self._newest: OrderedDict[int, PageEntry] = OrderedDict()
        self._reply: list[PageEntry] = []
        self._tail: PageEntry | None = None
        self._thought: PageEntry | None = None
        self._thinking: list[str] = []
        self._growing = Growing()
        self._writing: PageEntry | None = None
        self._live = False
        self._proposed: dict[str, CallChanged] = {}
        self._calls: dict[str, PageEntry] = {}
        self._questions: dict[str, Question] = {}
        self._presented = ""
        self._began: float | None = None

    def changed_after(self, version: int) -> Sequence[PageEntry]:
        """Give the entries that changed after a version, in their order on the page."""
        found: list[PageEntry] = []
        for entry in reversed(self._newest.values()):
            if entry.version <= version:
                break
            found.append(entry)
        return sorted(found, key=lambda entry: entry.position)

    def before(self, position: int | None, most: int) -> Sequence[PageEntry]:
        """Give the last entries before a position, those that are gone left out."""
        found: list[PageEntry] = []
        for entry in reversed(self.entries[:position]):
            if len(found) == most:
                break
            if entry.item is not None:
                found.append(entry)
        return found[::-1]

    def add_problem(self, error: TreadleError) -> None:
        """Say at the end what went wrong with the session itself."""
        self.version += 1
        self._add(Problem(error.what, error.why, error.fix))

    def show(self, item: PageItem, place: PageEntry | None = None) -> PageEntry:
        """Put something on the page that no notification tells of, or change it there."""
        self.version += 1
        if place is None:
            return self._add(item)
        self._change(place, item)
        return place

    def take(self, notification: Notification, at: float | None = None) -> None:  # noqa: C901, PLR0912 - one line each
        """Take one notification, heard `at` seconds on a steady clock; None for one of the past."""
        self.version += 1
        match notification:
            case PhaseChanged(phase=phase):
                facts = self.facts if phase is Phase.WAITING_TO_RETRY else self.facts.without_retry()
                self._know(replace(facts, phase=phase))
            case TurnStarted():
                self._began = at
                self._know(replace(self.facts, active=True, step=0))
            case PromptDelivered(prompt_id=prompt_id, content=content, enclosed=enclosed, by=by):
                self.delivered.add(prompt_id)
                self._add(SaidItem(written_text(content), enclosed, written_by(by) if by else ""))
            case TextDelta() | ThinkingDelta() | CallDelta():
                self._hear_piece(notification)
            case ReplyDropped() as dropped:
                self._know(replace(self.facts, spending=self.facts.spending.with_reply(dropped)))
                self._drop_reply()
            case MessageDone():
                self._message_done(notification)
            case CallChanged():
                self._call(notification, at)
            case CallOutput(call_id=call_id, text=text):
                self._print(call_id, text)
            case QuestionAsked(question=question):
                self._questions[question.id] = question
            case QuestionClosed():
                self._answered(notification)
            case ResultPresented(text=text):
                self._presented = text
                self._add(ProseItem(text))
            case RetryScheduled(attempt=attempt, seconds=seconds, most=most, error=error):
                of = f" of {most}" if most else ""
                why = f"{describe_failure(error, self._model)} Attempt {attempt}{of}"
                self._know(replace(self.facts, retry=why, retry_at=None if at is None else at + seconds))
            case ContextCompacted() as made:
                self._add(Note(f"{room_made(made)}.", warns=True))
            case ModelChanged(model=model, why=why):
                self._model = model
                self._add(Note(f"Model: {model}{f' ({why})' if why else ''}"))
            case Notice(text=text) as notice:
                self._know(replace(self.facts, spending=self.facts.spending.with_notice(notice)))
                self._add(Note(text, warns=True))
            case OwnWorkChanged(total=total):
                self._know(replace(self.facts, counted=True, added=total.added, removed=total.removed))
            case TurnEnded():
                self._turn_ended(notification, at)
            case QueueChanged() | ModeChanged() | ChecklistChanged() | AllowancesChanged():
                self.facts_version = self.version  # the session's status has them
            case _:
                assert_never(notification)

    def _know(self, facts: PageFacts) -> None:
        if facts != self.facts:
            self.facts, self.facts_version = facts, self.version

    def _add(self, item: PageItem) -> PageEntry:
        entry = PageEntry(len(self.entries), self.version, item)
        self.entries.append(entry)
        self._newest[entry.position] = entry
        return entry

    def _change(self, entry: PageEntry, item: PageItem | None) -> None:
        entry.item, entry.version, entry.html = item, self.version, ""
        self._newest.move_to_end(entry.position)

    def _hear_piece(self, piece: TextDelta | ThinkingDelta | CallDelta) -> None:
        self._show_all_proposed()
        self._live = True
        match piece:
            case TextDelta(text=text):
                self._write(text)
            case ThinkingDelta(text=text):
                self._think(text)
            case CallDelta():
                self._write_call(piece)

    def _write(self, text: str) -> None:
        """Take more of the answer, cut so that the same items come of it in whatever pieces it came."""
        self._end_thought()
        while text:
            end = text.find("\n")
            room = LONGEST_BLOCK + 1 - len(self._growing.text)
            take = max(1, min(room, len(text) if end < 0 else end or 1))
            self._write_piece(text[:take])
            text = text[take:]

    def _write_piece(self, text: str) -> None:
        finished, self._growing = grow(self._growing, text)
        if finished.strip():
            if self._tail is None:
                self._reply.append(self._add(ProseItem(finished)))
            else:
                self._change(self._tail, ProseItem(finished))
                self._tail = None
        rest = self._growing.text
        if self._tail is not None:
            self._change(self._tail, ProseItem(rest, growing=True))
        elif rest.strip():
            self._tail = self._add(ProseItem(rest, growing=True))
            self._reply.append(self._tail)

    def _think(self, text: str) -> None:
        self._end_text()
        self._thinking.append(text[:_MOST_THOUGHT])
        if self._thought is None:
            self._thought = self._add(ThoughtItem("", growing=True))
            self._reply.append(self._thought)
        self._change(self._thought, ThoughtItem("".join(self._thinking[-40:])[-_SHOWN_WRITING:], growing=True))

    def _end_thought(self) -> None:
        if self._thought is not None:
            text = "".join(self._thinking)[:_MOST_THOUGHT]
            self._change(self._thought, ThoughtItem(text) if text.strip() else None)
        self._thought = None
        self._thinking.clear()

    def _end_text(self) -> None:
        if self._tail is not None:
            self._change(self._tail, ProseItem(self._growing.text) if self._growing.text.strip() else None)
        self._tail, self._growing = None, Growing()

    def _write_call(self, delta: CallDelta) -> None:
        self._end_thought()
        self._end_text()
        known = self._writing.item if self._writing is not None else None
        text = delta.text
        if isinstance(known, Writing) and (known.tool, known.parameter) == (delta.name, delta.parameter):
            text = (known.text + text)[-_SHOWN_WRITING:]
        item = Writing(delta.name, delta.parameter, text[-_SHOWN_WRITING:])
        if self._writing is None:
            self._writing = self._add(item)
        else:
            self._change(self._writing, item)

    def _end_writing(self) -> None:
        if self._writing is not None:
            self._change(self._writing, None)
        self._writing = None

    def _end_reply(self) -> None:
        self._end_thought()
        self._end_text()
        self._end_writing()
        self._reply.clear()
        self._live = False

    def _drop_reply(self) -> None:
        """Withdraw what was streamed; what the user cut stays, as the log keeps it too."""
        gone = [] if self.facts.phase is Phase.CANCELLING else [*self._reply, *self._calls.values()]
        self._end_reply()
        self._calls.clear()
        self._proposed.clear()
        for entry in gone:
            self._change(entry, None)

    def _message_done(self, done: MessageDone) -> None:
        """Close the reply; of one that nobody heard streaming, as in a log, show what it says in its order."""
        streamed = self._live
        self._end_reply()
        for block in () if streamed else done.message.content:
            match block:
                case Thinking(text=text):
                    self._think(text)
                case Text(text=text):
                    self._write(text)
                case ToolUse(id=call_id) if call_id in self._proposed:
                    self._end_reply()
                    self._show_proposed(call_id)
                case _:
                    pass
        self._end_reply()
        self._show_all_proposed()
        self._know(replace(self.facts, step=done.step, spending=self.facts.spending.with_reply(done)))

    def _show_all_proposed(self) -> None:
        for call_id in tuple(self._proposed):
            self._show_proposed(call_id)

    def _show_proposed(self, call_id: str) -> None:
        self._calls[call_id] = self._add(CallCard(self._proposed.pop(call_id)))

    def _call(self, changed: CallChanged, at: float | None) -> None:
        if changed.status is CallStatus.PROPOSED:  # what else goes on beside a reply does not cut it
            self._end_thought()
            self._end_text()
            self._end_writing()
        self._proposed.pop(changed.call.id, None)
        known = self._calls.get(changed.call.id)
        result = changed.result
        if changed.status is CallStatus.FINISHED and result is not None:
            self._calls.pop(changed.call.id, None)
            if changed.flow is not Flow.RUN and result.outcome in (Outcome.OK, Outcome.INTERRUPTED):
                self._finish_saying(changed, result, known)
                return
        if known is not None:
            self._move_on(known, changed, at)
        elif changed.status is CallStatus.PROPOSED and not self._live:
            # In a log a call comes before the reply that it stands in; where it stands there is known then.
            if changed.flow is Flow.RUN:
                self._proposed[changed.call.id] = changed
        elif changed.flow is Flow.RUN or changed.status is CallStatus.FINISHED:
            entry = self._add(CallCard(changed, since=at if changed.status is CallStatus.RUNNING else None))
            if changed.status is not CallStatus.FINISHED:
                self._calls[changed.call.id] = entry

    def _move_on(self, entry: PageEntry, changed: CallChanged, at: float | None) -> None:
        if isinstance(entry.item, CallCard):
            self._change(entry, entry.item.moved(changed, at))

    def _finish_saying(self, changed: CallChanged, result: CallResult, known: PageEntry | None) -> None:
        """Show what a call said that does not run: an answer to the model's question is the user's own."""
        if known is not None:
            self._change(known, None)
        if changed.flow is Flow.ASK and result.outcome is Outcome.OK:
            self._add(SaidItem(plain(result.content)))

    def _print(self, call_id: str, text: str) -> None:
        entry = self._calls.get(call_id)
        if entry is not None and isinstance(entry.item, CallCard):
            self._change(entry, with_output(entry.item, text))

    def _answered(self, closed: QuestionClosed) -> None:
        question = self._questions.pop(closed.question_id, None)
        self.facts_version = self.version
        if closed.option is None or question is None:
            return
        if question.kind is QuestionKind.FOLLOWUP:
            self._add(ProseItem(question.text))
        where = f" {elsewhere(closed.by)}" if closed.by else ""
        said = f"Answered{where}: {ANSWERS[closed.option]}."
        self.answered[closed.question_id] = said
        while len(self.answered) > _MOST_ANSWERED:
            self.answered.popitem(last=False)
        self._add(Note(said))

    def _turn_ended(self, ended: TurnEnded, at: float | None) -> None:
        self._end_reply()
        self._calls.clear()
        self._proposed.clear()
        outcome = ended.outcome
        answer = outcome.text.removeprefix(self._presented).strip() if self._presented else outcome.text
        self._presented = ""
        if outcome.completed and answer.strip():
            self._add(ProseItem(answer))
        if (error := outcome.error) is not None:
            self._add(Problem(describe_failure(error, self._model), facts_of(error), advice(error, self._model)))
        files = tuple(seen_from(self._root, change) for change in outcome.changes)
        seconds = None if at is None or self._began is None else at - self._began
        self._add(TurnEnd(outcome, files, seconds))
        self._know(self.facts.after_turn(outcome))
