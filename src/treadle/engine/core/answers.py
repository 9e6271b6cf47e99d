"""What a person's answer does to a call, and what they allow from now on."""

from functools import partial
from typing import Any

from treadle.engine.core import copy_fate, texts
from treadle.engine.core.calls import (
    ask_about_copy,
    close_questions,
    count_refused,
    find,
    finish,
    finish_presented,
    keep_copy,
    leave_first_run,
    presents,
    put,
    rights_of,
    start,
)
from treadle.engine.core.copy_fate import mark_discarded, with_remark
from treadle.engine.core.interruptions import asks, judge_again
from treadle.engine.core.machine_effects import Effect, JudgeCall, Notify, PassAnswer, Remember, Transition
from treadle.engine.core.state import CallState, State, guarded, is_beside, replace, with_enclosed, with_note
from treadle.protocol.events import Answer, RevokeAllowance, Source
from treadle.protocol.notifications import AllowancesChanged, CallStatus, QuestionAsked, QuestionClosed
from treadle.protocol.permissions import (
    Allowance,
    AllowScope,
    CallAsked,
    Decision,
    Mode,
    OptionKind,
    Question,
    QuestionKind,
)
from treadle.protocol.tools import (
    CallResult,
    Confinement,
    CopyChanges,
    Outcome,
    Right,
    Rights,
    SandboxDenial,
    result_text,
)


def call_answered(state: State, question: Question, data: Answer) -> Transition:
    """Act on the user's answer to a question about a call."""
    call = find(state, question.call_id)
    if call is None:
        return close_questions(state, question.call_id, data)
    state, effects = close_questions(state, question.call_id, data)
    state = guarded(state, auto_approved=0)
    if call.result is not None and call.decision is not None:
        state, more = _answered_after_a_run(state, question, call, call.decision, call.result, data)
    else:
        state, more = _act_on(state, call, data)
    return state, effects + more


def call_asked(state: State, data: CallAsked) -> Transition:
    """Put the question of a running call to the user, or withdraw it; without a user nobody answers."""
    if not data.text:
        return elicitation_closed(state, data.question_id)
    if not state.user_present:
        return state, [PassAnswer(question_id=data.question_id)]
    question = _elicitation(data) if data.relayed is None else replace(data.relayed, id=data.question_id, call_id="")
    return replace(state, questions=(*state.questions, question)), [
        Notify(notification=QuestionAsked(question=question))
    ]


def _elicitation(data: CallAsked) -> Question:
    wanted = data.form.get("properties")
    return Question(
        id=data.question_id,
        kind=QuestionKind.ELICITATION,
        text=data.text,
        options=(OptionKind.ALLOW_ONCE, *([OptionKind.ALLOW_ALWAYS] if data.offers else ()), OptionKind.REJECT_ONCE),
        call_id="" if data.after else data.call_id,
        arguments=_defaults(wanted) if isinstance(wanted, dict) else {},
        form=data.form,
        url=data.url,
        offers=data.offers,
    )


def _defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: about.get("default", "") if isinstance(about, dict) else "" for name, about in fields.items()}


def elicitation_closed(state: State, question_id: str, data: Answer | None = None) -> Transition:
    """Close the question of a running call or of a subagent, and give the call the answer if there is one.

    What is allowed for every session is for who asked to write down: it knows where.
    """
    question = next(one for one in state.questions if one.id == question_id)
    state = replace(state, questions=tuple(one for one in state.questions if one.id != question_id))
    if data is None:
        return state, [
            Notify(notification=QuestionClosed(question_id=question_id)),
            PassAnswer(question_id=question_id),
        ]
    closed = QuestionClosed(question_id=question_id, option=data.option, scope=data.scope)
    effects: list[Effect] = [Notify(notification=closed)]
    if data.option is OptionKind.ALLOW_ALWAYS and data.scope is AllowScope.SESSION:
        state, more = _allow_always(state, _offers(question), data.scope)
        effects += more
    values = question.arguments if data.arguments is None else data.arguments
    said = PassAnswer(question_id=question_id, option=data.option, scope=data.scope, values=values)
    return state, [*effects, replace(said, whole=data) if question.child else said]


