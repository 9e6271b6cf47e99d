"""The page of what happened in a session before anybody looked."""

from collections.abc import Iterator, Sequence

from treadle.protocol.notifications import Notification
from treadle.web.page_view import PageView


def viewed(root: str, model: str, past: Iterator[Notification] | Sequence[Notification]) -> PageView:
    """Make the page of what happened before."""
    view = PageView(root, model)
    for notification in past:
        view.take(notification)
    return view
