"""All items of a session in their order, for whoever shows more than what is new: a page, a pager, an export."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from treadle.present.fold import fold_notification, place_item
from treadle.present.items import CallItem, Item, Placed
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    MessageDone,
    Notification,
    TextDelta,
    ThinkingDelta,
)


class ItemBook:
    """Takes notifications one after the other. `view` is what is true now; versions are the view's.

    Who knows version 7 is brought up to date by the items that changed after 7, whatever was missed: nothing is lost,
    and nothing comes twice. An item that left the conversation, or came back into it, has changed, too.
    """

    def __init__(self, view: SessionView) -> None:
        self.view = view
        self._items: list[Placed] = []
        self._newest: OrderedDict[int, None] = OrderedDict()

    def take(self, stamped: Stamped) -> Sequence[Placed]:
        """Take a notification; gives the items that changed."""
        cuts = self.view.cuts
        self.view, changed = fold_notification(self.view, stamped)
        if self.view.cuts != cuts:
            changed = (*changed, *self._moved_by(cuts))
        self._keep(changed)
        return changed

    def show(self, item: Item, place: Placed | None = None) -> Placed:
        """Show something that no notification tells of, or change it at its place."""
        self.view, changed = place_item(self.view, item, place)
        self._keep(changed)
        return changed[-1]

    def items(self) -> Iterator[Placed]:
        """Give the items that are there."""
        return (one for one in self._items if one.item is not None)

    def item(self, position: int) -> Item | None:
        """Give the item of a position, if there is one."""
        return self._items[position].item if position < len(self._items) else None

    def changed_after(self, version: int) -> Sequence[Placed]:
        """Give the items that changed after a version, in their order; those that are gone, too."""
        found: list[Placed] = []
        for position in reversed(self._newest):
            if self._items[position].version <= version:
                break
            found.append(self._items[position])
        return sorted(found, key=lambda placed: placed.position)

    def before(self, position: int | None, most: int) -> Sequence[Placed]:
        """Give the last items before a position, those that are gone left out."""
        found: list[Placed] = []
        for placed in reversed(self._items[:position]):
            if len(found) == most:
                break
            if placed.item is not None:
                found.append(placed)
        return found[::-1]

    def after(self, position: int, most: int) -> Sequence[Placed]:
        """Give the first items after a position, those that are gone left out."""
        following = islice(self._items, position + 1, None)
        return list(islice((placed for placed in following if placed.item is not None), most))

    def _keep(self, changed: Iterable[Placed]) -> None:
        for placed in changed:
            if placed.position == len(self._items):
                self._items.append(placed)
            else:
                self._items[placed.position] = placed
            self._newest[placed.position] = None
            self._newest.move_to_end(placed.position)

    def _moved_by(self, cuts: object) -> Iterator[Placed]:
        """Give the items that have left the conversation since, or are in it again."""
        before = replace(self.view, cuts=cuts)
        for placed in self._items:
            if self.view.has_left(placed) != before.has_left(placed):
                yield replace(placed, version=self.view.version)


def with_begun_reply(past: Sequence[Stamped], live: Sequence[Notification]) -> Iterator[Stamped]:
    """Put what is under way to what a log tells: the words of a reply come before its calls, which the log has."""
    ended = next((at for at in range(len(past), 0, -1) if isinstance(past[at - 1].notification, MessageDone)), 0)
    calls = (at for at in range(ended, len(past)) if _is_new_call(past[at].notification))
    begun = next(calls, len(past))
    yield from past[:begun]
    yield from (Stamped(notification=one) for one in live if isinstance(one, TextDelta | ThinkingDelta))
    yield from past[begun:]
    yield from (Stamped(notification=one) for one in live if not isinstance(one, TextDelta | ThinkingDelta))


def _is_new_call(notification: Notification) -> bool:
    return isinstance(notification, CallChanged) and notification.status is CallStatus.PROPOSED


def is_settled(item: Item | None) -> bool:
    """Whether an item does not change any more but for leaving the conversation."""
    match item:
        case CallItem(changed=changed):
            return changed.status is CallStatus.FINISHED
        case None:
            return True
        case _:
            return not getattr(item, "growing", False)
