"""Running a shell line for a tool: live output, a time limit, and a report of what was left running."""

from treadle.engine.ports import Output
from treadle.protocol.tools import CallResult, Outcome, Preview, RunCommand, result_text
from treadle.workspace.process import Command
from treadle.workspace.workspace import Workspace


def access(workspace: Workspace, line: str) -> RunCommand:
    """Declare the run of a line in the workspace."""
    return RunCommand(command=line, cwd=workspace.root)


def preview(line: str) -> Preview:
    """Show the exact line."""
    return Preview(title="Run", text=line)


async def run_line(workspace: Workspace, line: str, seconds: float, output: Output) -> CallResult:
    """Run a line to its end or for `seconds`; a status other than 0 is a failure. Raises `ToolError`."""
    command = workspace.start(line)
    number = workspace.commands.add(command)
    command.show(output)
    try:
        await command.finish(seconds)
    finally:
        command.show(None)
        if not command.alive:
            workspace.commands.remove(number)
            await command.close()
    outcome = Outcome.OK if command.status == 0 and not command.why_stopped else Outcome.FAILED
    return result_text(outcome, report(command))


def report(command: Command) -> str:
    """Say how the command stands, what it printed since the last time, and what outlived it."""
    lines = [command.describe()]
    if left := command.left_behind:
        lines.append(f"It left running: {', '.join(left)}. They end with the session.")
    return "\n".join([*lines, command.take_output().rstrip("\n") or "(no output)"])
