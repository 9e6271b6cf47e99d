"""What a session wants of a subagent that it begins, or takes up again."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from treadle.app.security.trusting import SessionTrust
from treadle.app.session.children.child_shape import ChildShape
from treadle.protocol.children import ChildOf
from treadle.protocol.limits import Limits
from treadle.protocol.permissions import Mode

if TYPE_CHECKING:
    from treadle.app.session.live import LiveSession


class WantedChild(Struct, frozen=True, kw_only=True):
    """A subagent: the session `session_id`, with this `model` (`provider/name`). `known`: it was begun before.

    It works in `trust.workspace`, with `roots` besides.
    """

    session_id: str
    of: ChildOf
    trust: SessionTrust
    roots: tuple[str, ...]
    model: str
    thinking: int | None
    mode: Mode
    limits: Limits
    user_present: bool
    shape: ChildShape
    known: bool


OpenChild: TypeAlias = "Callable[[WantedChild], Awaitable[LiveSession]]"
"""Opens the session of a subagent. Raises `ConfigError`, `SessionError` or `StoreError`."""
