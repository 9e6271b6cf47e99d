"""ask_followup_question: a question to the user, asked by the loop itself."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Flow, Preview, Risk, ToolEffect, ToolSpec, ToolTraits
from treadle.tools.declare import parameters, prompt, text

_SPEC = ToolSpec(
    name="ask_followup_question",
    description=prompt(__file__),
    parameters=parameters(
        {
            "question": text("The question."),
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 5,
                "description": "2 to 5 possible answers; the user can always write another.",
            },
        },
        optional=("options",),
    ),
    traits=ToolTraits(effect=ToolEffect.PURE, flow=Flow.ASK),
    risk=Risk.NONE,
)


class AskFollowupQuestion(Struct, frozen=True):
    """Declares the question; the loop brings it to the user and the answer to the model."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return _SPEC

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the question."""
        if not arguments["question"].strip():
            raise ToolError("The question is empty. Write it out, or continue without asking.", invalid=True)
        return Prepared(accesses=(), preview=Preview(title="Question", text=arguments["question"]), run=_run)


async def _run(output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    raise ToolError("The user could not be asked. Continue without the answer, or finish.")
