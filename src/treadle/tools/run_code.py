"""run_code: a program of the model's that calls tools, of whose results the model reads what the program prints."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from treadle.engine.ports import Output, Prepared, running_call
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Preview, ToolSpec
from treadle.tools.declarations import RUN_CODE

_LONGEST = 200_000


class ProgramBook(Protocol):
    """Runs programs."""

    async def run_program(self, call_id: str, code: str, tell: Output) -> CallResult:
        """Run a program, each of whose calls is judged by itself, and give what it printed.

        What is interrupted is told before `CancelledError`.
        """
        ...


class RunCode(Struct, frozen=True):
    """Runs a program; each of its calls is judged by itself."""

    programs: ProgramBook

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return RUN_CODE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check that there is a program of a bounded length; it is read where it runs, and nowhere else."""
        code = str(arguments["code"])
        if not code.strip():
            raise ToolError("There is no program. Write one, or make the calls one by one.", invalid=True)
        if len(code) > _LONGEST:
            raise ToolError(f"A program has at most {_LONGEST:,} characters. Write a shorter one.", invalid=True)
        run = partial(_run, self.programs, code)
        return Prepared(accesses=(), preview=Preview(title="Program", text=code), run=run)


async def _run(programs: ProgramBook, code: str, output: Output) -> CallResult:
    return await programs.run_program(running_call.get(), code, output)
