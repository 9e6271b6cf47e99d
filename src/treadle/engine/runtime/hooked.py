"""What hooks change of calls and of the end of a turn."""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct

from treadle.engine.core.copy_fate import TRIED, made_in_copy
from treadle.engine.core.goal import is_due
from treadle.engine.core.machine_effects import AskHooks, Effect, Notify, Respond
from treadle.engine.core.state import replace
from treadle.engine.ports import HookDecision, Hooks, HookWord, Ports, Prepared
from treadle.engine.runtime.assembling import SessionPort
from treadle.engine.runtime.goal_check import GoalSession, check_goal
from treadle.engine.runtime.tool_call import judge_call
from treadle.protocol.events import GOAL, HOOK, CallFinished, CallJudged, Prompt, Source, TurnMayEnd
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnEnded
from treadle.protocol.permissions import Decision, Reason, Standing, Verdict
from treadle.protocol.tools import CallResult, CopyChanges, Preview, Risk, ToolCall


class BeforeCall(Struct):
    """What hooks said of a call before it runs, for when it has run, and the arguments that they gave it."""

    word: HookWord = HookWord()
    changed: dict[str, Any] | None = None

    def amended(self, call: ToolCall, word: HookWord) -> ToolCall:
        """Give the call with the arguments that hooks give it, if they do; they are noted."""
        if word.arguments is None or word.arguments == call.arguments:
            return call
        self.changed = dict(word.arguments)
        return replace(call, arguments=self.changed)


async def judge_hooked_call(
    ports: Ports, call: ToolCall, standing: Standing, heard: BeforeCall
) -> tuple[CallJudged | CallFinished, Prepared | None]:
    """Judge a call as `judge_call` does, with what hooks say of it, which is noted as `heard`."""
    hooks = ports.hooks
    assert hooks is not None  # noqa: S101 - else nobody asks
    heard.word = word = await hooks.before_call(call)
    if word.decision is HookDecision.DENY or word.stop is not None:
        event, _ = await judge_call(ports, call, standing)
        return denied_by_hook(ports, call, event, word), None
    event, prepared = await judge_call(ports, call := heard.amended(call, word), standing)
    if isinstance(event, CallFinished):
        return event, prepared
    decision = with_word(event.decision, word)
    if decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION:
        word = await hooks.permission(call, decision)
        if word.stop is not None:
            heard.word = replace(heard.word, stop=word.stop)
            return denied_by_hook(ports, call, event, word), None
        if word.decision is HookDecision.ALLOW and (other := heard.amended(call, word)) is not call:
            # The yes is to what it makes of the call.
            event, prepared = await judge_call(ports, other, standing)
            if isinstance(event, CallFinished):
                return event, prepared
            decision = event.decision
        decision = with_word(decision, word)
    return replace(event, decision=decision, arguments=heard.changed), prepared


async def word_on_copy(
    hooks: Hooks, call: ToolCall, asked: Decision, copy: CopyChanges, *, heard: HookWord
) -> HookWord:
    """Say what hooks answer about what a call changed in its copy; `heard` is what they said before it ran.

    A yes with other arguments is to another call than the one that ran, so it is a no to this one.
    """
    if heard.decision is HookDecision.ALLOW and _may_apply(asked, copy):
        return heard
    word = await hooks.permission(call, asked)
    if word.decision is HookDecision.ALLOW and word.arguments not in (None, call.arguments):
        written = msgspec.json.encode(word.arguments, order="deterministic").decode()
        return replace(word, decision=HookDecision.DENY, reason=f"it allows this call with other arguments: {written}")
    return word


def asked_of_copy(decision: Decision, copy: CopyChanges) -> Decision:
    """Give the decision of a call that was tried as that of the question about its changes."""
    reason = Reason(rule=TRIED, text=_tried(copy))
    return replace(decision, verdict=Verdict.REQUIRE_USER_CONFIRMATION, reasons=(reason, *decision.reasons))


def _tried(copy: CopyChanges) -> str:
    prevents = next(filter(None, (copy.trouble, *(change.held for change in copy.changes))), "")
    why = f"; this cannot be applied ({prevents})" if prevents else ""
    return f"in a throw-away copy it changed {made_in_copy(copy)}{why}"


def _may_apply(asked: Decision, copy: CopyChanges) -> bool:
    """Whether a hook's yes applies what is in a copy: only what one yes of a person would apply."""
    return copy.whole and not copy.unshown and _may_allow(asked)


