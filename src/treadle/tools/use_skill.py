"""use_skill: the text of a skill, read when it is needed, or followed by a subagent where the skill asks for one."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from treadle.engine.ports import Output, Prepared, running_call
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolSpec, result_text
from treadle.tools.declarations import USE_SKILL
from treadle.tools.use_subagents import SubagentRunner, SubagentTask


class SkillTexts(Protocol):
    """Where the texts of skills are."""

    def __call__(self, name: str, arguments: str, /) -> str | SubagentTask:
        """Read a skill as the model reads it, or as the task of a subagent. Raises `ToolError`."""
        ...


class UseSkill(Struct, frozen=True):
    """Reads a skill: the user's own, or one of a folder that they trust. `subagents` follow those that ask for one."""

    texts: SkillTexts
    subagents: Callable[[], SubagentRunner]

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return USE_SKILL

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Find the skill; which skills there are was settled when the session began."""
        name: str = arguments["name"]
        text = self.texts(name, arguments.get("arguments", ""))
        if isinstance(text, str):
            return Prepared(accesses=(), preview=Preview(title=f"Skill {name}", text=""), run=partial(_give, text))
        subagents = self.subagents()
        subagents.settle((text,), wait=True)
        preview = Preview(title=f"{text.title}, by a subagent", text="")
        return Prepared(accesses=(), preview=preview, run=partial(_follow, subagents, text))


async def _give(text: str, output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    return result_text(Outcome.OK, text)


async def _follow(subagents: SubagentRunner, task: SubagentTask, output: Output) -> CallResult:
    return await subagents.run(running_call.get(), (task,), wait=True, tell=output)
