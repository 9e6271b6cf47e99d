"""A session as a terminal sees it, whether it runs in this process or the terminal is attached to another one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from treadle.app.models.offered import OfferedModel
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.own_commands.own_shell import OwnShell
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.attach import ListedAgent, ServersAnswer, SessionStatus, Stamped
from treadle.protocol.events import Op, SetModel, Source
from treadle.protocol.notifications import Notification


class ServersAccess(Protocol):
    """The MCP servers of a session, wherever it runs."""

    def command(self, argument: str) -> ServersAnswer:
        """Do what `/mcp` says with this argument. To be called in a thread."""
        ...

    def complete(self, prompt: tuple[str, str], said: str) -> Sequence[str]:
        """Say what the last word of what follows a prompt (its server's name, and its own) can be, within seconds.

        To be called in a thread.
        """
        ...


class PortsAccess(Protocol):
    """The ports on which commands of a session listen, wherever it runs."""

    def command(self, argument: str) -> ServersAnswer:
        """Do what `/ports` says with this argument. To be called in a thread."""
        ...


class SessionAccess(Protocol):
    """What a terminal needs of a session; `source` is as whom it posts.

    `continues` says that the session goes on when the terminal leaves it. `agents` are those that it was given.
    """

    id: str
    workspace: Path
    trust: SessionTrust
    roots: tuple[str, ...]
    agents: tuple[ListedAgent, ...]
    notices: Sequence[str]
    checklist_file: Path
    source: Source
    continues: bool

    @property
    def own_shell(self) -> OwnShell:
        """The person's own commands."""
        ...

    @property
    def servers(self) -> ServersAccess | None:
        """Its MCP servers; None where it has none."""
        ...

    @property
    def ports(self) -> Callable[[], PortsAccess]:
        """Gives the ports of its commands."""
        ...

    @property
    def past(self) -> Sequence[Stamped]:
        """What surfaces were told before this one listened, also of what has left the conversation."""
        ...

    @property
    def opening(self) -> Sequence[Notification]:
        """What was told while the session was taken up, or what is under way in it."""
        ...

    @property
    def status(self) -> SessionStatus:
        """Where the session stands now."""
        ...

    @property
    def title(self) -> str:
        """What it is called; empty where that is not known."""
        ...

    @property
    def before(self) -> tuple[str, int] | None:
        """Title and time (ms since 1970) of the session of this folder that was used last; None for one taken up."""
        ...

    @property
    def closed(self) -> bool:
        """Whether nothing can be asked of it any more."""
        ...

    @property
    def sees_images(self) -> bool:
        """Whether the model is shown images."""
        ...

    def choose(self, ref: str, thinking: int | None = None) -> SetModel:
        """Find another model; raises `ConfigError` when it cannot be called."""
        ...

    def offered_models(self) -> Sequence[OfferedModel]:
        """List the models to choose from. To be called in a thread; raises `ConfigError`."""
        ...

    async def post(self, op: Op, source: Source) -> None:
        """Ask for something; returns when it is in the log. Raises `RefusedError` or `ConfigError`."""
        ...

    def follow(self) -> Feed:
        """Listen from now on; ends when the session is closed, or the feed is left, which is a context manager."""
        ...

    async def failure(self) -> None:
        """Wait until it ends; raises `TreadleError` for what ended it."""
        ...
