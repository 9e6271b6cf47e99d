"""What a session wants of a subagent that it begins, or takes up again."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from treadle.app.models.model_choice import OwnModel
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.children.child_shape import ChildShape
from treadle.app.subagents.agent_files import AgentFile
from treadle.protocol.children import ChildOf
from treadle.protocol.limits import Limits
from treadle.protocol.messages import Message
from treadle.protocol.permissions import Mode
from treadle.tools.use_subagents import SubagentTask

if TYPE_CHECKING:
    from treadle.app.session.live import LiveSession
    from treadle.app.session.offering import JoinedServers


class WantedChild(Struct, frozen=True, kw_only=True):
    """A subagent: the session `session_id`, with this `model` (`provider/name`). `known`: it was begun before.

    It works in `trust.workspace`, with `roots` besides; `in_copy` these are copies of the parent's. What it
    deletes is not lost where the copy or the checkpoints of the parent are of it (`keeps`). It may use
    `servers` of the session that begins it. With a `program` that is what calls its tools in the place of a model. A
    fork `inherits` messages.
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
    in_copy: bool = False
    keeps: bool = False
    servers: "JoinedServers | None" = None
    program: OwnModel | None = None
    inherits: tuple[Message, ...] | UnsetType = UNSET


OpenChild: TypeAlias = "Callable[[WantedChild], Awaitable[LiveSession]]"
"""Opens the session of a subagent. Raises `ConfigError`, `SessionError` or `StoreError`."""


def begin_message(task: SubagentTask, agent: AgentFile) -> str:
    """Write the message that a subagent begins with."""
    skills = f"Read these skills first: {', '.join(agent.skills)}" if agent.skills else ""
    prompt = f"{agent.prompt}\n\n{task.prompt}" if agent.fork else task.prompt
    paths = f"Begin with: {', '.join(task.paths)}" if task.paths else ""
    return "\n\n".join(filter(None, (task.title, prompt, skills, paths)))
