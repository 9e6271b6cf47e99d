"""What an import would take, shown before anything is taken; what Treadle has already stays as it is."""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from treadle.app.config.places import config_file, servers_file
from treadle.app.importing.transcripts import (
    MOST_RULES,
    UnreadableError,
    bounded_text,
    hides_something,
    settings_table,
    table_in,
)
from treadle.app.security.approvals import write_rules
from treadle.context.imports import import_paths
from treadle.policy.rulefile import render_rule
from treadle.policy.rules import Rule
from treadle.protocol.errors import StoreError
from treadle.workspace.files.private_file import make_private_folder, write_private
from treadle.workspace.files.text import visible_name


class ImportState(StrEnum):
    """What becomes of one thing: taken; there already; another one is there, which stays; or left out."""

    TAKEN = "take"
    PRESENT = "there already"
    CONFLICT = "yours stays"
    LEFT_OUT = "left out"


class ImportItem(Struct, frozen=True, kw_only=True):
    """One thing: what it is, from which file, to which one where it is taken, and why not else."""

    what: str
    source: Path
    state: ImportState
    target: Path | None = None
    note: str = ""


class ImportPlan(Struct, kw_only=True):
    """All items, and what is to be written for them; `sessions` are folders whose sessions are imported, too."""

    items: list[ImportItem]
    texts: dict[Path, str]
    servers: dict[str, dict[str, Any]]
    rules: list[tuple[Rule, Path]]
    notes: list[str]
    sessions: list[Path]

    @property
    def takes(self) -> int:
        """How many things would be taken."""
        return sum(item.state is ImportState.TAKEN for item in self.items)

    def leave_out(self, what: str, source: Path, why: str) -> None:
        """Add an item that is not taken."""
        self.items.append(ImportItem(what=what, source=source, state=ImportState.LEFT_OUT, note=why))


def empty_plan() -> ImportPlan:
    """Give a plan that takes nothing."""
    return ImportPlan(items=[], texts={}, servers={}, rules=[], notes=[], sessions=[])


def imported_rules_file() -> Path:
    """The policy rules that were taken over."""
    return config_file().parent / "policy.d" / "imported.toml"


def plan_text(plan: ImportPlan, source: Path, name: str) -> None:
    """Plan to copy a rules file for the model into the user's rules folder, under that name."""
    target = config_file().parent / "rules" / name
    try:
        text = bounded_text(source, MOST_RULES)
    except UnreadableError as error:
        plan.leave_out("rules for the model", source, str(error))
        return
    if not text.strip():
        return
    if hides_something(text) or hides_something(name):
        plan.leave_out("rules for the model", source, "it has characters that cannot be seen as they are")
        return
    try:
        present = bounded_text(target, MOST_RULES)
    except UnreadableError as error:
        plan.leave_out("rules for the model", source, f"{target} cannot be used: {error}")
        return
    what = f"rules for the model ({len(text):,} characters)"
    others = import_paths(text)
    if present or target in plan.texts:
        same = present == text or plan.texts.get(target) == text
        state = ImportState.PRESENT if same else ImportState.CONFLICT
        note = "" if same else "the file there is another one"
        plan.items.append(ImportItem(what=what, source=source, state=state, note=note, target=target))
        return
    note = f"files that it names with @ are not copied: {', '.join(others)[:200]}" if others else ""
    plan.items.append(ImportItem(what=what, source=source, state=ImportState.TAKEN, target=target, note=note))
    plan.texts[target] = text


_TEXTS = ("command", "url", "cwd", "type")
_TABLES = ("env", "headers")
_LONGEST_NAME = 128
_MOST_SERVERS = 100
_LARGEST_SERVER = 32 * 1024
"""Characters of one server: all of them together stay far below what is read of a settings file."""


def plan_servers(plan: ImportPlan, source: Path, found: Mapping[str, Any]) -> None:
    """Plan to keep MCP servers, given as `.mcp.json` has them. Of their secrets nothing is shown."""
    target = servers_file()
    try:
        present = table_in(settings_table(target), "mcpServers")
    except UnreadableError as error:
        plan.leave_out(f"{len(found)} MCP servers", source, f"{target} cannot be used: {error}")
        return
    if len(found) > _MOST_SERVERS:
        plan.leave_out(f"{len(found):,} MCP servers", source, f"these are more than {_MOST_SERVERS}")
        return
    for name, value in found.items():
        what = f"MCP server {name[:_LONGEST_NAME]}"
        server = _server(value)
        if server is None or not name.strip() or len(name) > _LONGEST_NAME or hides_something(name):
            plan.leave_out(what, source, "it is not written as an MCP server is")
            continue
        there = present.get(name, plan.servers.get(name))
        if there is None:
            plan.servers[name] = server
            state, note = ImportState.TAKEN, _server_words(server)
        elif there == server:
            state, note = ImportState.PRESENT, ""
        else:
            state, note = ImportState.CONFLICT, "there is another one of this name"
        plan.items.append(ImportItem(what=what, source=source, state=state, note=note, target=target))


