"""Where Claude Code, Cline and Codex keep what can be taken over, and how it reads in Treadle."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from treadle.app.compose import tool_specs
from treadle.app.config.places import data_directory
from treadle.app.config.server_files import codex_entry
from treadle.app.importing.cline_session import CLINE_MESSAGES
from treadle.app.importing.foreign_permissions import ImportContext, permission_of
from treadle.app.importing.plan import (
    ImportItem,
    ImportPlan,
    ImportState,
    bytes_of_rule,
    empty_plan,
    imported_rules_file,
    plan_servers,
    plan_text,
)
from treadle.app.importing.transcripts import MOST_SETTINGS, UnreadableError, bounded_text, settings_table, table_in
from treadle.app.security.trusting import session_trust
from treadle.app.servers.approved import approved_servers
from treadle.app.session.commands.judging import policy_context
from treadle.policy.rules import Rule, Ruleset
from treadle.protocol.permissions import Mode, Standing, Verdict
from treadle.store.trusted_folders import TrustState, TrustStore

_MOST_ENTRIES = 1_000
_MOST_FILES = 200
_MOST_SESSIONS = 10_000
_LISTS = (
    ("deny", Verdict.DENY),
    ("ask", Verdict.REQUIRE_USER_CONFIRMATION),
    ("allow", Verdict.ALLOW),
)
MOST_IMPORTED_RULES = 192 * 1024
"""Bytes of the file of imported rules: a larger one would not be used, and then everything asks."""

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_MODES = {"acceptEdits": "edits", "plan": "plan", "bypassPermissions": "full", "default": "ask", "dontAsk": "full"}


def import_plan(program: str, folder: Path) -> ImportPlan:
    """Find what can be taken over from a program; `folder` (resolved) is what commands that are allowed are for."""
    plan = empty_plan()
    PROGRAMS[program](plan, Path.home(), folder)
    plan.notes.append("Rules files of a project (CLAUDE.md, .clinerules, AGENTS.md) are read where they are.")
    return plan


def _claude_code(plan: ImportPlan, home: Path, folder: Path) -> None:
    own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    plan_text(plan, own / "CLAUDE.md", "claude-code.md")
    for file in _rules_files(plan, own / "rules", "*.md", "*/*.md"):
        plan_text(plan, file, f"claude-code-{'-'.join(file.relative_to(own / 'rules').parts)}")
    with _noting(plan, state := _first(own / ".claude.json", home / ".claude.json")):
        table = settings_table(state)
        plan_servers(plan, state, table_in(table, "mcpServers"))
        others = [
            one for one in table_in(table, "projects").values() if isinstance(one, dict) and one.get("mcpServers")
        ]
        if others:
            plan.leave_out(f"MCP servers of {len(others)} projects", state, "they are for single projects")
    settings = own / "settings.json"
    with _noting(plan, settings):
        _permissions(plan, settings, table_in(settings_table(settings), "permissions"), folder)
    local = folder / ".claude" / "settings.local.json"
    with _noting(plan, local):
        permissions = table_in(settings_table(local), "permissions")
        if permissions and not _trusted(folder):
            plan.leave_out("permissions for this folder", local, "the folder is not trusted: `treadle trust`")
        elif permissions:
            _permissions(plan, local, permissions, folder)
    _sessions(plan, own / "projects", "*/*.jsonl")


def _permissions(plan: ImportPlan, file: Path, found: Mapping[str, Any], folder: Path) -> None:
    context = policy_context(str(folder), Standing(mode=Mode.ASK), trusted=_trusted(folder))
    present = {(_meaning(rule), rule.verdict) for rule in context.rules.rules}
    # The same entry gives the same rule, whatever rules there are; what denies or asks goes before it anyway.
    context = replace(context, rules=Ruleset())
    specs = {spec.name: spec for spec in tool_specs()}
    where = ImportContext(context, str(file.parent), specs, approved_servers(session_trust(folder)))
    size = len(bounded_text(imported_rules_file(), MOST_SETTINGS).encode())
    size += sum(bytes_of_rule(rule, source) for rule, source in plan.rules)
    for name, verdict in _LISTS:
        entries = found.get(name, [])
        if not isinstance(entries, list) or len(entries) > _MOST_ENTRIES:
            plan.leave_out(f"permissions.{name}", file, f"it is no list of at most {_MOST_ENTRIES:,}")
            continue
        for entry in entries:
            permission = permission_of(entry, verdict, where)
            what = f"permission {name} {permission.entry}"
            if not permission.rules:
                plan.leave_out(what, file, permission.note)
                continue
            new = [rule for rule in permission.rules if (_meaning(rule), verdict) not in present]
            larger = size + sum(bytes_of_rule(rule, file) for rule in new)
            if larger > MOST_IMPORTED_RULES:
                plan.leave_out(what, file, "the rule file would become too large")
                continue
            size = larger
            present |= {(_meaning(rule), verdict) for rule in new}
            plan.rules += [(rule, file) for rule in new]
            state = ImportState.TAKEN if new else ImportState.PRESENT
            plan.items.append(
                ImportItem(what=what, source=file, state=state, note=permission.note, target=imported_rules_file())
            )
    mode = found.get("defaultMode")
    if isinstance(mode, str) and mode in _MODES:
        plan.leave_out(f"defaultMode {mode}", file, f"choose it yourself: `treadle config set mode {_MODES[mode]}`")
    if found.get("additionalDirectories"):
        plan.leave_out("additionalDirectories", file, "choose them yourself: the setting add_dirs, or --add-dir")


def _meaning(rule: Rule) -> tuple[object, ...]:
    return (rule.tool, rule.tool_digest, rule.argv, rule.exact, rule.path, rule.op, rule.host, rule.workspace)


def _cline(plan: ImportPlan, home: Path, folder: Path) -> None:  # noqa: ARG001 - the others need it
    for rules in (home / "Documents" / "Cline" / "Rules", home / "Cline" / "Rules", home / ".cline" / "rules"):
        for file in _rules_files(plan, rules, "*.md", "*.txt"):
            plan_text(plan, file, f"cline-{file.stem}.md")
    root = Path(os.environ.get("CLINE_DIR") or home / ".cline")
    own = Path(os.environ.get("CLINE_DATA_DIR") or root / "data")
    _sessions(plan, Path(os.environ.get("CLINE_SESSION_DATA_DIR") or own / "sessions"), f"*/*{CLINE_MESSAGES}")
    stores = [own, *(user / "globalStorage" / "saoudrizwan.claude-dev" for user in _editor_folders(home))]
    for store in stores:
        servers, state = store / "settings" / "cline_mcp_settings.json", store / "globalState.json"
        with _noting(plan, servers):
            plan_servers(plan, servers, table_in(settings_table(servers), "mcpServers"))
        with _noting(plan, state):
            actions = table_in(settings_table(state), "autoApprovalSettings", "actions")
            for name, on in islice(actions.items(), _MOST_FILES):
                if on is True:
                    plan.leave_out(
                        f"auto-approve {name[:80]}", state, _CLINE_ACTIONS.get(name, "it would allow too much")
                    )
        _sessions(plan, store / "tasks", "*/api_conversation_history.json")
    plan.notes.append("Auto-approve settings that an editor keeps in its database are not read.")


_CLINE_ACTIONS = {
    "readFiles": "reading in the folder runs without asking already",
    "editFiles": "the mode `edits` does this: `treadle --mode edits`",
    "executeSafeCommands": "what only reads runs without asking already; the rest is judged, not believed",
    "executeAllCommands": "it would allow any command; see the mode `auto`",
}


def _editor_folders(home: Path) -> Iterator[Path]:
    for base in (home / ".config", home / "Library" / "Application Support"):
        yield from (base / editor / "User" for editor in _EDITORS)
    yield home / ".vscode-server" / "data" / "User"


def _codex(plan: ImportPlan, home: Path, folder: Path) -> None:  # noqa: ARG001
    own = Path(os.environ.get("CODEX_HOME") or home / ".codex")
    plan_text(plan, _first(own / "AGENTS.override.md", own / "AGENTS.md"), "codex.md")
    config = own / "config.toml"
    with _noting(plan, config):
        table = settings_table(config)
        servers = table_in(table, "mcp_servers")
        plan_servers(
            plan, config, {name: codex_entry(one) if isinstance(one, dict) else one for name, one in servers.items()}
        )
        for key in ("approval_policy", "sandbox_mode"):
            if key in table:
                said = f"{key} = {str(table[key])[:80]}"
                plan.leave_out(
                    said, config, _CODEX.get(str(table[key])[:80], "choose the mode yourself (docs/policy.md)")
                )
        for name, project in islice(table_in(table, "projects").items(), _MOST_FILES):
            level = project.get("trust_level") if isinstance(project, dict) else None
            if level == "trusted":
                plan.leave_out(
                    f"trust in {name[:200]}", config, "Treadle trusts what you have seen: `treadle trust DIR`"
                )
            elif level is not None:
                plan.leave_out(f"no trust in {name[:200]}", config, "Treadle trusts no folder before you say so")
    _sessions(plan, own / "sessions", "**/rollout-*.json*")
    _sessions(plan, own / "archived_sessions", "**/rollout-*.json*")


_CODEX = {
    "untrusted": "the mode `ask` is this, and the default",
    "on-request": "the mode `ask` is the nearest, and the default",
    "on-failure": "what runs in the sandbox and fails there asks anyway",
    "never": "choose it yourself: the mode `auto`",
    "read-only": "choose it yourself: `treadle config set mode plan`",
    "workspace-write": "choose it yourself: `treadle config set mode edits`",
    "danger-full-access": "choose it yourself: the mode `full`",
}


def _sessions(plan: ImportPlan, folder: Path, pattern: str) -> None:
    """Say how many sessions there are; those are imported."""
    count = len(_files(folder, pattern, _MOST_SESSIONS))
    if count:
        many = f"{count:,} or more" if count == _MOST_SESSIONS else f"{count:,}"
        plan.notes.append(f"Sessions in {folder}: {many}. Those that are not here yet are imported.")
        plan.sessions.append(folder)


def _rules_files(plan: ImportPlan, folder: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        found = _files(folder, pattern)
        yield from found
        if len(found) == _MOST_FILES:
            plan.notes.append(f"Of the rules in {folder} only {_MOST_FILES} ({pattern}) were looked at.")


def _files(folder: Path, pattern: str, most: int = _MOST_FILES) -> list[Path]:
    with suppress(OSError):
        return sorted(islice(folder.glob(pattern), most))
    return []


def _first(*files: Path) -> Path:
    return next((file for file in files if os.path.lexists(file)), files[-1])


def _trusted(folder: Path) -> bool:
    return TrustStore(data_directory() / "trust").read(folder).state is TrustState.TRUSTED


@contextmanager
def _noting(plan: ImportPlan, file: Path) -> Iterator[None]:
    """Say in the plan that a file cannot be used, and take the rest."""
    try:
        yield
    except UnreadableError as error:
        plan.leave_out("all of this file", file, str(error))


PROGRAMS: Mapping[str, Callable[[ImportPlan, Path, Path], None]] = MappingProxyType(
    {"claude-code": _claude_code, "cline": _cline, "codex": _codex}
)
"""What finds the things of each program."""
