"""Running shell lines for tools: to their end, for a time, or on in the background."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.core.texts import NOT_RUN
from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import (
    CallResult,
    Confinement,
    Origin,
    Outcome,
    Preview,
    Right,
    Rights,
    RunCommand,
    SandboxDenial,
)
from treadle.tools.quoted_words import result_of
from treadle.workspace.commands.confinement import Remark, describe_denial
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.wrapping import NO_TERMINAL, TIMES_AGAIN
from treadle.workspace.workspace import Workspace

_RUNNING_AT_MOST = 16
_BYTES = 16_000
_LINES_ASKED, _MOST_ASKED = 10, 2_000
"""Lines and characters of the output that a question about the changes shows."""

_ADVICE = "Give it more time, run it in the background, or have it do and print less."
_NO_KEYS = "Use the tools that edit files, or a program or an option that asks nothing."
_SUBMODULES = (
    " Git's data of submodules can name programs, so they stay as they are there. "
    'needs: ["host"] in a call of its own asks the user to run it without the sandbox.'
)
_CONFIGURATION = (
    "The sandbox keeps git's configuration as it is. `git branch -u REMOTE/BRANCH` has Treadle write what a branch "
    'follows; needs: ["host"] in a call of its own asks the user to run the line without the sandbox.'
)
_NOT_CONFIGURED = re.compile(
    r"could not (?:write|lock) config file \S*: (?:Device or resource busy|Read-only file system)"
)
_COPY_ADVICE = "It ran in a throw-away copy, where nothing runs for long. Use background for servers and watchers."


class Patience(Struct, frozen=True):
    """How many seconds to wait for a command, and whether it then goes on in the background or is ended.

    `background`: it is meant to go on from the beginning, as servers are.
    """

    seconds: float
    keep: bool = False
    background: bool = False


def access(workspace: Workspace, line: str, patience: Patience) -> RunCommand:
    """Declare the run of a line in the workspace."""
    return RunCommand(command=line, cwd=workspace.root, background=patience.background)


def prepared_run(access: RunCommand, preview: Preview, run: Callable[..., Awaitable[CallResult]]) -> Prepared:
    """Prepare the run of a line: `run` takes the output and `rights`, without which it does not run."""
    once = Prepared(accesses=(access,), preview=preview, run=_without_rights)
    return replace(once, confined=lambda rights: replace(once, run=partial(run, rights=rights)))


async def _without_rights(output: Output) -> CallResult:  # noqa: ARG001 - the port's shape
    raise AssertionError("a command is only run under rights")


def preview(line: str) -> Preview:
    """Show the exact line."""
    return Preview(title="Run", text=line)


async def run_line(
    workspace: Workspace,
    line: str,
    patience: Patience,
    output: Output,
    *,
    rights: Rights,
    cwd: str = "",
    again: int = TIMES_AGAIN,
) -> CallResult:
    """Run a line under its rights in a folder of the workspace; a status other than 0 is a failure.

    Its sandbox is set up `again` so often where a place that it was to cover went away meanwhile. Raises `ToolError`;
    when cancelled, leaves nothing running.
    """
    alive = [number for number, command in workspace.commands.all() if command.alive]
    if len(alive) >= _RUNNING_AT_MOST:
        numbers = ", ".join(map(str, alive))
        raise ToolError(f"Too many commands run in the background: {numbers}. Stop one with read_command_output first.")
    for prepare in workspace.before_commands:
        await prepare()
    setup = await asyncio.to_thread(workspace.confine, line, rights, background=patience.background, cwd=cwd)
    if setup.refused is not None:
        report = f"{NOT_RUN}{setup.refused.text}"
        return replace(result_of(Origin.COMMAND, Outcome.FAILED, report), denial=setup.refused)
    command = workspace.launcher.start(line, setup=setup, cwd=cwd)
    number = workspace.commands.add(command)
    command.show(output)
    told = None
    try:
        # A copy shows the workspace as it was: what runs longer than a while must not go on in it.
        await command.finish(patience.seconds, keep=patience.keep and setup.changes is None)
        advice = _advice(command, copy=setup.changes is not None)
        told = await _told(workspace, number, command, advice)
        remarks = await command.settle(told.report)
    finally:
        command.show(None)
        if not command.alive and (told is None or told.whole):
            await _forget(workspace, number, command)
        elif workspace.jobs is not None:
            workspace.jobs.note(number, command)
    kept = _kept_settings(told.report, rights)
    printed, report = told.printed, _with(told.report, (*kept, *(one.text for one in remarks)))
    outcome = _outcome(command, remarks, running=told.running)
    failed = outcome is Outcome.FAILED
    copy = await asyncio.to_thread(setup.changes, report, failed=failed) if setup.changes is not None else None
    if failed and again and await asyncio.to_thread(setup.wrapping.lacks_place, printed):
        return await run_line(workspace, line, patience, output, rights=rights, cwd=cwd, again=again - 1)
    denial = setup.find_denial(report) if failed and not command.why_stopped else None
    if denial is not None:
        never = await asyncio.to_thread(setup.why_never, denial)
        report, denial = _with(report, (_stopped(denial, never),)), None if never else denial
    if copy is not None:
        copy = replace(copy, ended=command.describe(), output=_last_lines(printed))
        report = _with(report, (copy.trouble,) if copy.trouble else ())
        if copy.trouble and denial is None:
            denial = SandboxDenial(right=Right.WRITE, target=workspace.root, text=copy.trouble, usual=True)
    result = result_of(Origin.COMMAND, outcome, report)
    return replace(result, denial=denial, full_output=command.output_file, copy=copy)


def _kept_settings(report: str, rights: Rights) -> tuple[str, ...]:
    """Give the way on where git could not write its configuration; it may go on without that, as with a new branch."""
    confined = rights.confinement is not Confinement.OPEN
    return (_CONFIGURATION,) if confined and _NOT_CONFIGURED.search(report) else ()


def _stopped(denial: SandboxDenial, never: str) -> str:
    """Say what the sandbox stopped, with the way on where that is known."""
    in_modules = denial.right is Right.WRITE and "/.git/modules/" in denial.text
    return f"{describe_denial(denial)}{_SUBMODULES if in_modules else never}"


class _Told(Struct, frozen=True):
    """A command as it stood at one moment: what it printed, the report on it, whether it ran, and if that is all."""

    printed: str
    report: str
    running: bool
    whole: bool


async def _told(workspace: Workspace, number: int, command: CommandProcess, advice: str = "") -> _Told:
    """Take what a command printed since the last time, and say how it stands: between the two it cannot end."""
    listens = await workspace.listens(command)
    if not command.alive:
        await command.drain()  # its end may be known before its last output
    printed = command.take_output(min(_BYTES, workspace.conversation.room())).rstrip("\n")
    report = _report(number, command, printed, advice=advice, listens=listens)
    return _Told(printed, report, command.running, not command.alive)


def _advice(command: CommandProcess, *, copy: bool) -> str:
    if command.why_stopped == NO_TERMINAL:
        return _NO_KEYS
    return command.advice or ((_COPY_ADVICE if copy else _ADVICE) if command.why_stopped else "")


def _last_lines(printed: str) -> str:
    return "\n".join(printed.split("\n")[-_LINES_ASKED:])[-_MOST_ASKED:]


_ENDS_WITH_ANSWER = "But your answer may end this session, and the command with it: wait before you answer."


def watch_command(workspace: Workspace, number: int, expression: str) -> str:
    """Have a command in the background wake the model, or with an empty expression no longer. Gives what to say.

    Raises `ToolError`; a command that has ended is told of as if it was not to be watched.
    """
    if workspace.watchers is None:
        raise ToolError("Nothing can wake you in this session. Use wait instead of wake_on.")
    command = workspace.commands.get(number)
    if not expression:
        workspace.watchers.disarm(number)
        return f"Command {number} is not watched any more."
    if command is None or not command.alive:
        return ""
    workspace.watchers.monitor(number, command, expression)
    said = f"From now on you are sent lines that match `{expression}`, and its end."
    return f"{said} {'You need not wait for them.' if workspace.watchers.stays() else _ENDS_WITH_ANSWER}"


async def poll_command(workspace: Workspace, number: int, seconds: float, *, stop: bool) -> CallResult:
    """Wait up to `seconds` for a command in the background, or stop it, and tell its output since the last time."""
    command = workspace.commands.get(number)
    if command is None:
        known = ", ".join(str(each) for each, _ in workspace.commands.all()) or "none"
        ended = "has ended, and there is no more output" if workspace.commands.had(number) else "was never started"
        raise ToolError(f"Command {number} {ended}. Continue, or look at one that is in the background: {known}.")
    if stop:
        await command.stop("you asked for it")
    else:
        await command.ended(seconds)
    told = await _told(workspace, number, command)
    remarks = await command.settle(told.report)
    said = _with(told.report, tuple(one.text for one in remarks))
    outcome = Outcome.FAILED if any(one.undone for one in remarks) else Outcome.OK
    result = result_of(Origin.COMMAND, outcome, said)
    result = replace(result, running=told.running, full_output=command.output_file)
    if told.whole:
        await _forget(workspace, number, command)
    return result


async def _forget(workspace: Workspace, number: int, command: CommandProcess) -> None:
    workspace.commands.remove(number)
    workspace.unwatch(number)
    await command.close()


def _outcome(command: CommandProcess, remarks: Sequence[Remark], *, running: bool) -> Outcome:
    fine = running or (command.status == 0 and not command.why_stopped)
    fine = fine and not any(one.undone for one in remarks)
    return Outcome.OK if fine else Outcome.FAILED


def _with(report: str, sentences: tuple[str, ...]) -> str:
    return "\n".join((report, *(f"[{sentence}]" for sentence in sentences)))


def _report(number: int, command: CommandProcess, printed: str, *, advice: str = "", listens: str = "") -> str:
    """Say how the command stands, what outlived it, on which ports that listens, and what it printed."""
    lines = [f"{command.describe()} {advice}".rstrip()]
    if command.running:
        lines = [
            f"Command {number} continues in the background. Use read_command_output to see more of it or to stop it."
        ]
    elif left := command.left_behind:
        lines.append(
            f"Still running after it: {', '.join(left)}. They end with the session, or when you stop command {number}."
        )
    elif command.ended_with_it:
        lines.append(
            f"Ended with it, since it ran in a throw-away copy: {command.ended_with_it}. Use background for servers."
        )
    lines += [listens] if listens else []
    return "\n".join([*lines, printed or "(no output)"])
