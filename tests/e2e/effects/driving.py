"""Running one line through a surface, with an answer to every question, and what the model was told of it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.acp.driving import choosing, editor
from tests.e2e.faults.driving import run, script
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import model
from tests.person import CTRL_D, ENTER
from treadle import Treadle
from treadle.library import Mode, OptionKind, Question
from treadle.protocol.messages import Message, ToolResult, text_of
from treadle.protocol.models import ModelRequest
from treadle.protocol.notifications import CallOutput
from treadle.protocol.permissions import QuestionKind
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.testing import call, scripted_model

_LABELS: Mapping[OptionKind, tuple[str, ...]] = {
    OptionKind.ALLOW_ONCE: ("Apply", "Yes"),
    OptionKind.REJECT_ONCE: ("Discard", "No"),
    OptionKind.RUN_FOR_REAL: ("Run it for real",),
}


@dataclass(frozen=True)
class Told:
    """What the model read of the line: the text of its result, and whether it is an error. `asked` were questions."""

    text: str
    is_error: bool
    asked: int


Surface = Callable[[str, Path, Path, Mode, OptionKind], Awaitable[Told]]
"""Runs a line in a folder, with a home beside it, in a mode, and answers each question like this where it can be."""


def _wanted(options: tuple[str, ...], wanted: OptionKind) -> OptionKind:
    """Choose the answer that is wanted, else the plain yes of the question."""
    if wanted in options:
        return wanted
    return OptionKind.RUN_FOR_REAL if OptionKind.ALLOW_ONCE not in options else OptionKind.ALLOW_ONCE


async def in_library(line: str, folder: Path, home: Path, mode: Mode, answer: OptionKind) -> Told:
    """A program asks and answers. `home` is already the program's own."""
    del home
    asked: list[Question] = []

    def approve(question: Question) -> OptionKind:
        assert question.kind is QuestionKind.PERMISSION
        asked.append(question)
        return _wanted(question.options, answer)

    scripted = scripted_model(call("execute_command", command=line), call("attempt_completion", result="Done."))
    async with Treadle(folder, model=scripted, mode=mode.value, approve=approve, trust=True) as treadle:
        await treadle.run("Run it.")
    return _told(scripted.requests[1], len(asked))


def _told(request: ModelRequest, asked: int) -> Told:
    message: Message = request.messages[-1]
    result = next(block for block in message.content if isinstance(block, ToolResult))
    return Told(f"{text_of(result.content)}\n{text_of(message.content)}", result.is_error, asked)


async def in_editor(line: str, folder: Path, home: Path, mode: Mode, answer: OptionKind) -> Told:
    """An editor asks its user."""
    async with ScriptedServer(script(run(line))) as server, editor(home, *model(server), "--trust") as client:
        await client.initialize()
        session = await client.new(folder)
        await client.call("session/set_mode", sessionId=session, modeId=mode.value)

        def choose(params: dict[str, object]) -> object:
            options = tuple(one["optionId"] for one in params["options"])  # type: ignore[attr-defined]
            return choosing(_wanted(options, answer).value)(params)

        client.answers["session/request_permission"] = choose
        await client.prompt(session)
        asked = sum(method == "session/request_permission" for method, _ in client.asked)
        return _told_on_wire(server, asked)


_INSTEAD = "No. Do this instead:"
_SETTLES = 0.5  # seconds


async def in_terminal(line: str, folder: Path, home: Path, mode: Mode, answer: OptionKind) -> Told:
    """A person presses keys."""
    async with ScriptedServer(script(run(line))) as server:
        flags = (*model(server), "--mode", mode.value, "--directory", str(folder), "--trust")
        async with on_terminal(Program(home), *flags) as terminal:
            await terminal.until_shown("? for keys")
            terminal.type(f"Run it.{ENTER}")
            asked = 0
            while True:
                await terminal.until(lambda shown: "↑↓" in shown or "■ Done" in shown, "a question or the end")
                if "■ Done" in terminal.shown:
                    break
                asked += 1
                await terminal.confirm(_row(terminal.shown, answer))
                await asyncio.sleep(_SETTLES)
                if "type yes" in terminal.shown.lower():
                    terminal.type("yes")
                    await terminal.confirm()
                elif _INSTEAD in terminal.shown:  # a no may say what to do instead, and need not
                    terminal.type(ENTER)
                await terminal.until(lambda shown: "❯ " not in shown or "■ Done" in shown, "the question to be closed")
            terminal.type(CTRL_D)
        return _told_on_wire(server, asked)


def _row(shown: str, wanted: OptionKind) -> str:
    """Find the digit of the row with the wanted answer, or of another yes."""
    rows = [row.strip(" ▎❯") for row in shown[: shown.rindex("↑↓")].splitlines()]
    first = next(at for at, row in enumerate(rows) if row and f"❯ {row}" in shown)
    labels = (*_LABELS[wanted], *_LABELS[OptionKind.RUN_FOR_REAL], *_LABELS[OptionKind.ALLOW_ONCE])
    found = next(at for label in labels for at, row in enumerate(rows[first:], 1) if row.startswith(label))
    return str(found)


def _told_on_wire(server: ScriptedServer, asked: int) -> Told:
    block = next(one for one in server.requests[-1].body["messages"][-1]["content"] if one["type"] == "tool_result")
    content = block["content"]
    parts = content if isinstance(content, list) else [{"text": content}]
    beside = server.requests[-1].body["messages"][-1]["content"]
    text = "\n".join(part.get("text", "") for part in (*parts, *beside))
    return Told(text, bool(block.get("is_error")), asked)


KEPT = re.compile(r"\[(The user kept its changes\. They are in the workspace now|It ran in a throw-away copy\. Kept): ")
DISCARDED = re.compile(r"Changes that were discarded: |The user rejected this call|^Denied|could not be applied")
STATUS = re.compile(r"Exit status (\d+)")
"""What the model reads of changes that were kept, of those that were not, and of how a command ended."""


async def interrupted(line: str, folder: Path, mode: Mode) -> str:
    """Interrupt a line as soon as it has said something; gives what the model reads of it."""
    scripted = scripted_model(call("execute_command", command=line), call("attempt_completion", result="Done."))
    yes = OptionKind.ALLOW_ONCE
    async with Treadle(folder, model=scripted, mode=mode.value, approve=lambda _: yes, trust=True) as treadle:
        async for notification in treadle.run("Run it."):
            if isinstance(notification, CallOutput):
                await treadle.interrupt()
        await treadle.run("Go on.")
    results = (
        block for one in scripted.requests[-1].messages for block in one.content if isinstance(block, ToolResult)
    )
    return "\n".join(text_of(block.content) for block in results)
