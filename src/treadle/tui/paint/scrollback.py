"""What of a session goes to the scrollback, where nothing changes any more: items in their order, once they settle."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby

from msgspec.structs import replace

from treadle.door.open_session import SessionAccess
from treadle.present.call_words import allowed_before, answered_elsewhere, permission_line, said_of
from treadle.present.checklist_items import todo_of
from treadle.present.fold import fold_notification
from treadle.present.item_book import is_settled, with_begun_reply
from treadle.present.items import (
    AnswerItem,
    CallItem,
    ChecklistItem,
    CompactedItem,
    Item,
    ModeItem,
    ModelItem,
    NoteItem,
    OwnCommandItem,
    Placed,
    ProseItem,
    RetryItem,
    SaidItem,
    ThoughtItem,
    WritingItem,
)
from treadle.present.view import SessionView
from treadle.present.words import ANSWERS, counted, describe_call, elsewhere, room_made, written_by
from treadle.protocol.attach import SessionStatus, Stamped
from treadle.protocol.notifications import ConversationRewound, QuestionClosed, ReplyDropped
from treadle.protocol.permissions import QuestionKind
from treadle.protocol.tools import Outcome, ToolKind
from treadle.tui.paint.printed_items import CallLine, DiffItem, LivingItem, PrintedItem, ReadsLine

_KEPT = 400
"""How many of the newest items are kept for the pager."""

_BROKE_OFF = NoteItem("The reply broke off. The part of it above is not used.", warns=True)
_CALLS_CUT = NoteItem("The reply was stopped. What its calls above brought is not used.", warns=True)


class Scrollback:
    """Takes notifications, and gives what is to be printed. `here` is the surface, as the log names it: `tui:main`.

    What is not printed yet is drawn below. An item is printed when it is settled and all before it is printed; the diff
    that is asked about stands above its question at once. Reads are held back, as long as more may follow.
    """

    def __init__(self, view: SessionView, here: str) -> None:
        self.view = view
        self._here = here
        self._items: OrderedDict[int, Placed] = OrderedDict()
        self._next = 0
        self._reads: OrderedDict[int, CallLine] = OrderedDict()
        self._asked = ""
        self._diffs: dict[str, str] = {}
        self._unsure: set[int] = set()
        self._aloud: Callable[[Item], str] = _nothing

    def take(self, stamped: Stamped) -> list[PrintedItem]:
        """Take a notification; gives what is printed now."""
        printed = [item for _, item in self._take(stamped)]
        if isinstance(stamped.notification, ConversationRewound) and (left := self.just_left):
            words = f"{counted(len(left), 'message')} left the conversation, with all that followed."
            printed.append(NoteItem(f"{words} That is still printed above, but the model does not see it."))
        return printed

    def take_past(self, past: Iterable[Stamped], aloud: Callable[[Item], str] | None = None) -> list[PrintedItem]:
        """Take what happened before; gives what was printed of it, and of what left the conversation a line."""
        self._aloud = aloud or _nothing
        printed = [one for stamped in past for one in self._take(stamped)]
        self._aloud = _nothing
        shown: list[PrintedItem] = []
        for left, found in groupby(printed, lambda one: self.view.left_at(one[0])):
            items = [item for _, item in found]
            shown += [_left(items)] if left else items
        return shown

    def begin(self, status: SessionStatus) -> list[PrintedItem]:
        """Take from the session itself what no log tells, or tells only in part; gives what stands above a question."""
        self.view = replace(
            self.view,
            phase=status.phase,
            mode=status.mode,
            model=status.model,
            active=status.turn_active,
            queue=status.queue,
            held=status.held,
            questions=status.questions,
            allowances=status.allowances,
        )
        return [item for _, item in self._ask()]

    def answered_elsewhere(self, closed: QuestionClosed) -> str:
        """Say that the question that this closes was answered on another surface; to be called before it is taken."""
        asked = next((one for one in self.view.questions if one.id == closed.question_id), None)
        return answered_elsewhere(asked, closed, self._here)

    def rest(self) -> list[PrintedItem]:
        """Give what is held back, for when nothing follows."""
        reads = tuple(self._reads.values())
        self._reads.clear()
        return [ReadsLine(reads)] if reads else []

    @property
    def just_left(self) -> Sequence[str]:
        """The newest messages that the last way back took out of the conversation; none once another one was sent."""
        if not self.view.cuts:
            return ()
        last, left = self.view.cuts[-1], list[str]()
        for placed in reversed(self._items.values()):
            if placed.seq <= last.to:
                break
            if isinstance(placed.item, SaidItem):
                if placed.seq > last.seq:
                    return ()
                left.append(placed.item.text)
        return left[::-1]

    @property
    def newest(self) -> Iterator[Placed]:
        """The newest items, in their order."""
        return (placed for placed in self._items.values() if placed.item is not None)

    @property
    def unprinted(self) -> Iterator[LivingItem]:
        """What is to be drawn below: what is held back, what still changes, and what waits behind it."""
        if self._reads:
            yield ReadsLine(tuple(self._reads.values()))
        position = self._next
        while (placed := self._items.get(position)) is not None:
            position += 1
            if isinstance(placed.item, WritingItem | CallItem | ProseItem | ThoughtItem) and not _is_ready(placed.item):
                yield placed.item
            elif placed.item is not None:
                yield from self._lines(placed.item)

    def _take(self, stamped: Stamped) -> Iterator[tuple[int, PrintedItem]]:
        """Give what is printed now, each with the event of the log with which it came."""
        self.view, changed = fold_notification(self.view, stamped)
        withdrawn = False
        for placed in changed:
            self._items[placed.position] = placed
            if placed.item is None and self._reads.pop(placed.position, None) is None:
                withdrawn = withdrawn or placed.position in self._unsure
        if withdrawn:
            yield self.view.seq, _why_withdrawn(stamped)
        if not self.view.reply.items:
            self._unsure.clear()
        for seq, item in chain(self._settled(), self._ask()):
            if self._reads:
                yield from ((seq, reads) for reads in self.rest())
            yield seq, item
        while len(self._items) > _KEPT and next(iter(self._items)) < self._next:
            self._items.popitem(last=False)

    def _settled(self) -> Iterator[tuple[int, PrintedItem]]:
        while (placed := self._items.get(self._next)) is not None and _is_ready(placed.item):
            for item in self._lines(placed.item):
                if isinstance(item, CallLine) and is_read(item):
                    self._reads[placed.position] = item
                else:
                    yield placed.seq, item
                if isinstance(item, ProseItem | CallLine) and self.view.reply.items:
                    self._unsure.add(placed.position)  # its reply may still be withdrawn
            if isinstance(placed.item, CallItem):
                self._diffs.pop(placed.item.changed.call.id, None)
            self._next += 1

    def _ask(self) -> Iterator[tuple[int, DiffItem]]:
        """Give the diff that the first question is about, once."""
        question = next(iter(self.view.questions), None)
        if question is None or question.id == self._asked:
            return
        self._asked = question.id
        preview = question.preview
        if preview is not None and preview.is_diff and question.denial is None:
            self._diffs[question.call_id] = preview.text
            yield self.view.seq, DiffItem(preview.text)

    def _lines(self, item: Item | None) -> Iterator[PrintedItem]:
        """Give what a settled item leaves in the scrollback."""
        if not isinstance(item, CallItem):
            if item is not None:
                yield from printed_items(item, self._here)
                yield from (NoteItem(words) for words in (self._aloud(item),) if words)
            return
        changed, shown = item.changed, self._diffs.get(item.changed.call.id)
        diff = changed.preview.text if changed.preview is not None and changed.preview.is_diff else ""
        if diff and item.asked and shown is None:
            yield DiffItem(diff)
            shown = diff
        answer = said_of(item, self._here)
        if not answer:
            answer = allowed_before(changed.decision, {allowance.id for allowance in self.view.allowances})
        yield CallLine(item, answer, "" if diff == shown else diff)


def open_scrollback(
    live: SessionAccess, aloud: Callable[[Item], str] | None = None
) -> tuple[Scrollback, list[PrintedItem]]:
    """Begin with a session; gives also what was printed of what happened in it before.

    `aloud` gives the words for what the rows around the input show otherwise: changes of the mode, and retries.
    """
    status = live.status
    view = SessionView(root=str(live.workspace), model=status.model, allowances=status.allowances)
    scrollback = Scrollback(view, live.source.name)
    shown = scrollback.take_past(with_begun_reply(live.past, live.opening), aloud)
    return scrollback, [*shown, *scrollback.begin(status)]


def _nothing(item: Item) -> str:  # noqa: ARG001 - as it is called
    return ""


def _is_ready(item: Item | None) -> bool:
    """Whether an item can be printed; what is being written is not: it becomes a call."""
    return is_settled(item) and not isinstance(item, WritingItem)


def printed_items(item: Item, here: str) -> Iterator[PrintedItem]:
    """Give what an item leaves in the scrollback, all but calls: nothing, itself, or a note in words."""
    match item:
        case SaidItem(by=by):
            if by:
                yield NoteItem(written_by(by))
            yield item
        case AnswerItem():
            yield from _answer(item, here)
        case ChecklistItem(markdown=markdown):
            if all(todo.done for todo in todo_of(markdown)):
                yield item
        case CompactedItem(made=made):
            yield NoteItem(f"{room_made(made)}.", warns=True)
        case ModelItem(model=model, why=why):
            yield NoteItem(f"Model: {model}{f' ({why})' if why else ''}")
        case ModeItem() | RetryItem() | WritingItem() | CallItem() | OwnCommandItem():
            return  # the rows around the input show them
        case _:
            yield item


def _answer(item: AnswerItem, here: str) -> Iterator[PrintedItem]:
    """Say how a question was answered that is about no call."""
    answer = item.answer
    where = f" {elsewhere(answer.by)}" if answer.by and answer.by != here else ""
    if item.kind is QuestionKind.GUIDANCE:
        yield NoteItem(item.asked, warns=True)
        if where:
            yield NoteItem(f"Answered{where}:")
        yield SaidItem(answer.text)
    elif item.said:
        yield NoteItem(permission_line(item, where))
    else:
        yield NoteItem(f"{item.asked} Answered{where}: {answer.text or ANSWERS[answer.option]}.")


def is_read(one: CallLine) -> bool:
    """Whether reads like this can be one line: it went well without a question."""
    changed = one.item.changed
    well = changed.result is not None and changed.result.outcome is Outcome.OK
    return changed.kind is ToolKind.READ and well and not one.answer and describe_call(changed).verb == "Read"


def _why_withdrawn(stamped: Stamped) -> NoteItem:
    dropped = stamped.notification
    return _CALLS_CUT if isinstance(dropped, ReplyDropped) and dropped.kept is not None else _BROKE_OFF


def _left(items: Sequence[PrintedItem]) -> NoteItem:
    turns = sum(isinstance(item, SaidItem) for item in items)
    return NoteItem(f"{counted(max(1, turns), 'turn')} left the conversation.")
