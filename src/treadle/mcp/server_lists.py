"""What a server has, as it lists it: all pages, within bounds."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from mcp import Client, MCPError

from treadle.mcp.declaring import cut_text, declared_tool
from treadle.mcp.states import Declared, DeclaredPrompt
from treadle.workspace.files.text import visible

_MOST_PAGES = 50
_MOST_LISTED = 1_000
_LONGEST_INSTRUCTIONS = 2_000


async def listed_by(client: Client) -> Declared:
    """List what a server has."""
    has = client.server_capabilities
    tools: Sequence[Any] = ()
    prompts: Sequence[Any] = ()
    if has.tools is not None:
        tools = await all_pages(lambda at: client.list_tools(cursor=at, cache_mode="refresh"), "tools")
    if has.prompts is not None:
        with suppress(MCPError):
            prompts = await all_pages(lambda at: client.list_prompts(cursor=at, cache_mode="refresh"), "prompts")
    return Declared(
        tools=[declared_tool(one.model_dump(by_alias=True, exclude_none=True, mode="json")) for one in tools],
        prompts=[
            DeclaredPrompt(
                name=one.name,
                description=visible(one.description or ""),
                arguments=tuple((each.name, bool(each.required)) for each in one.arguments or ()),
            )
            for one in prompts
        ],
        resources=has.resources is not None,
        instructions=cut_text(visible(client.instructions or "").strip(), _LONGEST_INSTRUCTIONS),
    )


async def all_pages(page: Callable[[str | None], Awaitable[Any]], kind: str) -> list[Any]:
    """Give what is listed on all pages, within bounds."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in itertools.repeat(None, _MOST_PAGES):
        listed = await page(cursor)
        found += getattr(listed, kind)
        cursor = listed.next_cursor
        if not cursor or len(found) >= _MOST_LISTED:
            break
    return found[:_MOST_LISTED]
