"""use_skill: the text of a skill, read when it is needed."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolSpec, result_text
from treadle.tools.declarations import USE_SKILL


class SkillTexts(Protocol):
    """Where the texts of skills are."""

    def __call__(self, name: str, arguments: str, /) -> str:
        """Read a skill as the model reads it. Raises `ToolError`."""
        ...


class UseSkill(Struct, frozen=True):
    """Reads one skill: the user's own, or one of a folder that they trust."""

    texts: SkillTexts

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return USE_SKILL

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Find the skill; which skills there are was settled when the session began."""
        name: str = arguments["name"]
        text = self.texts(name, arguments.get("arguments", ""))
        return Prepared(accesses=(), preview=Preview(title=f"Skill {name}", text=""), run=partial(_give, text))


async def _give(text: str, output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    return result_text(Outcome.OK, text)
