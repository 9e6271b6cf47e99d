"""What the hub needs of a session."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.mcp.pins import PinBook
from treadle.mcp.states import DeclaredPrompt, ServerPlan

if TYPE_CHECKING:
    import httpx2

    from treadle.mcp.callbacks import SampleAsked
    from treadle.mcp.tool_results import ReadImage

AskServerModel = Callable[["SampleAsked"], Awaitable[tuple[str, str] | None]]
"""Asks the model for a server; gives the model's name and its answer, None where there is none."""


class HubPorts(Struct, frozen=True, kw_only=True):
    """What the hub needs of a session. `tell` shows the person a sentence; `roots` are the folders of the workspace.

    `redact` hides secrets in what is told and logged, from any thread.

    `taken` are names of tools that are in use. `sample` asks the model for a server, to which the person said yes.
    `sign_in` gives what signs requests to a server in, `keep_prompts` notes which prompts one has.
    """

    pins: PinBook
    version: str
    tell: Callable[[str], object]
    read_image: "ReadImage"
    redact: Callable[[str], str] = str
    roots: Sequence[str] = ()
    taken: Mapping[str, Any] = MappingProxyType({})
    sample: AskServerModel | None = None
    sign_in: "Callable[[ServerPlan], httpx2.Auth | None]" = lambda _: None
    keep_prompts: Callable[[ServerPlan, Sequence[DeclaredPrompt]], None] = lambda *_: None