def decided_on_copy(asked: Decision, copy: CopyChanges, word: HookWord) -> Decision | None:
    """Give what hooks decide about a copy; None where they leave it to a person."""
    if word.decision is HookDecision.DENY or word.stop is not None:
        return with_word(asked, replace(word, decision=HookDecision.DENY))
    allows = word.decision is HookDecision.ALLOW and _may_apply(asked, copy)
    return with_word(asked, word) if allows else None


def denied_by_hook(ports: Ports, call: ToolCall, event: CallJudged | CallFinished, word: HookWord) -> CallJudged:
    """Deny a call that a hook denies; it is shown as it was judged, or with its arguments where it cannot be."""
    reasons = (_reason(word, "a hook denies it"),)
    if isinstance(event, CallJudged):
        denied = replace(event.decision, verdict=Verdict.DENY, reasons=reasons, offers=(), alternatives=())
        return replace(event, decision=denied)
    written = msgspec.json.encode(call.arguments, order="deterministic").decode()
    preview = Preview(title=f"Call {call.name}", text=ports.redactor().redact(written))
    decision = Decision(verdict=Verdict.DENY, risk=Risk.NONE, reasons=reasons)
    return CallJudged(call_id=call.id, decision=decision, preview=preview)


def with_word(decision: Decision, word: HookWord) -> Decision:
    """Let hooks ask about a call that would run, or say yes to one that would be asked about, where they may."""
    match word.decision:
        case HookDecision.DENY:
            return replace(
                decision, verdict=Verdict.DENY, reasons=(_reason(word, "a hook denies it"), *decision.reasons)
            )
        case HookDecision.ASK if decision.verdict is Verdict.ALLOW:
            verdict, said = Verdict.REQUIRE_USER_CONFIRMATION, _reason(word, "a hook wants it asked")
        case HookDecision.ALLOW if _may_allow(decision):
            verdict, said = Verdict.ALLOW, _reason(word, "a hook allows it")
        case _:
            return decision
    return replace(decision, verdict=verdict, reasons=(said, *decision.reasons))


def _may_allow(decision: Decision) -> bool:
    """Whether a hook may say yes in a person's place: to nothing that is dangerous."""
    return decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION and not decision.dangerous


def _reason(word: HookWord, otherwise: str) -> Reason:
    return Reason(rule="hook", text=word.reason or word.stop or otherwise, source=word.by)


def with_hooks_words(result: CallResult, heard: BeforeCall, word: HookWord) -> CallResult:
    """Add what hooks tell the model to a result, and that one changed the call."""
    content = result.content
    if word.output is not None:
        content = (Text(text=word.output),)
    if heard.changed is not None:
        written = msgspec.json.encode(heard.changed, order="deterministic").decode()
        content = (Text(text=f"A hook changed this call. It ran with these arguments instead: {written}\n"), *content)
    added = tuple(Text(text=f"\n[Hook] {one.context}") for one in (heard.word, word) if one.context)
    return replace(result, content=(*content, *added))


def reports_end(effect: Effect) -> bool:
    """Whether an effect tells that a turn is over."""
    return isinstance(effect, Respond) or (isinstance(effect, Notify) and isinstance(effect.notification, TurnEnded))


async def ask_about_end(hooks: Hooks | None, session: SessionPort, asked: AskHooks) -> None:
    """Ask the hooks whether a turn may end: it does, or goes on with their words."""
    word = HookWord() if hooks is None else await hooks.before_end(asked.text, again=asked.again)
    if word.decision is HookDecision.DENY and word.stop is None:
        await session.post(_prompt(word.reason or "Go on: the work is not done yet."), HOOK)
    else:
        await session.post(TurnMayEnd(stop=word.stop or ""))


async def going_on(
    ports: Ports, session: GoalSession, kept: Callable[[], Awaitable[None]]
) -> tuple[Prompt, Source] | None:
    """Ask whether the session's goal is met where it is to be asked; gives the words that go on with it if it is not.

    `kept` waits for the checkpoints that are being taken, since a check may change files.
    """
    if not is_due(session.state):
        return None
    await kept()
    missing = await check_goal(ports, session)
    return (_prompt(missing), GOAL) if missing else None


def _prompt(text: str) -> Prompt:
    return Prompt(id=uuid.uuid4().hex, content=(Text(text=text),))
