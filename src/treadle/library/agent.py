"""A session that a program works with: tasks in, what happens and results out."""

import asyncio
from collections.abc import AsyncIterator, Collection, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from treadle.door.history import ReplayReport, replay_rows, session_tape
from treadle.door.open_session import LiveSession, PromptRun, RemoteSession, SessionClient
from treadle.door.opening import (
    Clock,
    FileAccess,
    Opening,
    OwnModel,
    OwnTool,
    Provider,
    as_model,
    as_tools,
    attach_session,
    only_these,
    open_session,
    session_workspace,
    trust_for,
)
from treadle.door.program import log_quietly_inside
from treadle.door.settings import load_settings
from treadle.library.approving import Approvals, Approve
from treadle.library.task_result import TaskResult
from treadle.protocol.attach import SessionStatus, Stamped
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Delivery, Interrupt, Op, SetMode, Source
from treadle.protocol.messages import Text, UserContent
from treadle.protocol.models import ToolProtocol
from treadle.protocol.notifications import Notification, TurnOutcome
from treadle.protocol.permissions import Mode


class SettingKeywords(TypedDict, total=False):
    """Settings that a program may give, as in docs/configuration.md; they override the user's own."""

    base_url: str
    fallback: str
    tool_protocol: ToolProtocol | str
    thinking_budget: int
    max_steps: int
    max_seconds: float
    max_retries: int
    wait_for_reset: bool
    max_auto_approved: int
    budget: dict[str, Any]
    context: dict[str, Any]
    checkpoints: dict[str, Any]
    add_dirs: Collection[str]
    pass_variables: Collection[str]
    checklist: bool
    web_search: bool
    language: str
    instructions: str
    sandbox: str
    try_first: bool
    modes: dict[str, Any]
    providers: dict[str, Any]
    models: dict[str, Any]
    diagnostics: dict[str, Any]


