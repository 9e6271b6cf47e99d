"""Feeds with what a test puts into them."""

from treadle.engine.runtime.feeds import Feed
from treadle.protocol.attach import Stamped
from treadle.protocol.notifications import Notification


class FakeFeed(Feed):
    """One that begins with some notifications; `tell` adds another."""

    def __init__(self, *notifications: Notification, ends: bool = False) -> None:
        super().__init__()
        self.left = False
        for notification in notifications:
            self.tell(notification)
        if ends:
            self.close()

    def tell(self, notification: Notification) -> None:
        self.put(Stamped(number=0, notification=notification))

    def leave(self) -> None:
        self.left = True
        super().leave()
