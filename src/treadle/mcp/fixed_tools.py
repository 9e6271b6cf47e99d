"""The tools that are the same whatever servers there are: search their tools, call one, read a resource."""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared
from treadle.mcp.hub import McpHub
from treadle.mcp.server_tool import ServerSaidError, ServerTool, parsed_arguments
from treadle.mcp.states import GONE, PinState, ServerPlan, ServerState
from treadle.parsing import coerced, own_parameters, validate_arguments
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Preview, Risk, ToolEffect, ToolKind, ToolSpec, ToolTraits
from treadle.workspace.files.text import visible

if TYPE_CHECKING:
    from treadle.mcp.server_connection import ServerConnection
    from treadle.mcp.tool_results import ReadImage

SEARCH, USE, RESOURCE = "search_mcp_tools", "use_mcp_tool", "access_mcp_resource"
_MOST_FOUND = 5
_MOST_NAMED = 20
_LARGEST_FOUND = 16_000
"""Characters of the schemas that one search loads, unless the best one alone has more."""

_LONGEST_START = 60.0
_LONGEST_SHORT = 200
_LONGEST_SCHEMA = 16_000
STARTING = (ServerState.WAITING, ServerState.CONNECTING)
_IN_WORDS = re.compile(r"""[\s,;"'`]+""")
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


def search_spec(listing: str = "") -> ToolSpec:
    """The declaration of the search, with what names there are."""
    words = _text("Words that say what the tool should do, or names of tools.")
    spec = _spec(SEARCH, {"query": words}, ("query",), Risk.NONE)
    return replace(spec, description=f"{spec.description}\n\n{listing}") if listing else spec


def names_listing(tools: Sequence[ServerTool], room: int) -> str:
    """Name the tools by their servers in so many characters at most; where they do not fit, the servers only."""
    by_server: dict[str, list[str]] = {}
    for tool in tools:
        by_server.setdefault(tool.plan.slug, []).append(tool.spec.name.removeprefix(f"mcp__{tool.plan.slug}__"))
    whole = [f"{slug}: {', '.join(names)}" for slug, names in by_server.items()]
    listing = "\n".join((_NAMES, *whole))
    if len(listing) <= room:
        return listing
    lines = [f"{slug}: {len(names)} tools" for slug, names in by_server.items()]
    while len(lines) > 1 and len("\n".join((_SERVERS, *lines))) > room:
        lines[-2:] = ["more servers"]
    return "\n".join((_SERVERS, *lines))


_NAMES = "The tools there are, each called mcp__SERVER__TOOL:"
_SERVERS = "The servers there are:"


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

    `denied` names those that would be denied, which are not found. `starting` gives servers whose tools are not known
    yet. Where calls are not `native`, nothing is loaded, and the schemas are shown.
    """

    hub: McpHub
    found: set[str]
    spec: ToolSpec
    denied: Callable[[], frozenset[str]] = frozenset
    starting: Callable[[], Sequence[ServerPlan]] = tuple
    native: Callable[[], bool] = lambda: True

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Nothing is asked of any server."""
        query = str(arguments["query"])
        return Prepared(
            accesses=(), preview=Preview(title="Search MCP tools", text=visible(query)), run=partial(self._run, query)
        )

    async def _run(self, query: str, output: Output) -> CallResult:  # noqa: ARG002 - nothing to show live
        from treadle.mcp.tool_results import server_text

        matching = _matching(query, self._usable())
        if not matching and (awaited := self.starting()):
            await self.hub.settled(_LONGEST_START, awaited)
            matching = _matching(query, self._usable())
        late = ", ".join(plan.slug for plan in self.starting())
        still = [f"These servers are still starting, search again for their tools: {late}."] if late else []
        if not query.strip():
            names = [f"{one.spec.name}: {one.declared.description.partition(chr(10))[0][:120]}" for one in matching]
            return server_text("tools", "\n".join((*_first_of_many(names, _MOST_NAMES), *still)))
        if not matching:
            raise ToolError(
                " ".join(("No tool matches. Try other words, or an empty query for the names of all.", *still))
            )
        best, native = _fitting(matching), self.native()
        self.found.update(one.spec.name for one in best)
        shown = [_shown(one, schema=not native) for one in best]
        others = ", ".join(one.spec.name for one in matching[len(best) : len(best) + _MOST_NAMED])
        shown += [f"These match too: {others}"] if others else []
        return server_text("tools", "\n\n".join((*shown, *([_LOADED] if native else []), *still)))

    def _usable(self) -> list[ServerTool]:
        denied = self.denied()
        return [one for name, one in self.hub.tools().items() if is_usable(one) and name not in denied]


_LOADED = "You can call those that are described from the next step on."


