"""condense: the model sums the conversation up by itself, and older messages are left out."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Outcome, Preview, ToolSpec, result_text
from treadle.tools.declarations import CONDENSE


class Condense(Struct, frozen=True):
    """Takes the summary; the loop makes room with it."""

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return CONDENSE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Show the summary."""
        said = "Older messages were left out. Go on from your summary."
        return prepare_context("Sum up the conversation", arguments["context"], said)


def prepare_context(title: str, context: str, said: str) -> Prepared:
    """Get a call ready that gives the context to go on from."""
    if not context.strip():
        raise ToolError("The context is empty. Write down what you need to go on.", invalid=True)
    return Prepared(accesses=(), preview=Preview(title=title, text=context), run=partial(_run, said))


async def _run(said: str, output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    return result_text(Outcome.OK, said)
