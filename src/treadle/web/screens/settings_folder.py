"""The screens of what a folder brings: MCP servers, rules and skills, hooks; and the folders that are trusted."""

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from treadle.door.mcp import (
    add_server,
    check_server,
    configured_servers,
    health_lines,
    log_text,
    remove_server,
    server_list,
    shown_tools,
    switch_server,
)
from treadle.door.message_parts import find_skills
from treadle.door.open_session import Reach
from treadle.door.opening import check_workspace
from treadle.door.settings import list_hooks, load_settings, prompt_rules, turn_rule
from treadle.door.trust import SessionTrust, trust_store, trusted_folders
from treadle.protocol.errors import ConfigError
from treadle.web.folders import folders_there, trust_of
from treadle.web.page_requests import answer, body_of, book_of, folder_of, page
from treadle.web.rights import PageRoute


def _common(request: Request, trust: SessionTrust) -> Mapping[str, Any]:
    return {
        "folder": str(trust.workspace),
        "folders": folders_there(book_of(request)),
        "trusted": trust.trusted,
        "matters": trust.matters,
    }


async def _servers(request: Request) -> Response:
    def found() -> Mapping[str, Any]:
        trust = trust_of(request)
        health = asyncio.run(server_list(trust, connect=False))
        return {**_common(request, trust), "servers": health, "notices": configured_servers(trust).notices}

    return await page(request, "settings_servers.html", **await asyncio.to_thread(found))


class _Server(Struct):
    name: str
    folder: str
    project: bool = False
    enabled: bool = True


class _NewServer(Struct):
    name: str
    folder: str
    target: str


def _trust(request: Request, folder: str) -> SessionTrust:
    return book_of(request).trust(check_workspace(folder_of(folder)))


async def _add(request: Request) -> Response:
    """Connect to a server, approve its tools as they are, and keep it in the user's own file."""
    said = await body_of(request, _NewServer)
    name, target = said.name.strip(), said.target.strip()
    entry: dict[str, Any]
    if target.startswith(("https://", "http://")):
        entry = {"type": "http", "url": target}
    else:
        try:
            words = shlex.split(target)
        except ValueError as error:
            raise ConfigError("mcp-entry", "The command has a quote that does not end.", fix="Correct it.") from error
        if not words or not name:
            raise ConfigError("mcp-entry", "A server needs a name and a command or an address.", fix="Write both.")
        entry = {"type": "stdio", "command": words[0], "args": words[1:]}

    def add() -> str:
        trust = _trust(request, said.folder)
        health = asyncio.run(add_server(name, entry, trust, project=False))
        if health.signs_in:
            return f"Added {name}. Sign in with: treadle mcp login {name}"
        return f"Added {name} with {len(health.tools)} tools, approved as they are now."

    return answer({"said": await asyncio.to_thread(add)})


async def _remove(request: Request) -> Response:
    """Remove a server, and what was approved of it."""
    said = await body_of(request, _Server)
    await asyncio.to_thread(lambda: remove_server(said.name, _trust(request, said.folder), project=said.project))
    return answer({"said": f"Removed {said.name}."})


async def _switch(request: Request) -> Response:
    """Use a server in new sessions, or not."""
    said = await body_of(request, _Server)
    await asyncio.to_thread(
        lambda: switch_server(said.name, _trust(request, said.folder), enabled=said.enabled, project=said.project)
    )
    return answer({"said": f"{said.name} is {'used' if said.enabled else 'not used'} in new sessions."})


async def _look(request: Request) -> Response:
    """Connect to a server, and say how it is and which tools it has."""
    said = await body_of(request, _Server)

    def look() -> list[str]:
        trust = _trust(request, said.folder)
        health = asyncio.run(check_server(said.name, trust))
        tools = asyncio.run(shown_tools(said.name, trust, approve=False)) if health.state == "connected" else ()
        return [*health_lines([health]), *tools]

    return answer({"lines": await asyncio.to_thread(look)})


async def _log(request: Request) -> Response:
    """Give the end of what a server logged."""
    said = await body_of(request, _Server)
    text = await asyncio.to_thread(log_text, said.name)
    return answer({"lines": [text or "It logged nothing yet."]})


async def _approve(request: Request) -> Response:
    """Approve the tools of a server as they are now; exactly those are shown."""
    said = await body_of(request, _Server)
    trust = _trust(request, said.folder)
    lines = await asyncio.to_thread(lambda: asyncio.run(shown_tools(said.name, trust, approve=True)))
    return answer({"said": lines[-1], "lines": lines})


async def _rules(request: Request) -> Response:
    def found() -> Mapping[str, Any]:
        trust = trust_of(request)
        return {**_common(request, trust), "rules": prompt_rules(trust), "skills": find_skills(trust)}

    return await page(request, "settings_rules.html", **await asyncio.to_thread(found))


class _Turned(Struct):
    folder: str
    origin: str
    on: bool


async def _turn(request: Request) -> Response:
    """Turn a rule on or off, as `/rules` does."""
    said = await body_of(request, _Turned)
    await asyncio.to_thread(lambda: turn_rule(_trust(request, said.folder), said.origin, on=said.on))
    return answer({"said": f"{'On' if said.on else 'Off'}: {said.origin}, from the next request on."})


async def _hooks(request: Request) -> Response:
    def found() -> Mapping[str, Any]:
        trust = trust_of(request)
        settings = load_settings(book_of(request).flags, workspace=trust.workspace, trusted=trust.trusted)
        return {
            **_common(request, trust),
            "hooks": list_hooks(settings, trust),
            "off": settings.disable_all_hooks,
        }

    return await page(request, "settings_hooks.html", **await asyncio.to_thread(found))


async def _folders(request: Request) -> Response:
    rows = await asyncio.to_thread(trusted_folders)
    return await page(request, "settings_folders.html", rows=[(str(folder), state) for folder, state in rows])


class _Folder(Struct):
    folder: str


async def _revoke(request: Request) -> Response:
    """Stop trusting a folder, as `treadle trust --revoke` does."""
    folder = (await body_of(request, _Folder)).folder
    removed = await asyncio.to_thread(lambda: trust_store().revoke(Path(folder)))
    said = "is not trusted any more. Sessions that are open go on as they began" if removed else "was not trusted"
    return answer({"said": f"{folder} {said}."})


ROUTES = (
    PageRoute("/settings/servers", _servers, Reach.SEE),
    PageRoute("/settings/servers/add", _add, Reach.SERVERS, methods=["POST"]),
    PageRoute("/settings/servers/remove", _remove, Reach.SERVERS, methods=["POST"]),
    PageRoute("/settings/servers/switch", _switch, Reach.SERVERS, methods=["POST"]),
    PageRoute("/settings/servers/look", _look, Reach.SERVERS, methods=["POST"]),
    PageRoute("/settings/servers/log", _log, Reach.SEE, methods=["POST"]),
    PageRoute("/settings/servers/approve", _approve, Reach.SERVERS, methods=["POST"]),
    PageRoute("/settings/rules", _rules, Reach.SEE),
    PageRoute("/settings/rules/turn", _turn, Reach.RULES, methods=["POST"]),
    PageRoute("/settings/hooks", _hooks, Reach.SEE),
    PageRoute("/settings/folders", _folders, Reach.SEE),
    PageRoute("/settings/folders/revoke", _revoke, Reach.TRUST, methods=["POST"]),
)
