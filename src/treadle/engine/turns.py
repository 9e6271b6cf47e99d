"""What comes next: the settling of the state after each event, from the start of a turn to its end."""

from treadle.engine import checklist, texts
from treadle.engine.calls import Moved, schedule
from treadle.engine.effects import Assemble, Cancel, Effect, Notify, Respond, StartTimer, timer_work, turn_timer
from treadle.engine.state import Assembling, AwaitingReply, Idle, State, Turn, Waiting, replace, with_model
from treadle.protocol.events import Delivery
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelError, ReplyStop, ToolProtocol
from treadle.protocol.notifications import (
    CallStatus,
    ModelChanged,
    PromptDelivered,
    QuestionAsked,
    QueueChanged,
    QueuedPrompt,
    TurnEnded,
    TurnOutcome,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import Question, QuestionKind
from treadle.protocol.tools import Flow, Outcome


def settle(state: State) -> Moved:
    """Go as far as the state allows without another event."""
    effects: list[Effect] = []
    if state.cancelling:
        if in_flight(state):
            return state, effects
        state, effects = end_turn(state, state.stopping or TurnStop.CANCELLED, why=_why_stopped(state))
    if state.turn is not None:
        state, more = _go_on(state)
        effects += more
    if state.turn is None and state.queue:
        state, more = _start_turn(state)
        effects += more
    return state, effects


def _why_stopped(state: State) -> str:
    return f"the turn's limit of {state.limits.max_seconds:g} s" if state.stopping is TurnStop.TIME else ""


def in_flight(state: State) -> bool:
    """Whether work goes on that will report even when cancelled."""
    running = any(call.status is CallStatus.RUNNING for call in state.calls)
    return running or isinstance(state.activity, AwaitingReply)


def _go_on(state: State) -> Moved:
    if not isinstance(state.activity, Idle | AwaitingReply):
        return state, []
    state, effects = schedule(state)
    if state.reply is None or state.questions or not all(call.finished for call in state.calls):
        return state, effects
    state, more = _after_step(state, state.reply)
    return state, effects + more


def _after_step(state: State, reply: ReplyStop) -> Moved:
    ending = next(
        (
            call
            for call in state.calls
            if call.traits.flow is Flow.END_TURN and call.result is not None and call.result.outcome is Outcome.OK
        ),
        None,
    )
    if ending is not None and ending.result is not None:
        text = "".join(block.text for block in ending.result.content if isinstance(block, Text))
        return end_turn(state, TurnStop.END_TURN, text=text, completed=True)
    if not state.calls:
        if reply is ReplyStop.REFUSAL:
            return end_turn(state, TurnStop.REFUSAL)
        if reply is ReplyStop.MAX_TOKENS:
            state = _remind(state, texts.CUT_REPLY)
        elif state.tool_protocol is ToolProtocol.XML:
            state = _remind(state, texts.NO_TOOL_USED)
        else:
            return end_turn(state, TurnStop.END_TURN)
    if state.looping:
        return _ask_guidance(state, TurnStop.LOOP, texts.in_a_loop(_last_name(state)))
    if state.mistakes >= state.limits.max_mistakes:
        return _ask_guidance(state, TurnStop.MISTAKES, texts.too_many_mistakes(state.mistakes))
    return begin_step(state)


def _remind(state: State, note: str) -> State:
    return replace(state, notes=(*state.notes, note), mistakes=state.mistakes + 1)


def _last_name(state: State) -> str:
    return state.calls[-1].call.name if state.calls else "the same reply"


def _ask_guidance(state: State, stop: TurnStop, text: str) -> Moved:
    if not state.user_present:
        return end_turn(state, stop)
    question = Question(id=f"q{state.seq}", kind=QuestionKind.GUIDANCE, text=text)
    state = replace(state, questions=(*state.questions, question))
    return state, [Notify(notification=QuestionAsked(question=question))]


def end_unguided(state: State) -> Moved:
    """End a turn that waits for guidance when nobody is there any more to give it."""
    return end_turn(state, TurnStop.LOOP if state.looping else TurnStop.MISTAKES)


def guided(state: State, text: str) -> Moved:
    """Take the user's guidance to the model and count anew."""
    note = texts.guidance(text)
    state = replace(state, notes=(*state.notes, note), mistakes=0, repeats=(), looping=False)
    return begin_step(state)


def _start_turn(state: State) -> Moved:
    first = state.queue[0]
    turn = Turn(number=state.turns + 1, sources=(first.source,))
    state = replace(state, turn=turn, turns=turn.number, mistakes=0, repeats=(), looping=False, unasked=0)
    state, effects = deliver(state, (first,))
    state, more = begin_step(state)
    return state, [Notify(notification=TurnStarted(turn=turn.number)), *bound_time(state), *effects, *more]


def bound_time(state: State) -> list[Effect]:
    """Start the timer that bounds the turn, if there is a bound."""
    seconds = state.limits.max_seconds
    if state.turn is None or seconds is None:
        return []
    return [StartTimer(timer=turn_timer(state.turn.number), seconds=seconds)]


def deliver(state: State, taken: tuple[Waiting, ...]) -> Moved:
    """Move prompts from the queue into the next user message; their sources get the turn's answer."""
    if not taken or state.turn is None:
        return state, []
    ids = {waiting.prompt.id for waiting in taken}
    queue = tuple(waiting for waiting in state.queue if waiting.prompt.id not in ids)
    sources = tuple(dict.fromkeys((*state.turn.sources, *(waiting.source for waiting in taken))))
    state = replace(
        state,
        queue=queue,
        turn=replace(state.turn, sources=sources),
        delivering=(*state.delivering, *(waiting.prompt for waiting in taken)),
    )
    told: list[Effect] = [
        Notify(notification=PromptDelivered(prompt_id=waiting.prompt.id, content=waiting.prompt.content))
        for waiting in taken
    ]
    return state, [*told, queue_changed(state)]


def queue_changed(state: State) -> Notify:
    """Tell what waits."""
    waiting = tuple(QueuedPrompt(id=one.prompt.id, content=one.prompt.content) for one in state.queue)
    return Notify(notification=QueueChanged(prompts=waiting))


def begin_step(state: State) -> Moved:
    """Start the next model call of the turn, unless the limit is reached."""
    assert state.turn is not None  # noqa: S101 - a step belongs to a turn
    limit = state.limits.max_steps
    if limit is not None and state.turn.steps >= limit:
        return end_turn(state, TurnStop.MAX_TURN_REQUESTS)
    steered = tuple(waiting for waiting in state.queue if waiting.prompt.delivery is Delivery.STEER)
    state, effects = deliver(state, steered)
    assert state.turn is not None  # noqa: S101
    step = state.step + 1
    state = replace(
        checklist.begin_step(state),
        step=step,
        reply=None,
        compacted=False,
        terms=None,
        activity=Assembling(step=step),
        turn=replace(state.turn, steps=state.turn.steps + 1),
    )
    return state, [*effects, Assemble(step=step)]


def end_turn(
    state: State,
    stop: TurnStop,
    *,
    text: str | None = None,
    completed: bool = False,
    error: ModelError | None = None,
    why: str = "",
) -> Moved:
    """End the turn and give its outcome to whoever asked. Results that the model has not read yet stay."""
    turn = state.turn
    assert turn is not None  # noqa: S101 - only a turn ends
    outcome = TurnOutcome(
        stop=stop,
        text=turn.text if text is None else text,
        completed=completed,
        error=error,
        steps=turn.steps,
        usage=turn.usage,
        cost=turn.cost,
        changes=turn.changes,
        denied=turn.denied,
        why=why,
    )
    effects: list[Effect] = []
    if state.limits.max_seconds is not None:
        effects.append(Cancel(work=timer_work(turn_timer(turn.number))))
    if state.replaced is not None:
        back = state.replaced
        state = replace(with_model(state, back), replaced=None)
        effects.append(Notify(notification=ModelChanged(model=back.model, why="the next turn tries it again")))
    state = replace(
        state, turn=None, reply=None, activity=Idle(), cancelling=False, stopping=None, questions=(), terms=None
    )
    ended: list[Effect] = [
        Notify(notification=TurnEnded(outcome=outcome)),
        Respond(sources=turn.sources, outcome=outcome),
    ]
    return state, effects + ended
