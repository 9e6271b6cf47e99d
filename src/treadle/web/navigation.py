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
    Screen("/usage", "Usage", "u"),
    Screen("/policy", "Policy", "p"),
    Screen("/settings", "Settings", "e"),
    Screen("/health", "Health", "h"),
    Screen("/devices", "Devices", "d"),
)
"""Those that are not about one session."""

SESSION_SCREENS = (
    Screen("", "Live", "l"),
    Screen("/review", "Review", "r"),
    Screen("/timeline", "Timeline", "t"),
    Screen("/context", "Context", "c"),
    Screen("/share", "Share", "x"),
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
