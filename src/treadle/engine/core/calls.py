"""The life of a call: proposed, judged, confirmed, running, finished."""

from typing import Any

from treadle.engine.core import copy_fate, files, texts
from treadle.engine.core.budgets import bill
from treadle.engine.core.learning import learn_from, ran_something, with_run
from treadle.engine.core.machine_effects import Effect, JudgeCall, Notify, RunTool, Transition
from treadle.engine.core.state import CallState, State, guarded, replace
from treadle.protocol.events import Answer, CallFinished, CallJudged, CallProposed, CallStarted
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, QuestionClosed, ResultPresented
from treadle.protocol.permissions import Decision, Mode, OptionKind, Question, QuestionKind, Reason, Verdict
from treadle.protocol.tools import (
    CallResult,
    CopyChanges,
    Flow,
    Outcome,
    Preview,
    Right,
    Rights,
    Risk,
    result_text,
)

_ONCE = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
_KEEP = (OptionKind.ALLOW_ONCE, OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE)
_NOT_WHOLE = (OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE)
_ALWAYS = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.REJECT_ONCE)
_HARMLESS = (Risk.NONE, Risk.READ)


def find(state: State, call_id: str) -> CallState | None:
    """Look a call of the present step up."""
    return next((call for call in state.calls if call.call.id == call_id), None)


def put(state: State, changed: CallState) -> Transition:
    """Replace a call by its next self and tell the surfaces."""
    calls = tuple(changed if call.call.id == changed.call.id else call for call in state.calls)
    return replace(state, calls=calls), [_call_notice(changed)]


def _call_notice(call: CallState) -> Notify:
    """Say where a call is."""
    return Notify(
        notification=CallChanged(
            call=call.call,
            kind=call.traits.kind,
            flow=call.traits.flow,
            status=call.status,
            decision=call.decision,
            preview=call.preview,
            result=call.result,
        )
    )


def finish(state: State, call: CallState, result: CallResult) -> Transition:
    """Give a call its result, and note what the turn learns from it."""
    if call.amended:
        added = Text(text=texts.amended(call.call.arguments))
        result = replace(result, content=(added, *result.content))
    state, effects = put(state, replace(call, status=CallStatus.FINISHED, result=result))
    state, closed = close_questions(state, call.call.id)
    discarded = copy_fate.real_changes(result) is not None and state.mode is not Mode.PLAN
    if discarded or result.outcome in (Outcome.DENIED, Outcome.REJECTED):
        state = count_refused(state)
    return learn_from(state, call, result), effects + closed


def count_refused(state: State) -> State:
    """Count a call that got a no."""
    if state.turn is None or state.limits.counts_refused is not True:
        return state
    return replace(state, refused=state.refused + 1)


def made(state: State, call_id: str, result: CallResult) -> State:
    """Take the result of a call as the log says that it was."""
    call = find(state, call_id)
    if call is None:
        return state
    state, _ = put(state, replace(call, result=result))
    return replace(state, runs=with_run(state, call, result)) if ran_something(call, result) else state


def close_questions(state: State, call_id: str, answer: Answer | None = None) -> Transition:
    """Close the questions about a call."""
    gone = [question for question in state.questions if question.call_id == call_id]
    kept = tuple(question for question in state.questions if question.call_id != call_id)
    added: list[Effect] = [Notify(notification=_closing(question, answer)) for question in gone]
    return replace(state, questions=kept), added


def _closing(question: Question, answer: Answer | None) -> QuestionClosed:
    if answer is None:
        return QuestionClosed(question_id=question.id)
    return QuestionClosed(question_id=question.id, option=answer.option, scope=answer.scope)


def propose(state: State, data: CallProposed) -> Transition:
    """Take a whole call from the reply."""
    call = CallState(call=data.call, traits=data.traits)
    state = replace(state, calls=(*state.calls, call))
    if data.outside and state.turn is not None:
        state = replace(state, turn=replace(state.turn, tainted=True))
    if state.cancelling:  # its reply may still be whole before the cancel hits: then every call in it needs a result
        return put(
            state, replace(call, status=CallStatus.FINISHED, result=result_text(Outcome.INTERRUPTED, texts.NOT_STARTED))
        )
    if data.call.problem:
        return put(
            state, replace(call, status=CallStatus.FINISHED, result=result_text(Outcome.INVALID, data.call.problem))
        )
    state, effects = files.expect_change(state, call)
    return state, [_call_notice(call), *effects]


def schedule(state: State) -> Transition:
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


def _begin(state: State, call: CallState, before: tuple[CallState, ...]) -> Transition:
    if call.traits.flow is Flow.END_TURN and any(one.result is not None and one.result.is_error for one in before):
        return finish(state, call, result_text(Outcome.SKIPPED, texts.PRESENTED_TOO_EARLY))
    state, effects = put(state, replace(call, status=CallStatus.JUDGING))
    return state, [*effects, JudgeCall(call=call.call)]


