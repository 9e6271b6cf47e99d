"""The life of a call: proposed, judged, confirmed, running, finished."""

import hashlib
from typing import Any

import msgspec

from treadle.engine import texts
from treadle.engine.effects import Cancel, Effect, JudgeCall, Notify, RunTool, call_work
from treadle.engine.state import CallState, Repeat, State, replace
from treadle.protocol.events import Answer, CallFinished, CallJudged, CallProposed, CallStarted
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, QuestionClosed
from treadle.protocol.permissions import Decision, OptionKind, Question, QuestionKind, Verdict
from treadle.protocol.tools import CallResult, FileChange, Flow, Outcome, Risk, ToolEffect, result_text

Moved = tuple[State, list[Effect]]

_OPTIONS = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)
_OPTIONS_OF_CRITICAL = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
_REMEMBERED_REPEATS = 64


def find(state: State, call_id: str) -> CallState | None:
    """Look a call of the present step up."""
    return next((call for call in state.calls if call.call.id == call_id), None)


def put(state: State, changed: CallState) -> Moved:
    """Replace a call by its next self and tell the surfaces."""
    calls = tuple(changed if call.call.id == changed.call.id else call for call in state.calls)
    return replace(state, calls=calls), [tell(changed)]


def tell(call: CallState) -> Notify:
    """Say where a call is."""
    return Notify(
        notification=CallChanged(
            call=call.call,
            kind=call.traits.kind,
            status=call.status,
            decision=call.decision,
            preview=call.preview,
            result=call.result,
        )
    )


def finish(state: State, call: CallState, result: CallResult) -> Moved:
    """Give a call its result, and count what the loop guard and the mistake limit look at."""
    if call.amended:
        told = Text(text=texts.amended(call.call.arguments))
        result = replace(result, content=(told, *result.content))
    state, effects = put(state, replace(call, status=CallStatus.FINISHED, result=result))
    state, closed = close_questions(state, call.call.id)
    return _count(state, call, result), effects + closed


def close_questions(state: State, call_id: str, option: OptionKind | None = None) -> Moved:
    """Close the questions about a call."""
    gone = [question for question in state.questions if question.call_id == call_id]
    kept = tuple(question for question in state.questions if question.call_id != call_id)
    told: list[Effect] = [
        Notify(notification=QuestionClosed(question_id=question.id, option=option)) for question in gone
    ]
    return replace(state, questions=kept), told


def _count(state: State, call: CallState, result: CallResult) -> State:
    if result.outcome is Outcome.INVALID:
        state = replace(state, mistakes=state.mistakes + 1)
    elif result.outcome is Outcome.OK:
        state = replace(state, mistakes=0)
    if state.turn is not None and result.changes:
        state = replace(state, turn=replace(state.turn, changes=_merge(state.turn.changes, result.changes)))
    return _guard_loop(state, call, result)


def _merge(known: tuple[FileChange, ...], new: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    merged = {change.path: change for change in known}
    for change in new:
        earlier = merged.get(change.path)
        if earlier is not None:
            change = replace(  # noqa: PLW2901 - the merged change stands for both
                change,
                before=earlier.before,
                added=change.added + earlier.added,
                removed=change.removed + earlier.removed,
            )
        merged[change.path] = change
    return tuple(merged.values())


def _guard_loop(state: State, call: CallState, result: CallResult) -> State:
    fingerprint = _fingerprint(call, result)
    before = next((repeat.count for repeat in state.repeats if repeat.fingerprint == fingerprint), 0)
    others = tuple(repeat for repeat in state.repeats if repeat.fingerprint != fingerprint)
    count = before + 1
    state = replace(state, repeats=(*others, Repeat(fingerprint=fingerprint, count=count))[-_REMEMBERED_REPEATS:])
    if count >= state.limits.max_repeats:
        return replace(state, looping=True)
    if count == state.limits.warn_repeats:
        return replace(state, notes=(*state.notes, texts.repeated(call.call.name, count)))
    return state


def _fingerprint(call: CallState, result: CallResult) -> str:
    value = (call.call.name, call.call.arguments, result.outcome, result.content)
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:32]


def propose(state: State, data: CallProposed) -> Moved:
    """Take a whole call from the reply."""
    call = CallState(call=data.call, traits=data.traits)
    state = replace(state, calls=(*state.calls, call))
    if data.call.problem:
        state, effects = put(state, replace(call, status=CallStatus.FINISHED, result=_problem(data.call.problem)))
        return replace(state, mistakes=state.mistakes + 1), effects
    return state, [tell(call)]


def _problem(text: str) -> CallResult:
    return result_text(Outcome.INVALID, text)


def schedule(state: State) -> Moved:
    """Judge every call whose turn it is.

    A call that only reads waits for no other reader; a call that changes something is a barrier: it waits for
    the whole reply and for every call before it, and every call behind waits for it.
    """
    effects: list[Effect] = []
    for index, call in enumerate(state.calls):
        if call.status is not CallStatus.PROPOSED:
            continue
        before = state.calls[:index]
        if call.pure:
            ready = all(earlier.finished or earlier.pure for earlier in before)
        else:
            ready = state.reply is not None and all(earlier.finished for earlier in before)
        if not ready:
            break
        state, more = _begin(state, call, before)
        effects += more
    return state, effects


