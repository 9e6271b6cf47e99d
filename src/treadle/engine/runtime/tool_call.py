"""Performing a call: preparing it, having it judged, running it, and what a restart in the middle means."""

import asyncio
from collections.abc import Callable, Sequence

from treadle.engine.core.machine_effects import RunTool
from treadle.engine.core.state import replace
from treadle.engine.core.texts import INTERRUPTED
from treadle.engine.ports import Ports, Prepared, RedactedOutput, TextRedactor
from treadle.engine.runtime.assembling import SessionPort
from treadle.protocol.errors import ToolError
from treadle.protocol.events import CallFinished, CallJudged
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallOutput
from treadle.protocol.permissions import Mode, Standing
from treadle.protocol.tools import (
    Access,
    CallResult,
    Confinement,
    FileChange,
    Outcome,
    Preview,
    ToolCall,
    WritePath,
    result_text,
)
from treadle.workspace.files.names import hash_of_file

_KEPT_OUTPUT = 8_000
_NO_FAULTS = (asyncio.CancelledError, GeneratorExit)
"""What ends a call from outside."""

RERUN = "[The program stopped while this was running. It was run again.]"
ALREADY_DONE = "Done. (The program stopped during this call. The files show that it took effect.)"
INTERRUPTED_LOOK = (
    "Interrupted before it finished, by the user or because the program ended. It changed nothing in the workspace."
)
CHANGED_SINCE = (
    "Not run: files changed after this call was checked, so it could now do something else. "
    "Look at the current state and make the call again."
)
NO_RIGHTS = "Not run: it was decided without what the command may run in. Make the call again."
CHANGED_BY_OTHERS = (
    "Outcome unknown: the program stopped during this call, and the file is neither as it was before nor as this call "
    "would have left it. Read it before you change it."
)


