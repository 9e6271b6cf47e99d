"""What becomes of open calls when a reply breaks, the user interrupts, the program restarts or the user is gone."""

from treadle.engine.core import copy_fate, files, texts
from treadle.engine.core.calls import (
    close_questions,
    deny_for_no_user,
    finish,
    leave_first_run,
    put,
    run_of,
    start,
)
from treadle.engine.core.machine_effects import Cancel, Effect, JudgeCall, Notify, Transition, call_work
from treadle.engine.core.state import CallState, State, replace
from treadle.protocol.notifications import CallStatus, QuestionAsked
from treadle.protocol.tools import CallResult, Flow, Outcome, ToolEffect, result_text


def drop_unfinished_reply(state: State) -> Transition:
    """Forget the calls of a reply that broke: only readers can have run."""
    effects: list[Effect] = []
    for call in state.calls:
        if not call.finished:
            effects.append(Cancel(work=call_work(call.call.id)))
        state, closed = close_questions(state, call.call.id)
        effects += closed
    return replace(state, calls=()), effects


def interrupt(state: State) -> Transition:
    """End every call that does not run yet, and stop those that do; one with subagents says what became of them."""
    effects: list[Effect] = []
    for call in state.calls:
        if call.finished:
            continue
        effects.append(Cancel(work=call_work(call.call.id)))
        if not reports_its_end(state, call):
            text = texts.INTERRUPTED if call.begins_again else texts.NOT_STARTED
            state, more = _leave(state, call, result_text(Outcome.INTERRUPTED, text))
            effects += more
    return state, effects


def reports_its_end(state: State, call: CallState) -> bool:
    """Whether a call that is cancelled reports by itself what came of it: it runs, or has subagents from before."""
    has_children = any(child.started.call_id == call.call.id for child in state.children)
    return call.status is CallStatus.RUNNING or (call.begins_again and has_children)


def abandon(state: State) -> Transition:
    """Give every open call its result after a restart in the middle of an interruption."""
    effects: list[Effect] = []
    for call in state.calls:
        if not call.finished:
            ran = (call.status is CallStatus.RUNNING or call.begins_again) and not call.pure
            result = (
                result_text(Outcome.UNKNOWN, texts.OUTCOME_UNKNOWN)
                if ran
                else result_text(Outcome.INTERRUPTED, texts.NOT_STARTED)
            )
            state, more = _leave(state, call, result)
            effects += more
    return state, effects


def _leave(state: State, call: CallState, otherwise: CallResult) -> Transition:
    """End a call with what came of its first run, or else with this."""
    return finish(state, call, otherwise) if call.result is None else leave_first_run(state, call, call.result)


def resume(state: State, *, keeps: bool) -> Transition:
    """Take open calls up again after a restart; what ran once and only once is never run again by itself.

    `keeps`: files are kept around one that had not begun.
    """
    effects: list[Effect] = []
    for call in state.calls:
        match call.status:
            case CallStatus.JUDGING:
                effects.append(JudgeCall(call=call.call))
            case CallStatus.ASKING if call.result is not None and copy_fate.real_changes(call.result):
                # A copy does not outlive the program that made it.
                state, more = leave_first_run(state, call, call.result)
                effects += more
            case CallStatus.ASKING if _can_be_judged_again(state, call):
                state, more = judge_again(state, call)
                effects += more
            case CallStatus.ASKING:
                state, more = ask_again(state, call)
                effects += more
            case CallStatus.STARTING | CallStatus.RUNNING:
                state, more = _run_again(state, call, keeps=keeps)
                effects += more
            case CallStatus.PROPOSED | CallStatus.FINISHED:
                pass
    return state, effects


def _can_be_judged_again(state: State, call: CallState) -> bool:
    return not state.user_present and call.decision is not None and call.result is None and not asks(call)


def asks(call: CallState) -> bool:
    """Whether a call is itself a question to the user."""
    return call.traits.flow is Flow.ASK


def judge_again(state: State, call: CallState) -> Transition:
    """Have a call judged anew that waited for a yes: the mode may be another one now, and nobody is there to ask."""
    state, closed = close_questions(state, call.call.id)
    state, effects = put(state, replace(call, status=CallStatus.JUDGING))
    return state, [*closed, *effects, JudgeCall(call=call.call)]


def ask_again(state: State, call: CallState) -> Transition:
    """Put an open question again, or give the answer that stands for nobody being there."""
    if state.user_present:
        asked = [question for question in state.questions if question.call_id == call.call.id]
        return state, [Notify(notification=QuestionAsked(question=question)) for question in asked]
    if call.result is not None:
        return leave_first_run(state, call, call.result)
    if call.traits.flow is Flow.ASK or call.decision is None:
        return finish(state, call, result_text(Outcome.INVALID, texts.NO_USER_TO_ASK))
    return deny_for_no_user(state, call, call.decision)


def _run_again(state: State, call: CallState, *, keeps: bool) -> Transition:
    assert call.decision is not None  # noqa: S101 - nothing starts without one
    if call.keep and call.result is not None:
        # A copy does not outlive the program that made it, so nothing can be applied any more.
        if call.status is CallStatus.STARTING:
            return leave_first_run(state, call, call.result)
        return finish(state, call, copy_fate.kept_or_not(call.result))
    if call.status is CallStatus.STARTING:
        run = run_of(call, call.decision)
        # What was kept before it is from before the restart, and what is found now ends the work until then.
        state, effects = files.before_change(state) if keeps and run.changes else (state, [])
        return state, [*effects, run]
    if call.traits.effect is ToolEffect.ONCE:
        return finish(state, call, result_text(Outcome.UNKNOWN, texts.OUTCOME_UNKNOWN))
    return start(state, replace(call, rerun=True), call.decision)
