"""Moments at which hooks only look on, seen from what the session's surfaces are sent."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

from treadle.app.config.hook_settings import HookEvent
from treadle.app.hooks.session_hooks import SessionHooks
from treadle.engine.runtime.feeds import Feed
from treadle.protocol.attach import SessionStatus
from treadle.protocol.messages import text_of
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    ContextCompacted,
    MessageDone,
    ModelChanged,
    Notification,
    Phase,
    PhaseChanged,
    QuestionAsked,
    TurnEnded,
    TurnStop,
)
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import CallResult, Outcome, ToolCall

_MOST_WAITING = 100
_LAST_SECONDS = 1.0
_NEXT_STEP = (Phase.ASSEMBLING_CONTEXT, Phase.AWAITING_LLM_RESPONSE)
_DENIED = frozenset({Outcome.DENIED, Outcome.REJECTED})


class HookedSession(Protocol):
    """A session that hooks look on at."""

    @property
    def resumed(self) -> bool:
        """Whether the session existed before."""
        ...

    @property
    def title(self) -> str:
        """What it is called; empty where that is not known."""
        ...

    @property
    def status(self) -> SessionStatus:
        """Where it is now."""
        ...

    def follow(self) -> Feed:
        """Listen."""
        ...

    def tell(self, text: str) -> None:
        """Say a line to the person."""
        ...


@asynccontextmanager
async def watched_by_hooks(hooks: SessionHooks, live: HookedSession) -> AsyncIterator[None]:
    """Run hooks at the start and the end of a session, and while things happen in it; they are ended with it."""
    hooks.tell_through(live.tell)
    feed = live.follow()
    hooks.begin(resumed=live.resumed, model=live.status.model)
    watch = _Watch(hooks, live)
    following = asyncio.create_task(watch.follow(feed), name="hooks")
    try:
        yield
    finally:
        await asyncio.sleep(0)  # it takes what happened last
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        feed.leave()
        await watch.close()
        await hooks.end()


class _Watch:
    def __init__(self, hooks: SessionHooks, live: HookedSession) -> None:
        self._hooks = hooks
        self._live = live
        self._model = live.status.model
        self._last = ""
        self._trigger = "auto"
        self._batch: list[tuple[ToolCall, CallResult]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def follow(self, feed: AsyncIterator[Notification]) -> None:
        """Begin what each notification wants, without waiting for it; of very many some are left out."""
        async for notification in feed:
            for work in (self._batch_over(notification), self._work(notification)):
                if work is None:
                    continue
                if len(self._running) >= _MOST_WAITING:
                    work.close()
                    continue
                task = asyncio.create_task(work, name="hook")
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Wait for what runs for a moment, and end the rest."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_SECONDS)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _batch_over(self, notification: Notification) -> Coroutine[None, None, None] | None:
        """Take the calls of a step, until the next one begins or the turn is over."""
        match notification:
            case CallChanged(call=call, status=CallStatus.FINISHED, result=CallResult() as result):
                self._batch.append((call, result))
            case PhaseChanged(phase=Phase.ASSEMBLING_CONTEXT | Phase.AWAITING_LLM_RESPONSE) | TurnEnded() if (
                self._batch
            ):
                calls, self._batch = self._batch, []
                return self._hooks.after_batch(calls)
            case _:
                pass
        return None

    def _work(self, notification: Notification) -> Coroutine[None, None, None] | None:
        match notification:
            case MessageDone(message=message):
                self._last = text_of(message.content)
            case QuestionAsked(question=question) if question.kind is QuestionKind.ELICITATION:
                return self._hooks.notice(HookEvent.ELICITATION, "", _form_of(question))
            case QuestionAsked(question=question):
                permission = question.kind is QuestionKind.PERMISSION
                kind = "permission_prompt" if permission else f"{question.kind}_prompt"
                about = {"message": self._hooks.question(question), "title": self._live.title or "Treadle"}
                more = {**about, "notification_type": kind}
                return self._hooks.notice(HookEvent.NOTIFICATION, kind, more)
            case PhaseChanged(phase=Phase.COMPACTING):
                more = self._hooks.compaction()
                self._trigger = more["trigger"]
                return self._hooks.notice(HookEvent.PRE_COMPACT, self._trigger, more)
            case ContextCompacted(summary=summary):
                more = {"trigger": self._trigger, "compact_summary": summary}
                return self._hooks.notice(HookEvent.POST_COMPACT, self._trigger, more)
            case ModelChanged(model=model) if model != self._model:
                before, self._model = self._model, model
                more = {"from_model": before, "to_model": model, "model": model}
                return self._hooks.notice(HookEvent.POST_MODEL_SWITCH, model, more)
            case TurnEnded(outcome=outcome) if outcome.stop is TurnStop.ERROR:
                error = "" if outcome.error is None else outcome.error.message
                more = {"error": error, "last_assistant_message": self._last}
                return self._hooks.notice(HookEvent.STOP_FAILURE, "", more)
            case CallChanged(call=call, status=CallStatus.FINISHED, result=result) if (
                result is not None and result.outcome in _DENIED
            ):
                return self._hooks.call_denied(call, text_of(result.content))
            case _:
                pass
        return None


def _form_of(question: Question) -> dict[str, Any]:
    wanted: dict[str, Any] = {"url": question.url} if question.url else {"requested_schema": question.form}
    return {"message": question.text, "mode": "url" if question.url else "form", **wanted}
