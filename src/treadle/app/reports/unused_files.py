"""What a folder has for other agents and Treadle does not use: each file by its folder, and why."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from treadle.app.config.places import read_regular
from treadle.app.security.trusting import SessionTrust
from treadle.present.words import counted
from treadle.store.activation import active_kind
from treadle.workspace.files.walking import walk

_MOST = 2_000
_COPY = "to use one, link or copy it to .clinerules/, or name it with @ in a CLAUDE.md"
_AGENTS = "a subagent of another program: to use one in Markdown, copy it to .agents/agents/"
_NO_AGENT = "agents end in .md"
_RULES = f"rules of another program: {_COPY}"
_SETTINGS = "settings of another program; `treadle import` takes permissions and servers of a person"
_COMMANDS = "a command of another program: to use one, copy it to .treadle/commands/"
_SKILLS = "a skill of another program: to use one, link or copy its folder to .agents/skills/"
_HOOKS = "hooks: `treadle hooks` names each"
_UNKNOWN = "Treadle does not know what it is for"

_ROWS = (
    (".cursor/agents .codex/agents .github/agents .cline/agents .roo/agents .qwen/agents", _AGENTS),
    (".github/chatmodes .roomodes .kilocodemodes", _AGENTS),
    (".agents/agents .claude/agents .gemini/agents .opencode/agent .opencode/agents", _NO_AGENT),
    (".cursor/hooks .cursor/hooks.json .clinerules/hooks .github/hooks .windsurf/hooks.json .codex/hooks", _HOOKS),
    (".codex/hooks.json .gemini/hooks .opencode/plugin .opencode/plugins .kiro/hooks .claude/hooks", _HOOKS),
    (".claude/settings.json .claude/settings.local.json .qwen/settings.json .continue/config.yaml", _SETTINGS),
    (".codex/config.toml .gemini/settings.json opencode.json opencode.jsonc .aider.conf.yml", _SETTINGS),
    (".roo .kilocode .amazonq .junie .trae .augment .continue .kiro .agent .qoder .openhands .qwen", _RULES),
    (".goosehints .rules .roorules .kilocoderules .traerules .augment-guidelines .junierules", _RULES),
    ("qwen.md crush.md warp.md codex.md agent.md replit.md opencode.md", _RULES),
    (".claude/output-styles", "a style of answers of Claude Code: write it to prompts/ (docs/rules.md)"),
    (".claude/skills .agents/skills .cursor/skills", "a skill is a SKILL.md in a folder of its own directly below"),
    (".codex/prompts", "Codex reads prompts of your home folder alone; .treadle/commands is read here"),
    (".cursor/rules", "Cursor reads rules that end in .mdc"),
    (".claude/rules .windsurf/rules", "rules end in .md"),
    (".claude/commands .cursor/commands .clinerules/workflows .opencode/command .roo/commands", "commands end in .md"),
    (".gemini/commands", "commands of Gemini end in .toml"),
    (".claude/mcp.json", "Claude Code reads .mcp.json at the top of the folder alone"),
    (".kiro/settings .continue/mcpservers .amazonq/cli-agents .claude/launch.json .cursor/cli.json", _SETTINGS),
    (".qwen/commands .continue/prompts .agent/workflows .agents/workflows", _COMMANDS),
    (".agent/skills .qwen/skills .kiro/skills .trae/skills .kilocode/skills", _SKILLS),
    (".github/instructions", "instructions end in .instructions.md"),
    (".github/prompts", "prompts end in .prompt.md"),
)
_WHY = MappingProxyType({place: why for places, why in _ROWS for place in places.split()})
"""Why a file or what is in a folder is not used, by its path in small letters; the longest path says it."""

_NAMING = {
    "opencode.json": (b"instructions",),
    "opencode.jsonc": (b"instructions",),
    ".opencode/opencode.json": (b"instructions",),
    ".gemini/settings.json": (b"contextFileName", b"fileName"),
    ".codex/config.toml": (b"project_doc_fallback_filenames", b"model_instructions_file"),
    ".aider.conf.yml": (b"read:",),
}
"""Settings, and the entries in which they name files with rules."""

_LARGEST = 1024 * 1024
_OWNED = (".github/agents", ".github/chatmodes", ".github/instructions", ".github/prompts", ".github/hooks")
"""Folders of agents in a folder that is not all theirs."""

_FOLDERS = """
    .claude .cursor .codex .gemini .opencode .windsurf .clinerules .cline .agents .agent .roo .kilocode .amazonq .junie
    .trae .augment .continue .kiro .qoder .qwen .openhands
