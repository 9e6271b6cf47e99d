"""What a server asks of Treadle: the folders, a word of the person, an answer of the model; and what it logs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import httpx2
import mcp_types as types
import msgspec
from msgspec import Struct
from pydantic import FileUrl, ValidationError

from treadle.engine.ports import Asked, PersonReply
from treadle.mcp.states import Exchange, ServerPlan
from treadle.workspace.files.text import HeadTail, visible

_LONGEST = 4_000
_LONGEST_ASKED = 3_000
_LARGEST_FORM = 64 * 1024
_LOUD = frozenset({"info", "notice", "warning", "error", "critical", "alert", "emergency"})


class SampleAsked(Struct, frozen=True, kw_only=True):
    """What a server asks the model: what is said to it before, the texts by turns (user first), and tokens at most."""

    who: str
    system: str
    texts: tuple[tuple[str, str], ...]
    most: int

    def question(self) -> str:
        """Write what the person is asked: whether the model may answer this."""
        shown = HeadTail(_LONGEST_ASKED)
        shown.add(visible("\n".join(filter(None, (self.system, *(text for _, text in self.texts))))))
        return f"It wants an answer of the model, which costs money. It asks:\n{shown.take()}"


class ServerHost(Protocol):
    """Who hears of servers, and answers for the session; what waits may take as long as a person does."""

    version: str

    def tell(self, text: str) -> None:
        """Show the person a sentence."""
        ...

    def log(self, plan: ServerPlan, text: str) -> None:
        """Write a line into the server's log."""
        ...

    def live(self, plan: ServerPlan, text: str) -> None:
        """Show a line in the calls of the server that run."""
        ...

    def changed(self, connection: Any, before: Any) -> None:
        """Take note that a server is in another state."""
        ...

    def relisted(self, connection: Any) -> None:
        """Take note that a server has other tools or prompts."""
        ...

    def updated(self, plan: ServerPlan, uri: str) -> None:
        """Take note that a resource, which was read, changed."""
        ...

    def exchanging(self, exchange: Exchange) -> Exchange:
        """Give the exchange as it can be called from here."""
        ...

    def sign_in(self, plan: ServerPlan) -> httpx2.Auth | None:
        """Give what signs requests in."""
        ...

    async def ask(self, plan: ServerPlan, asked: Asked) -> PersonReply:
        """Ask the person."""
        ...

    async def sample(self, plan: ServerPlan, asked: SampleAsked) -> tuple[str, str] | None:
        """Ask the model, if the person agrees; gives its name and its text, None for a no."""
        ...

    def roots(self) -> tuple[str, ...]:
        """Name the folders of the workspace."""
        ...


class Callbacks:
    """What one connection does when its server asks something."""

    def __init__(self, plan: ServerPlan, host: ServerHost, paused: Callable[[], AbstractContextManager[None]]) -> None:
        self._plan = plan
        self._host = host
        self._paused = paused
        self._who = f"MCP server {visible(plan.server.name)}"

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG002
        """Ask the person what the server wants to know; the clocks of its calls stand still meanwhile."""
        form: dict[str, Any] = {}
        url = ""
        if isinstance(params, types.ElicitRequestURLParams):
            url = visible(params.url)
            if not url.startswith(("https://", "http://")) or len(url) > _LONGEST:
                return types.ElicitResult(action="cancel")
        else:
            form = dict(params.requested_schema)
            if len(msgspec.json.encode(form)) > _LARGEST_FORM:
                return types.ElicitResult(action="cancel")
        asked = Asked(who=self._who, text=visible(params.message), form=form, url=url)
        with self._paused():
            said = await self._host.ask(self._plan, asked)
        if not said.accepted:
            return types.ElicitResult(action="decline" if said.declined else "cancel")
        return types.ElicitResult(action="accept", content=None if url else dict(said.values))

    async def sampling(
        self,
        context: Any,  # noqa: ARG002
        params: types.CreateMessageRequestParams,
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask the model for the server, where it may and the person agrees."""
        texts = tuple((one.role, text) for one in params.messages if (text := _text_of(one.content)))
        asked = SampleAsked(who=self._who, system=params.system_prompt or "", texts=texts, most=params.max_tokens)
        with self._paused():
            said = await self._host.sample(self._plan, asked)
        if said is None:
            return types.ErrorData(code=-1, message="The user did not allow this request to the model.")
        model, text = said
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text=text), model=model, stop_reason="endTurn"
        )

    async def roots(self, context: Any) -> types.ListRootsResult | types.ErrorData:  # noqa: ARG002
        """Name the folders that are worked in."""
        folders = map(Path, self._host.roots())
        try:
            return types.ListRootsResult(
                roots=[types.Root(uri=FileUrl(folder.as_uri()), name=folder.name) for folder in folders]
            )
        except (ValidationError, ValueError):
            return types.ListRootsResult(roots=[])

    async def logged(self, params: types.LoggingMessageNotificationParams) -> None:
        """Keep what the server logs."""
        said = params.data if isinstance(params.data, str) else repr(params.data)
        text = visible(said)[:_LONGEST]
        self._host.log(self._plan, f"{params.level}: {text}")
        if params.level in _LOUD:
            self._host.live(self._plan, text)


def _text_of(content: Any) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))