def _offers(question: Question) -> tuple[Allowance, ...]:
    return question.decision.offers if question.child and question.decision is not None else question.offers


def close_elicitations(state: State) -> Transition:
    """Close the questions of running calls, which nobody will answer any more."""
    effects: list[Effect] = []
    for question in state.questions:
        if is_beside(question):
            state, more = elicitation_closed(state, question.id)
            effects += more
    return state, effects


def _answered_after_a_run(  # noqa: PLR0917 - a question, its call, and the answer
    state: State, question: Question, call: CallState, decision: Decision, result: CallResult, data: Answer
) -> Transition:
    """Run a call once more with what it lacked, keep what it changed in a copy, or leave it at what came of it."""
    if data.text and data.option is not OptionKind.REJECT_ONCE:
        state = _with_comment(state, call, data)
    match data.option:
        case OptionKind.ALLOW_ONCE | OptionKind.RUN_FOR_REAL if state.mode is Mode.PLAN:
            # It was chosen while the question was open: nothing changes any more, and no right is given.
            lacked = question.denial is not None
            return leave_first_run(state, call, with_remark(result, texts.NO_RIGHT_IN_PLAN) if lacked else result)
        case OptionKind.ALLOW_ONCE if question.copy is not None:
            if question.copy.unshown and not question.more:
                return ask_about_copy(state, call, result, question.copy, more=copy_fate.KEEP_UNSHOWN)
            return keep_copy(state, call, result, question.copy)
        case OptionKind.RUN_FOR_REAL if question.copy is not None:
            rights = _for_real(decision, question.copy)
            return start(state, replace(call, rights=rights, result=None), decision)
        case OptionKind.ALLOW_ONCE | OptionKind.RUN_FOR_REAL:
            ran = question.denial is not None and not question.denial.unrun
            if ran and decision.confinement in (Confinement.WORK, Confinement.GIT):
                state = with_note(state, texts.ran_again(call.call.name))
            return start(state, replace(call, rights=_wider(decision, question.denial), result=None), decision)
        case _ if question.copy is not None:
            return finish(state, call, mark_discarded(result, copy_fate.discarded_by_user(data.text)))
        case _:
            if data.text:
                state = _with_comment(state, call, data)
            return finish(count_refused(state), call, with_remark(result, texts.RIGHT_REFUSED))


def _wider(decision: Decision, denial: SandboxDenial | None) -> Rights:
    """Give what a second run has: the workspace itself, or the right that the first one lacked."""
    before = rights_of(decision) or Rights(confinement=Confinement.WORK)
    if denial is not None and denial.right is Right.UNSANDBOXED:
        return Rights(confinement=Confinement.OPEN)
    granted = before.granted if denial is None else (*before.granted, denial)
    in_look = before.confinement is Confinement.LOOK
    return Rights(confinement=Confinement.WORK if in_look else before.confinement, granted=granted)


def _for_real(decision: Decision, copy: CopyChanges) -> Rights:
    """Give what a command runs in that ran in a copy: the workspace itself, with what it needed there."""
    before = rights_of(decision) or Rights(confinement=Confinement.WORK)
    needs = copy.rights or Rights(confinement=Confinement.WORK)
    return replace(needs, granted=(*before.granted, *needs.granted))


def _act_on(state: State, call: CallState, data: Answer) -> Transition:
    match data.option:
        case OptionKind.ALLOW_ONCE | OptionKind.ALLOW_ALWAYS:
            return _approved(state, call, data)
        case OptionKind.REJECT_ONCE | OptionKind.REJECT_ALWAYS | OptionKind.RUN_FOR_REAL:
            return _rejected(state, call, data)
        case OptionKind.ANSWER:
            result = result_text(Outcome.OK, data.text)
            along = tuple(block for one in data.enclosed for block in one.content)
            return finish(state, call, replace(result, content=(*result.content, *along)))