def _server(value: object) -> dict[str, Any] | None:
    """Keep of a server what is of the right type; None where that is no server."""
    if not isinstance(value, dict):
        return None
    kept: dict[str, Any] = {}
    for key in (*_TEXTS, *_TABLES, "args", "disabled"):
        one = value.get(key)
        if one is None:
            continue
        texts = [one] if key in _TEXTS else list(one) if key == "args" and isinstance(one, list) else _flat(key, one)
        if key == "disabled" and isinstance(one, bool):
            texts = []
        if texts is None or not all(isinstance(text, str) and "\0" not in text for text in texts):
            return None
        kept[key] = one
    is_server = kept.get("command") or kept.get("url")
    return kept if is_server and len(json.dumps(kept)) <= _LARGEST_SERVER else None


def _flat(key: str, value: object) -> list[object] | None:
    return [*value, *value.values()] if key in _TABLES and isinstance(value, dict) else None


def _server_words(server: Mapping[str, Any]) -> str:
    """Say what a server is without anything that may be a secret: not its arguments, values, or the path of its URL."""
    if server.get("command"):
        said = f"runs {Path(server['command']).name}"
        count = len(server.get("args", ()))
        said += f" with {count} argument{'' if count == 1 else 's'}" if count else ""
    else:
        try:
            host = urlsplit(server["url"]).hostname or "an address"
        except ValueError:
            host = "an address"
        said = f"at {host}"
    hidden = [*server.get("env", ()), *server.get("headers", ())]
    return f"{said}; values of {', '.join(hidden)} are kept and not shown" if hidden else said


def plan_lines(plan: ImportPlan, home: Path) -> Iterator[str]:
    """Show everything, harmless for a terminal."""

    def short(path: Path) -> str:
        text = str(path)
        return visible_name(f"~{text[len(str(home)) :]}" if text.startswith(f"{home}/") else text)

    width = max((len(item.state) for item in plan.items), default=0)
    for item in plan.items:
        to = f" -> {short(item.target)}" if item.target is not None else ""
        yield f"{item.state:<{width}}  {visible_name(item.what)}"
        yield f"{' ' * width}  {short(item.source)}{to}{f' ({visible_name(item.note)})' if item.note else ''}"
    yield from (visible_name(note) for note in plan.notes)


def bytes_of_rule(rule: Rule, source: Path) -> int:
    """Say how much longer the file of imported rules becomes with a rule."""
    return len(f"\n{render_rule(rule, _origin(source))}".encode())


def _origin(source: Path) -> str:
    return f"imported from {visible_name(str(source))}"


def take_over(plan: ImportPlan) -> tuple[Path, ...]:
    """Write what is to be taken; gives the files. Raises `ConfigError` or `StoreError`; what was written stays."""
    written: list[Path] = []
    by_source: dict[Path, list[Rule]] = {}
    for rule, source in plan.rules:
        by_source.setdefault(source, []).append(rule)
    for source, rules in by_source.items():
        if write_rules(rules, imported_rules_file(), note=_origin(source)):
            written.append(imported_rules_file())
    try:
        for target, text in plan.texts.items():
            make_private_folder(target.parent)
            with target.open("x", encoding="utf-8") as stream:  # what came there meanwhile stays
                stream.write(text)
            written.append(target)
        if plan.servers:
            _write_servers(plan.servers)
            written.append(servers_file())
    except (OSError, UnreadableError) as error:
        raise StoreError(
            "import-failed",
            "Not everything could be taken over.",
            why=str(error),
            fix="Fix that and run it again: what is there already is not taken twice.",
        ) from error
    return tuple(dict.fromkeys(written))


def _write_servers(servers: Mapping[str, dict[str, Any]]) -> None:
    """Add servers to the file; it may hold secrets, so it is the owner's alone."""
    table = settings_table(servers_file())
    table["mcpServers"] = {**servers, **table_in(table, "mcpServers")}
    write_private(servers_file(), f"{json.dumps(table, indent=2, ensure_ascii=False)}\n".encode(), mode=0o600)
