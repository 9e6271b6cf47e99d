"""Running shell lines for tools: to their end, for a time, or on in the background."""

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Output
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import CallResult, Origin, Outcome, Preview, RunCommand, SandboxDenial
from treadle.tools.words import result_of
from treadle.workspace.confinement import describe
from treadle.workspace.process import Command
from treadle.workspace.workspace import Workspace

_RUNNING_AT_MOST = 16
_BYTES = 16_000
_ADVICE = "Give it more time, run it in the background, or have it do and print less."


class Patience(Struct, frozen=True):
    """How many seconds to wait for a command, and whether it then goes on in the background or is ended."""

    seconds: float
    keep: bool = False


def access(workspace: Workspace, line: str) -> RunCommand:
    """Declare the run of a line in the workspace."""
    return RunCommand(command=line, cwd=workspace.root)


def preview(line: str) -> Preview:
    """Show the exact line."""
    return Preview(title="Run", text=line)


async def run_line(
    workspace: Workspace, line: str, patience: Patience, output: Output, *, granted: tuple[SandboxDenial, ...] = ()
) -> CallResult:
    """Run a line, perhaps with more rights than its sandbox gives; a status other than 0 is a failure.

    Raises `ToolError`; when cancelled, leaves nothing running.
    """
    alive = [number for number, command in workspace.commands.all() if command.alive]
    if len(alive) >= _RUNNING_AT_MOST:
        numbers = ", ".join(map(str, alive))
        raise ToolError(f"Too many commands run in the background: {numbers}. Stop one with read_command_output first.")
    confinement = await asyncio.to_thread(workspace.confine, line, granted)
    command = workspace.launcher.start(line, confinement=confinement)
    number = workspace.commands.add(command)
    command.show(output)
    try:
        await command.finish(patience.seconds, keep=patience.keep)
        advice = _ADVICE if command.why_stopped else ""
        report = _report(workspace, number, command, advice=advice)
        report = _with(report, await command.settle(report))
    finally:
        command.show(None)
        if not command.alive:
            await _forget(workspace, number, command)
        elif workspace.records.jobs is not None:
            workspace.records.jobs.note(number, command)
    outcome = _outcome(command)
    denial = confinement.find_denial(report) if outcome is Outcome.FAILED and not command.why_stopped else None
    if denial is not None:
        report = f"{report}\n[{describe(denial)}]"
    return replace(result_of(Origin.COMMAND, outcome, report), denial=denial, full_output=command.output_file)


async def look_at(workspace: Workspace, number: int, seconds: float, *, stop: bool) -> CallResult:
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
    said = _report(workspace, number, command)
    said = _with(said, await command.settle(said))
    result = result_of(Origin.COMMAND, Outcome.OK, said)
    result = replace(result, running=command.running, full_output=command.output_file)
    if not command.alive:
        await _forget(workspace, number, command)
    return result


async def _forget(workspace: Workspace, number: int, command: Command) -> None:
    workspace.commands.remove(number)
    await command.close()


def _outcome(command: Command) -> Outcome:
    fine = command.running or (command.status == 0 and not command.why_stopped)
    return Outcome.OK if fine else Outcome.FAILED


def _with(report: str, sentences: tuple[str, ...]) -> str:
    return "\n".join((report, *(f"[{sentence}]" for sentence in sentences)))


def _report(workspace: Workspace, number: int, command: Command, *, advice: str = "") -> str:
    """Say how the command stands, what it printed since the last time, and what outlived it."""
    lines = [f"{command.describe()} {advice}".rstrip()]
    if command.running:
        lines = [
            f"Command {number} continues in the background. Use read_command_output to see more of it or to stop it."
        ]
    elif left := command.left_behind:
        lines.append(
            f"Still running after it: {', '.join(left)}. They end with the session, or when you stop command {number}."
        )
    room = min(_BYTES, workspace.conversation.room())
    return "\n".join([*lines, command.take_output(room).rstrip("\n") or "(no output)"])
