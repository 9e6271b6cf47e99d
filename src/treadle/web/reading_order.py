"""The order in which a reply is read: its words, then its calls, which in a log may have begun before."""

from collections.abc import Iterator, Sequence

from treadle.protocol.messages import ToolUse
from treadle.protocol.notifications import CallChanged, MessageDone, Notification, TextDelta, ThinkingDelta


def reading_order(past: Sequence[Notification], live: Sequence[Notification] = ()) -> Iterator[Notification]:
    """Give what is past, and then what is under way, with each message before the first of its calls."""
    held: list[Notification] = []
    known: set[str] = set()
    for notification in past:
        if isinstance(notification, MessageDone):
            calls = {block.id for block in notification.message.content if isinstance(block, ToolUse)}
            at = _first_call(held, calls)
            yield from held[:at]
            yield notification
            held, known = held[at:], known | calls
        else:
            held.append(notification)
    at = _first_call(held, {one.call.id for one in held if isinstance(one, CallChanged)} - known)
    said = [one for one in live if isinstance(one, TextDelta | ThinkingDelta)]
    yield from held[:at]
    yield from said
    yield from held[at:]
    yield from (one for one in live if not isinstance(one, TextDelta | ThinkingDelta))


def _first_call(held: Sequence[Notification], calls: set[str]) -> int:
    found = (at for at, one in enumerate(held) if isinstance(one, CallChanged) and one.call.id in calls)
    return next(found, len(held))
