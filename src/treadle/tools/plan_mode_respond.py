"""plan_mode_respond: an answer in plan mode, which ends the turn."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Outcome,
    Preview,
    ToolSpec,
    result_text,
)
from treadle.tools.declarations import PLAN_MODE_RESPOND


class PlanModeRespond(Struct, frozen=True):
    """Hands the answer on."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return PLAN_MODE_RESPOND

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the answer."""
        response: str = arguments["response"]
        if not response.strip():
            raise ToolError("The response is empty. Write the plan, or your question about it.", invalid=True)
        return Prepared(accesses=(), preview=Preview(title="Plan", text=response), run=partial(_run, response))


async def _run(response: str, output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    return result_text(Outcome.OK, response)
