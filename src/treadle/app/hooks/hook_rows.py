"""One hook of a session as it is run, whoever wrote it."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from treadle.app.config.hook_settings import POLICY_EVENTS, HookOrigin, seconds_of


class HookAnswer(Struct, frozen=True, kw_only=True):
    """What a hook answers: the `objects` that it gives, as Claude Code has them; most give one.

    `unread` says what in its answer cannot be read and may be a decision. Only what stands `alone` may be a yes: what a
    hook prints beside its answer may be the words of the model. `stopped` says what the sandbox kept it from.
    """

    objects: tuple[dict[str, Any], ...] = ()
    unread: str = ""
    alone: bool = True
    stopped: str = ""


HookHandler = Callable[[dict[str, Any]], Awaitable[HookAnswer]]
"""Takes what happens, as Claude Code has it, and gives the hook's answer. Raises `HookFailedError`."""


class HookFailedError(Exception):
    """A hook gave no answer that can be used; the text says why."""


class HookRow(Struct, frozen=True, kw_only=True):
    """One hook. `timeout` is seconds, None for those of the event; `name` and `place` say to people which it is.

    `on_failure` is `block` or `continue`; empty: `block` where the hook decides whether something happens. `condition`
    is a permission rule that a call must match besides the `matcher`. With `detached` nobody waits for it. One that
    runs on this machine may be one that `changes_files`. `aside` is called in place of the `handler` while changes of a
    call wait for an answer, and changes nothing in the workspace.
    """

    event: str
    handler: HookHandler
    aside: HookHandler | None = None
    matcher: str = ""
    timeout: float | None = None
    on_failure: str = ""
    origin: HookOrigin = HookOrigin.HOST
    name: str = ""
    place: str = ""
    condition: str = ""
    once: bool = False
    detached: bool = False
    changes_files: bool = True

    @property
    def shown(self) -> str:
        """Name it."""
        return f"{self.event} hook {self.name or 'of the host'}"

    @property
    def by(self) -> str:
        """Name it with the file that it is written in."""
        return f"{self.shown} ({self.place})" if self.place else self.shown

    @property
    def seconds(self) -> float:
        """How long it has."""
        return seconds_of(self.event, self.timeout)

    @property
    def blocks(self) -> bool:
        """Whether a failure of it blocks what it was asked about."""
        return self.event in POLICY_EVENTS and self.on_failure != "continue"
