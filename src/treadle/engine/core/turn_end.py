"""The end of a turn: hooks are asked first where there are some, then whoever asked for it gets its outcome.

Its time begins with it and anew after a restart, and stands while the turn waits for a person.
"""

from treadle.engine.core import files, goal
from treadle.engine.core.machine_effects import (
    AskHooks,
    Cancel,
    Effect,
    Notify,
    Respond,
    StartTimer,
    Transition,
    end_work,
    timer_work,
    turn_timer,
)
from treadle.engine.core.state import (
    AwaitingBudget,
    AwaitingHooks,
    Compacting,
    Idle,
    State,
    TurnState,
    is_beside,
    phase,
    replace,
    with_model,
)
from treadle.protocol.checkpoints import MOST_NAMED
from treadle.protocol.events import HOOK, Event, Resumed, TurnMayEnd
from treadle.protocol.goals import GoalChecked
from treadle.protocol.models import ModelError
from treadle.protocol.notifications import BY_HOOK, CallStatus, ModelChanged, Phase, TurnEnded, TurnOutcome, TurnStop

_WORKS = (CallStatus.JUDGING, CallStatus.STARTING, CallStatus.RUNNING)


def answered(state: State, text: str, *, completed: bool = False) -> Transition:
    """End the turn with an answer, unless hooks are to look at it first: it is still the same turn when they go on."""
    if state.limits.asks_end is not True:
        return end_turn(state, TurnStop.END_TURN, text=text, completed=completed)
    return ask_hooks(replace(state, activity=AwaitingHooks(text=text, completed=completed)))


def ask_hooks(state: State) -> Transition:
    """Have the hooks look at the answer, after a restart once more."""
    held, turn = state.activity, state.turn
    assert isinstance(held, AwaitingHooks)  # noqa: S101 - whoever asks has an answer
    assert turn is not None  # noqa: S101 - only a turn has one
    return state, [AskHooks(turn=turn.number, text=held.text, again=HOOK in turn.sources)]


def may_end(state: State, data: TurnMayEnd) -> Transition:
    """End the turn as the hooks let it."""
    held = state.activity
    assert isinstance(held, AwaitingHooks)  # noqa: S101 - `advance` has checked it
    why = f"{BY_HOOK}{data.stop}" if data.stop else ""
    state, effects = end_turn(state, TurnStop.END_TURN, text=held.text, completed=held.completed, why=why)
    if data.stop and goal.is_wanted(state):
        state, more = goal.checked(state, GoalChecked(blocked=True, reason=f"a hook ended the work: {data.stop}"))
        effects += more
    return state, effects


def end_interrupted(state: State) -> Transition:
    """End a turn without a word of the hooks that still look at its answer, which is whole unless time is up."""
    assert state.turn is not None  # noqa: S101 - its answer is looked at
    cancel: list[Effect] = [Cancel(work=end_work(state.turn.number))]
    if state.stopping is not None:
        return replace(state, cancelling=True, activity=Idle()), cancel
    state, effects = may_end(state, TurnMayEnd())
    return state, [*cancel, *effects]


def end_turn(
    state: State,
    stop: TurnStop,
    *,
    text: str | None = None,
    completed: bool = False,
    error: ModelError | None = None,
    why: str = "",
) -> Transition:
    """End the turn and give its outcome to whoever asked. Results that the model has not read yet stay."""
    turn = state.turn
    assert turn is not None  # noqa: S101 - only a turn ends
    outcome = TurnOutcome(
        stop=stop,
        text=(turn.presented or turn.text) if text is None else text,
        completed=completed,
        error=error,
        steps=turn.steps,
        usage=turn.usage,
        cost=turn.cost,
        changes=turn.changes,
        denied=turn.denied,
        refused=state.refused,
        why=why,
        exact=_is_exact(state, turn),
        unseen=state.unseen,
    )
    effects: list[Effect] = []
    if state.limits.max_seconds is not None:
        effects.append(Cancel(work=timer_work(turn_timer(turn.number))))
    if state.model.replaced is not None:
        back = state.model.replaced
        state = with_model(state, back)
        state = replace(state, model=replace(state.model, replaced=None))
        effects.append(Notify(notification=ModelChanged(model=back.model, why="the next turn tries it again")))
    unread = (*state.unread, *(call.call.id for call in state.calls))
    state, more = goal.turn_ended(state, turn, stop, why or ("" if error is None else error.message))
    effects += more
    state = replace(
        state,
        turn=None,
        reply=None,
        activity=Idle(),
        cancelling=False,
        stopping=None,
        stopped_by="",
        questions=tuple(filter(is_beside, state.questions)),
        calls=(),
        unread=unread,
        queue=tuple(one for one in state.queue if one.source != HOOK),  # its words were for this turn
        money=replace(state.money, terms=None),
        made=turn.steps - turn.more if state.limits.turns_together is True else 0,
    )
    ended: list[Effect] = [
        Notify(notification=TurnEnded(outcome=outcome)),
        Respond(sources=turn.sources, outcome=outcome),
    ]
    return state, effects + ended