def _begin(state: State, call: CallState, before: tuple[CallState, ...]) -> Moved:
    if call.traits.flow is Flow.END_TURN and any(one.result is not None and one.result.is_error for one in before):
        return finish(state, call, result_text(Outcome.SKIPPED, texts.PRESENTED_TOO_EARLY))
    state, effects = put(state, replace(call, status=CallStatus.JUDGING))
    return state, [*effects, JudgeCall(call=call.call)]


def judged(state: State, data: CallJudged) -> Moved:
    """Act on the security layer's answer."""
    call = find(state, data.call_id)
    assert call is not None  # noqa: S101 - `advance` has checked it
    call = replace(call, decision=data.decision, preview=data.preview, accesses=data.accesses)
    match data.decision.verdict:
        case Verdict.DENY:
            return finish(state, call, result_text(Outcome.DENIED, texts.denied(data.decision, no_user=False)))
        case Verdict.ALLOW:
            return _allowed(state, call, data.decision)
        case Verdict.REQUIRE_USER_CONFIRMATION:
            granted = data.decision.digest in state.grants and data.decision.risk is not Risk.CRITICAL
            if granted or call.amended:
                return _allowed(state, call, data.decision)
            return _needs_yes(state, call, data.decision)


def _allowed(state: State, call: CallState, decision: Decision) -> Moved:
    if call.traits.flow is not Flow.ASK:
        return start(state, call, decision)
    if not state.user_present:
        return finish(state, call, result_text(Outcome.OK, texts.NO_USER_TO_ASK))
    options = call.call.arguments.get("options", ())
    question = Question(
        id=f"q{state.seq}",
        kind=QuestionKind.FOLLOWUP,
        text=str(call.call.arguments.get("question", "")),
        options=tuple(str(option) for option in options) if isinstance(options, list | tuple) else (),
        call_id=call.call.id,
    )
    return _ask(state, call, question)


def _needs_yes(state: State, call: CallState, decision: Decision) -> Moved:
    if not state.user_present:
        return deny_for_no_user(state, call, decision)
    question = Question(
        id=f"q{state.seq}",
        kind=QuestionKind.PERMISSION,
        text=call.preview.title if call.preview else call.call.name,
        options=_OPTIONS_OF_CRITICAL if decision.risk is Risk.CRITICAL else _OPTIONS,
        call_id=call.call.id,
        preview=call.preview,
        decision=decision,
        accesses=call.accesses,
        arguments=call.call.arguments,
    )
    return _ask(state, call, question)


def deny_for_no_user(state: State, call: CallState, decision: Decision) -> Moved:
    """Deny what needs a yes that nobody can give, and count it."""
    if state.turn is not None:
        state = replace(state, turn=replace(state.turn, denied=state.turn.denied + 1))
    return finish(state, call, result_text(Outcome.DENIED, texts.denied(decision, no_user=True)))


def _ask(state: State, call: CallState, question: Question) -> Moved:
    state, effects = put(state, replace(call, status=CallStatus.ASKING))
    state = replace(state, questions=(*state.questions, question))
    return state, [*effects, Notify(notification=QuestionAsked(question=question))]


def start(state: State, call: CallState, decision: Decision) -> Moved:
    """Let the call run; the intent is logged by the runtime before it does."""
    state, effects = put(state, replace(call, status=CallStatus.STARTING))
    return state, [*effects, RunTool(call=call.call, digest=decision.digest, rerun=call.rerun)]


def started(state: State, data: CallStarted) -> Moved:
    """The intent is in the log: it runs."""
    call = find(state, data.call_id)
    assert call is not None  # noqa: S101 - `advance` has checked it
    return put(state, replace(call, status=CallStatus.RUNNING))


def finished(state: State, data: CallFinished) -> Moved:
    """The outcome is in the log."""
    call = find(state, data.call_id)
    assert call is not None  # noqa: S101 - `advance` has checked it
    return finish(state, call, data.result)


def answered(state: State, question: Question, data: Answer) -> Moved:
    """Act on the user's answer to a question about a call."""
    call = find(state, question.call_id)
    if call is None:
        return close_questions(state, question.call_id, data.option)
    state, effects = close_questions(state, question.call_id, data.option)
    state, more = _act_on(state, call, data)
    return state, effects + more


def _act_on(state: State, call: CallState, data: Answer) -> Moved:
    match data.option:
        case OptionKind.ALLOW_ONCE | OptionKind.ALLOW_ALWAYS:
            return _approved(state, call, data)
        case OptionKind.REJECT_ONCE | OptionKind.REJECT_ALWAYS:
            return _rejected(state, call, data)
        case OptionKind.ANSWER:
            return finish(state, call, result_text(Outcome.OK, data.text))


