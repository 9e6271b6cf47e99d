"""The files in which a folder names MCP servers for several programs, each read as its own program reads it: pure."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec

from treadle.store.activation import SERVER_FILES, SERVERS_AMONG_OTHERS

_LONGEST_SECONDS = 86_400
"""A time limit beyond this is one in milliseconds: as seconds it would be days."""

_GEMINI = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_OPENCODE = re.compile(r"\{env:([A-Za-z_]\w*)\}")
_TABLES = ("mcpServers", "servers")
_BESIDE = frozenset({"inputs"})
_UNUSED = (
    *("disabledTools", "disabled_tools", "excludeTools", "enabled_tools", "includeTools", "envFile", "oauth", "auth"),
    *("env_file", "headersHelper"),
)
"""Entries that programs read and Treadle does not."""


def file_order(path: str) -> int:
    """Give the place of a file among the others: of two servers with one name that of the first file is used."""
    return SERVER_FILES.index(path.casefold())


def read_entries(path: str, content: bytes) -> Mapping[str, Any]:
    """Read the servers of a file by their names, each as `.mcp.json` has it. Raises `ValueError` with the reason."""
    text = content.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return {}
    if path.casefold().endswith(".toml"):
        import tomllib

        try:
            table: Any = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ValueError(f"it is not valid TOML ({error})") from error
    else:
        table = json_with_comments(text)
    key, write = _FORMS.get(PurePosixPath(path.casefold()).name if "opencode" in path else path.casefold(), _USUAL)
    if not isinstance(table, dict):
        raise ValueError(f'it holds no table "{key}"')  # noqa: TRY004 - as every other mistake in it
    there = next((one for one in (key, *_TABLES) if one in table), "")
    is_other = path.casefold() in SERVERS_AMONG_OTHERS or all(one in _BESIDE or one.startswith("$") for one in table)
    listed = table[there] if there else {} if is_other else None
    if not isinstance(listed, dict):
        raise ValueError(f'it holds no table "{key}"')  # noqa: TRY004 - as above
    return {str(name): write(said) if isinstance(said, dict) else said for name, said in listed.items()}


def unused_entries(said: object) -> tuple[str, ...]:
    """Name what an entry of a server says that is not used."""
    return tuple(key for key in _UNUSED if isinstance(said, Mapping) and said.get(key))


def usual_entry(said: Mapping[str, Any]) -> dict[str, Any]:
    """Write an entry as it is meant: a command in one list, a table `transport`, numbers as texts, milliseconds."""
    entry = dict(said)
    if isinstance(entry.get("transport"), dict):
        entry = {**entry, **entry.pop("transport")}
    if isinstance(entry.get("command"), list) and entry["command"]:
        first, *rest = entry["command"]
        entry["command"], entry["args"] = first, [*rest, *(entry.get("args") or ())]
    for key in ("env", "headers"):
        if isinstance(entry.get(key), dict):
            entry[key] = {name: _text(one) for name, one in entry[key].items() if one is not None}
    if isinstance(entry.get("args"), list):
        entry["args"] = [_text(one) for one in entry["args"]]
    for key in ("timeout", "connectTimeout"):
        if (
            isinstance(entry.get(key), int | float)
            and not isinstance(entry[key], bool)
            and entry[key] > _LONGEST_SECONDS
        ):
            entry[key] = entry[key] / 1000
    return entry


def codex_entry(said: Mapping[str, Any]) -> dict[str, Any]:
    """Write a server of Codex as `.mcp.json` has it."""
    entry = {key: said[key] for key in ("command", "args", "url", "cwd", *_UNUSED) if key in said}
    given = said.get("env_vars")
    named = [one.get("name") if isinstance(one, dict) else one for one in given] if isinstance(given, list) else []
    env = {name: f"${{{name}}}" for name in named if isinstance(name, str)}
    if isinstance(said.get("env"), dict):
        env |= said["env"]
    headers = dict(said["http_headers"]) if isinstance(said.get("http_headers"), dict) else {}
    if isinstance(said.get("env_http_headers"), dict):
        headers |= {name: f"${{{one}}}" for name, one in said["env_http_headers"].items()}
    if isinstance(token := said.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    if headers:
        entry["headers"] = headers
    if env:
        entry["env"] = env
    if said.get("enabled") is False:
        entry["disabled"] = True
    for key, own in (("tool_timeout_sec", "timeout"), ("startup_timeout_sec", "connectTimeout")):
        if key in said:
            entry[own] = said[key]
    return usual_entry(entry)


def _gemini_entry(said: Mapping[str, Any]) -> dict[str, Any]:
    entry = _with_variables(dict(said), _GEMINI)
    if entry.get("httpUrl"):
        entry |= {"url": entry.pop("httpUrl"), "type": "http"}
    elif entry.get("url"):
        entry.setdefault("type", "sse")
    if isinstance(entry.get("timeout"), int | float):
        entry["timeout"] /= 1000
    return usual_entry(entry)


def _opencode_entry(said: Mapping[str, Any]) -> dict[str, Any]:
    entry = _with_variables(dict(said), _OPENCODE)
    kind, url = entry.pop("type", ""), entry.get("url")
    if "environment" in entry:
        entry["env"] = entry.pop("environment")
    if kind == "remote" or (url and kind != "local"):
        entry["type"] = "http"
    if entry.pop("enabled", True) is False:
        entry["disabled"] = True
    if isinstance(entry.get("timeout"), int | float):
        entry["timeout"] /= 1000
    return usual_entry(entry)


_Form = tuple[str, Callable[[Mapping[str, Any]], dict[str, Any]]]
_USUAL: _Form = ("mcpServers", usual_entry)
_FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        ".vscode/mcp.json": ("servers", usual_entry),
        ".codex/config.toml": ("mcp_servers", codex_entry),
        ".gemini/settings.json": ("mcpServers", _gemini_entry),
        "opencode.json": ("mcp", _opencode_entry),
        "opencode.jsonc": ("mcp", _opencode_entry),
    }
)
"""Of files that are not as `.mcp.json` is: the table of the servers, and how an entry becomes one of `.mcp.json`."""


def _with_variables(value: Any, pattern: "re.Pattern[str]") -> Any:
    """Write the variables of a program as `${NAME}`."""
    match value:
        case str():
            return pattern.sub(lambda found: f"${{{next(filter(None, found.groups()))}}}", value)
        case list():
            return [_with_variables(one, pattern) for one in value]
        case dict():
            return {key: _with_variables(one, pattern) for key, one in value.items()}
        case _:
            return value


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def json_with_comments(text: str) -> Any:
    """Read JSON, also with comments and a comma before a closing bracket. Raises `ValueError`."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        try:
            return msgspec.json.decode(_TRAILING.sub(r"\1\2", _COMMENT.sub(r"\1", text)))
        except (msgspec.DecodeError, RecursionError):
            raise ValueError(f"it is not valid JSON ({error})") from error


_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*[\s\S]*?\*/")
_TRAILING = re.compile(rf"{_STRING}|,(\s*[}}\]])")
