"""The screens of the page, and those of one session, in the order of the navigation."""

from msgspec import Struct


class Screen(Struct, frozen=True):
    """A screen: where it is, what it is called, and the key that goes there after `g`."""

    path: str
    title: str
    key: str


SCREENS = (
    Screen("/", "Sessions", "s"),
    Screen("/inbox", "Inbox", "i"),
    Screen("/devices", "Devices", "d"),
)
"""Those that are not about one session."""

SESSION_SCREENS = (
    Screen("", "Live", "l"),
    Screen("/review", "Review", "r"),
    Screen("/timeline", "Timeline", "t"),
)
"""Those of one session: the path follows `/s/ID`."""
