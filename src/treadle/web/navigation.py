"""The screens of the page, and those of one session, in the order of the navigation."""

from msgspec import Struct


class PageScreen(Struct, frozen=True):
    """A screen: where it is, what it is called, the key that goes there after `g`, and its icon."""

    path: str
    title: str
    key: str
    icon: str = ""


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
            PageScreen("/settings/general", "General", "e", "gear"),
            PageScreen("/settings/notifications", "Notifications", "", "bell"),
            PageScreen("/devices", "Devices", "d", "phone"),
        ),
    ),
    (
        "Models",
        (
            PageScreen("/settings/providers", "Providers and keys", "", "key"),
            PageScreen("/settings/models", "Models", "", "chip"),
            PageScreen("/settings/budgets", "Budgets", "", "chart"),
        ),
    ),
    (
        "What it may do",
        (
            PageScreen("/policy", "Rules", "p", "shield"),
            PageScreen("/settings/folders", "Trusted folders", "", "folder"),
            PageScreen("/settings/sandbox", "Sandbox", "", "lock"),
        ),
    ),
    (
        "Extend",
        (
            PageScreen("/settings/servers", "MCP servers", "", "plug"),
            PageScreen("/settings/rules", "Rules files and skills", "", "wand"),
            PageScreen("/settings/hooks", "Hooks", "", "branch"),
        ),
    ),
    ("System", (PageScreen("/health", "Health", "h", "flag"), PageScreen("/settings", "All settings", "", "list"))),
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