def _approved(state: State, call: CallState, data: Answer) -> Moved:
    assert call.decision is not None  # noqa: S101 - a permission is asked only after a decision
    if data.text:
        state = replace(state, notes=(*state.notes, texts.comment_on(call.call.name, data.text)))
    if data.arguments is not None and data.arguments != call.call.arguments:
        return _amended(state, call, data.arguments)
    if data.option is OptionKind.ALLOW_ALWAYS:
        state = replace(state, grants=state.grants | {call.decision.digest})
    return start(state, call, call.decision)


def _amended(state: State, call: CallState, arguments: dict[str, Any]) -> Moved:
    """Judge the call anew as the user wrote it; what a person typed needs no second yes, but a denial still counts."""
    amended = replace(call, call=replace(call.call, arguments=arguments), amended=True, status=CallStatus.JUDGING)
    state, effects = put(state, amended)
    return state, [*effects, JudgeCall(call=amended.call)]


def _rejected(state: State, call: CallState, data: Answer) -> Moved:
    state, effects = finish(state, call, result_text(Outcome.REJECTED, texts.rejected(data.text)))
    position = [one.call.id for one in state.calls].index(call.call.id)
    for later in state.calls[position + 1 :]:
        if later.status is CallStatus.PROPOSED:
            state, more = finish(state, later, result_text(Outcome.SKIPPED, texts.SKIPPED))
            effects += more
    return state, effects


def drop_unfinished_reply(state: State) -> Moved:
    """Forget the calls of a reply that broke: only readers can have run."""
    effects: list[Effect] = []
    for call in state.calls:
        if not call.finished:
            effects.append(Cancel(work=call_work(call.call.id)))
        state, closed = close_questions(state, call.call.id)
        effects += closed
    return replace(state, calls=()), effects


def interrupt(state: State) -> Moved:
    """End every call that does not run yet, and stop those that do."""
    effects: list[Effect] = []
    for call in state.calls:
        if call.finished:
            continue
        effects.append(Cancel(work=call_work(call.call.id)))
        if call.status is not CallStatus.RUNNING:
            state, more = finish(state, call, result_text(Outcome.INTERRUPTED, texts.NOT_STARTED))
            effects += more
    return state, effects


def abandon(state: State) -> Moved:
    """Give every open call its result after a restart in the middle of an interruption."""
    effects: list[Effect] = []
    for call in state.calls:
        if not call.finished:
            ran = call.status is CallStatus.RUNNING and not call.pure
            result = (
                result_text(Outcome.UNKNOWN, texts.UNKNOWN)
                if ran
                else result_text(Outcome.INTERRUPTED, texts.NOT_STARTED)
            )
            state, more = finish(state, call, result)
            effects += more
    return state, effects


def resume(state: State) -> Moved:
    """Take open calls up again after a restart; what ran once and only once is never run again by itself."""
    effects: list[Effect] = []
    for call in state.calls:
        match call.status:
            case CallStatus.JUDGING:
                effects.append(JudgeCall(call=call.call))
            case CallStatus.ASKING if not state.user_present and call.decision is not None and not _asks(call):
                state, more = _judge_again(state, call)
                effects += more
            case CallStatus.ASKING:
                state, more = ask_again(state, call)
                effects += more
            case CallStatus.STARTING | CallStatus.RUNNING:
                state, more = _run_again(state, call)
                effects += more
            case CallStatus.PROPOSED | CallStatus.FINISHED:
                pass
    return state, effects


def _asks(call: CallState) -> bool:
    return call.traits.flow is Flow.ASK


def _judge_again(state: State, call: CallState) -> Moved:
    """Have a call judged anew that waited for a yes: the mode may be another one now, and nobody is there to ask."""
    state, closed = close_questions(state, call.call.id)
    state, effects = put(state, replace(call, status=CallStatus.JUDGING))
    return state, [*closed, *effects, JudgeCall(call=call.call)]


def ask_again(state: State, call: CallState) -> Moved:
    """Put an open question again, or give the answer that stands for nobody being there."""
    if state.user_present:
        asked = [question for question in state.questions if question.call_id == call.call.id]
        return state, [Notify(notification=QuestionAsked(question=question)) for question in asked]
    if call.traits.flow is Flow.ASK or call.decision is None:
        return finish(state, call, result_text(Outcome.OK, texts.NO_USER_TO_ASK))
    return deny_for_no_user(state, call, call.decision)


def _run_again(state: State, call: CallState) -> Moved:
    assert call.decision is not None  # noqa: S101 - nothing starts without one
    if call.status is CallStatus.STARTING:
        return state, [RunTool(call=call.call, digest=call.decision.digest, rerun=call.rerun)]
    if call.traits.effect is ToolEffect.ONCE:
        return finish(state, call, result_text(Outcome.UNKNOWN, texts.UNKNOWN))
    return start(state, replace(call, rerun=True), call.decision)
