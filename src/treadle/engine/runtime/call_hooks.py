"""What hooks say of the calls of a session: before each is judged, to what a trial of it changed, and after it."""

import asyncio
from collections.abc import Callable

from treadle.engine.core.calls import find
from treadle.engine.core.copy_fate import needs_word, real_changes
from treadle.engine.core.machine_effects import RunTool
from treadle.engine.core.state import replace
from treadle.engine.ports import Hooks, HookWord, Ports, Prepared
from treadle.engine.runtime.assembling import SessionPort
from treadle.engine.runtime.hooked import (
    BeforeCall,
    asked_of_copy,
    decided_on_copy,
    judge_hooked_call,
    with_hooks_words,
    word_on_copy,
)
from treadle.protocol.events import HOOK, CallFinished, CallJudged, Interrupt
from treadle.protocol.permissions import Decision, Mode, Standing
from treadle.protocol.tools import CallResult, ToolCall


class CallHooks:
    """Asks the hooks of one session about its calls, and keeps for each what they said before it ran."""

    def __init__(self, ports: Ports, hooks: Hooks, session: SessionPort) -> None:
        self._ports = ports
        self._hooks = hooks
        self._session = session
        self._heard: dict[str, BeforeCall] = {}

    def forget(self) -> None:
        """Begin a step: its calls are new."""
        self._heard.clear()

    async def judge(self, call: ToolCall, now: Standing) -> tuple[CallJudged | CallFinished, Prepared | None]:
        """Judge a call with what hooks say of it."""
        self._heard[call.id] = heard = BeforeCall()
        return await judge_hooked_call(self._ports, call, now, heard)

    def after_judging(self, call_id: str) -> None:
        """End the turn where a hook wanted that."""
        self._end_turn_with(self._heard[call_id].word)

    async def after(self, effect: RunTool, result: CallResult, cut: Callable[[CallResult], None]) -> CallResult:
        """Let them look at what came of a call, once more where that is in the workspace only now.

        A cancel meanwhile `cut`s the call off with the result that it has.
        """
        heard = BeforeCall() if effect.keep else self._heard.get(effect.call.id, BeforeCall())
        state = find(self._session.state, effect.call.id) if effect.keep else None
        try:
            over = replace(state.result, copy=None) if state and state.result else result
            word = await self._hooks.after_call(effect.call, over)
        except asyncio.CancelledError:
            cut(with_hooks_words(result, heard, HookWord()))
            raise
        self._end_turn_with(word)
        return with_hooks_words(result, heard, replace(word, output=None) if effect.keep else word)

    async def decide(self, call_id: str, result: CallResult) -> Decision | None:
        """Have them answer, where somebody has to, for what a call changed in its copy; None leaves it to a person."""
        state = self._session.state
        copy, call = real_changes(result), find(state, call_id)
        if copy is None or not needs_word(copy) or call is None or call.decision is None or state.mode is Mode.PLAN:
            return None
        asked, before = asked_of_copy(call.decision, copy), self._heard.get(call_id, BeforeCall())
        word = await word_on_copy(self._hooks, call.call, asked, copy, heard=before.word)
        self._end_turn_with(word)
        return decided_on_copy(asked, copy, word)

    def _end_turn_with(self, word: HookWord) -> None:
        if word.stop is not None:
            self._session.tell(f"A hook ends the turn: {word.stop}")
            self._session.post_soon(Interrupt(why=word.stop or "it gave no reason"), HOOK)