def _matching(query: str, tools: list[ServerTool]) -> list[ServerTool]:
    """Give the tools that a query names, else those that have its words, the best first; all for no words."""
    if not query.strip():
        return tools
    words = set(_IN_WORDS.split(query))
    named = [one for one in tools if one.spec.name in words or one.declared.name == query.strip()]
    return named or _ranked(query, tools)


def _fitting(tools: list[ServerTool]) -> list[ServerTool]:
    """Give the first few, as far as their schemas are not too large together."""
    sizes = accumulate(declared_size(one) for one in tools[:_MOST_FOUND])
    return [one for at, (one, size) in enumerate(zip(tools, sizes, strict=False)) if not at or size <= _LARGEST_FOUND]


def declared_size(tool: ServerTool) -> int:
    """Count the characters of what a model is told of a tool."""
    return spec_size(tool.spec)


def spec_size(spec: ToolSpec) -> int:
    """Count the characters of a declaration."""
    return len(spec.name) + len(spec.description) + len(msgspec.json.encode(spec.parameters))


def is_usable(tool: ServerTool) -> bool:
    """Whether a tool can be called."""
    return not tool.declared.hidden and tool.pinned is not PinState.CHANGED


def _shown(tool: ServerTool, *, schema: bool) -> str:
    """Describe a tool; with the schema, where it is not sent with the next request."""
    heading = f"{tool.spec.name} (server {tool.plan.server.name}, tool {tool.declared.name})"
    if not schema:
        return f"{heading}: {tool.declared.description.partition(chr(10))[0][:_LONGEST_SHORT]}"
    return (
        f"{heading}\n{tool.declared.description}\nArguments: {msgspec.json.encode(tool.declared.parameters).decode()}"
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
        """Prepare the call of the tool that is meant; its server is waited for where it is still starting."""
        server, name = str(arguments.get("server_name", "")), str(arguments.get("tool_name", ""))
        if self.hub.find(server, name) is None:
            meant = [one for one in self.hub.plans if _is_of(one, server, name) and self.hub.state_of(one) in STARTING]
            if meant:
                await self.hub.settled(_LONGEST_START, meant)
        tool = named_tool(self.hub, arguments)
        return await tool.prepare(schema_arguments(tool, arguments))


def _is_of(plan: ServerPlan, server: str, name: str) -> bool:
    return server in (plan.server.name, plan.slug) or name.startswith(f"mcp__{plan.slug}__")


def schema_arguments(tool: ServerTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Give the arguments of the tool that a call of `use_mcp_tool` means; raises `ToolError` with the schema."""
    schema = tool.spec.parameters
    given = coerced(schema, own_parameters(schema, parsed_arguments(arguments.get("arguments", ""))))
    if problems := validate_arguments(schema, given):
        shown = msgspec.json.encode(schema).decode()[:_LONGEST_SCHEMA]
        raise ToolError(
            f"{' '.join(problems)} Make the call again as its schema says. The arguments of {tool.spec.name}: {shown}",
            invalid=True,
        )
    return given


def named_tool(hub: McpHub, arguments: Mapping[str, Any]) -> ServerTool:
    """Find the tool that a call of `use_mcp_tool` means; raises `ToolError`."""
    server, name = str(arguments.get("server_name", "")), str(arguments.get("tool_name", ""))
    tool = hub.find(server, name)
    if tool is None:
        _require_known_tools(hub, server, name)
        close = get_close_matches(name, hub.tools(), n=3)
        near = f" Did you mean {' or '.join(close)}?" if close else ""
        raise ToolError(
            f"The MCP server {visible(server)} has no tool {visible(name)}.{near} Use search_mcp_tools to list them.",
            invalid=True,
        )
    if reason := why_unusable(hub, tool):
        raise ToolError(f"{tool.spec.name} is not available: {reason}. Continue without it.")
    return tool


def _require_known_tools(hub: McpHub, server: str, name: str) -> None:
    """Raise `ToolError` for a server whose tools are not known now."""
    meant = {plan.server.name for plan in hub.plans if _is_of(plan, server, name)}
    found = next((one for one in hub.health() if one.name in meant and not one.tools), None)
    if found is not None and found.state in (*STARTING, ServerState.RECONNECTING):
        raise ToolError(
            f"The MCP server {visible(server)} is still connecting. Call the tool later, or continue without it."
        )
    if found is not None and found.state in GONE:
        raise ToolError(f"The MCP server {visible(server)} is not connected. Continue without its tools.")


def why_unusable(hub: McpHub, tool: ServerTool) -> str:
    """Say why a tool cannot be called now; empty where it can."""
    if tool.declared.hidden:
        return tool.declared.hidden
    if tool.pinned is PinState.CHANGED:
        return "its declaration changed since the user approved it"
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
