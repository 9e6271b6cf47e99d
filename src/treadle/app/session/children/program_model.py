"""A program in the place of a model: the `Provider` of the subagent that makes the calls of the program."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence

import msgspec

from treadle.app.models.model_notes import PROGRAM_REF
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import Message, Text, ToolResult, ToolUse
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    ModelSpec,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
)
from treadle.protocol.usage import Usage
from treadle.workspace.programs.program_process import (
    ProgramCall,
    ProgramProcess,
    ProgramResult,
    ProgramSaid,
    run_shut_off,
)

_PROVIDER, _, _NAME = PROGRAM_REF.partition("/")
PROGRAM_SPEC = ModelSpec(provider=_PROVIDER, name=_NAME, context_window=10**12, images=False, documents=False)
"""Stands where other sessions have a model. Nothing of it is billed, and nothing leaves it to make room."""

MOST_OF_PROGRAM = 30_000
"""Characters that come back of what a program prints."""

FAILED = "The program failed:"
_OTHER_WAY = (
    "It was started again after an interruption, and then made other calls than the first time, so it was ended. "
    "The calls up to there are done."
)


class ProgramModel:
    """Runs one program for one session.

    What was said so far is in the request. So a program that is not running any more is run again from its beginning,
    and given the results that are there: it comes to the same place, or it is ended. `failed_by` says in a line what
    it failed by, if it did.
    """

    def __init__(self, code: str) -> None:
        self.code = code
        self._process: ProgramProcess | None = None
        self._answered = 0
        self._said: ProgramSaid | None = None
        self.failed_by = ""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Give the next calls of the program; at its end what it printed."""
        whole = False
        try:
            said = await self._next(request)
            whole = True
        except ToolError as error:
            failure = ModelError(kind=ErrorKind.BAD_REQUEST, message=error.text)
            yield StreamFailure(error=failure)
            return
        finally:
            if not whole:
                await self.close()
        if said.error is None:
            for event in _as_stream(said.calls):
                yield event
            yield StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage())
            return
        yield StreamText(text=self._outcome(said.error, said.why))
        yield StreamStop(reason=ReplyStop.END_TURN, usage=Usage())

    async def _next(self, request: ModelRequest) -> ProgramSaid:
        steps = tuple(_steps(request.messages))
        if self._process is None or self._answered > len(steps):
            await self.close()
            self._process = await run_shut_off(self.code, _parameters(request))
            self._answered, self._said = 0, None
        for calls, results in steps[self._answered :]:
            said = self._said
            if said is None:  # it runs again: the calls of one that runs are in the log as they were read, not as said
                said = await self._process.said()
                if said.error is None and said.calls != calls:
                    said = ProgramSaid(error=_OTHER_WAY)
            if said.error is not None:
                return said
            await self._process.answer(results)
            self._answered += 1
            self._said = None
        self._said = self._said or await self._process.said()
        return self._said

    def _outcome(self, error: str, why: str) -> str:
        printed = self.printed().rstrip()
        self.failed_by = why or error
        if error:
            return "\n\n".join(filter(None, (printed, f"{FAILED}\n{error}")))
        return printed or "(it printed nothing)"

    def printed(self) -> str:
        """Give what it printed so far; empty where it does not run."""
        return "" if self._process is None else self._process.printed(MOST_OF_PROGRAM)

    async def close(self) -> None:
        """End the program."""
        process, self._process = self._process, None
        if process is not None:
            await process.end()
            process.close()


def _parameters(request: ModelRequest) -> Mapping[str, Sequence[str]]:
    """Give those that may stand without their names: the required ones, as a log keeps no order of the others."""
    return {spec.name: tuple(spec.parameters.get("required", ())) for spec in request.tools}


def _steps(messages: Sequence[Message]) -> Iterator[tuple[tuple[ProgramCall, ...], tuple[ProgramResult, ...]]]:
    """Read from a conversation which calls were made together, and what came of them."""
    results = {
        block.call_id: ProgramResult(text=_text(block), failed=block.is_error)
        for message in messages
        for block in message.content
        if isinstance(block, ToolResult)
    }
    for message in messages:
        made = [block for block in message.content if isinstance(block, ToolUse)]
        if made and all(one.id in results for one in made):
            calls = tuple(ProgramCall(one.name, one.arguments) for one in made)
            yield calls, tuple(results[one.id] for one in made)


def _text(result: ToolResult) -> str:
    parts = (
        block.text if isinstance(block, Text) else f"[{block.media_type}, which a program cannot read]"
        for block in result.content
    )
    return "\n".join(parts)


def _as_stream(calls: Sequence[ProgramCall]) -> Iterator[StreamEvent]:
    for index, call in enumerate(calls):
        yield StreamCallStart(index=index, name=call.name)
        yield StreamCallArguments(index=index, text=msgspec.json.encode(call.arguments).decode())
        yield StreamCallDone(index=index)