"""
_ALL_THEIRS = frozenset(_FOLDERS.split())
_TEXTS = (".md", ".mdc", ".txt", ".toml", ".json", ".jsonc", ".yaml", ".yml", ".hook", "")
_NOT_TOLD = frozenset({".gitignore", ".ds_store", "readme.md", "license", "package.json", "package-lock.json"})


class UnusedFiles(Struct, frozen=True):
    """Files in one folder that are not used for one reason; `place` is the file where it is one."""

    place: str
    count: int
    why: str

    @property
    def many(self) -> str:
        """Say how many there are in a folder; nothing of a single file."""
        return f" ({counted(self.count, 'file')})" if self.place.endswith("/") else ""


def unused_files(trust: SessionTrust) -> tuple[UnusedFiles, ...]:
    """Find what agents of other programs would read in a folder, and Treadle does not."""
    used = {item.path for item in trust.items}
    found: dict[tuple[str, str], list[str]] = {}
    for name in _candidates(trust.workspace):
        if name in used or (active_kind(name) is not None and name.casefold() not in _WHY):
            continue
        folder, why = _reason(name)
        if why:
            found.setdefault((folder, why), []).append(name)
    rows = tuple(
        UnusedFiles(names[0] if len(names) == 1 else f"{folder}/", len(names), why)
        for (folder, why), names in sorted(found.items())
    )
    return (*rows, *_named_rules(trust.workspace))


def _named_rules(workspace: Path) -> Iterator[UnusedFiles]:
    """Name the settings that name further files with rules, which are read nowhere else."""
    for place, keys in _NAMING.items():
        try:
            content = read_regular(workspace / place, _LARGEST) or b""
        except OSError:
            continue
        key = next((one for one in keys if one in content), b"").decode()
        if key:
            yield UnusedFiles(place, 1, f"its {key} names files with rules, which are not read: {_COPY}")


def _reason(name: str) -> tuple[str, str]:
    """Give the folder under which a file is told, and why it is not used."""
    path = name.casefold()
    parents = [path, *(path[:at] for at in range(len(path) - 1, 0, -1) if path[at] == "/")]
    known = next((one for one in parents if one in _WHY), "")
    return (name[: len(known)] if known != path else name, _WHY[known]) if known else (os.path.dirname(name), _UNKNOWN)  # noqa: PTH120


def _candidates(workspace: Path) -> Iterator[str]:
    """Name the texts in folders of agents, but for what belongs to a skill, and the files of agents at the top."""
    try:
        names = sorted(os.listdir(workspace))  # noqa: PTH208 - names suffice
    except OSError:
        return
    yield from (name for name in names if name.casefold() in _WHY and (workspace / name).is_file())
    places = [*(name for name in names if name.casefold() in _ALL_THEIRS), *_OWNED]
    count = 0
    for place in places:
        for folder, folders, files in walk(workspace / place):
            folders[:] = sorted(one for one in folders if one != "node_modules")
            is_skill = "SKILL.md" in files
            if is_skill:
                folders.clear()
            for name in ["SKILL.md"] if is_skill else sorted(files):
                count += 1
                if name.casefold() in _NOT_TOLD or os.path.splitext(name)[1].casefold() not in _TEXTS:  # noqa: PTH122
                    continue
                yield Path(folder, name).relative_to(workspace).as_posix()
            if count > _MOST:
                return
