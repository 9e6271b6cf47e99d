"""The page of what happened in a session before anybody looked."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    MessageDone,
    Notification,
    TextDelta,
    ThinkingDelta,
)
from treadle.web.items import CallCard
from treadle.web.page_view import PageContent


def viewed(root: str, model: str, past: Sequence[Notification], live: Sequence[Notification] = ()) -> PageContent:
    """Make the page of what happened before, and of what is under way and in no log yet."""
    view = PageContent(root, model)
    for notification in _in_order(past, live):
        view.take(notification)
    return view


def left_view(root: str, model: str, past: Sequence[Notification]) -> PageContent:
    """Make the page of a session that no process has open: no call of it goes on."""
    view = viewed(root, model, past)
    for entry in tuple(view.entries):
        if isinstance(entry.item, CallCard) and entry.item.changed.status is not CallStatus.FINISHED:
            view.show(replace(entry.item, left=True), entry)
    return view


def _in_order(past: Sequence[Notification], live: Sequence[Notification]) -> Iterator[Notification]:
    """Put the words of the reply that is under way before its calls, which are in the log already."""
    ended = next((at for at in range(len(past), 0, -1) if isinstance(past[at - 1], MessageDone)), 0)
    calls = (at for at in range(ended, len(past)) if _is_new_call(past[at]))
    begun = next(calls, len(past))
    yield from past[:begun]
    yield from (one for one in live if isinstance(one, TextDelta | ThinkingDelta))
    yield from past[begun:]
    yield from (one for one in live if not isinstance(one, TextDelta | ThinkingDelta))


def _is_new_call(notification: Notification) -> bool:
    return isinstance(notification, CallChanged) and notification.status is CallStatus.PROPOSED
