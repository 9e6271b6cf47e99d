"""use_subagents: parts of a task that sessions of their own work on."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from treadle.engine.ports import Output, Prepared, running_call
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Preview, ToolSpec
from treadle.tools.declarations import USE_SUBAGENTS

DEFAULT_AGENT, WRITER = "explore", "worker"
"""The agent of a task that names none, and the one that may write."""


class SubagentTask(Struct, frozen=True, kw_only=True):
    """One task: what is asked of which agent, and files (as the model names them) to begin with.

    `title` is how people read it. `model` and `effort` are in the place of those of the agent.
    """

    prompt: str
    agent: str = DEFAULT_AGENT
    paths: tuple[str, ...] = ()
    title: str = ""
    model: str = ""
    effort: str = ""


class SubagentRunner(Protocol):
    """Has subagents work."""

    def settle(self, tasks: Sequence[SubagentTask], *, wait: bool | None) -> bool:
        """Say whether the call waits for them; raises `ToolError` for a task that cannot be begun."""
        ...

    async def run(self, call_id: str, tasks: Sequence[SubagentTask], *, wait: bool, tell: Output) -> CallResult:
        """Work on the tasks, and give what came of them; what is interrupted is told before `CancelledError`."""
        ...


class UseSubagents(Struct, frozen=True):
    """Gives tasks to subagents; each of their calls is judged by itself."""

    subagents: SubagentRunner

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return USE_SUBAGENTS

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check that there are such agents."""
        tasks = tuple(map(_task, arguments["tasks"]))
        if not tasks:
            raise ToolError("There is no task. Give one, or do the work yourself.", invalid=True)
        wait = self.subagents.settle(tasks, wait=arguments.get("wait"))
        text = "\n\n".join(f"{one.agent}: {one.prompt}" for one in tasks)
        title = "Subagent" if len(tasks) == 1 else f"{len(tasks)} subagents"
        run = partial(_run, self.subagents, tasks, wait)
        return Prepared(accesses=(), preview=Preview(title=title, text=text), run=run)


def _task(said: Mapping[str, Any]) -> SubagentTask:
    prompt = str(said["prompt"]).strip()
    if not prompt:
        raise ToolError("A task has no prompt. Write all that the subagent needs to know into it.", invalid=True)
    paths = tuple(said.get("paths", ()))
    return SubagentTask(prompt=prompt, agent=said.get("agent") or DEFAULT_AGENT, paths=paths)


async def _run(
    subagents: SubagentRunner,
    tasks: Sequence[SubagentTask],
    wait: bool,  # noqa: FBT001 - bound beforehand
    output: Output,
) -> CallResult:
    return await subagents.run(running_call.get(), tasks, wait=wait, tell=output)
