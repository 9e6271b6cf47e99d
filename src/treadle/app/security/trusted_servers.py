"""Which MCP servers a folder would have started or connected to, once it is trusted: shown before the yes."""

import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from treadle.store.activation import ActiveKind
from treadle.store.trust import Trust, read_item
from treadle.workspace.text import visible_name

_MOST = 50
_LONGEST = 500


def server_lines(trust: Trust) -> Iterator[str]:
    """List the servers of a folder: the exact command line or address, and the variables they are given."""
    item = next((one for one in trust.items if one.kind is ActiveKind.SERVERS), None)
    content = None if item is None else read_item(trust.workspace, item)
    try:
        table = msgspec.json.decode(content or b"{}")
        servers = dict(table["mcpServers"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError):
        return
    for name, said in list(servers.items())[:_MOST]:
        line = visible_name(f"{name}: {_what(said)}") if isinstance(said, dict) else visible_name(str(name))
        verb = "starts" if isinstance(said, dict) and said.get("command") else "connects to"
        yield f"  {verb} {line if len(line) <= _LONGEST else f'{line[:_LONGEST]}…'}"


def _what(said: dict[str, Any]) -> str:
    arguments = said.get("args")
    words = [str(said.get("command", "")), *map(str, arguments if isinstance(arguments, list) else ())]
    what = shlex.join(words) if said.get("command") else str(said.get("url", ""))
    given = [f"{key}={value}" for kind in ("env", "headers") for key, value in dict(said.get(kind) or {}).items()]
    return f"{what}  with {', '.join(given)}" if given else what