def _with_comment(state: State, call: CallState, data: Answer) -> State:
    return with_enclosed(with_note(state, texts.comment_on(call.call.name, data.text)), data.enclosed)


def _approved(state: State, call: CallState, data: Answer) -> Transition:
    assert call.decision is not None  # noqa: S101 - a permission is asked only after a decision
    if data.text:
        state = _with_comment(state, call, data)
    if data.arguments is not None and data.arguments != call.call.arguments:
        return _amended(state, call, data.arguments)
    # What was asked about before plan mode was chosen is done only as plan mode would do it.
    goes_on = judge_again if is_older_than_plan(state, call) else partial(start, decision=call.decision)
    if data.option is not OptionKind.ALLOW_ALWAYS:
        return goes_on(state, call)
    state, effects = _allow_always(state, call.decision.offers, data.scope)
    state, more = goes_on(state, call)
    state, others = _judge_waiting(state)
    return state, [*effects, *more, *others]


def is_older_than_plan(state: State, call: CallState) -> bool:
    """Whether a call was asked about before the person chose plan mode, in which the session is."""
    return (
        state.mode is Mode.PLAN
        and call.status is CallStatus.ASKING
        and not asks(call)
        and (call.decision is None or texts.RUNS_IN_PLAN not in call.decision.reasons)
    )


def _allow_always(state: State, offers: tuple[Allowance, ...], scope: AllowScope) -> Transition:
    known = {allowance.id for allowance in state.allowances}
    new = tuple(offer for offer in offers if offer.id not in known)
    state = replace(state, allowances=(*state.allowances, *new))
    effects: list[Effect] = [Notify(notification=AllowancesChanged(allowances=state.allowances))] if new else []
    if scope is AllowScope.USER:
        effects.append(Remember(allowances=offers))
    return state, effects


def _judge_waiting(state: State) -> Transition:
    """Have the other calls that wait for a yes judged anew: what was just allowed may cover them."""
    effects: list[Effect] = []
    for call in state.calls:
        if call.status is CallStatus.ASKING and call.result is None and not asks(call):
            state, more = judge_again(state, call)
            effects += more
    return state, effects


def revoke(state: State, data: RevokeAllowance) -> Transition:
    """Take an allowance back."""
    kept = tuple(allowance for allowance in state.allowances if allowance.id != data.allowance_id)
    return replace(state, allowances=kept), [Notify(notification=AllowancesChanged(allowances=kept))]


def _amended(state: State, call: CallState, arguments: dict[str, Any]) -> Transition:
    """Judge the call anew as the user wrote it; what a person typed needs no second yes, but a denial still counts."""
    amended = replace(call, call=replace(call.call, arguments=arguments), amended=True, status=CallStatus.JUDGING)
    state, effects = put(state, amended)
    return state, [*effects, JudgeCall(call=amended.call)]


def _rejected(state: State, call: CallState, data: Answer) -> Transition:
    if presents(call) and not data.text:
        return finish_presented(state, call)
    state, effects = finish(state, call, result_text(Outcome.REJECTED, texts.rejected(data.text)))
    position = [one.call.id for one in state.calls].index(call.call.id)
    for later in state.calls[position + 1 :]:
        if later.status is CallStatus.PROPOSED:
            state, more = finish(state, later, result_text(Outcome.SKIPPED, texts.SKIPPED))
            effects += more
    return state, effects


def named_by(source: Source, answer: Answer, effect: Effect) -> Effect:
    """Say with the end of a question where it was answered, and what was said with it."""
    match effect:
        case Notify(notification=QuestionClosed(option=OptionKind(), question_id=answer.question_id) as closed):
            amended = answer.arguments is not None
            said = replace(closed, by=source.name, text=answer.text, scope=answer.scope, amended=amended)
            return Notify(notification=said)
        case Notify(notification=QuestionClosed(option=OptionKind()) as closed):
            return Notify(notification=replace(closed, by=source.name))
        case _:
            return effect
