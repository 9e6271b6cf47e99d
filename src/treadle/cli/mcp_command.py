"""MCP servers: list, add and remove them, see whether they work, approve their tools; serve tasks to MCP clients."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.cli.mcp_serve import add_serve, serve_mcp
from treadle.cli.parser import CommandParser
from treadle.protocol.errors import ConfigError

if TYPE_CHECKING:
    from treadle.door.trust import SessionTrust
    from treadle.mcp.states import ServerHealth

_LONGEST_LINE = 16_384


class _VerbParser(CommandParser):
    """Keeps what follows `--` together: it is the command of a server, with options of its own."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        words = list(args or ())
        at = words.index("--") if "--" in words else len(words)
        found, unknown = super().parse_known_args(words[:at], namespace)
        found.command = words[at + 1 :]
        return found, unknown


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_VerbParser)
    listing = verbs.add_parser("list", help="list the servers, with how they are")
    listing.add_argument("--json", action="store_true", help="one JSON object a line")
    listing.add_argument("--offline", action="store_true", help="start and connect to nothing")
    add = verbs.add_parser("add", help="connect to a server, approve its tools as they are, and keep it")
    add.add_argument("name", help="its name; then `--` and its command, or --url")
    add.add_argument("--url", default="", help="the address of a server over HTTP")
    add.add_argument("--sse", action="store_true", help="the address is one of the older HTTP with events")
    add.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable of its program")
    add.add_argument("--header", action="append", default=[], metavar="NAME: VALUE", help="a header of each request")
    add.add_argument(
        "--allow", action="append", default=[], metavar="TOOL", help="never ask for this tool ('*': for any)"
    )
    add.add_argument("--trusted", action="store_true", help="believe the server that a tool only reads")
    add.add_argument("--sampling", action="store_true", help="let it ask the model, each time after a question to you")
    add.add_argument("--no-sandbox", action="store_true", help="run its program outside of the sandbox")
    add.add_argument("--timeout", type=float, metavar="S", help="seconds that a call may take (default: 60)")
    add.add_argument(
        "--project", action="store_true", help="keep it in .mcp.json of the folder, for all who work there"
    )
    remove = verbs.add_parser("remove", help="remove a server, and what was approved of it")
    remove.add_argument("name", help="its name")
    remove.add_argument("--project", action="store_true", help="remove it from .mcp.json of the folder")
    enable = verbs.add_parser("enable", help="use a server that was disabled in new sessions again")
    disable = verbs.add_parser("disable", help="keep a server, and do not use it in new sessions")
    for verb in (enable, disable):
        verb.add_argument("name", help="its name")
        verb.add_argument("--project", action="store_true", help="one of .mcp.json of the folder")
    test = verbs.add_parser("test", help="connect to a server; the exit code is 0 when that works, else 1")
    test.add_argument("name", help="its name")
    test.add_argument("--json", action="store_true", help="one JSON object")
    tools = verbs.add_parser("tools", help="show the tools of a server, and what changed of them")
    tools.add_argument("name", help="its name")
    tools.add_argument("--approve", action="store_true", help="approve them as they are now")
    login = verbs.add_parser("login", help="sign in to a server over HTTP, in the browser of this or another machine")
    login.add_argument("name", help="its name")
    logs = verbs.add_parser("logs", help="show what a server logged and printed")
    logs.add_argument("name", help="its name")
    serve = verbs.add_parser("serve", help="serve tasks to an MCP client, on standard input and output or over HTTP")
    add_serve(serve)
    for verb in (listing, add, remove, enable, disable, test, tools, login, logs):
        verb.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder")


