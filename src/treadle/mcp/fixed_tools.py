"""The tools that are the same whatever servers there are: search their tools, call one, read a resource."""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.mcp.hub import McpHub
from treadle.mcp.server_tool import ServerSaidError, ServerTool, parsed_arguments
from treadle.mcp.states import PinState, ServerState
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Preview, Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    from treadle.mcp.server_connection import ServerConnection
    from treadle.mcp.tool_results import ReadImage

SEARCH, USE, RESOURCE = "search_mcp_tools", "use_mcp_tool", "access_mcp_resource"
_MOST_FOUND = 8
_MOST_NAMES = 400
_MOST_RESOURCES = 200
_LONGEST_PROMPT = 60_000
_LONGEST_WORD = 200
_MOST_WORDS = 100


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _spec(name: str, properties: Mapping[str, Any], required: tuple[str, ...], risk: Risk) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip(),
        parameters={
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
        traits=ToolTraits(
            kind=ToolKind.SEARCH if name == SEARCH else ToolKind.OTHER,
            effect=ToolEffect.ONCE if name == USE else ToolEffect.PURE,
        ),
        risk=risk,
    )


def search_spec() -> ToolSpec:
    """The declaration of the search."""
    words = _text("Words that say what the tool should do, or its name.")
    return _spec(SEARCH, {"query": words}, ("query",), Risk.NONE)


def use_spec() -> ToolSpec:
    """The declaration of the tool that calls others."""
    properties = {
        "server_name": _text("The name of the server."),
        "tool_name": _text("The name of the tool."),
        "arguments": _text("One JSON object with the arguments of the tool, as its schema says."),
    }
    return _spec(USE, properties, ("server_name", "tool_name"), Risk.CRITICAL)


def resource_spec() -> ToolSpec:
    """The declaration of the tool that reads resources."""
    properties = {
        "server_name": _text("The name of the server."),
        "uri": _text("The URI of the resource. Leave it out to list what there is."),
    }
    return _spec(RESOURCE, properties, ("server_name",), Risk.READ_OUTSIDE)


