"""ask_followup_question: a question to the user, asked by the loop itself."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Preview, ToolSpec
from treadle.tools.declarations import ASK_FOLLOWUP_QUESTION


class AskFollowupQuestion(Struct, frozen=True):
    """Declares the question; the loop brings it to the user and the answer to the model."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return ASK_FOLLOWUP_QUESTION

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the question."""
        if not arguments["question"].strip():
            raise ToolError("The question is empty. Write it out, or continue without asking.", invalid=True)
        return Prepared(accesses=(), preview=Preview(title="Question", text=arguments["question"]), run=_run)


async def _run(output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    raise ToolError("The user could not be asked. Continue without the answer, or finish.")
