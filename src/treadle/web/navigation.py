"""The screens of the page, and those of one session, in the order of the navigation."""

from msgspec import Struct


class PageScreen(Struct, frozen=True):
    """A screen: where it is, what it is called, and the key that goes there after `g`."""

    path: str
    title: str
    key: str


SCREENS = (
    PageScreen("/", "Sessions", "s"),
    PageScreen("/inbox", "Inbox", "i"),
    PageScreen("/usage", "Usage", "u"),
    PageScreen("/policy", "Policy", "p"),
    PageScreen("/settings", "Settings", "e"),
    PageScreen("/health", "Health", "h"),
    PageScreen("/devices", "Devices", "d"),
)
"""Those that are not about one session."""

SESSION_SCREENS = (
    PageScreen("", "Live", "l"),
    PageScreen("/review", "Review", "r"),
    PageScreen("/timeline", "Timeline", "t"),
    PageScreen("/context", "Context", "c"),
    PageScreen("/share", "Share", "x"),
)
"""Those of one session: the path follows `/s/ID`."""

SETTINGS_SCREENS = (
    ("/settings", "Settings"),
    ("/settings/providers", "Providers"),
    ("/settings/models", "Models"),
    ("/settings/servers", "MCP servers"),
    ("/settings/rules", "Rules and skills"),
    ("/settings/hooks", "Hooks"),
    ("/settings/folders", "Trusted folders"),
)
"""The screens of the settings."""