class LiveOutput:
    """What a running call printed so far: the end of it, for a call that is cut."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.size = 0

    def add(self, text: str) -> None:
        """Keep the newest pieces."""
        self.pieces.append(text)
        self.size += len(text)
        while len(self.pieces) > 1 and self.size - len(self.pieces[0]) > _KEPT_OUTPUT:
            self.size -= len(self.pieces.pop(0))

    @property
    def text(self) -> str:
        """The end of the output."""
        return "".join(self.pieces)[-_KEPT_OUTPUT:]


class PublishedOutput(LiveOutput):
    """Output that is kept and shown."""

    def __init__(self, session: SessionPort, call_id: str, hidden: RedactedOutput) -> None:
        super().__init__()
        self._session = session
        self._call_id = call_id
        self._hidden = hidden

    def add(self, text: str) -> None:
        self._show(self._hidden.feed(text))

    def finish(self) -> None:
        self._show(self._hidden.finish())

    def _show(self, text: str) -> None:
        if text:
            super().add(text)
            self._session.publish(CallOutput(call_id=self._call_id, text=text))


async def judged_again(ports: Ports, effect: RunTool, now: Standing, then: Mode) -> Prepared | None:
    """Prepare a call anew that was judged in the mode `then`; None where it is not the same any more.

    A yes is to what was asked about, whatever mode was chosen meanwhile, but for plan mode, which lets less.
    """
    now = replace(now, mode=now.mode if now.mode is Mode.PLAN else then)
    event, prepared = await judge_call(ports, effect.call, now)
    same = not isinstance(event, CallFinished) and event.decision.digest == effect.digest
    return prepared if same else None


async def judge_call(
    ports: Ports, call: ToolCall, standing: Standing
) -> tuple[CallJudged | CallFinished, Prepared | None]:
    """Prepare the call and ask the security layer; a call that cannot be prepared is finished with the reason."""
    tool = ports.tools[call.name]
    try:
        prepared = await tool.prepare(call.arguments)
        decision = ports.judge(tool.spec, call.arguments, prepared.accesses, standing)
    except ToolError as error:
        return CallFinished(call_id=call.id, result=redacted(_error(error), ports.redactor())), None
    except _NO_FAULTS:
        raise
    except BaseException as error:  # noqa: BLE001 - the tool boundary: no tool ends the program
        ports.trace(error)
        return CallFinished(call_id=call.id, result=redacted(_crash(call, error), ports.redactor())), None
    preview = _redacted_preview(prepared.preview, ports.redactor())
    judged = CallJudged(call_id=call.id, decision=decision, preview=preview, accesses=prepared.accesses)
    return judged, prepared


def _redacted_preview(preview: Preview, redactor: TextRedactor) -> Preview:
    title, text, result = map(redactor.redact, (preview.title, preview.text, preview.result))
    return replace(preview, title=title, text=text, result=result)


def redacted(result: CallResult, redactor: TextRedactor) -> CallResult:
    """Hide the secrets in what the model and the user will read."""
    content = tuple(
        replace(block, text=redactor.redact(block.text)) if isinstance(block, Text) else block
        for block in result.content
    )
    denial = result.denial
    if denial is not None:
        denial = replace(denial, text=redactor.redact(denial.text))
    copy = result.copy
    if copy is not None:
        copy = replace(copy, diff=redactor.redact(copy.diff), output=redactor.redact(copy.output))
    return replace(result, content=content, denial=denial, copy=copy)


def _unheard() -> None:
    """Tell nobody."""


async def run_call(
    prepared: Prepared,
    effect: RunTool,
    output: LiveOutput,
    trace: Callable[[BaseException], None],
    *,
    not_run: Callable[[], None] = _unheard,
) -> CallResult:
    """Run a prepared call, a command under exactly its rights; every failure becomes a result that the model reads.

    `trace` is given what nobody expected. `not_run` is called where the tool failed: what was to run may not have.
    """
    call = effect.call
    try:
        if prepared.confined is not None:
            if effect.rights is None:
                raise ToolError(NO_RIGHTS)
            prepared = prepared.confined(effect.rights)
        return await prepared.run(output.add)
    except ToolError as error:
        not_run()
        return _error(error)
    except _NO_FAULTS:
        raise
    except BaseException as error:  # noqa: BLE001 - the tool boundary: no tool ends the program
        not_run()
        trace(error)
        return _crash(call, error)


def interrupted(output: LiveOutput, effect: RunTool) -> CallResult:
    """Keep what a cancelled call had printed; of one that only looks nothing is left in the workspace."""
    looks = effect.rights is not None and effect.rights.confinement is Confinement.LOOK
    said, shown = INTERRUPTED_LOOK if looks else INTERRUPTED, output.text
    return result_text(Outcome.INTERRUPTED, f"{said} Its output so far:\n{shown}" if shown else said)


def cut_call(call_id: str) -> CallFinished:
    """Report a call that was cancelled before it could say anything."""
    return CallFinished(call_id=call_id, result=result_text(Outcome.INTERRUPTED, INTERRUPTED))


async def settle_rerun(accesses: Sequence[Access]) -> CallResult | None:
    """After a restart, tell from the journal of a file change what became of it; None means: run it again."""
    writes = [access for access in accesses if isinstance(access, WritePath)]
    if not writes:
        return None
    hashes = [await asyncio.to_thread(hash_of_file, write.path) for write in writes]
    if all(now == write.after for now, write in zip(hashes, writes, strict=True)):
        changes = tuple(FileChange(path=write.path, before=write.before, after=write.after) for write in writes)
        return CallResult(outcome=Outcome.OK, content=(Text(text=ALREADY_DONE),), changes=changes)
    if all(now == write.before for now, write in zip(hashes, writes, strict=True)):
        return None
    return result_text(Outcome.UNKNOWN, CHANGED_BY_OTHERS)


def mark_rerun(result: CallResult) -> CallResult:
    """Say in the result that the call ran a second time."""
    return replace(result, content=(Text(text=RERUN), *result.content))


def _error(error: ToolError) -> CallResult:
    return CallResult(
        outcome=Outcome.INVALID if error.invalid else Outcome.FAILED,
        content=(Text(text=error.text),),
        edits=() if error.edit is None else (error.edit,),
    )


def _crash(call: ToolCall, error: BaseException) -> CallResult:
    text = f"{call.name} failed inside Treadle: {type(error).__name__}: {error}. Try another way."
    return result_text(Outcome.FAILED, text)