class SearchTools(Struct, frozen=True):
    """Finds tools; those found are noted in `found`, so that they are offered from then on.

    `denied` names those that would be denied, which are not found.
    """

    hub: McpHub
    found: set[str]
    spec: ToolSpec
    denied: Callable[[], frozenset[str]] = frozenset

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Nothing is asked of any server."""
        query = str(arguments["query"])
        return Prepared(
            accesses=(), preview=Preview(title="Search MCP tools", text=visible(query)), run=partial(self._run, query)
        )

    async def _run(self, query: str, output: Output) -> CallResult:  # noqa: ARG002 - nothing to show live
        from treadle.mcp.tool_results import server_text

        denied = self.denied()
        usable = [one for name, one in self.hub.tools().items() if is_usable(one) and name not in denied]
        if not query.strip():
            names = [f"{one.spec.name}: {one.declared.description.partition(chr(10))[0][:120]}" for one in usable]
            return server_text("tools", "\n".join(_first_of_many(names, _MOST_NAMES)))
        best = _ranked(query, usable)[:_MOST_FOUND]
        if not best:
            raise ToolError("No tool matches. Try other words, or an empty query for the names of all.")
        self.found.update(one.spec.name for one in best)
        return server_text("tools", "\n\n".join(map(_shown, best)))


def is_usable(tool: ServerTool) -> bool:
    """Whether a tool can be called."""
    return not tool.declared.hidden and tool.pinned is not PinState.CHANGED


def _shown(tool: ServerTool) -> str:
    schema = msgspec.json.encode(tool.declared.parameters).decode()
    return (
        f"{tool.spec.name} (server {tool.plan.server.name}, tool {tool.declared.name})\n"
        f"{tool.declared.description}\nArguments: {schema}"
    )


def _ranked(query: str, tools: list[ServerTool]) -> list[ServerTool]:
    """Order the tools that have a word of the query: words of a name weigh more than those of a description."""
    wanted = _words(query)

    def score(tool: ServerTool) -> float:
        named = _words(f"{tool.plan.server.name} {tool.declared.name}")
        said = _words(tool.declared.description)
        exact = 5.0 if query.strip() in (tool.spec.name, tool.declared.name) else 0.0
        return exact + sum(3.0 * _holds(word, named) + _holds(word, said) for word in wanted)

    scored = [(score(tool), tool) for tool in tools]
    return [tool for points, tool in sorted(scored, key=lambda one: -one[0]) if points > 0]


def _words(text: str) -> set[str]:
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return {word for word in re.findall(r"[a-z0-9]+", parts.lower()) if len(word) > 1}


def _holds(word: str, words: set[str]) -> float:
    if word in words:
        return 1.0
    return 0.5 if len(word) > 3 and any(word in one or (len(one) > 3 and one in word) for one in words) else 0.0


class UseTool(Struct, frozen=True):
    """Calls a tool by its server's name and its own, where schemas are not sent."""

    hub: McpHub
    spec: ToolSpec

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Prepare the call of the tool that is meant."""
        tool = named_tool(self.hub, arguments)
        return await tool.prepare(parsed_arguments(arguments.get("arguments", "")))


def named_tool(hub: McpHub, arguments: Mapping[str, Any]) -> ServerTool:
    """Find the tool that a call of `use_mcp_tool` means; raises `ToolError`."""
    server, name = str(arguments.get("server_name", "")), str(arguments.get("tool_name", ""))
    tool = hub.find(server, name)
    if tool is None:
        raise ToolError(
            f"The MCP server {visible(server)} has no tool {visible(name)}. Use search_mcp_tools to list them.",
            invalid=True,
        )
    if reason := why_unusable(hub, tool):
        raise ToolError(f"{tool.spec.name} is not available: {reason}. Continue without it.")
    return tool


def why_unusable(hub: McpHub, tool: ServerTool) -> str:
    """Say why a tool cannot be called now; empty where it can."""
    if tool.declared.hidden:
        return tool.declared.hidden
    if tool.pinned is PinState.CHANGED:
        return "its declaration changed since the user approved it."
    if hub.state_of(tool.plan) in (ServerState.FAILED, ServerState.CLOSED):
        return f"the MCP server {visible(tool.plan.server.name)} is not connected"
    return ""


class AccessResource(Struct, frozen=True):
    """Reads resources of servers."""

    hub: McpHub
    read_image: "ReadImage"
    spec: ToolSpec

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Name the resource; its server is asked nothing before it was judged."""
        server, uri = str(arguments["server_name"]), str(arguments.get("uri") or "")
        title = f"Read a resource of the MCP server {visible(server)}"
        run = partial(self._read, server, uri) if uri else partial(self._list, server)
        return Prepared(accesses=(), preview=Preview(title=title, text=visible(uri)), run=run)

    async def _read(self, server: str, uri: str, output: Output) -> CallResult:  # noqa: ARG002
        async def read(connection: "ServerConnection") -> CallResult:
            from treadle.mcp.tool_results import resource_result

            found = await connection.ask(lambda client: client.read_resource(uri))
            connection.watch(uri)
            return await asyncio.to_thread(resource_result, found, server, self.read_image)

        return await _answer(self.hub, server, read)

    async def _list(self, server: str, output: Output) -> CallResult:  # noqa: ARG002
        async def listed(connection: "ServerConnection") -> CallResult:
            from treadle.mcp.server_lists import all_pages
            from treadle.mcp.tool_results import server_text

            async def resources(client: Any) -> list[Any]:
                return await all_pages(lambda at: client.list_resources(cursor=at, cache_mode="refresh"), "resources")

            async def templates(client: Any) -> list[Any]:
                ask = client.list_resource_templates
                return await all_pages(lambda at: ask(cursor=at, cache_mode="refresh"), "resource_templates")

            lines = [
                f"{one.uri}  {one.name}{f' ({one.description})' if one.description else ''}"
                for one in await connection.ask(resources)
            ]
            with suppress(ServerSaidError):  # many servers know nothing of templates
                lines += [
                    f"{one.uri_template}  {one.name} (a template: replace what is in braces)"
                    for one in await connection.ask(templates)
                ]
            return server_text(server, "\n".join(_first_of_many(lines, _MOST_RESOURCES)))

        return await _answer(self.hub, server, listed)


async def _answer(hub: McpHub, server: str, ask: "Callable[[ServerConnection], Awaitable[CallResult]]") -> CallResult:
    try:
        return await hub.request(server, ask)
    except ServerSaidError as error:
        return error.result


def _first_of_many(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"{len(lines) - most} more"]


async def written_prompt(name: str, arguments: dict[str, str], connection: "ServerConnection") -> str:
    """Have a server write out a prompt; what is no text is named. Raises `ToolError`."""
    found = await connection.ask(lambda client: client.get_prompt(name, arguments))
    said = [f"{'' if one.role == 'user' else 'Assistant: '}{_prompt_text(one.content)}" for one in found.messages]
    return visible("\n\n".join(said))[:_LONGEST_PROMPT]


async def completed_argument(
    prompt: str, wanted: tuple[str, str, dict[str, str]], connection: "ServerConnection"
) -> tuple[str, ...]:
    """Ask a server what an argument of a prompt can be, as far as it is written: its name, that, and those before it.

    What is no plain word is left out: a person takes these over as they are. Raises `ToolError`.
    """
    import mcp_types as types

    name, value, given = wanted
    reference = types.PromptReference(type="ref/prompt", name=prompt)
    argument = {"name": name, "value": value}
    found = await connection.ask(lambda client: client.complete(reference, argument, context_arguments=given))
    plain = [one for one in found.completion.values if one == visible(one) and 0 < len(one) <= _LONGEST_WORD]
    return tuple(shlex.quote(one) for one in plain if "\n" not in one)[:_MOST_WORDS]


def _prompt_text(content: Any) -> str:
    if content.type == "text":
        return str(content.text)
    if content.type == "resource":
        return str(getattr(content.resource, "text", content.resource.uri))
    return f"[{content.type}: left out]"