def judged(state: State, data: CallJudged) -> Transition:
    """Act on the security layer's answer."""
    call = find(state, data.call_id)
    assert call is not None  # noqa: S101 - `advance` has checked it
    if data.arguments is not None:
        call = replace(call, call=replace(call.call, arguments=data.arguments))
    call = replace(call, decision=data.decision, preview=data.preview, accesses=data.accesses)
    state, effects = _present(state, call)
    state, more = _decided(state, call, data.decision)
    return state, effects + more


def _decided(state: State, call: CallState, decision: Decision) -> Transition:
    match decision.verdict:
        case Verdict.DENY if presents(call):
            return finish_presented(state, call, texts.COMMAND_DENIED)
        case Verdict.DENY:
            return finish(state, call, result_text(Outcome.DENIED, texts.denied(decision, no_user=False)))
        case Verdict.ALLOW:
            return _auto_approve(state, call, decision)
        case Verdict.REQUIRE_USER_CONFIRMATION:
            if call.amended:
                return _allowed(state, call, decision)
            return _needs_yes(state, call, decision)


def presents(call: CallState) -> bool:
    """Whether the call brings the result of the task, and wants to run something too."""
    return call.traits.flow is Flow.END_TURN and call.preview is not None and bool(call.preview.result)


def _present(state: State, call: CallState) -> Transition:
    """Show the result before anything is asked about its command: neither a no nor an interrupt may lose it."""
    if not presents(call) or call.preview is None or state.turn is None:
        return state, []
    text = call.preview.result
    state = replace(state, turn=replace(state.turn, presented=text))
    return state, [Notify(notification=ResultPresented(text=text))]


def finish_presented(state: State, call: CallState, why: str = "") -> Transition:
    """End the task with the result that was shown, without the command that goes with it."""
    shown = call.preview.result if call.preview is not None else ""
    return finish(state, call, result_text(Outcome.OK, f"{shown}\n\n{why}" if why else shown))


def _auto_approve(state: State, call: CallState, decision: Decision) -> Transition:
    """Let a call run without asking, unless too many did so in a row."""
    if decision.risk in _HARMLESS:
        return _allowed(state, call, decision)
    most = state.limits.max_auto_approved
    if most is not None and state.guard.auto_approved >= most:
        reason = Reason(
            rule="auto-approval-limit", text=f"{state.guard.auto_approved} calls in a row ran without asking"
        )
        return _needs_yes(state, call, replace(decision, reasons=(reason, *decision.reasons)))
    return _allowed(guarded(state, auto_approved=state.guard.auto_approved + 1), call, decision)


def _allowed(state: State, call: CallState, decision: Decision) -> Transition:
    if call.traits.flow is not Flow.ASK:
        return start(state, call, decision)
    if not state.user_present:
        return finish(state, call, result_text(Outcome.INVALID, texts.NO_USER_TO_ASK))
    arguments = call.call.arguments
    options = arguments.get("options", ())
    question = Question(
        id=f"q{state.seq}",
        kind=QuestionKind.FOLLOWUP,
        text=str(arguments.get("question", "")),
        options=tuple(map(str, options)) if isinstance(options, list | tuple) else (),
        multiple=arguments.get("multiple") is True,
        call_id=call.call.id,
    )
    return _ask(state, call, question)


def _needs_yes(state: State, call: CallState, decision: Decision) -> Transition:
    if not state.user_present:
        return deny_for_no_user(state, call, decision)
    plan = (texts.RUNS_IN_PLAN,) if state.mode is Mode.PLAN else ()
    decision = replace(decision, reasons=(*decision.reasons, *plan))
    question = Question(
        id=f"q{state.seq}",
        kind=QuestionKind.PERMISSION,
        text=texts.asked(call.preview.title if call.preview else call.call.name, decision),
        options=_ALWAYS if decision.offers and not decision.dangerous else _ONCE,
        call_id=call.call.id,
        preview=call.preview,
        decision=decision,
        accesses=call.accesses,
        arguments=call.call.arguments,
    )
    return _ask(state, replace(call, decision=decision), question)


def deny_for_no_user(state: State, call: CallState, decision: Decision) -> Transition:
    """Deny what needs a yes that nobody can give, and count it. The result of the task needs none."""
    if presents(call):
        return finish_presented(state, call, texts.COMMAND_NEEDS_A_YES)
    return finish(_count_denied(state), call, result_text(Outcome.DENIED, texts.denied(decision, no_user=True)))


def _count_denied(state: State) -> State:
    """Count what needed a yes that nobody could give."""
    return state if state.turn is None else replace(state, turn=replace(state.turn, denied=state.turn.denied + 1))


def _ask(state: State, call: CallState, question: Question) -> Transition:
    state, effects = put(state, replace(call, status=CallStatus.ASKING))
    state = replace(state, questions=(*state.questions, question))
    return state, [*effects, Notify(notification=QuestionAsked(question=question))]


def start(state: State, call: CallState, decision: Decision) -> Transition:
    """Let the call run; the intent is logged by the runtime before it does."""
    state, effects = put(state, replace(call, status=CallStatus.STARTING))
    run = run_of(call, decision)
    if run.changes:
        state, more = files.before_change(state)
        effects += more
    return state, [*effects, run]


