"""Calls of git that commands make in the middle: each is judged as a line, and run where it may write."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from msgspec import structs

from treadle.app.session.commands.callers import Caller, Callers
from treadle.engine.core.calls import rights_of
from treadle.engine.ports import Judge, ask_nobody, ask_person
from treadle.policy.marks import MARKS, fits_glob, is_static
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Decision, Standing, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import Confinement, Rights, Risk, RunCommand
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.workspace.commands.variables import find_outside
from treadle.workspace.commands.wrapping import TIMES_AGAIN
from treadle.workspace.files.text import visible
from treadle.workspace.namespaces.git_broker import GitCall
from treadle.workspace.namespaces.git_settings import GitSettings, setting_write
from treadle.workspace.sandbox.switching import git_subcommand
from treadle.workspace.workspace import Workspace

_FAILED = 128
_LONGEST = 120
_MOST_NOTES = 20  # of one command
_RISKS = tuple(Risk)
_NOBODY_CALLS = "its caller has ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Calling:
    """A call, whose it is, its standard descriptors, and what is done once its caller has gone."""

    call: GitCall
    caller: Caller | None
    descriptors: Sequence[int]
    gone: "asyncio.Future[None]"


class GitCalls:
    """Runs what a session's policy lets run, or what the user says yes to while the command waits.

    What is dangerous is not asked about in the middle: it is to be read in peace, in a command of its own. `note` takes
    what the model and the person are to read of it with the result of the command.
    """

    def __init__(
        self,
        workspace: Workspace,
        judge: Judge,
        standing: Callable[[], Standing],
        callers: Callers,
        *,
        note: Callable[[str], None],
    ) -> None:
        self._workspace = workspace
        self._judge = judge
        self._standing = standing
        self._callers = callers
        self._note = note
        self._unknown = Caller("", ask_nobody)
        self._writing = asyncio.Lock()

    async def __call__(self, call: GitCall, descriptors: Sequence[int], gone: Awaitable[None]) -> tuple[int, str]:
        """Judge a call and run it; gives its exit status, and why it did not run."""
        left = asyncio.ensure_future(gone)
        caller = await asyncio.to_thread(self._callers.of, call.process)
        try:
            return await self._run(_Calling(call=call, caller=caller, descriptors=descriptors, gone=left))
        except ToolError as error:
            self._say(caller, f"Git did not run `{_shown(call)}`: {error.text}")
            return _FAILED, error.text
        finally:
            left.cancel()

    async def _may_run(self, decision: Decision, calling: _Calling) -> bool:
        """Whether a call may run: by the policy, or by a yes of the user. Raises `ToolError` for a no."""
        call, caller, gone = calling.call, calling.caller, calling.gone
        if decision.verdict is Verdict.ALLOW:
            return True
        if decision.verdict is Verdict.DENY or caller is None:
            return False
        if any(
            judged == call.words or (_may_be(judged, call.words) and _RISKS.index(decision.risk) <= _RISKS.index(risk))
            for judged, risk in caller.judged.items()
        ):
            return True
        if decision.dangerous:
            return False
        why = words_of_decision(decision).headline
        text = f"Let `{_shown(call)}` run ({why})? It is called by: {caller.shown}"
        asking = asyncio.ensure_future(self._callers.ask(caller, text))
        try:
            await asyncio.wait((asking, gone), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ToolError(f"{_NOBODY_CALLS}. Call it again if it is still needed.")
            reply = await asking
        finally:
            asking.cancel()  # which withdraws the question
        if reply.final:
            raise ToolError(f"{reply.why}. Tell the user if the task needs it.")
        return not reply.why

    def _say(self, caller: Caller | None, text: str) -> None:
        """Have something said with the result of a command; a program can bring about any number of notes."""
        said = caller or self._unknown
        said.notes += 1
        if said.notes <= _MOST_NOTES + 1:
            self._note(text if said.notes <= _MOST_NOTES else "There is more to say of this command than is listed.")

    async def _run(self, calling: _Calling) -> tuple[int, str]:
        call = calling.call
        cwd = await asyncio.to_thread(os.path.realpath, call.cwd)
        if not any(cwd == root or cwd.startswith(f"{root}/") for root in self._workspace.folders):
            raise ToolError(f"{call.cwd} is outside the workspace. Call git in a folder of it.")
        access = RunCommand(command=call.line, cwd=cwd)
        decision = await asyncio.to_thread(
            self._judge, EXECUTE_COMMAND, {"command": call.line}, (access,), self._standing()
        )
        rights = rights_of(decision)
        # What calls from inside a confinement never gets out of one, also where the mode has changed meanwhile.
        if rights is None or rights.confinement is Confinement.OPEN:
            may_run = False
        else:
            may_run = await self._may_run(decision, calling)
        if rights is None or not may_run:
            why = words_of_decision(decision).whole_headline
            raise ToolError(f"{why}. Call it in a command of its own, so that the user can approve it.")
        call = structs.replace(call, cwd=cwd)
        calling = replace(calling, call=call)
        if (writes := setting_write(call.words)) is None:
            return await self._run_git(calling, rights)
        if writes.before:
            pushed = replace(calling, call=structs.replace(call, words=writes.before))
            status, said = await self._run_git(pushed, rights)
            if status:
                return status, said
        folders = self._workspace.folders
        settings = GitSettings(folders, find_outside("git", *folders))
        if writes.renames is not None:
            old, new = await asyncio.to_thread(settings.branch, writes.renames[0], cwd), writes.renames[1]
            is_renamed = partial(settings.is_renamed, old, new, cwd)
            # Git renames it, and fails at its configuration: what it says of that is not so.
            if not (before := await asyncio.to_thread(is_renamed)):
                await self._run_git(calling, rights, quiet=True)
            if before or not await asyncio.to_thread(is_renamed):
                return await self._run_git(calling, rights)
            writes = structs.replace(writes, renames=(old, new))
        await asyncio.to_thread(settings.write, writes, cwd)
        self._say(calling.caller, f"Treadle wrote git's configuration: `{_shown(call)}`.")
        return 0, ""

    async def _run_git(self, calling: _Calling, rights: Rights, *, quiet: bool = False) -> tuple[int, str]:
        if calling.caller is not None:  # what it connects to is asked about by the call that it is of
            ask_person.set(calling.caller.ask)
        # One after the other: what a call brings into the index is looked at before another one commits it.
        async with self._writing if rights.confinement is Confinement.GIT else nullcontext():
            return await self._run_alone(calling, rights, quiet=quiet)

    async def _run_alone(
        self, calling: _Calling, rights: Rights, *, quiet: bool, again: int = TIMES_AGAIN
    ) -> tuple[int, str]:
        """Run git to its end; `again` so often where its sandbox was not set up. Raises `ToolError`."""
        call, descriptors = calling.call, calling.descriptors
        confine = partial(self._workspace.confine, background=True, cwd=call.cwd, of_git=True)
        setup = await asyncio.to_thread(confine, call.line, rights)
        if setup.refused is not None:
            raise ToolError(f"{setup.refused.text}. Call it in a command of its own, so that the user can approve it.")
        setup = structs.replace(setup, variables={**setup.variables, **call.variables})
        given, printed, errors = descriptors
        told = "2>/dev/null" if quiet else f"2>&{errors}"
        line = f"exec {shlex.join(('git', *call.words))} <&{given} >&{printed} {told}"
        command = self._workspace.launcher.start(line, setup=setup, descriptors=descriptors, cwd=call.cwd)
        try:
            ending = asyncio.ensure_future(command.finish(float("inf")))
            await asyncio.wait((ending, calling.gone), return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                await command.stop(_NOBODY_CALLS)
            await ending
            said = command.take_output().strip()  # git itself prints to the descriptors of its caller
        finally:
            await command.close()  # what others noted meanwhile, and it took along, goes with the next result
        if command.status and said and not command.why_stopped:
            if again and await asyncio.to_thread(setup.wrapping.lacks_place, said):
                return await self._run_alone(calling, rights, quiet=quiet, again=again - 1)
            raise ToolError(f"It could not be started ({said}). Try again, or tell the user.")
        status = _FAILED if command.status is None else command.status
        if rights.confinement is Confinement.GIT and not quiet:
            self._say(calling.caller, f"Git ran in the repository: `{_shown(call)}`, exit status {status}.")
        return (status if status >= 0 else _FAILED - status), ""


def _may_be(judged: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a call is one that was judged before it ran, when some words behind the subcommand were not known.

    None of these is an option.
    """
    _, rest = git_subcommand(("git", *judged))
    before = len(judged) - len(rest)
    is_same = len(judged) == len(words) and (*judged[:before],) == (*words[:before],)
    return is_same and all(map(_is_word, judged[before:], words[before:]))


def _is_word(judged: str, word: str) -> bool:
    if is_static(judged):
        return judged == word
    is_new_option = word.startswith("-") and not judged.startswith("-")
    return not is_new_option and fits_glob(judged.translate(dict.fromkeys(map(ord, MARKS), "**")), word)


def _shown(call: GitCall) -> str:
    """Show a call in one short line that ends neither its quotation nor the note: a program wrote its words."""
    line = visible(" ".join(call.line.split())).translate({ord("`"): "'", ord("["): "(", ord("]"): ")"})
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
