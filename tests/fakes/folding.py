"""What surfaces know of a session once they were told of these notifications."""

from collections.abc import Iterable

from treadle.present.fold import fold_notification
from treadle.present.spending_words import Spending
from treadle.present.view import SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import Notification


def view_of(notifications: Iterable[Notification]) -> SessionView:
    """What is true of the session."""
    view = SessionView()
    for one in notifications:
        view, _ = fold_notification(view, Stamped(notification=one))
    return view


def spending_of(notifications: Iterable[Notification]) -> Spending:
    """What it has cost."""
    return view_of(notifications).spending