def execute(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    if arguments.command and arguments.verb != "add":
        raise ConfigError("command-unknown", f"`treadle mcp {arguments.verb}` takes no command after `--`.")
    match arguments.verb:
        case "logs":
            return _logs(arguments.name, _trust(arguments))
        case "list":
            return _list(arguments)
        case "add":
            return _add(arguments)
        case "remove":
            from treadle.door.mcp import remove_server

            remove_server(arguments.name, _trust(arguments), project=arguments.project)
            sys.stdout.write(f"Removed {arguments.name}.\n")
            return 0
        case "enable" | "disable":
            from treadle.door.mcp import switch_server

            enabled = arguments.verb == "enable"
            switch_server(arguments.name, _trust(arguments), enabled=enabled, project=arguments.project)
            sys.stdout.write(f"{arguments.name} is {'used' if enabled else 'not used'} in new sessions.\n")
            return 0
        case "test":
            return _test(arguments)
        case "login":
            return _login(arguments)
        case "serve":
            return serve_mcp(arguments)
        case _:
            return _tools(arguments)


def _trust(arguments: argparse.Namespace) -> "SessionTrust":
    from treadle.door.opening import check_workspace
    from treadle.door.trust import session_trust, trusted_by_variable

    return session_trust(check_workspace(arguments.directory), once=trusted_by_variable())


def _list(arguments: argparse.Namespace) -> int:
    from treadle.door.mcp import configured_servers, server_list

    trust = _trust(arguments)

    def tell(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    found = asyncio.run(server_list(trust, connect=not arguments.offline, tell=tell))
    for notice in (*configured_servers(trust).notices, *filter(None, [trust.notice()])):
        sys.stderr.write(f"{notice}\n")
    _write(found, as_json=arguments.json)
    if not found and not arguments.json:
        sys.stderr.write("No MCP servers are configured. Add one: treadle mcp add NAME -- COMMAND\n")
    return 0


def _write(found: "Sequence[ServerHealth]", *, as_json: bool) -> None:
    from treadle.door.mcp import health_lines
    from treadle.protocol.codec import encode

    lines = (encode(one).decode() for one in found) if as_json else health_lines(found)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _add(arguments: argparse.Namespace) -> int:
    from treadle.door.mcp import add_server
    from treadle.door.program import harmless

    health = asyncio.run(add_server(arguments.name, _entry(arguments), _trust(arguments), project=arguments.project))
    if health.signs_in:
        name = harmless(arguments.name)
        sys.stdout.write(
            f"Added {name}. It answers only who has signed in, so its tools are not known yet.\n"
            f"Sign in: treadle mcp login {name}\nThen approve its tools: treadle mcp tools {name} --approve\n"
        )
        return 0
    unused = [f"{name} ({said})" for name, said in health.tools.items() if said.startswith("not used")]
    sys.stdout.write(f"Added {arguments.name} with {_tool_count(health)}, approved as they are now.\n")
    sys.stdout.writelines(f"  {harmless(line)}\n" for line in unused)
    approved = "tools and its instructions" if health.instructions else "tools"
    sys.stdout.write(f"What the model reads of its {approved}: treadle mcp tools {arguments.name}\n")
    return 0


def _entry(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the entry of the file from the flags."""
    if bool(arguments.command) == bool(arguments.url):
        raise ConfigError(
            "mcp-entry",
            f"The MCP server {arguments.name} needs either a command or a --url.",
            fix="treadle mcp add NAME -- COMMAND ARGUMENT..., or: treadle mcp add NAME --url https://...",
        )
    own = ("allow", "trusted", "sampling", "no_sandbox")
    if arguments.project and (said := [name for name in own if getattr(arguments, name)]):
        raise ConfigError(
            "mcp-entry",
            f"--{said[0].replace('_', '-')} is not for the servers of a folder.",
            why="Everyone who trusts the folder would get it.",
            fix="Add the server without --project.",
        )
    entry: dict[str, Any] = {}
    if arguments.url:
        entry = {"type": "sse" if arguments.sse else "http", "url": arguments.url}
    else:
        command, *args = arguments.command
        entry = {"type": "stdio", "command": command, "args": args}
    pairs = {"env": _pairs(arguments.env, "="), "headers": _pairs(arguments.header, ":")}
    entry |= {key: value for key, value in pairs.items() if value}
    said_more = {
        "alwaysAllow": arguments.allow,
        "trusted": arguments.trusted,
        "sampling": arguments.sampling,
        "timeout": arguments.timeout,
    }
    entry |= {key: value for key, value in said_more.items() if value}
    return entry | ({"sandbox": False} if arguments.no_sandbox else {})


def _pairs(said: Sequence[str], mark: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for one in said:
        name, found, value = one.partition(mark)
        if not found or not name.strip():
            raise ConfigError("mcp-entry", f"{name!r} has no value.", fix=f"Write it as NAME{mark}VALUE.")
        pairs[name.strip()] = value.strip() if mark == ":" else value
    return pairs


def _test(arguments: argparse.Namespace) -> int:
    from treadle.door.mcp import check_server
    from treadle.mcp.states import ServerState

    try:
        health = asyncio.run(check_server(arguments.name, _trust(arguments)))
    except ConfigError as error:
        from treadle.door.program import describe_error

        sys.stderr.write(f"{describe_error(error)}\n")
        return 1
    _write([health], as_json=arguments.json)
    return 0 if health.state is ServerState.CONNECTED else 1


def _tools(arguments: argparse.Namespace) -> int:
    from treadle.door.mcp import shown_tools
    from treadle.door.program import harmless

    lines = asyncio.run(shown_tools(arguments.name, _trust(arguments), approve=arguments.approve))
    sys.stdout.writelines(f"{harmless(line)}\n" for line in lines)
    return 0


def _logs(name: str, trust: "SessionTrust") -> int:
    from treadle.door.mcp import configured_servers, log_text, named_server
    from treadle.door.program import harmless

    text = log_text(name)
    sys.stdout.write(f"{harmless(text)}\n" if text else "")
    if not text:
        named_server(configured_servers(trust), name)
        sys.stderr.write("It logged nothing yet.\n")
    return 0


def _login(arguments: argparse.Namespace) -> int:
    from treadle.door.mcp import sign_in_to
    from treadle.door.program import harmless

    def show(url: str) -> None:
        sys.stdout.write(
            f"Open this address in a browser:\n\n{harmless(url)}\n\nIf the browser is on another machine, it ends at "
            "an address that cannot be opened. Paste that address here:\n"
        )
        sys.stdout.flush()

    health = asyncio.run(sign_in_to(arguments.name, _trust(arguments), show, _pasted))
    sys.stdout.write(f"Signed in to {arguments.name}, which has {_tool_count(health)}.\n")
    return 0


def _tool_count(health: "ServerHealth") -> str:
    return f"{len(health.tools)} tool{'s' * (len(health.tools) != 1)}"


async def _pasted() -> str:
    """Wait for a line on standard input; for ever where none can come."""
    line: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def readable() -> None:
        said = os.read(descriptor, _LONGEST_LINE).decode(errors="replace")
        if said.strip():
            line.set_result(said)
        if line.done() or not said:
            loop.remove_reader(descriptor)

    with suppress(OSError):  # a file cannot be waited for
        loop.add_reader(descriptor, readable)
    try:
        return await line
    finally:
        loop.remove_reader(descriptor)
