"""What happened in a session, item by item, in lines: the same words wherever a person reads along."""

from collections.abc import Iterator
from time import localtime, strftime

from msgspec import Struct

from treadle.present.call_words import end_of, permission_line
from treadle.present.checklist_items import summary_of
from treadle.present.failure_words import facts_of
from treadle.present.fold import fold_notification
from treadle.present.items import (
    AnswerItem,
    CallItem,
    CompactedItem,
    Item,
    ModeItem,
    ModelItem,
    NoteItem,
    Placed,
    ProseItem,
    RetryItem,
    SaidItem,
)
from treadle.present.trial_words import is_lost
from treadle.present.view import SessionView
from treadle.present.words import (
    ANSWERS,
    clip_text,
    describe_call,
    elsewhere,
    enclosed_line,
    room_made,
    span,
    written_by,
)
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import (
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
)
from treadle.protocol.tools import Outcome

PIECES = (TextDelta, ThinkingDelta, CallDelta, CallOutput)
"""What says nothing that the whole message, or the end of the call, does not say."""

_LONGEST = 200

_IN_WORDS = frozenset({Outcome.OK, Outcome.FAILED})
"""Outcomes of which the end of the line says more."""


def note_line(item: Item) -> str:
    """Say in a line what is no message and no call; empty for what is, or what its own place tells."""
    match item:
        case NoteItem(text=text):
            return text
        case AnswerItem(asked=asked, answer=answer):
            where = f" {elsewhere(answer.by)}" if answer.by else ""
            if item.said:
                return permission_line(item, where)
            said = clip_text(answer.text, _LONGEST) or f"{ANSWERS[answer.option]}."
            return f"{clip_text(asked, _LONGEST)} Answered{where}: {said}"
        case ModeItem(mode=mode):
            return f"Mode: {mode}"
        case ModelItem(model=model, why=why):
            return f"Model: {model}{f' ({why})' if why else ''}"
        case CompactedItem(made=made):
            return f"{room_made(made)}."
        case RetryItem(error=error) as retry:
            return f"{error.kind}: {facts_of(error)} {_again(retry)}"
        case _:
            return ""


def _again(retry: RetryItem) -> str:
    if retry.until:
        moment = strftime("%Y-%m-%d %H:%M", localtime(retry.until / 1000))
        return f"Waiting until the limit resets: {moment}, in {span(retry.seconds)}."
    if retry.error.paced:
        return f"Waiting {span(retry.seconds)} for that."
    of = f" of {retry.most}" if retry.most else ""
    return f"Retry {retry.attempt}{of} in {span(retry.seconds)}."


class ProgressLine(Struct, frozen=True):
    """A line, and what it is: prose (no sign), a call that begins (`>`), failed or was in vain (`!`), or else (`~`)."""

    sign: str
    text: str

    @property
    def signed(self) -> str:
        """The line with its sign."""
        return f"{self.sign} {self.text}" if self.sign else self.text


class ProgressLines:
    """Says in lines what happens. Of a turn's end it says nothing: whoever asked is given the answer and the rest.

    A message is said when it is whole, and the calls that began with it after it. `here` is the kind of the surface.
    """

    def __init__(self, here: str) -> None:
        self._here = here
        self._view = SessionView()
        self._begun: set[int] = set()

    def take(self, stamped: Stamped) -> list[ProgressLine]:
        """Give the lines of what happened; most things need none."""
        notification = stamped.notification
        if isinstance(notification, PIECES):
            return []
        self._view, changed = fold_notification(self._view, stamped)
        ended = isinstance(notification, TurnEnded)
        lines = [line for placed in changed for line in self._lines(placed, ended=ended)]
        if isinstance(notification, ChecklistChanged):
            lines.append(ProgressLine("~", f"checklist: {summary_of(notification.text) or 'empty'}"))
        return _in_one(lines)

    def _lines(self, placed: Placed, *, ended: bool) -> Iterator[ProgressLine]:
        match placed.item:
            case None:
                self._begun.discard(placed.position)
            case ProseItem() as prose if not ended:
                yield ProgressLine("", prose.written)
            case SaidItem() as said:
                yield from _said(said)
            case CallItem() as item:
                yield from self._call(placed.position, item)
            case item:
                if line := note_line(item):
                    yield ProgressLine("~", line)

    def _call(self, position: int, item: CallItem) -> Iterator[ProgressLine]:
        changed, result = item.changed, item.changed.result
        name = clip_text(describe_call(changed).text, _LONGEST)
        runs = changed.status is CallStatus.RUNNING or (result is not None and result.outcome is Outcome.OK)
        if runs and position not in self._begun:
            self._begun.add(position)
            yield ProgressLine(">", name)
        if changed.status is CallStatus.FINISHED and result is not None:
            self._begun.discard(position)
            if result.is_error or is_lost(result.copy):
                end = end_of(item, self._here)
                outcome = "" if result.outcome in _IN_WORDS and end else result.outcome.value
                yield ProgressLine("!", ": ".join(filter(None, (name, outcome, end))))


def _said(said: SaidItem) -> Iterator[ProgressLine]:
    if said.by:
        yield ProgressLine("~", f"{written_by(said.by)} {clip_text(said.text, _LONGEST)}")
    elif said.enclosed:
        yield ProgressLine("~", enclosed_line(said.enclosed))
    elif not said.prompt_id:
        yield ProgressLine("~", f"Answered: {clip_text(said.text, _LONGEST)}")


def _in_one(lines: list[ProgressLine]) -> list[ProgressLine]:
    """Put the blocks of a message together that follow on each other."""
    joined: list[ProgressLine] = []
    for line in lines:
        if joined and not line.sign and not joined[-1].sign:
            joined[-1] = ProgressLine("", joined[-1].text + line.text)
        else:
            joined.append(line)
    whole = (ProgressLine(line.sign, line.text.strip()) for line in joined)
    return [line for line in whole if line.text]