def run_of(call: CallState, decision: Decision) -> RunTool:
    """Run what was judged, in what it was judged for; a second run as the user chose."""
    rights = call.rights or rights_of(decision)
    return RunTool(
        call=call.call,
        digest=decision.digest,
        rerun=call.rerun,
        rights=rights,
        keep=call.keep,
        changes=files.may_change(call, None if rights is None else rights.confinement),
    )


def rights_of(decision: Decision) -> Rights | None:
    """Give what a decision lets the commands of a call run in; None for a call that runs none."""
    if decision.confinement is None:
        return None
    return Rights(confinement=decision.confinement, granted=decision.grants)


def started(state: State, data: CallStarted) -> Transition:
    """The intent is in the log: it runs."""
    call = find(state, data.call_id)
    assert call is not None  # noqa: S101 - `advance` has checked it
    return put(state, replace(call, status=CallStatus.RUNNING))


def finished(state: State, data: CallFinished) -> Transition:
    """The outcome is in the log; the user may want more of what ran in a copy, or of what the sandbox stopped."""
    call = find(state, data.call_id)
    assert call is not None  # noqa: S101 - `advance` has checked it
    state = bill(state, data.result.usage, data.result.cost)
    if call.keep:
        return finish(state, call, copy_fate.kept(call, data.result))
    plan = state.mode is Mode.PLAN
    can_ask = state.user_present and not state.cancelling and not plan
    if copy := copy_fate.real_changes(data.result):
        if not copy_fate.needs_word(copy) and not state.cancelling and not plan:
            return keep_copy(state, call, data.result, copy)
        if (said := data.decision) is not None and (said.verdict is Verdict.DENY or not (state.cancelling or plan)):
            return _answered_by_hook(state, call, data.result, said)
        return ask_about_copy(state, call, data.result, copy) if can_ask else leave_first_run(state, call, data.result)
    denial = data.result.denial
    if denial is not None and denial.right is Right.NETWORK and denial.target and not state.user_present:
        state = _count_denied(state)
    if denial is None or call.rights is not None or not can_ask:
        return finish(
            state, call, copy_fate.with_remark(data.result, texts.NO_RIGHT_IN_PLAN) if plan and denial else data.result
        )
    return _ask_about(state, call, data.result, texts.stopped_by_sandbox(denial), options=_ONCE, denial=denial)


def _answered_by_hook(state: State, call: CallState, result: CallResult, decision: Decision) -> Transition:
    """Apply what a command changed in its copy, or throw it away, as hooks say."""
    call = replace(call, decision=decision)
    copy = copy_fate.real_changes(result)
    if decision.verdict is Verdict.ALLOW and copy is not None:
        return keep_copy(state, call, result, copy)
    return finish(state, call, copy_fate.mark_discarded(result, copy_fate.said_by_hook(decision, "denied")))


def ask_about_copy(
    state: State, call: CallState, result: CallResult, copy: CopyChanges, *, more: str = ""
) -> Transition:
    """Ask about the changes, whole or not at all; `more` asks for the second yes, to those that no view can show."""
    text, options = (more or copy_fate.KEEP_CHANGES, _KEEP) if copy.whole else (copy_fate.RUN_FOR_REAL, _NOT_WHOLE)
    shown = Preview(title=text, text=copy.diff, is_diff=True)
    return _ask_about(state, call, result, text, options=options, copy=copy, preview=shown, more=more)


def keep_copy(state: State, call: CallState, result: CallResult, copy: CopyChanges) -> Transition:
    """Apply what a command changed in its copy."""
    assert call.decision is not None  # noqa: S101 - it has run
    return start(state, replace(call, result=result, keep=copy.digest), call.decision)


def _discard(state: State, call: CallState, result: CallResult) -> Transition:
    """Throw away what nobody can decide about; outside plan mode that is work that was not done."""
    if state.mode is Mode.PLAN:
        return finish(state, call, copy_fate.mark_discarded(result, copy_fate.IN_PLAN_MODE))
    return finish(_count_denied(state), call, copy_fate.mark_discarded(result, copy_fate.NOBODY_TO_KEEP))


def leave_first_run(state: State, call: CallState, result: CallResult) -> Transition:
    """Leave a call at what came of its first run, with no second one and nothing kept."""
    if state.user_present and state.mode is not Mode.PLAN:
        return finish(state, call, copy_fate.mark_discarded(result, copy_fate.BEFORE_KEPT))
    return _discard(state, call, result) if copy_fate.real_changes(result) else finish(state, call, result)


def _ask_about(state: State, call: CallState, result: CallResult, text: str, **about: Any) -> Transition:
    """Ask what is to become of a call that has run once."""
    question = Question(
        id=f"q{state.seq}",
        kind=QuestionKind.PERMISSION,
        text=text,
        call_id=call.call.id,
        decision=call.decision,
        accesses=call.accesses,
        **{"preview": call.preview, **about},
    )
    return _ask(state, replace(call, result=result), question)
