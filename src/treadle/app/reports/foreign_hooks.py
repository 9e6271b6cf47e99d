"""The hooks that a folder has for other programs: read to be named, and never run."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from treadle.app.config.hook_settings import HookEvent
from treadle.app.config.places import read_regular
from treadle.store.activation import CLAUDE_SETTINGS

_LARGEST = 1024 * 1024
_MOST = 200
_FILES = {
    ".cursor/hooks.json": "Cursor",
    ".codex/hooks.json": "Codex",
    ".codex/config.toml": "Codex",
    ".gemini/settings.json": "Gemini",
    ".windsurf/hooks.json": "Windsurf",
    ".qwen/settings.json": "Qwen Code",
    ".augment/settings.json": "Augment",
    ".factory/settings.json": "Factory",
}
_PLACES = (
    (".github/hooks", "*.json", "Copilot"),
    (".clinerules/hooks", "*", "Cline"),
    (".kiro/hooks", "*.hook", "Kiro"),
    (".kiro/agents", "*.json", "Kiro"),
    (".amazonq/cli-agents", "*.json", "Amazon Q"),
    (".gemini/extensions", "*/hooks/hooks.json", "Gemini"),
    (".opencode/plugin", "*.[jt]s", "OpenCode"),
    (".opencode/plugins", "*.[jt]s", "OpenCode"),
)


_SWITCHES = frozenset({"enabled", "disabled", "notifications"})
"""What stands among the events of other programs and is none."""

_MATCHERS = {"": "", "read": "Read", "edit": "Edit|Write", "run": "Bash", "mcp": "mcp__.*"}
_BEFORE = {
    "read": "beforeReadFile beforeTabFileRead pre_read_code",
    "edit": "pre_write_code",
    "run": "beforeShellExecution pre_run_command",
    "mcp": "beforeMCPExecution pre_mcp_tool_use",
    "": "BeforeTool",
}
_AFTER = {
    "read": "post_read_code",
    "edit": "afterFileEdit afterTabFileEdit post_write_code",
    "run": "afterShellExecution post_run_command",
    "mcp": "afterMCPExecution post_mcp_tool_use",
    "": "AfterTool",
}
_SAME = {
    HookEvent.SESSION_START: "TaskStart TaskResume agentSpawn",
    HookEvent.USER_PROMPT_SUBMIT: "beforeSubmitPrompt BeforeAgent pre_user_prompt userPromptSubmitted",
    HookEvent.STOP: "AfterAgent TaskComplete post_cascade_response agentStop",
    HookEvent.STOP_FAILURE: "TaskCancel errorOccurred",
    HookEvent.PRE_COMPACT: "PreCompress",
}
_MOMENTS = {
    **{str(event).casefold(): (event, "") for event in HookEvent},
    **{name.casefold(): (event, "") for event, names in _SAME.items() for name in names.split()},
    **{
        name.casefold(): (event, _MATCHERS[what])
        for event, table in ((HookEvent.PRE_TOOL_USE, _BEFORE), (HookEvent.POST_TOOL_USE, _AFTER))
        for what, names in table.items()
        for name in names.split()
    },
}
"""Our moment for those of Cursor, Gemini, Cline, Windsurf, Copilot, Kiro and Codex, and the matcher that it takes."""


class ForeignHook(Struct, frozen=True):
    """One hook of another program: when it would run, what, and in which file; `why` it does not run here."""

    event: str
    matcher: str
    command: str
    file: str
    why: str


def foreign_hooks(workspace: Path) -> Iterator[ForeignHook]:
    """Name the hooks of other programs in a folder; a file that cannot be read is named, too."""
    for name, program in _FILES.items():
        content = _content(workspace / name)
        if content is not None:
            yield from _in_file(name, content, program)
    for folder, pattern, program in _PLACES:
        for file in sorted((workspace / folder).glob(pattern))[:_MOST]:
            name = file.relative_to(workspace).as_posix()
            content = _content(file) if file.suffix == ".json" else None
            if content is not None:
                yield from _in_file(name, content, program)
            elif file.is_file() and (program != "Cline" or file.suffix.lower() in ("", ".ps1")):
                event = file.name.partition(".")[0]
                yield ForeignHook(event, "", file.name, name, _why(program, event if program == "Cline" else ""))


def unreadable_settings(workspace: Path) -> Iterator[tuple[str, str]]:
    """Name the settings of Claude Code in a folder that cannot be read, with the reason."""
    for name in CLAUDE_SETTINGS:
        content = _content(workspace / name)
        try:
            table = json.loads(content) if content and content.strip() else {}
            if not isinstance(table, dict) or not isinstance(table.get("hooks") or {}, dict):
                yield name, "its hooks are no table"
        except (ValueError, RecursionError) as error:
            yield name, f"it is not valid JSON ({error})"


def _in_file(name: str, content: str, program: str) -> Iterator[ForeignHook]:
    import tomllib

    try:
        table: Any = tomllib.loads(content) if name.endswith(".toml") else json.loads(content or "{}")
    except (ValueError, RecursionError) as error:
        if "hooks" in content:
            yield ForeignHook("?", "", "", name, f"{_why(program)}; it cannot be read ({error})")
        return
    hooks = table.get("hooks") if isinstance(table, dict) else None
    if hooks and not isinstance(hooks, Mapping):
        yield ForeignHook("?", "", "", name, _why(program))
    found = hooks if isinstance(hooks, Mapping) else {}
    for event, groups in ((key, value) for key, value in found.items() if key not in _SWITCHES):
        for group in groups if isinstance(groups, list) else (groups,):
            for matcher, command in _commands(group):
                yield ForeignHook(str(event), matcher, command, name, _why(program, str(event)))


def _commands(group: Any) -> Iterator[tuple[str, str]]:
    """Give what a group of handlers runs, and for what; a group may be a handler itself."""
    if not isinstance(group, Mapping):
        yield "", str(group)
        return
    matcher = group.get("matcher")
    inside = group.get("hooks")
    for one in inside if isinstance(inside, list) else (group,):
        keys = ("command", "bash", "powershell", "prompt", "url", "type")
        said = next((one[key] for key in keys if one.get(key)), "") if isinstance(one, Mapping) else one
        yield matcher if isinstance(matcher, str) else "", str(said)


def _why(program: str, event: str = "") -> str:
    """Say why a hook does not run, and under which event of ours it would; an `event` is empty where none is named."""
    why = f"a hook of {program}, and Treadle runs only those of its own form, which is that of Claude Code"
    moment, matcher = _MOMENTS.get(event.casefold(), ("", ""))
    if event and not moment:
        return f"{why}; Treadle has no such event (docs/hooks.md lists those that it has)"
    where = f"[[hooks.{moment}]]" if moment else "[[hooks.EVENT]]"
    matched = f' with matcher = "{matcher}"' if matcher else ""
    return (
        f"{why}; to use it, write it as {where}{matched} in .treadle/config.toml, and read docs/hooks.md for its JSON"
    )


def _content(file: Path) -> str | None:
    try:
        found = read_regular(file, _LARGEST)
    except OSError:
        return None
    return None if found is None else found.decode("utf-8-sig", errors="replace")