class TaskRun:
    """A task on its way: iterate over it to follow what happens, or await it for its `TaskResult`.

    Where that is cancelled, the work is interrupted; a task that waits in the queue is taken out of it. Whoever may
    leave the loop early enters the task first, `async with t.run(...) as task`: once they leave it, nothing more is
    kept of what happens. The work goes on, and awaiting it still gives its result.
    """

    def __init__(self, treadle: "Treadle", content: tuple[UserContent, ...], delivery: Delivery) -> None:
        self._treadle = treadle
        self._content = content
        self._delivery = delivery
        self._run: PromptRun | None = None
        self._sending = asyncio.Lock()
        self._taken_back = False

    def __await__(self) -> Generator[Any, None, TaskResult]:
        return self._finish().__await__()

    async def __aenter__(self) -> Self:
        await self._sent(followed=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = await self._sent(followed=False)
        run.leave()
        if isinstance(error, asyncio.CancelledError):
            await self._withdraw(run)

    async def __aiter__(self) -> AsyncIterator[Notification]:
        run = await self._sent(followed=True)
        async with self._withdrawn(run):
            async for notification in run:
                yield notification
        if run.ended:
            self.result  # noqa: B018 - raises what the program's own function raised

    @property
    def result(self) -> TaskResult:
        """What came of it. Raises `SessionError` before its end, and what the `approve` function raised."""
        outcome = None if self._run is None else self._run.outcome
        if outcome is None:
            raise SessionError(
                "task-running",
                "The task has no result yet.",
                fix="Follow it to its end, or await it: await t.run(...).",
            )
        return self._treadle.conclude(outcome)

    async def _finish(self) -> TaskResult:
        run = await self._sent(followed=False)
        async with self._withdrawn(run):
            await run.wait()
        return self.result

    @asynccontextmanager
    async def _withdrawn(self, run: PromptRun) -> AsyncIterator[None]:
        """Stop the work where whoever waits for it is cancelled, such as by a timeout."""
        try:
            yield
        except asyncio.CancelledError:
            await self._withdraw(run)
            raise

    async def _withdraw(self, run: PromptRun) -> None:
        if not self._taken_back:
            self._taken_back = True
            await self._treadle.client.withdraw(run)

    async def _sent(self, *, followed: bool) -> PromptRun:
        async with self._sending:
            if self._run is None:
                self._run = await self._treadle.client.ask(self._content, self._delivery, followed=followed)
            return self._run


class Treadle:
    """A session in a folder, while it is entered: `async with Treadle("project", mode="edits") as t`.

    `model` is a name such as `anthropic/claude-sonnet-5-5`, or a provider or `OwnModel` of the program's own; without
    it the user's settings say. `approve` is asked what a person would be; without it that is denied. `tools` are
    functions with type hints and a docstring, offered besides the built-in ones. `trust` uses the folder's rules and
    settings without asking. `resume` goes on with a session (an id, or its beginning); `attach` joins one that is open
    elsewhere (True: the one of the folder), which goes on when this leaves. `files` stands in for the disk, `clock`
    gives milliseconds since 1970. The other keywords are settings.

    Entering raises `ConfigError`, `SessionError` or `StoreError`.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of the program
        self,
        folder: str | Path = ".",
        *,
        model: str | Provider | OwnModel = "",
        mode: Mode | str = "",
        approve: Approve | None = None,
        tools: Sequence[OwnTool] = (),
        trust: bool = False,
        resume: str = "",
        attach: str | bool = False,
        files: FileAccess | None = None,
        clock: Clock | None = None,
        **settings: Unpack[SettingKeywords],
    ) -> None:
        self._folder = Path(folder)
        self._own_model = None if isinstance(model, str) else as_model(model)
        named = model if isinstance(model, str) else as_model(model).spec.ref
        said = {"model": named, "mode": str(mode)}
        self._flags: Mapping[str, Any] = {**{key: value for key, value in said.items() if value}, **settings}
        self._approvals = None if approve is None else Approvals(approve)
        self._tools = as_tools(tools)
        self._trust = trust
        self._resume = resume
        self._attach = attach
        self._outside: dict[str, Any] = {} if files is None else {"files": only_these(files)}
        self._outside |= {} if clock is None else {"clock": clock}
        self._client: SessionClient | None = None
        self._stack = AsyncExitStack()

    @staticmethod
    def replay(session_id: str) -> ReplayReport:
        """Play a session again without a model, network or tool; `same` says whether its log came out byte for byte.

        Takes the beginning of an id, too. Raises `SessionError` or `StoreError`.
        """
        return replay_rows(*session_tape(session_id))

    async def __aenter__(self) -> Self:
        log_quietly_inside()
        session = await self._open()
        approvals = self._approvals

        def hears(stamped: Stamped) -> None:
            if approvals is not None:
                approvals.hear(stamped.notification)

        async with AsyncExitStack() as stack:
            self._client = await stack.enter_async_context(
                SessionClient(session, Source(kind="library", id="main"), hears)
            )
            if self._approvals is not None:
                stack.push_async_callback(self._approvals.close)
                self._approvals.begin(self._client)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    @property
    def client(self) -> SessionClient:
        """What asks the session; raises `SessionError` before it is entered."""
        if self._client is None:
            raise SessionError(
                "session-not-entered", "The session is not open.", fix="Enter it first: async with Treadle(...) as t:"
            )
        return self._client

    @property
    def session_id(self) -> str:
        """Its id, to resume or replay it by."""
        return self.client.session.id

    @property
    def status(self) -> SessionStatus:
        """Where it stands: mode, model, open questions, the queue, tokens."""
        return self.client.session.status

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know of it, such as rules that are not used because the folder is not trusted."""
        return self.client.session.notices

    def run(self, task: str | Sequence[UserContent]) -> TaskRun:
        """Give a task: text, or blocks with images and documents. It is sent when it is awaited or iterated over.

        While another task is worked on it waits in the queue. What cannot be sent raises `TreadleError` then.
        """
        return TaskRun(self, _content(task), Delivery.QUEUE)

    def steer(self, words: str | Sequence[UserContent]) -> TaskRun:
        """Say something that the model reads with its next step; its result is that of the turn."""
        return TaskRun(self, _content(words), Delivery.STEER)

    async def interrupt(self) -> None:
        """Stop what is going on; its result says so. Raises `RefusedError` when nothing is."""
        await self.post(Interrupt())

    async def set_mode(self, mode: Mode | str) -> None:
        """Change the mode, and the model where the settings give the mode one; raises `ConfigError`."""
        await self.post(SetMode(mode=Mode(mode)))

    async def set_model(self, model: str) -> None:
        """Change the model from the next step on; raises `ConfigError` when it cannot be called."""
        await self.post(self.client.session.choose(model))

    async def post(self, op: Op) -> None:
        """Ask for anything that a surface can. Raises `RefusedError` or `ConfigError`."""
        await self.client.post(op)

    def conclude(self, outcome: TurnOutcome) -> TaskResult:
        """Make the result of a turn; raises what the `approve` function raised in it."""
        if self._approvals is not None and (failure := self._approvals.take_failure()) is not None:
            raise failure
        return TaskResult(session_id=self.session_id, text=outcome.text, outcome=outcome)

    async def _open(self) -> LiveSession | RemoteSession:
        if self._attach is not False:
            named = self._attach if isinstance(self._attach, str) else ""
            folder = self._folder.expanduser().resolve()
            return await attach_session(named, folder, load_settings(self._flags), kind="library", name="program")
        trust = trust_for(session_workspace(self._resume) if self._resume else self._folder, once=self._trust)
        return await open_session(
            Opening(
                workspace=trust.workspace,
                settings=load_settings(self._flags, workspace=trust.workspace, trusted=trust.trusted),
                user_present=self._approvals is not None,
                given=frozenset(self._flags),
                resume=self._resume,
                trust=trust,
                tools=self._tools,
                models=() if self._own_model is None else (self._own_model,),
                **self._outside,
            )
        )


def _content(said: str | Sequence[UserContent]) -> tuple[UserContent, ...]:
    return (Text(text=said),) if isinstance(said, str) else tuple(said)