def turn_by_now(state: State) -> TurnOutcome | None:
    """Say what a turn has come to that is left as it is; None where none goes on.

    What a reply that is being written and subagents at work have cost is not known: the sum is an estimate then.
    """
    turn = state.turn
    if turn is None:
        return None
    open_bill = phase(state) is Phase.AWAITING_LLM_RESPONSE or bool(state.children)
    return TurnOutcome(
        stop=TurnStop.CANCELLED,
        text=turn.presented or turn.text,
        steps=turn.steps,
        usage=replace(turn.usage, estimated=turn.usage.estimated or open_bill),
        cost=turn.cost,
        changes=turn.changes,
        denied=turn.denied,
        refused=state.refused,
        exact=_is_exact(state, turn),
        unseen=state.unseen,
    )


def _is_exact(state: State, turn: TurnState) -> bool:
    """Whether the changes of a turn are all that it changed, as the last checkpoint says."""
    return files.changes_are_known(state) and len(turn.changes) < MOST_NAMED and not state.unseen


def counts_anew(state: State) -> State:
    """Bound what is done in a session that is opened again by itself: a turn that goes on has only its own steps."""
    turn = state.turn
    if turn is not None and state.made:
        state = replace(state, turn=replace(turn, more=turn.more + state.made))
    return replace(state, made=0)


def keep_time(before: State, state: State, event: Event) -> Transition:
    """Bound the time of the turn after this event, by `limits.max_seconds`."""
    turn, seconds, at = state.turn, state.limits.max_seconds, event.at
    together = state.limits.turns_together is True and not isinstance(event.data, Resumed)
    if turn is None or seconds is None:
        return _forgotten(state, at, keeps=together and seconds is not None), []
    timer = turn_timer(turn.number)
    stands = state.limits.counts_work is True and waits_for_person(state)
    if before.turns != state.turns or isinstance(event.data, Resumed):
        if together and state.since:
            seconds = _left(state, seconds, at)
        elif state.limits.counts_work is True:
            state = replace(state, since=at, asked_at=at if stands else 0)
        return state, [] if stands or state.cancelling else [StartTimer(timer=timer, seconds=seconds)]
    effects: list[Effect] = []
    if stands and not state.asked_at and state.since:
        state, effects = replace(state, asked_at=at), [Cancel(work=timer_work(timer))]
    elif state.asked_at and not stands:
        state = _gone_on(state, at)
        if not state.cancelling:
            effects = [StartTimer(timer=timer, seconds=_left(state, seconds, at))]
    return state, effects


def waits_for_person(state: State) -> bool:
    """Whether the turn goes on only when a person answers: none of its own work goes on meanwhile.

    Where a subagent asks, those beside it may work: their own limits bound them.
    """
    if not state.questions or not isinstance(state.activity, Idle | AwaitingBudget | Compacting):
        return False
    asked_by = {question.child for question in state.questions if question.child}
    asking = {question.call_id for question in state.questions if question.call_id}
    asking |= {child.started.call_id for child in state.children if child.started.session_id in asked_by}
    if any(call.status in _WORKS and call.call.id not in asking for call in state.calls):
        return False
    if not all(map(is_beside, state.questions)):
        return True
    return isinstance(state.activity, Idle) and any(c.call.id in asking and not c.finished for c in state.calls)


def _gone_on(state: State, at: int) -> State:
    """Let the time go on that stood since a question came."""
    state = goal.waited(state, state.asked_at, at)
    return replace(state, since=state.since + max(0, at - state.asked_at), asked_at=0)


def _left(state: State, seconds: float, at: int) -> float:
    return max(0.0, seconds - (at - state.since) / 1000)


def _forgotten(state: State, at: int, *, keeps: bool) -> State:
    if state.asked_at:
        state = _gone_on(state, at)
    return replace(state, since=0) if state.since and not keeps else state
