"""The tools of the server, on the MCP SDK; each is thin, and what it does is in the book of tasks."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from mcp_types import InputRequiredResult, ToolAnnotations
from pydantic import Field

from treadle import __version__
from treadle.door.trust import SessionTrust, session_trust, trust_store, whole_trust
from treadle.mcp_server.elicit import ask_clients_user, can_ask
from treadle.mcp_server.running_task import ServedTask, Tell
from treadle.mcp_server.task_book import TaskBook, TaskRequest
from treadle.mcp_server.task_reports import DiffReport, SessionLine, TaskList, TaskReport, error_words, task_report
from treadle.mcp_server.wording import (
    APPROVALS,
    TrustForm,
    can_be_approved,
    given_answer,
    in_terminal,
    too_long,
    trust_words,
)
from treadle.present.escape import printable
from treadle.present.words import clip_text
from treadle.protocol.errors import KeptBackError, RefusedError, TreadleError
from treadle.protocol.events import Answer, Interrupt
from treadle.protocol.messages import Text
from treadle.protocol.permissions import OptionKind

INSTRUCTIONS = """Treadle is a coding agent. start_task gives it a task in a folder and returns immediately; task_result
waits for the answer and reports progress. What needs approval waits until a person answers: task_result asks them where
the client can ask, and otherwise shows the question, which answer_question answers. Never answer for the person."""

_LONGEST_NAME = 40
_WAIT = 45.0

_TaskId = Annotated[str, Field(description="The task_id that start_task or join_task returned.")]
_Seconds = Annotated[float, Field(description="The most seconds to wait.", ge=0, le=3600)]
_Mode = Literal["", "plan", "ask", "edits", "auto", "full"]
_Decision = Literal["allow_once", "allow_always", "reject_once", "reject_always", "run_for_real", "answer"]


def mcp_server(book: TaskBook) -> MCPServer[Any]:
    """Make the server for a book of tasks."""
    server: MCPServer[Any] = MCPServer(
        "treadle",
        title="Treadle",
        description="A coding agent that works on tasks in a folder.",
        instructions=" ".join(INSTRUCTIONS.split()),
        version=__version__,
        log_level="ERROR",
    )
    _add_starting(server, book)
    _add_waiting(server, book)
    _add_rest(server, book)
    return server


def _add_starting(server: MCPServer[Any], book: TaskBook) -> None:
    async def folder_trust(folder: str) -> SessionTrust:
        with _as_tool_errors():
            trust = await asyncio.to_thread(book.trust, folder)
            return await asyncio.to_thread(_whole, trust)

    async def folder_answer(ctx: Context[Any], trust: Annotated[SessionTrust, Resolve(folder_trust)]) -> _TrustAsked:
        return _asked(ctx, trust)

    async def joined_trust(session_id: str) -> SessionTrust | None:
        with _as_tool_errors():
            trust = await asyncio.to_thread(book.trust_to_join, session_id)
            return None if trust is None else await asyncio.to_thread(_whole, trust)

    async def joined_answer(
        ctx: Context[Any], trust: Annotated[SessionTrust | None, Resolve(joined_trust)]
    ) -> _TrustAsked:
        return None if trust is None else _asked(ctx, trust)

    @server.tool(title="Start a task", annotations=ToolAnnotations(destructive_hint=True, open_world_hint=True))
    async def start_task(
        ctx: Context[Any],
        *,
        task: Annotated[str, Field(description="What to do, in the words of the user.", min_length=1)],
        trust: Annotated[SessionTrust, Resolve(folder_trust)],
        said: Annotated[ElicitationResult[TrustForm], Resolve(folder_answer)],
        folder: Annotated[str, Field(description="The folder to work in; empty: the server's.")] = "",  # noqa: ARG001
        mode: Annotated[_Mode, Field(description="How much runs without asking, at most what the user set.")] = "",
        model: Annotated[str, Field(description="The model, provider/name; empty: as the user set.")] = "",
    ) -> TaskReport:
        """Start a coding task in a folder and return immediately; call task_result to wait for it."""
        with _as_tool_errors():
            trust = await asyncio.to_thread(_decided, trust, said)
            wanted = TaskRequest(task=task, mode=mode, model=model)
            return _begun(ctx, await book.whole(book.start(wanted, trust, _client(ctx))))

    @server.tool(title="Join a session", annotations=ToolAnnotations(destructive_hint=False))
    async def join_task(
        ctx: Context[Any],
        *,
        session_id: Annotated[str, Field(description="The session, as list_tasks shows it.", min_length=1)],
        trust: Annotated[SessionTrust | None, Resolve(joined_trust)],
        said: Annotated[ElicitationResult[TrustForm], Resolve(joined_answer)],
    ) -> TaskReport:
        """Join a session that is open in a terminal, or open one that ended, to go on with it."""
        with _as_tool_errors():
            trust = None if trust is None else await asyncio.to_thread(_decided, trust, said)
            return _begun(ctx, await book.whole(book.join(session_id, trust, _client(ctx))))


def _begun(ctx: Context[Any], task: ServedTask) -> TaskReport:
    """Describe a task that this client began or joined."""
    task.has_forms = task.has_forms or can_ask(ctx)
    return task_report(task)


_TrustAsked = TrustForm | Elicit[TrustForm] | None


def _asked(ctx: Context[Any], trust: SessionTrust) -> Elicit[TrustForm] | None:
    return Elicit(trust_words(trust), TrustForm) if trust.asks and can_ask(ctx) else None


def _whole(trust: SessionTrust) -> SessionTrust:
    """Look for rules in the folders below, too, where the user is asked: their word is about these as well."""
    return SessionTrust(trust=whole_trust(trust.workspace)) if trust.asks else trust


def _decided(trust: SessionTrust, said: Any) -> SessionTrust:
    """Keep what the user said of a folder: about exactly what they were shown, whatever became of it since."""
    match said:
        case AcceptedElicitation(data=TrustForm(decision="trust")):
            trust_store().grant(trust.trust)
        case AcceptedElicitation(data=TrustForm(decision="never")):
            trust_store().refuse(trust.trust)
        case _:
            return trust
    return session_trust(trust.workspace)


def _add_waiting(server: MCPServer[Any], book: TaskBook) -> None:
    @server.tool(title="Wait for a task", annotations=ToolAnnotations(destructive_hint=False))
    async def task_result(
        ctx: Context[Any], *, task_id: _TaskId, wait_seconds: _Seconds = _WAIT
    ) -> TaskReport | InputRequiredResult:
        """Wait until a task has its answer, or a person has to decide something; progress comes meanwhile.

        Where the client can ask its user, they are asked here, and the task goes on with what they say.
        """
        with _as_tool_errors():
            task, tell = book.find(task_id), _teller(ctx)

            async def go_on(answer: Answer | None) -> None:
                if answer is not None:
                    await book.whole(task.answer(answer, _client(ctx)))
                await task.wait(wait_seconds, tell)

            return await ask_clients_user(ctx, task, go_on) or task_report(task)

    @server.tool(title="Send a message", annotations=ToolAnnotations(destructive_hint=True, open_world_hint=True))
    async def send_message(
        ctx: Context[Any],
        *,
        task_id: _TaskId,
        text: Annotated[str, Field(description="What to say.", min_length=1)],
        steer: Annotated[bool, Field(description="Read it with the next step instead of after the turn.")] = False,
    ) -> TaskReport:
        """Say something more to a task: it waits in the queue until the turn ends, or steers it at its next step."""
        with _as_tool_errors():
            task = book.find(task_id)
            await book.whole(task.ask((Text(text=text),), _client(ctx), steer=steer))
            return task_report(task)

    @server.tool(title="Answer a question", annotations=ToolAnnotations(destructive_hint=True, open_world_hint=True))
    async def answer_question(
        ctx: Context[Any],
        *,
        task_id: _TaskId,
        question_id: Annotated[str, Field(description="The question, as task_status shows it.", min_length=1)],
        decision: Annotated[_Decision, Field(description="What the person decided: one of the question's options.")],
        text: Annotated[str, Field(description="The answer in words, or a comment on the decision.")] = "",
    ) -> TaskReport:
        """Give a person's answer to a question or approval. Show them the question first; never decide for them.

        Where the client whose task it is can ask its user, an approval is theirs to give: task_result asks them.
        """
        with _as_tool_errors():
            task = book.find(task_id)
            question = task.question(question_id)
            if decision in APPROVALS and can_ask(ctx):
                raise ToolError("This client can ask its user. Call task_result, which asks them.")
            if decision in APPROVALS and task.has_forms:
                raise ToolError(f"Call task_result in the client whose task this is: it asks. {in_terminal(task)}")
            if decision in APPROVALS and not can_be_approved(task, question):
                raise ToolError(too_long(task))
            answer = given_answer(question, OptionKind(decision), text)
            await book.whole(task.answer(answer, _client(ctx)))
            return task_report(task)


def _add_rest(server: MCPServer[Any], book: TaskBook) -> None:
    reads = ToolAnnotations(read_only_hint=True)

    @server.tool(title="Where a task is", annotations=reads)
    async def task_status(task_id: _TaskId) -> TaskReport:
        """Say where a task is, with what it did last and the questions that wait for a person."""
        with _as_tool_errors():
            return task_report(book.find(task_id))

    @server.tool(title="What a task changed", annotations=reads)
    async def task_diff(task_id: _TaskId) -> DiffReport:
        """Show what changed in the folder since the task's session began, as a diff."""
        with _as_tool_errors():
            files, diff = await asyncio.to_thread(book.diff, book.find(task_id))
            return DiffReport(task_id=task_id, files=files, diff=diff)

    @server.tool(title="Interrupt a task", annotations=ToolAnnotations(destructive_hint=False))
    async def interrupt_task(ctx: Context[Any], task_id: _TaskId) -> TaskReport:
        """Stop what a task is doing; its session stays open for another message."""
        with _as_tool_errors():
            task = book.find(task_id)
            await book.whole(task.client.post(Interrupt(), name=_client(ctx)))
            await task.wait(5, _teller(ctx))
            return task_report(task)

    @server.tool(title="Close a task", annotations=ToolAnnotations(destructive_hint=False))
    async def close_task(task_id: _TaskId) -> TaskReport:
        """Stop a task and close its session, which can be joined again later; one of a terminal continues there."""
        with _as_tool_errors():
            task = book.find(task_id)
            await book.whole(book.close(task))
            return task_report(task)

    @server.tool(title="List the tasks", annotations=reads)
    async def list_tasks() -> TaskList:
        """List the open tasks, and sessions of these folders that can be joined."""
        with _as_tool_errors():
            others = await asyncio.to_thread(book.others)
            return TaskList(
                tasks=[task_report(task) for task in book.tasks],
                sessions=[SessionLine(session_id=name, folder=folder, title=title) for name, folder, title in others],
            )


def _teller(ctx: Context[Any]) -> Tell:
    """Number the lines of one call: they rise to its end, however often it waits."""
    numbers = count(1)

    async def tell(line: str) -> None:
        await ctx.report_progress(next(numbers), None, line)

    return tell


def _client(ctx: Context[Any]) -> str:
    """Name who asks, for the log: what the client says that it is."""
    params = ctx.session.client_params
    name = "" if params is None else params.client_info.name
    return printable(clip_text(name, _LONGEST_NAME)) or "client"


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    """Give what went wrong to the client's model to read."""
    try:
        yield
    except KeptBackError as error:
        raise ToolError(error_words(error)) from error
    except RefusedError as error:
        raise ToolError(f"{error.what}: {error.why}. Call task_status to see where the task is.") from error
    except TreadleError as error:
        raise ToolError(error_words(error)) from error
