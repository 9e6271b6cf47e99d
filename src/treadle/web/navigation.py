"""The screens of the page, and those of one session, in the order of the navigation."""

from msgspec import Struct


class PageScreen(Struct, frozen=True):
    """A screen: where it is, what it is called, and the key that goes there after `g`."""

    path: str
    title: str
    key: str


SCREENS = (
    PageScreen("/", "New session", "n"),
    PageScreen("/sessions", "Sessions", "a"),
    PageScreen("/inbox", "Inbox", "i"),
    PageScreen("/usage", "Usage", "u"),
    PageScreen("/fleet", "Batch runs", "f"),
    PageScreen("/policy", "Rules", "p"),
    PageScreen("/settings/general", "Settings", "e"),
    PageScreen("/health", "Health", "h"),
    PageScreen("/devices", "Devices", "d"),
)
"""Those that are not about one session."""

SESSION_SCREENS = (
    PageScreen("", "Session", "s"),
    PageScreen("/review", "Review", "r"),
    PageScreen("/timeline", "Timeline", "t"),
    PageScreen("/context", "Context", "c"),
    PageScreen("/replay", "Replay", "y"),
    PageScreen("/agents", "Subagents", "b"),
    PageScreen("/share", "Share", "x"),
)
"""Those of one session: the path follows `/s/ID`."""

SETTINGS_GROUPS = (
    (
        "You",
        (
            PageScreen("/settings/general", "General", "e"),
            PageScreen("/settings/notifications", "Notifications", ""),
            PageScreen("/devices", "Devices", "d"),
        ),
    ),
    (
        "Models",
        (
            PageScreen("/settings/providers", "Providers and keys", ""),
            PageScreen("/settings/models", "Models", ""),
            PageScreen("/settings/budgets", "Budgets", ""),
        ),
    ),
    (
        "What it may do",
        (
            PageScreen("/policy", "Rules", "p"),
            PageScreen("/settings/folders", "Trusted folders", ""),
            PageScreen("/settings/sandbox", "Sandbox", ""),
        ),
    ),
    (
        "Extend",
        (
            PageScreen("/settings/servers", "MCP servers", ""),
            PageScreen("/settings/rules", "Rules files and skills", ""),
            PageScreen("/settings/hooks", "Hooks", ""),
        ),
    ),
    ("System", (PageScreen("/health", "Health", "h"), PageScreen("/settings", "All settings", ""))),
)
"""The screens of the settings, and of what is looked after, in their groups."""

SETTINGS_SCREENS = tuple(
    (screen.path, screen.title)
    for _, screens in SETTINGS_GROUPS
    for screen in screens
    if screen.path.startswith("/settings")
)
"""The screens of the settings alone."""

ADMIN_PATHS = frozenset(screen.path for _, screens in SETTINGS_GROUPS for screen in screens)
"""Where the column has the one entry of the settings."""
