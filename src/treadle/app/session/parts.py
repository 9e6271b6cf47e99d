"""What a session is put together from."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models, OwnModel
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.files.roots import Roots
from treadle.engine.ports import SharedSpent, Tool
from treadle.protocol.models import Spent
from treadle.store.spent import Purpose, spent_by_session
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.files.file_access import FilesOver, on_disk

if TYPE_CHECKING:
    from treadle.app.hooks.hook_rows import HookRow
    from treadle.app.session.children.wanted_child import OpenChild, WantedChild
    from treadle.app.session.recall import Recalled
    from treadle.app.session.shape import SessionShape
    from treadle.app.subagents.agent_files import AgentFile
    from treadle.engine.core.past_history import Past
    from treadle.mcp.states import Exchange
    from treadle.protocol.servers import McpServer


def clock() -> int:
    """Give the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_session_id(now: int) -> str:
    """Make the id of a session. Ids sort by time; the end keeps two of one millisecond apart."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now / 1000))
    return f"{stamp}-{os.urandom(3).hex()}"


class RunShare(Protocol):
    """What the sessions of a run have in common with those on other computers."""

    async def reserve(self, session_id: str, spent: float, worst: float, *, aside: bool) -> Spent:
        """Reserve `worst` for a session's next call, of which `spent` is all that it has spent here (US dollars).

        Gives what all sessions of the run have spent and reserved besides. Comes back only where this process may go
        on with the session.
        """
        ...

    async def before_step(self, session_id: str) -> None:
        """Take note that a session begins a step: what was before it is done, and in the log."""
        ...


class Brought(Struct, frozen=True, kw_only=True):
    """What whoever opens a session brings to it.

    `tools` are offered besides the built-in ones and those of installed packages, `hooks` run besides those of the
    settings. `servers` are MCP servers that the client of the session names, with `only_servers` the only ones;
    `exchanges` are those of them that it has itself, by their names. `models` are called besides those of the
    providers. `clock` gives milliseconds since 1970. `files`
    gives what reads and saves in the place of the disk, such as an editor. `shape` is what the caller wants different
    from other sessions. `open_child` opens the subagents of the session; one of these is the `child` that was wanted.
    `agents` are found before those of files. `run` names the run of many tasks that it belongs to: its id begins with
    that and a full stop. All sessions of the run may spend `run_cost` together (US dollars); None is unbounded. With a
    `share` those on other computers count, too.
    `variables` are set for its commands, and for nothing else.
    """

    tools: tuple[Tool, ...] = ()
    hooks: "tuple[HookRow, ...]" = ()
    servers: "tuple[McpServer, ...]" = ()
    only_servers: bool = False
    exchanges: "Mapping[str, Exchange]" = {}
    models: tuple[OwnModel, ...] = ()
    clock: Callable[[], int] = clock
    files: FilesOver = on_disk
    shape: "SessionShape | None" = None
    open_child: "OpenChild | None" = None
    child: "WantedChild | None" = None
    agents: "tuple[AgentFile, ...]" = ()
    run: str = ""
    run_cost: float | None = None
    share: RunShare | None = None
    variables: Mapping[str, str] = {}


class LoggedBudgets(Struct, frozen=True):
    """The `SharedBudgets` port of a session."""

    store: Store
    session_id: str
    brought: Brought

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        """Reserve in the log's file, which all sessions of the user share, and where a run has a share elsewhere."""
        purpose, at = Purpose.ASIDE if aside else Purpose.STEP, self.brought.clock()
        others = await self.store.reserve(self.session_id, purpose, at, worst, run=self.brought.run)
        of_run, share = others.run, self.brought.share
        if share is not None:
            spent = spent_by_session(self.store, self.session_id)
            of_run = await share.reserve(self.session_id, spent, worst.cost, aside=aside)
        return SharedSpent(day=others.day, tree=others.tree, run=of_run)


class Parts(Struct, frozen=True, kw_only=True):
    """What a session is put together from, with what its log says if it goes on; `notices` come before the rest."""

    row: SessionRow
    trust: SessionTrust
    settings: Settings
    models: Models
    store: Store
    roots: Roots
    brought: Brought = Brought()
    recalled: "Recalled | None" = None
    notices: Sequence[str] = ()

    @property
    def past(self) -> "Past | None":
        """What the log says of the session; None for a new one."""
        return None if self.recalled is None else self.recalled.past

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders of the workspace."""
        return (self.row.workspace, *self.roots.folders)

    def offers(self, tool: str) -> bool:
        """Whether its caller wants a tool in the session."""
        return self.brought.shape is None or self.brought.shape.offers(tool)
