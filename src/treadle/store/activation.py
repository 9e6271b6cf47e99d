"""What of a folder would act in Treadle or in its programs once the folder is trusted: pure, from names and bytes."""

from collections.abc import Iterable
from enum import StrEnum
from hashlib import sha256

import msgspec
from msgspec import Struct

from treadle.protocol.patterns import regex


class ActiveKind(StrEnum):
    """What an item would do."""

    RULES = "rules"
    SKILL = "skill"
    COMMAND = "command"
    AGENT = "agent"
    SETTINGS = "settings"
    SERVERS = "servers"
    HOOK = "hook"
    SESSION_HOOK = "session hook"
    GIT = "git"


class ActiveFile(Struct, frozen=True, order=True):
    """One file that would act: its path (relative in the folder, absolute above it), and the digest of what acts."""

    path: str
    kind: ActiveKind
    digest: str


RULE_FILES = (
    *("agents.override.md", "agents.md", "claude.md", "claude.local.md", "gemini.md"),
    *(".claude/claude.md", ".clinerules", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md"),
)
"""Files with rules for the model, in small letters."""

NESTED_RULE_FILES = RULE_FILES[:5]
"""Those that apply in any folder."""

RULE_FOLDERS = {
    ".clinerules": ("",),
    ".claude/rules": (".md",),
    ".cursor/rules": (".mdc", ".md"),
    ".github/instructions": (".instructions.md",),
    ".windsurf/rules": (".md",),
}
"""Folders of rules, and the endings of the files in them, at any depth, that are rules."""

NESTED_RULE_FOLDERS = (".claude/rules", ".cursor/rules")
"""Those that apply in any folder, to what is in it."""

COMMAND_FOLDERS = {
    ".treadle/commands": ".md",
    ".claude/commands": ".md",
    ".clinerules/workflows": ".md",
    ".cursor/commands": ".md",
    ".opencode/command": ".md",
    ".opencode/commands": ".md",
    ".gemini/commands": ".toml",
    ".github/prompts": ".prompt.md",
    ".windsurf/workflows": ".md",
    ".roo/commands": ".md",
}
"""Folders of commands, and how the files in them, at any depth, end that are commands."""

_NO_RULES = (".clinerules/workflows/", ".clinerules/hooks/", ".clinerules/skills/")
SKILL_FOLDERS = (
    *(".agents/skills", ".treadle/skills", ".claude/skills", ".cursor/skills", ".github/skills", ".codex/skills"),
    *(".gemini/skills", ".cline/skills", ".clinerules/skills", ".opencode/skill", ".opencode/skills", ".roo/skills"),
    ".windsurf/skills",
)
"""Folders of skills, each in a folder of its own."""

AGENT_FOLDERS = (
    *(".agents/agents", ".treadle/agents", ".claude/agents", ".opencode/agents", ".opencode/agent", ".gemini/agents"),
)
"""Folders of subagents, in the order in which they go before each other: Markdown files, at any depth."""

SKILL_FILE = "SKILL.md"
_RULES = frozenset(RULE_FILES)
SERVER_FILES = (
    *(".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".codex/config.toml", ".gemini/settings.json"),
    *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc", ".roo/mcp.json"),
    *(".kilocode/mcp.json", ".amazonq/mcp.json", ".junie/mcp/mcp.json", ".windsurf/mcp_config.json"),
)
"""Files that name MCP servers, each for its own program, in the order in which they go before each other."""

SERVERS_AMONG_OTHERS = {
    ".codex/config.toml": b"mcp_servers",
    ".gemini/settings.json": b"mcpServers",
    "opencode.json": b'"mcp"',
    "opencode.jsonc": b'"mcp"',
    ".opencode/opencode.json": b'"mcp"',
    ".opencode/opencode.jsonc": b'"mcp"',
}
"""Files with other settings, and what stands in one that names servers."""

_SERVERS = frozenset(SERVER_FILES)
CLAUDE_SETTINGS = (".claude/settings.json", ".claude/settings.local.json")
"""Settings of Claude Code, of which only the hooks act, where the user wants those."""

OF_HOOKS = frozenset({ActiveKind.HOOK, ActiveKind.SESSION_HOOK, ActiveKind.SETTINGS})
"""The kinds of what hooks run, and of what says which there are."""

_CLAUDE_HOOKS = ".claude/hooks/"
_HOOK_KEYS = ("hooks", "disableAllHooks")
_GIT = frozenset({".git", ".git/config", ".git/config.worktree", ".git/info/attributes"})
_CORE = """
    repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol
    abbrev quotepath
"""
_INERT = {
    "core": frozenset(_CORE.split()),
    "remote": frozenset({"url", "fetch", "pushurl", "tagopt"}),
    "branch": frozenset({"remote", "merge", "rebase", "description"}),
    "user": frozenset({"name", "email"}),
}
_SECTION = regex(r"\[\s*([A-Za-z0-9.-]+)(?:\s+\"[^\"\\]*\")?\s*\]")
_SETTING = regex(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*([^\\\"#;]*))?")
_TRANSPORT = regex(r"[A-Za-z0-9+.-]+::")


def active_kind(path: str) -> ActiveKind | None:
    """Tell what a file of the folder (its relative path) would do; None when it does nothing by itself."""
    name = path.casefold()
    if name in _RULES or _in_rule_folder(name):
        return ActiveKind.RULES
    if _is_skill(name):
        return ActiveKind.SKILL
    if any(name.startswith(f"{folder}/") and name.endswith(ending) for folder, ending in COMMAND_FOLDERS.items()):
        return ActiveKind.COMMAND
    if any(name.startswith(f"{folder}/") and name.endswith(".md") for folder in AGENT_FOLDERS):
        return ActiveKind.AGENT
    if name in _SERVERS:
        return ActiveKind.SERVERS
    if name.startswith(".treadle/"):
        return ActiveKind.SETTINGS
    if name in _GIT:
        return ActiveKind.GIT
    if name in CLAUDE_SETTINGS or name.startswith(_CLAUDE_HOOKS):
        return ActiveKind.SESSION_HOOK
    if name.startswith(".git/hooks/") and not name.endswith(".sample"):
        return ActiveKind.HOOK
    return None


def _is_skill(name: str) -> bool:
    folder, _, own = name.removesuffix("/skill.md").rpartition("/")
    return name.endswith("/skill.md") and folder in SKILL_FOLDERS and own != ""


def _in_rule_folder(name: str) -> bool:
    return not name.startswith(_NO_RULES) and any(
        name.startswith(f"{folder}/") and name.endswith(endings) for folder, endings in RULE_FOLDERS.items()
    )


def digest_of(path: str, content: bytes) -> str:
    """Digest what acts of a file: all of it, but of git's settings, and of Claude Code's, only what can run a program.

    Empty when nothing of these settings can, and for settings of other programs that name no servers.
    """
    if path.casefold() in CLAUDE_SETTINGS:
        live = _live_hooks(content)
        return sha256(live).hexdigest() if live else ""
    servers = SERVERS_AMONG_OTHERS.get(path.casefold())
    if servers is not None and servers not in content:
        return ""
    if path.casefold() != ".git/config":
        return sha256(content).hexdigest()
    live = _live_settings(content)
    return sha256(live).hexdigest() if live else ""


def _live_settings(content: bytes) -> bytes:
    """Leave out the settings that no program runs by, as git itself writes them; anything unusual keeps the whole."""
    section, live = "", []
    for line in content.decode(errors="surrogateescape").splitlines():
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        if header := _SECTION.fullmatch(text):
            section = header[1].casefold()
            continue
        setting = _SETTING.fullmatch(text)
        if setting is None:
            return content
        if setting[1].casefold() not in _INERT.get(section, ()) or _TRANSPORT.match(setting[2] or ""):
            live.append(f"{section}.{text}")
    return "\n".join(live).encode(errors="surrogateescape")


def _live_hooks(content: bytes) -> bytes:
    """Leave out of Claude Code's settings what is not about hooks; what cannot be read keeps the whole."""
    try:
        found = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return content
    if not isinstance(found, dict) or not found.get("hooks"):
        return b""
    return msgspec.json.encode({key: found[key] for key in _HOOK_KEYS if key in found}, order="sorted")


def changes(granted: Iterable[ActiveFile], found: Iterable[ActiveFile]) -> tuple[str, ...]:
    """Give the paths of what is new, changed or gone."""
    return tuple(sorted({item.path for item in set(granted) ^ set(found)}))
