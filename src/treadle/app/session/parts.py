"""What a session is put together from."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from treadle.app.config.places import SERVED_PLACE
from treadle.app.config.sections import Settings
from treadle.app.models.model_choice import Models, OwnModel
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.files.roots import Roots
from treadle.engine.core.goal import is_due
from treadle.engine.ports import SharedSpent, Tool
from treadle.engine.runtime.running_session import Session
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Event
from treadle.protocol.models import ModelSpec, Spent
from treadle.protocol.sealed import QuestionPut, TurnSettled
from treadle.store.spent import Purpose, SharedSums, left_reservations, spent_by_session
from treadle.store.sqlite import SessionRow, Store
from treadle.workspace.files.file_access import FilesOver, on_disk

if TYPE_CHECKING:
    from treadle.app.hooks.hook_rows import HookRow
    from treadle.app.session.children.wanted_child import OpenChild, WantedChild
    from treadle.app.session.files.editor_files import EditorBuffers
    from treadle.app.session.recall import Recalled
    from treadle.app.session.shape import SessionShape
    from treadle.app.subagents.agent_files import AgentFile
    from treadle.engine.core.past_history import Past
    from treadle.mcp.states import Exchange
    from treadle.protocol.servers import McpServer


_LOOKS_AGAIN = 0.3
"""Seconds after which it is looked again for money. Of two that look, the first one finds nothing of the other."""


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


class TurnRoom(Protocol):
    """Lets as many sessions work as there is room for. `root` is the session that a subagent works for, or itself."""

    async def before_step(self, root: str, session_id: str) -> None:
        """Wait until the session may work."""
        ...

    def rests(self, root: str, session_id: str) -> None:
        """Take note that the session works no more, or waits for a person."""
        ...


class Brought(Struct, frozen=True, kw_only=True):
    """What whoever opens a session brings to it.

    `tools` are offered besides the built-in ones and those of installed packages, `hooks` run besides those of the
    settings. `servers` are MCP servers that the client of the session names, with `only_servers` the only ones;
    `exchanges` are those of them that it has itself, by their names. `models` are called besides those of the
    providers. `clock` gives milliseconds since 1970. `files` gives what reads and saves in the place of the disk. An
    `editor` has texts of the workspace that are not saved. `shape` is what the caller wants different from other
    sessions. `open_child` opens the subagents of the session; one of these is the `child` that was wanted.
    `agents` are found before those of files. `run` names the run of many tasks that it belongs to: its id begins with
    that and a full stop. All sessions of the run may spend `run_cost` together (US dollars); None is unbounded. With a
    `share` those on other computers count, too. With `turns` its turns wait for a place there.
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
    editor: "EditorBuffers | None" = None
    shape: "SessionShape | None" = None
    open_child: "OpenChild | None" = None
    child: "WantedChild | None" = None
    agents: "tuple[AgentFile, ...]" = ()
    run: str = ""
    run_cost: float | None = None
    share: RunShare | None = None
    turns: TurnRoom | None = None
    variables: Mapping[str, str] = {}


class LoggedBudgets(Struct, frozen=True):
    """The `SharedBudgets` port of a session. `spec_of` prices what other processes were killed in."""

    store: Store
    session_id: str
    brought: Brought
    spec_of: Callable[[str], ModelSpec]

    async def reserve(self, worst: Spent, /, *, aside: bool = False) -> SharedSpent:
        """Reserve in the log's file, which all sessions of the user share, and where a run has a share elsewhere.

        Where the rest of a run is too little, waits for the calls of others, which mostly cost less than they reserve.
        """
        if left_reservations(self.store):
            from treadle.app.session.left_calls import settle_left_calls

            settle_left_calls(self.store, self.spec_of)
        purpose, at = Purpose.ASIDE if aside else Purpose.STEP, self.brought.clock()
        reserved = partial(self.store.reserve, self.session_id, purpose, at, run=self.brought.run)
        while self._is_short_for_now(worst, others := await reserved(worst)):
            await reserved(Spent())
            await asyncio.sleep(_LOOKS_AGAIN)
        of_run, share = others.run, self.brought.share
        if share is not None:
            spent = spent_by_session(self.store, self.session_id)
            of_run = await share.reserve(self.session_id, spent, worst.cost, aside=aside)
        return SharedSpent(day=others.day, tree=others.tree, run=of_run)

    def _is_short_for_now(self, worst: Spent, others: SharedSums) -> bool:
        most = self.brought.run_cost
        if most is None or self.brought.share is not None or not worst.cost:
            return False
        return others.run_calls and worst.cost > most - others.run.cost


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


class HeldTurn(Struct, frozen=True):
    """What one session does about its place."""

    queue: TurnRoom
    root: str
    session_id: str
    engine: Session

    async def before_step(self) -> None:
        """Wait for the place."""
        await self.queue.before_step(self.root, self.session_id)

    async def observe(self, events: Sequence[Event], /) -> None:
        """Give the place back when the turn has ended and its goal was looked at, or a person is asked."""
        said = [event.data for event in events]
        ended = self.engine.state.turn is None or any(isinstance(one, TurnSettled) for one in said)
        if any(isinstance(one, QuestionPut) for one in said) or (ended and not is_due(self.engine.state)):
            self.rests()

    def rests(self) -> None:
        """Give the place back."""
        self.queue.rests(self.root, self.session_id)


def turn_places(parts: Parts, engine: Session, opened: AsyncExitStack) -> tuple[HeldTurn, ...]:
    """Give the place of a session, which it has until it is closed at the latest; none where there is no queue."""
    brought = parts.brought
    if brought.turns is None:
        return ()
    place = HeldTurn(
        brought.turns, parts.row.id if brought.child is None else brought.child.of.root, parts.row.id, engine
    )
    opened.callback(place.rests)
    return (place,)


def require_queue(queue: TurnRoom | None) -> None:
    """Raise `SessionError` for a session of a service's user that is not one of their page: nothing would bound it."""
    if queue is None and SERVED_PLACE.exists():
        raise SessionError(
            "service-session",
            "Only your page starts sessions in this service.",
            why="The queue and the limits of the service would not hold for one that was started elsewhere.",
            fix="Start it on your page, or use: treadle schedule add",
        )
