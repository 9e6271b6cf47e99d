"""Which MCP servers a folder would have started or connected to, once it is trusted: shown before the yes."""

import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from treadle.app.config.server_files import file_order, read_entries
from treadle.store.activation import ActiveFile, ActiveKind
from treadle.store.active_items import read_item
from treadle.store.trusted_folders import Trust
from treadle.workspace.files.text import visible_name

_MOST = 200
"""With more, none of them is used."""

_LONGEST = 500


def server_lines(trust: Trust) -> Iterator[str]:
    """List the servers of a folder: the exact command line or address, and the variables they are given."""
    items = [one for one in trust.items if one.kind is ActiveKind.SERVERS]
    for item in sorted(items, key=lambda one: file_order(one.path)):
        yield from _lines_of(trust, item)


def _lines_of(trust: Trust, item: ActiveFile) -> Iterator[str]:
    try:
        servers = read_entries(item.path, read_item(trust.workspace, item) or b"")
    except ValueError:
        return
    for name, said in list(servers.items())[:_MOST]:
        for verb, what in _uses(said if isinstance(said, dict) else {}):
            line = visible_name(f"{name}: {what}" if what else str(name))
            more = len(line) - _LONGEST
            yield f"  {verb} {line if more <= 0 else f'{line[:_LONGEST]}… ({more} more characters, see {item.path})'}"
    if len(servers) > _MOST:
        yield f"  There are {len(servers) - _MOST} more. None is used where there are more than {_MOST}."


def _uses(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Say what an entry starts, and what it connects to: of one that names both, which it is depends on its type."""
    arguments = said.get("args") or []
    words = [str(said.get("command")), *map(str, arguments if isinstance(arguments, list) else ())]
    given: list[str] = [] if isinstance(arguments, list) else [_pair("args", arguments)]
    for kind in ("cwd", "env", "headers"):
        value = said.get(kind)
        if value and kind != "cwd" and isinstance(value, dict):
            given += [f"{key}={one}" for key, one in value.items()]
        elif value:
            given.append(_pair(kind, value))
    around = f"  with {', '.join(given)}" if given else ""
    if said.get("command"):
        yield "starts", f"{shlex.join(words)}{around}"
    if said.get("url") or not said.get("command"):
        yield "connects to", f"{said.get('url') or ''}{around}"


def _pair(name: str, value: Any) -> str:
    return f"{name}={msgspec.json.encode(value).decode()}"
