"""Performing effects as owned tasks; what happened comes back as events."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache, partial
from typing import TYPE_CHECKING, assert_never

from treadle.engine.core.calls import find
from treadle.engine.core.machine_effects import (
    AskHooks,
    Assemble,
    CallModel,
    Cancel,
    Effect,
    JudgeCall,
    MakeRoom,
    Notify,
    PassAnswer,
    Remember,
    Respond,
    RestoreCheckpoint,
    RunTool,
    Seal,
    StartTimer,
    TakeCheckpoint,
    call_work,
    end_work,
    model_work,
    step_work,
    timer_work,
)
from treadle.engine.core.state import replace, standing
from treadle.engine.ports import Asked, PersonReply, Ports, Prepared, ask_person, running_call
from treadle.engine.runtime import tool_call
from treadle.engine.runtime.assembling import Assembler, SessionPort
from treadle.engine.runtime.cancelling import OwnedWork, after_keeping, slept
from treadle.engine.runtime.model_call import CallBill, ModelCall, broken_reply, call_model, cancelled_reply, is_answer
from treadle.engine.runtime.model_requests import build_request, offer_now, provider_with_room, request_size, same_offer
from treadle.engine.runtime.window import bounded_content, most_of_one_result
from treadle.protocol.checkpoints import Restore, Restored
from treadle.protocol.errors import RefusedError, StoreError, ToolError
from treadle.protocol.events import CallFinished, CallStarted, EventData, TimerFired, TurnMayEnd
from treadle.protocol.permissions import Allowance, Decision, Mode
from treadle.protocol.tools import CallResult, Flow, Outcome, ToolCall, result_text

if TYPE_CHECKING:
    from treadle.engine.runtime.asks import CallAsks
    from treadle.engine.runtime.call_hooks import CallHooks
    from treadle.engine.runtime.reply_reader import ReplyReader
    from treadle.engine.runtime.step_checkpoints import Checkpointer

_LONGEST_END = 3.0
"""Seconds that cancelled work has to end; then its outcome is posted without it."""


class Performer:
    """Owns the tasks of one session."""

    def __init__(self, ports: Ports, session: SessionPort, group: asyncio.TaskGroup) -> None:
        self._ports = ports
        self._session = session
        self._group = group
        self._tasks: dict[str, OwnedWork] = {}
        self._prepared: dict[str, Prepared] = {}
        self._modes: dict[str, Mode] = {}
        self._assembler = Assembler(ports, session)
        self.checkpointer = cache(partial(_checkpointer, ports, session))
        self._checkpointing: set[asyncio.Task[None]] = set()
        self._asks = cache(partial(_call_asks, ports, session))
        self._call_hooks = cache(partial(_call_hooks, ports, session))

    def perform(self, effect: Effect) -> None:  # noqa: C901 - one line for each effect
        """Start the work that an effect wants. Notifications and answers are the session's own."""
        match effect:
            case Assemble(step=step):
                self._own(step_work(step), lambda: self._assembler.assemble(step))
            case CallModel(step=step, attempt=attempt):
                bill = CallBill()
                self._own(
                    model_work(step, attempt),
                    lambda: self._call_model(step, attempt, bill),
                    broken=lambda error: broken_reply(step, attempt, bill, self._redact(error)),
                    cut=lambda: cancelled_reply(step, attempt, bill),
                )
            case MakeRoom(step=step) as wanted:
                self._own(step_work(step), lambda: self._assembler.make_room(wanted))
            case JudgeCall(call=call):
                self._own(
                    call_work(call.id),
                    lambda: self._judge(call),
                    broken=partial(self._broken_call, call.id),
                )
            case RunTool(call=call):
                self._own(
                    call_work(call.id),
                    lambda: self._run(effect),
                    broken=partial(self._broken_call, call.id),
                    cut=partial(tool_call.cut_call, call.id),
                    held=effect.rerun,  # it may have to say what became of its subagents
                )
            case TakeCheckpoint(step=step, moment=moment):
                self._checkpoint(self.checkpointer().take(step, moment), self._no_checkpoint)
            case RestoreCheckpoint(wanted=restore):
                self._checkpoint(self.checkpointer().restore(restore), partial(self._not_restored, restore))
            case PassAnswer():
                self._asks().answer(effect)
            case Remember(allowances=allowances):
                self._own("remember", lambda: self._remember(allowances))
            case AskHooks(turn=turn) as asked:
                self._own(end_work(turn), lambda: self._ask_hooks(asked), broken=lambda _: TurnMayEnd())
            case StartTimer(timer=timer, seconds=seconds):
                self._own(timer_work(timer), lambda: self._wait(timer, seconds))
            case Cancel(work=work) if work in self._tasks:
                self._tasks[work].cancel()
            case Cancel() | Notify() | Respond() | Seal():
                pass
            case _:
                assert_never(effect)

    def _checkpoint(self, work: Coroutine[None, None, None], broken: Callable[[str], None]) -> None:
        """Begin with what no interrupt stops: it takes moments, and half of it would be no use."""

        async def guard() -> None:
            try:
                await work
            except RefusedError:
                pass  # the session has closed
            except Exception as error:  # noqa: BLE001 - the task owner; the work itself can go on
                self._ports.trace(error)
                broken(self._redact(error))

        task = self._group.create_task(guard(), name="checkpoint")
        self._checkpointing.add(task)
        task.add_done_callback(self._checkpointing.discard)

    def _no_checkpoint(self, trouble: str) -> None:
        self._session.tell(f"No checkpoint: {trouble}")

    def _not_restored(self, wanted: Restore, trouble: str) -> None:
        self._session.post_soon(Restored(checkpoint=wanted.checkpoint, error=trouble))

    async def checkpointed(self) -> None:
        """Wait for the checkpoints that are being taken."""
        await asyncio.gather(*self._checkpointing)

    def cancel_all(self) -> None:
        """Stop all work."""
        for owned in self._tasks.values():
            owned.cancel(at_once=True)

    def begin(self, work: str, run: Callable[[], Coroutine[None, None, None]]) -> None:
        """Begin with other work, which is cancelled with the rest."""
        self._own(work, run)

    def _own(
        self,
        work: str,
        run: Callable[[], Coroutine[None, None, None]],
        *,
        broken: Callable[[Exception], EventData] | None = None,
        cut: Callable[[], EventData] | None = None,
        held: bool = False,
    ) -> None:
        """Run a task that reports: `broken` when it fails, `cut` when it is cancelled, which waits while it is `held`.

        A cancel may hit it anywhere, before its first step too, so the outcome is posted here, after the task has
        ended; what it has reported by itself comes first, and the second report is then refused.
        """
        owned = OwnedWork(run(), held=held)

        async def guard() -> None:
            try:
                await owned.end(_LONGEST_END)
            except RefusedError:
                pass  # it came too late: the state has moved on
            except Exception as error:
                if broken is None:
                    raise
                self._session.post_soon(broken(error))

        def done(task: asyncio.Task[None]) -> None:
            owned.leave()
            if self._tasks.get(work) is owned:
                del self._tasks[work]
            if cut is not None and task.cancelled():
                self._session.post_soon(cut())

        owned.guard = self._group.create_task(guard(), name=work)
        self._tasks[work] = owned
        owned.guard.add_done_callback(done)

    async def _call_model(self, step: int, attempt: int, bill: CallBill) -> None:
        state, ports = self._session.state, self._ports
        for left in (self._prepared, self._modes):
            left.clear()
        if (hooks := self._call_hooks()) is not None:
            hooks.forget()
        spec = ports.model(state.choice.model)
        offered = self._assembler.tools()
        offer = offer_now(ports, state, offered)
        if not same_offer(offer, self._session.reader.offer):
            await self._session.post(offer)
        refused, known = self._assembler.refused(), self._assembler.known

        @cache
        def reader() -> "ReplyReader":
            from treadle.engine.runtime.reply_reader import ReplyReader  # with all parsers: no request waits for that

            protocol = state.choice.tool_protocol
            return ReplyReader(known, protocol, step=step, attempt=attempt, refused=refused, offered=offered)

        bill.spec = spec
        call = ModelCall(
            step=step,
            attempt=attempt,
            provider=await provider_with_room(ports, state, attempt, self._session.reader),
            request=build_request(ports, state, self._session.reader),
            size=None if state.choice.model in ports.unbilled else request_size(self._session.reader),
            reader=reader,
            bill=bill,
            jitter=ports.jitter,
            redact=lambda text: ports.redactor().redact(text),
            believes=self._session.reader.believes,
        )
        ended: list[EventData] = []
        await call_model(call, lambda data: self._post_reply(data, ended), self._session.publish)
        for data in ended:
            await self._when_kept(partial(self._session.post_soon, data))

    def _post_reply(self, data: EventData, ended: list[EventData]) -> None:
        """Post what comes of a reply; one that ends the turn waits for the checkpoints, which tell what it changed."""
        if is_answer(data) and self._checkpointing:
            ended.append(data)
        else:
            self._session.post_soon(data)

    async def _when_kept(self, end: Callable[[], None]) -> None:
        """Post what ends a turn when the checkpoints are there; a cancel ends the waiting, and loses nothing."""
        try:
            await after_keeping(self._checkpointing)
        finally:
            end()

    def once_kept(self, name: str, then: Callable[[], None]) -> bool:
        """Do something when the checkpoints that are being taken are there; says whether there are any."""
        if self._checkpointing:
            self._own(name, lambda: after_keeping(self._checkpointing, then))
        return bool(self._checkpointing)

    async def _judge(self, call: ToolCall) -> None:
        now = standing(self._session.state)
        self._modes[call.id] = now.mode
        hooks = self._call_hooks()
        judging = tool_call.judge_call(self._ports, call, now) if hooks is None else hooks.judge(call, now)
        event, prepared = await judging
        if prepared is not None:
            self._prepared[call.id] = prepared
        await self._session.post(event)
        if hooks is not None:
            hooks.after_judging(call.id)

    def _redact(self, error: Exception) -> str:
        """Name an error without the secrets that its text may hold."""
        return self._ports.redactor().redact(f"{type(error).__name__}: {error}")

    def _broken_call(self, call_id: str, error: Exception) -> CallFinished:
        text = f"Treadle failed while running this call: {self._redact(error)}"
        return CallFinished(call_id=call_id, result=result_text(Outcome.FAILED, text))

    async def _remember(self, allowances: tuple[Allowance, ...]) -> None:
        try:
            await asyncio.to_thread(self._ports.remember, allowances)
        except StoreError as error:
            self._session.tell(f"{error.what} {error.why} It applies to this session only.")

    async def _run(self, effect: RunTool) -> None:
        call = effect.call
        if effect.changes and self._checkpointing:
            await asyncio.wait(self._checkpointing)
        if effect.keep:
            await self._keep(effect)
            return
        state = find(self._session.state, call.id)
        settled = await tool_call.settle_rerun(state.accesses) if effect.rerun and state is not None else None
        prepared = None if settled is not None else await self._ready(effect)
        await self._session.post(CallStarted(call_id=call.id))
        self._tasks[call_work(call.id)].release()
        try:
            if settled is not None:
                result = settled
            elif prepared is None:
                result = result_text(Outcome.FAILED, tool_call.CHANGED_SINCE)
            else:
                result = await self._run_prepared(effect, prepared)
        finally:
            if self._asks.cache_info().currsize:
                self._asks().end(call.id)
        decision = await self._decided(effect, result)
        finish = partial(self._finish, effect, result, decision)
        if state is not None and state.traits.flow is Flow.END_TURN:
            await self._when_kept(finish)
        else:
            finish()

    def _finish(self, effect: RunTool, result: CallResult, decision: Decision | None = None) -> None:
        # Not awaited: a tool that swallowed a cancel would wait here for a session that has closed.
        self._session.post_soon(CallFinished(call_id=effect.call.id, result=result, decision=decision))

    async def _keep(self, effect: RunTool) -> None:
        """Apply what a command changed in its copy; a cancel waits for it, since it takes moments and is never half."""
        await self._session.post(CallStarted(call_id=effect.call.id))
        applying = asyncio.ensure_future(self._apply(effect))
        try:
            result = await asyncio.shield(applying)
        except asyncio.CancelledError:
            self._finish(effect, await applying)
            raise
        self._finish(effect, result if result.is_error else await self._hooked(effect, result))

    async def _apply(self, effect: RunTool) -> CallResult:
        try:
            result = await self._ports.keep(effect.keep)
        except ToolError as error:
            result = result_text(Outcome.FAILED, error.text)
        return tool_call.redacted(result, self._ports.redactor())

    async def _ready(self, effect: RunTool) -> Prepared | None:
        """Give what was judged; for another run, and after a restart, it is prepared anew and must be the same."""
        if (kept := self._prepared.pop(effect.call.id, None)) is not None:
            return kept
        now = standing(self._session.state)
        return await tool_call.judged_again(self._ports, effect, now, self._modes.get(effect.call.id, now.mode))

    async def _run_prepared(self, effect: RunTool, prepared: Prepared) -> CallResult:
        redactor = self._ports.redactor()
        output = tool_call.PublishedOutput(self._session, effect.call.id, redactor.stream())
        ask_person.set(partial(self.ask, effect.call.id))  # of this task, which runs this call alone
        running_call.set(effect.call.id)
        try:
            result = await tool_call.run_call(prepared, effect, output, self._ports.trace)
        except asyncio.CancelledError:
            output.finish()
            self._session.post_soon(CallFinished(call_id=effect.call.id, result=tool_call.interrupted(output, effect)))
            raise
        output.finish()
        return self._for_model(effect, await self._hooked(effect, result))

    def _for_model(self, effect: RunTool, result: CallResult) -> CallResult:
        content = bounded_content(result.content, most_of_one_result(self._assembler.spec))
        result = tool_call.redacted(replace(result, content=content), self._ports.redactor())
        return tool_call.mark_rerun(result) if effect.rerun else result

    async def _hooked(self, effect: RunTool, result: CallResult) -> CallResult:
        """Let the hooks look at what came of a call, once more where that is in the workspace only now."""
        if (hooks := self._call_hooks()) is None:
            return result
        return await hooks.after(effect, result, lambda known: self._finish(effect, self._for_model(effect, known)))

    async def _decided(self, effect: RunTool, result: CallResult) -> Decision | None:
        """Have the hooks answer for what a call changed in its copy."""
        if result.copy is None or (hooks := self._call_hooks()) is None:
            return None
        try:
            return await hooks.decide(effect.call.id, result)
        except asyncio.CancelledError:
            self._finish(effect, result)
            raise

    async def _ask_hooks(self, asked: AskHooks) -> None:
        from treadle.engine.runtime.hooked import ask_about_end

        await ask_about_end(self._ports.hooks, self._session, asked)

    async def ask(self, call_id: str, asked: Asked, /) -> PersonReply:
        """Ask the user for a call that runs, or for what it left to run."""
        return await self._asks().ask(call_id, asked)

    async def _wait(self, timer: str, seconds: float) -> None:
        await slept(seconds, self._ports.clock)
        await self._session.post(TimerFired(timer=timer))


def _call_asks(ports: Ports, session: SessionPort) -> "CallAsks":
    from treadle.engine.runtime.asks import CallAsks

    return CallAsks(ports, session)


def _call_hooks(ports: Ports, session: SessionPort) -> "CallHooks | None":
    if ports.hooks is None:
        return None
    from treadle.engine.runtime.call_hooks import CallHooks

    return CallHooks(ports, ports.hooks, session)


def _checkpointer(ports: Ports, session: SessionPort) -> "Checkpointer":
    from treadle.engine.runtime.step_checkpoints import Checkpointer

    return Checkpointer(ports.checkpoints, session)
