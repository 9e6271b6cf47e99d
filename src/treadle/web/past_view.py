"""The page of what happened in a session before anybody looked."""

from collections.abc import Sequence

from treadle.protocol.notifications import Notification
from treadle.web.page_view import PageView


def viewed(root: str, model: str, past: Sequence[Notification], live: Sequence[Notification] = ()) -> PageView:
    """Make the page of what happened before, and of what is under way and in no log yet."""
    view = PageView(root, model)
    for notification in (*past, *live):
        view.take(notification)
    return view
