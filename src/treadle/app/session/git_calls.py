"""Calls of git that commands make in the middle: each is judged as a line, and run where it may write."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from treadle.engine.core.calls import rights_of
from treadle.engine.ports import Judge
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Standing, Verdict
from treadle.protocol.tools import Confinement, RunCommand
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.workspace.namespaces.git_broker import GitCall
from treadle.workspace.text import visible
from treadle.workspace.workspace import Workspace

_FAILED = 128
_LONGEST = 120
_NOBODY_CALLS = "its caller has ended"


class GitCalls:
    """Runs what a session's policy lets run without asking; nobody is asked in the middle of a command.

    `note` takes what the model and the person are to read of it with the result of the command.
    """

    def __init__(
        self, workspace: Workspace, judge: Judge, standing: Callable[[], Standing], note: Callable[[str], None]
    ) -> None:
        self._workspace = workspace
        self._judge = judge
        self._standing = standing
        self._note = note

    async def __call__(self, call: GitCall, descriptors: Sequence[int], gone: Awaitable[None]) -> tuple[int, str]:
        """Judge a call and run it; gives its exit status, and why it did not run."""
        left = asyncio.ensure_future(gone)
        try:
            return await self._run(call, descriptors, left)
        except ToolError as error:
            self._note(f"Git did not run `{_shown(call)}`: {error.text}")
            return _FAILED, error.text
        finally:
            left.cancel()

    async def _run(self, call: GitCall, descriptors: Sequence[int], gone: "asyncio.Future[None]") -> tuple[int, str]:
        cwd = await asyncio.to_thread(os.path.realpath, call.cwd)
        if not any(cwd == root or cwd.startswith(f"{root}/") for root in self._workspace.folders):
            raise ToolError(f"{call.cwd} is outside the workspace. Call git in a folder of it.")
        access = RunCommand(command=call.line, cwd=cwd)
        decision = await asyncio.to_thread(
            self._judge, EXECUTE_COMMAND, {"command": call.line}, (access,), self._standing()
        )
        rights = rights_of(decision)
        # What calls from inside a confinement never gets out of one, also where the mode has changed meanwhile.
        if decision.verdict is not Verdict.ALLOW or rights is None or rights.confinement is Confinement.OPEN:
            why = next((reason.text for reason in decision.reasons if reason.rule != "mode"), "it needs approval")
            raise ToolError(f"{why}. Call it in a command of its own, so that the user can approve it.")
        setup = await asyncio.to_thread(self._workspace.confine, call.line, rights, background=True, cwd=cwd)
        if setup.refused is not None:
            raise ToolError(f"{setup.refused.text}. Call it in a command of its own, so that the user can approve it.")
        setup = structs.replace(setup, variables={**setup.variables, **call.variables})
        given, printed, errors = descriptors
        line = f"exec {shlex.join(('git', *call.words))} <&{given} >&{printed} 2>&{errors}"
        command = self._workspace.launcher.start(line, setup=setup, descriptors=descriptors, cwd=cwd)
        try:
            ending = asyncio.ensure_future(command.finish(float("inf")))
            await asyncio.wait((ending, gone), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await command.stop(_NOBODY_CALLS)
            await ending
            for remark in await command.settle(""):
                self._note(remark.text)
        finally:
            await command.close()
        status = _FAILED if command.status is None else command.status
        if rights.confinement is Confinement.GIT:
            self._note(f"Git ran in the repository: `{_shown(call)}`, exit status {status}.")
        return (status if status >= 0 else _FAILED - status), ""


def _shown(call: GitCall) -> str:
    """Show a call in one short line that ends neither its quotation nor the note: a program wrote its words."""
    line = visible(" ".join(call.line.split())).translate({ord("`"): "'", ord("["): "(", ord("]"): ")"})
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
