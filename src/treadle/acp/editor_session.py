"""One session of a client: its prompts, what the client is shown of it, and the questions to its user."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from treadle.acp.call_shapes import in_fence
from treadle.acp.client import EditorClient
from treadle.acp.client_prompts import has_more, prompt_of, with_words
from treadle.acp.offers import Offers, command_rows
from treadle.acp.open_questions import EditorQuestions
from treadle.acp.rpc import INTERNAL_ERROR, RpcError
from treadle.acp.running_commands import RunningCommands
from treadle.acp.shapes import PromptAnswer, PromptBlock, PromptUsage, SessionModes
from treadle.acp.updates import Updates, text_chunk
from treadle.door.commands import (
    NOT_SENT,
    SlashCommand,
    Surfaces,
    answered_aside,
    entered_command,
    named_texts,
    not_here,
    run_entered,
)
from treadle.door.open_session import LiveSession
from treadle.present.failure_words import advice, describe_failure
from treadle.present.item_book import with_begun_reply
from treadle.protocol.attach import Stamped
from treadle.protocol.errors import RefusedError, TreadleError
from treadle.protocol.events import Delivery, EditQueued, Interrupt, Op, Prompt, Source
from treadle.protocol.messages import text_of
from treadle.protocol.models import ErrorKind
from treadle.protocol.notifications import (
    MessageDone,
    ModeChanged,
    ModelChanged,
    Phase,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    ReplyDropped,
    TurnEnded,
    TurnOutcome,
    TurnStop,
)
from treadle.protocol.permissions import Question

if TYPE_CHECKING:
    from treadle.door.open_session import RemoteSession

_STOPS = {
    TurnStop.END_TURN: "end_turn",
    TurnStop.REFUSAL: "refusal",
    TurnStop.CANCELLED: "cancelled",
}
"""Stop reasons; a turn that ended at any limit of its own has made the most requests that it may."""

_CANCELLED = TurnOutcome(stop=TurnStop.CANCELLED)


_ELSEWHERE = "Another process has this session open. It sees saved files only, and not the MCP servers of this editor."


class EditorSession:
    """A live session and its client. `offers` are what the client can choose from.

    One that another process has open goes on there, whatever becomes of the client.
    """

    def __init__(self, live: "LiveSession | RemoteSession", client: EditorClient, offers: Offers) -> None:
        self.live = live
        self.client = client
        self.offers = offers
        self._source = Source(kind="acp", id=live.id)
        self._updates = Updates(str(live.workspace))
        self._commands = RunningCommands(client, self._updates, str(live.workspace))
        self._waiting: dict[str, asyncio.Future[TurnOutcome | Question]] = {}
        self._posting: dict[str, asyncio.Task[None]] = {}
        self._queued: set[str] = set()
        self._delivered: set[str] = set()
        self._questions = EditorQuestions(live, client, self._updates, post=self._post, left_open=self._left_open)
        self._knows_past = False
        self._title = live.title
        self._following: asyncio.Task[None] | None = None
        self._shown = asyncio.Event()

    async def start(self) -> None:
        """Begin to work, or attach; what went on in a session when it was left is stopped: nobody waits for it."""
        feed = self.live.follow()
        await self.live.__aenter__()
        self._updates.view = replace(self._updates.view, model=self.live.status.model)
        self._following = asyncio.create_task(self._follow(feed), name="acp session")
        if self.live.status.turn_active and not self.continues_elsewhere:
            await self._post(Interrupt())

    async def leave(self) -> None:
        """Stop what nobody waits for any more; what goes on in another process goes on."""
        if not self.continues_elsewhere:
            self.keep()
            await self.cancel()

    @property
    def continues_elsewhere(self) -> bool:
        """Whether another process has the session open."""
        return self.live.continues

    @property
    def works(self) -> bool:
        """Whether the client waits for a turn that goes on in this process."""
        return not self.continues_elsewhere and bool(self._waiting)

    async def was_closed_elsewhere(self) -> bool:
        """Whether the process that had the session open has left it; waits while that is not sure."""
        return not isinstance(self.live, LiveSession) and not await self.live.reached()

    def keep(self) -> None:
        """Keep it though nothing was done in it: the client knows its id."""
        if isinstance(self.live, LiveSession):
            self.live.keep()

    async def close(self) -> None:
        """Stop working; whoever waits for the end of a turn is shown that it was cancelled."""
        for posting in self._posting.values():
            posting.cancel()
        self._end_all()
        self._shown.set()
        await self._questions.close()
        await self._commands.close()
        await self.live.__aexit__(None, None, None)
        if self._following is not None:
            await asyncio.gather(self._following, return_exceptions=True)

    def replay(self) -> None:
        """Show the client what was said and done in the session before."""
        begun = self.live.opening if self.continues_elsewhere else ()
        for update in self._updates.past(with_begun_reply(self.live.past, begun)):
            self.client.update(update)
        self._knows_past = True

    def greet(self) -> None:
        """Show what is known once a session is open: its commands, its title, and what the user should know."""
        self.show_commands()
        if self._title:
            self._show_title()
        for notice in (*self.live.notices, *((_ELSEWHERE,) if self.continues_elsewhere else ())):
            self.client.update(text_chunk("agent_thought", f"{notice}\n", f"notice-{self.live.id}"))
        if not self._knows_past:
            self._updates.know(self.live.past)
        if self.continues_elsewhere:
            for notification in self.live.opening:
                if self._knows_past:
                    self._commands.take(notification)
                else:
                    self._take(Stamped(notification=notification))
            for question in self.live.status.questions:
                self._questions.ask(question)
        self._shown.set()

    def show_commands(self) -> None:
        """Show which commands there are."""
        rows = command_rows(named_texts(self.live.trust))
        self.client.update({"sessionUpdate": "available_commands_update", "availableCommands": rows})

    def show_choices(self) -> None:
        """Show what is chosen now."""
        modes: SessionModes = self.offers.modes()
        self.client.update({"sessionUpdate": "current_mode_update", "currentModeId": modes.current_mode_id})
        self.client.update({"sessionUpdate": "config_option_update", "configOptions": self.offers.options()})

    async def prompt(self, blocks: tuple[PromptBlock, ...], *, steer: bool) -> PromptAnswer:
        """Work on what the user asks for until the turn ends, or the user is asked for words."""
        prompt = prompt_of(blocks, Delivery.STEER if steer else Delivery.QUEUE)
        text = text_of(prompt.content)
        self._shown.set()
        command = await entered_command(text, self.live.trust)
        if isinstance(command, str):
            return self._said(command)
        if command is not None:
            answered = await self._command(*command, prompt)
            if isinstance(answered, PromptAnswer):
                return answered
            prompt = answered
        if self._questions.in_words is not None:
            answer = self._questions.answered(text)
            return self._said(answer) if isinstance(answer, str) else await self._ended(prompt.id, answer)
        return await self._ended(prompt.id, prompt)

    async def steer(self, blocks: tuple[PromptBlock, ...]) -> bool:
        """Bring a prompt into the turn that runs; False where none does."""
        if not self.live.status.turn_active:
            return False
        prompt = prompt_of(blocks, Delivery.STEER)
        self._updates.own.add(prompt.id)
        await self._post(prompt)
        return True

    async def cancel(self) -> None:
        """Stop what is going on, and drop what waits."""
        begun = [posting for posting in self._posting.values() if not posting.done()]
        for posting in begun:
            posting.cancel()
        for waiting in tuple(self._waiting):
            if waiting not in self._delivered:
                with suppress(RefusedError):
                    await self._post(EditQueued(prompt_id=waiting))
                    self._end(waiting, _CANCELLED)
        self._questions.in_words = None
        status = self.live.status
        if begun or status.turn_active or status.phase is not Phase.WAITING_FOR_EVENT:
            with suppress(RefusedError):
                await self._post(Interrupt())

    async def change(self, op: Op) -> None:
        """Change a setting of the session, after the prompts that the client sent before."""
        for posting in tuple(self._posting.values()):
            await asyncio.wait({posting})
        await self._post(op)

    async def _post(self, op: Op) -> None:
        await self.live.post(op, self._source)

    async def _ended(self, number: str, op: Op) -> PromptAnswer:
        """Post a prompt, or an answer in words, and wait for what becomes of the turn."""
        joined = self.live.status.turn_active
        ended: asyncio.Future[TurnOutcome | Question] = asyncio.get_running_loop().create_future()
        self._waiting[number] = ended
        self._updates.own.add(number)
        if not isinstance(op, Prompt):
            self._delivered.add(number)
        posting = self._posting[number] = asyncio.create_task(self._post(op), name="acp prompt")
        try:
            await posting
            outcome = await ended
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():  # what was cancelled is the turn, not the request
                return PromptAnswer(stop_reason="cancelled")
            await asyncio.shield(self._take_back(number, posting, joined=joined))
            raise
        finally:
            self._waiting.pop(number, None)
            self._posting.pop(number, None)
            self._delivered.discard(number)
        return PromptAnswer(stop_reason="end_turn") if isinstance(outcome, Question) else self._answer(outcome)

    async def _take_back(self, number: str, posting: "asyncio.Task[None]", *, joined: bool) -> None:
        """Drop a prompt whose request is taken back while it waits; stop the turn that it went into.

        One that came while another turn ran (`joined`) and was not taken yet has none.
        """
        if number not in self._delivered:
            with suppress(RefusedError):
                await self._post(EditQueued(prompt_id=number))
                return
            if joined and posting.cancelled() and number not in self._delivered:
                return
        await self.cancel()

    def _answer(self, outcome: TurnOutcome) -> PromptAnswer:
        if outcome.stop is TurnStop.ERROR:
            raise _failed(outcome, self.live.status.model)
        if outcome is _CANCELLED:  # no turn is known that it has used anything of
            return PromptAnswer(stop_reason="cancelled")
        used = outcome.usage
        cached, written = used.cache_read_tokens, used.cache_write_tokens
        usage = PromptUsage(
            total_tokens=used.input_tokens + used.output_tokens + cached + written,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_read_tokens=cached or None,
            cached_write_tokens=written or None,
        )
        return PromptAnswer(stop_reason=_STOPS.get(outcome.stop, "max_turn_requests"), usage=usage)

    async def _command(self, row: SlashCommand, argument: str, prompt: Prompt) -> "PromptAnswer | Prompt":
        """Do the command of the table that a prompt is; gives the prompt that it makes of it, where it makes one."""
        if Surfaces.HEADLESS not in row.where:
            return self._said(not_here(row))
        try:
            answer = await run_entered(row, argument, self.live, self._updates.answering(self._post))
        except TreadleError as error:  # what a command cannot do is for its user to read
            return self._said(" ".join(filter(None, (error.what, error.why, error.fix))))
        if answer.send and row.name != "btw":
            return with_words(prompt, answer.send)
        said = await self._aside(answer.send) if answer.send else answer.text
        said = in_fence(said) if "\n" in said and not answer.send else said
        return self._said(f"{said}\n\n{NOT_SENT}" if has_more(prompt) and not answer.warning else said)

    async def _aside(self, text: str) -> str:
        """Ask beside the work; gives the answer where it can be waited for."""
        if isinstance(self.live, LiveSession):
            return (await answered_aside(text, self.live, self._post)).text
        await self._post(prompt_of((PromptBlock(type="text", text=text),), Delivery.QUEUE))
        return "Asked beside the work; the answer follows."

    def show_problem(self, text: str) -> None:
        """Show what went wrong where no request waits for it."""
        self.client.update(text_chunk("agent_message", text, f"problem-{self.live.id}"))

    def _said(self, text: str) -> PromptAnswer:
        self.client.update(text_chunk("agent_message", text, f"command-{id(text)}"))
        return PromptAnswer(stop_reason="end_turn")

    async def _follow(self, feed: Any) -> None:
        """Show what happens; when the session ends by itself, whoever waits is shown why."""
        try:
            async with feed:
                await self._shown.wait()  # what was before comes first
                async for stamped in feed.stamped():
                    self._take(stamped)
            await self.live.failure()
        except TreadleError as error:
            if self.continues_elsewhere:
                self.show_problem("The session was closed where it was open. Your next message continues it here.")
                return
            for ended in self._waiting.values():
                if not ended.done():
                    ended.set_exception(error)
        finally:
            self._end_all()

    def _take(self, stamped: Stamped) -> None:
        """Show a notification, and act on it."""
        notification, spending = stamped.notification, self._updates.view.spending
        for update in self._updates.take(stamped):
            self.client.update(update)
        self._commands.take(notification)
        if spending != self._updates.view.spending or isinstance(notification, MessageDone | ReplyDropped | TurnEnded):
            self._show_usage()
        match notification:
            case PromptDelivered(prompt_id=prompt_id):
                self._delivered.add(prompt_id)
            case QueueChanged(prompts=prompts):
                self._end_dropped({prompt.id for prompt in prompts})
            case QuestionAsked(question=question):
                self._questions.ask(question)
            case QuestionClosed(question_id=question_id):
                self._questions.over(question_id)
            case ModeChanged() | ModelChanged():
                self.show_choices()
            case TurnEnded(outcome=outcome):
                self._show_title()
                for number in tuple(self._delivered):
                    self._end(number, outcome)
            case _:
                pass

    def _end_dropped(self, queued: set[str]) -> None:
        """End the prompts that waited, are not `queued` any more, and went into no turn."""
        before, self._queued = self._queued, queued
        for dropped in before - queued - self._delivered:
            self._end(dropped, _CANCELLED)

    def _end_all(self) -> None:
        """Show whoever waits that it was cancelled, with what their turn has used by now where that is known."""
        by_now = self.live.by_now if isinstance(self.live, LiveSession) else None
        for number in tuple(self._waiting):
            self._end(number, by_now if by_now and number in self._delivered else _CANCELLED)

    def _end(self, number: str, outcome: TurnOutcome | Question) -> None:
        ended = self._waiting.get(number)
        if ended is not None and not ended.done():
            ended.set_result(outcome)

    def _show_usage(self) -> None:
        """Show what the session takes and costs by now."""
        status, spending = self.live.status, self._updates.view.spending
        if status.window is not None:
            usage: dict[str, Any] = {"sessionUpdate": "usage_update", "used": status.tokens, "size": status.window}
            if not spending.unpriced:
                usage["cost"] = {"amount": spending.total, "currency": "USD"}
            if spending.estimated:
                usage["_meta"] = {"treadle": {"costIsEstimated": True}}
            self.client.update(usage)

    def _show_title(self) -> None:
        self._title = self.live.title
        at = datetime.now(UTC).isoformat()
        self.client.update({"sessionUpdate": "session_info_update", "title": self._title or None, "updatedAt": at})

    def _left_open(self, question: Question) -> None:
        """End the turn for the client: its next prompt is the answer."""
        for number in tuple(self._delivered):
            self._end(number, question)


def _failed(outcome: TurnOutcome, model: str) -> RpcError:
    """Say why a turn failed, and what to do."""
    error = outcome.error
    if error is None:
        return RpcError(INTERNAL_ERROR, "The turn failed.")
    said = f"{describe_failure(error, model)} {error.message} {advice(error, model)}"
    code = -32000 if error.kind is ErrorKind.AUTHENTICATION else INTERNAL_ERROR
    return RpcError(code, " ".join(said.split()), {"kind": error.kind.value, "status": error.status})
