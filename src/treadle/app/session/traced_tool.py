"""A tool whose unexpected failures leave a trace in the program's log; the model and the person read one line."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output, Prepared, Tool
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, ToolSpec


class TracedTool(Struct, frozen=True):
    """Passes everything on to `tool`, and tells `trace` of what nobody expected before it goes on its way."""

    tool: Tool
    trace: Callable[[BaseException], None]

    @property
    def spec(self) -> ToolSpec:
        """The declaration of the tool itself."""
        return self.tool.spec

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Prepare the call."""
        try:
            prepared = await self.tool.prepare(arguments)
        except ToolError:
            raise
        except Exception as error:
            self.trace(error)
            raise
        return _traced(prepared, self.trace)


def _traced(prepared: Prepared, trace: Callable[[BaseException], None]) -> Prepared:
    async def run(output: Output) -> CallResult:
        try:
            return await prepared.run(output)
        except ToolError:
            raise
        except Exception as error:
            trace(error)
            raise

    confined = prepared.confined
    within = None if confined is None else lambda rights: _traced(confined(rights), trace)
    return replace(prepared, run=run, confined=within)
