"""What comes next: the settling of the state after each event, from the start of a turn to its end."""

from collections.abc import Sequence

from msgspec import UNSET

from treadle.engine.core import budgets, checklist, files, goal, guards, room, texts
from treadle.engine.core.calls import schedule
from treadle.engine.core.interruptions import reports_its_end
from treadle.engine.core.machine_effects import (
    Assemble,
    Effect,
    Notify,
    Transition,
)
from treadle.engine.core.state import (
    Assembling,
    AwaitingHooks,
    AwaitingReply,
    CallState,
    Guard,
    Idle,
    State,
    TurnState,
    Waiting,
    guarded,
    is_beside,
    replace,
    tainted_by,
    with_enclosed,
    with_note,
)
from treadle.engine.core.turn_end import answered, end_turn
from treadle.protocol.events import Delivery, EditQueued, MoveQueued
from treadle.protocol.messages import Enclosure, Text, origins, text_of
from treadle.protocol.models import ReplyStop, ToolProtocol
from treadle.protocol.notifications import (
    NOT_THE_USER,
    PromptDelivered,
    QuestionAsked,
    QueueChanged,
    QueuedPrompt,
    TurnStarted,
    TurnStop,
)
from treadle.protocol.permissions import Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import Flow, Outcome

_CONDENSING = (Flow.CONDENSE, Flow.NEW_TASK)

_FEW_STEPS = 3
"""Steps before the limit at which the model is told."""

_MOST_RETURNS = 5
"""Times in a row that hooks send an answer back with no call in between; the next time the turn ends."""


def settle(state: State) -> Transition:
    """Go as far as the state allows without another event."""
    effects: list[Effect] = []
    if state.cancelling:
        if in_flight(state):
            return state, effects
        state, effects = end_turn(state, state.stopping or TurnStop.CANCELLED, why=_why_stopped(state))
    if state.turn is not None:
        state, more = _go_on(state)
        effects += more
    if state.turn is None and state.space.wanted is not None and isinstance(state.activity, Idle):
        state, more = room.begin_wanted(state)
        effects += more
    if state.turn is None and state.queue and isinstance(state.activity, Idle) and state.files.restoring is None:
        state, more = _start_turn(state)
        effects += more
    state, more = files.after_change(state)
    return state, [*more, *effects]


def _why_stopped(state: State) -> str:
    if state.stopping is None:
        return state.stopped_by
    if state.stopping is not TurnStop.TIME or state.limits.max_seconds is None:
        return ""
    return f"the {'run' if state.made else 'turn'}'s limit of {state.limits.max_seconds:g} s"


def in_flight(state: State) -> bool:
    """Whether work goes on that will report even when cancelled."""
    running = any(reports_its_end(state, call) for call in state.calls)
    return running or isinstance(state.activity, AwaitingReply)


def _go_on(state: State) -> Transition:
    if not isinstance(state.activity, Idle | AwaitingReply):
        return state, []
    state, effects = schedule(state)
    # What a command in the background asks holds nothing up.
    held = not all(map(is_beside, state.questions))
    if state.reply is None or held or not all(call.finished for call in state.calls):
        return state, effects
    state, more = _after_step(state, state.reply)
    return state, effects + more


def _after_step(state: State, reply: ReplyStop) -> Transition:
    ending = next((call for call in state.calls if call.traits.flow is Flow.END_TURN and _is_ok(call)), None)
    if ending is not None and ending.result is not None:
        text = "".join(block.text for block in ending.result.content if isinstance(block, Text))
        return answered(state, text, completed=True)
    if not state.calls:
        return _after_plain_reply(state, reply)
    condensed = (call for call in state.calls if call.traits.flow in _CONDENSING and _is_ok(call))
    for call in condensed:
        state = room.condense(state, call)
    return go_on(guards.after_reply(state))


def _is_ok(call: CallState) -> bool:
    return call.result is not None and call.result.outcome is Outcome.OK


def _after_plain_reply(state: State, reply: ReplyStop) -> Transition:
    """Go on after a reply without a call: it is the answer, or the model has to be told how to go on."""
    turn = state.turn
    assert turn is not None  # noqa: S101 - a reply belongs to a turn
    if reply is ReplyStop.REFUSAL:
        return end_turn(state, TurnStop.REFUSAL)
    if reply is ReplyStop.MAX_TOKENS:
        return mistaken(state, texts.CUT_REPLY)
    if state.hint:
        return mistaken(state, state.hint)
    goes_on = _is_unfinished(state)
    if state.choice.tool_protocol is ToolProtocol.XML and (state.limits.plain_answer_ends is UNSET or goes_on):
        return mistaken(state, texts.NO_TOOL_USED)
    if goes_on and turn.reminders < state.limits.reminders:
        turn = replace(turn, reminders=turn.reminders + 1, held_back=turn.text)
        return begin_step(with_note(replace(state, turn=turn), texts.UNFINISHED))
    answer = turn.text if turn.held_back in turn.text else f"{turn.held_back}\n\n{turn.text}"
    return answered(state, answer)


def _is_unfinished(state: State) -> bool:
    """Whether work is going on, so that a plain answer may be no more than a word in the middle of it."""
    turn = state.turn
    if turn is None or state.mode is Mode.PLAN:
        return False
    goes_on = turn.worked if state.limits.plain_answer_ends is UNSET else guards.announces_step(turn.text)
    return goes_on or checklist.is_open(state)


def mistaken(state: State, note: str) -> Transition:
    """Tell the model what was wrong with its reply, and count it."""
    return go_on(guarded(with_note(state, note), mistakes=state.guard.mistakes + 1))


def go_on(state: State) -> Transition:
    """Make the next step, unless the model does not get on by itself."""
    if state.turn is not None and state.turn.held_back:
        state = replace(state, turn=replace(state.turn, held_back=""))
    if state.guard.looping:
        return _ask_guidance(state, TurnStop.LOOP, texts.in_a_loop(_last_name(state)))
    if state.guard.mistakes >= state.limits.max_mistakes:
        return _ask_guidance(state, TurnStop.MISTAKES, texts.too_many_mistakes(state.guard.mistakes))
    return begin_step(state)


def _last_name(state: State) -> str:
    return state.calls[-1].call.name if state.calls else "the same reply"


def _ask_guidance(state: State, stop: TurnStop, text: str) -> Transition:
    if not state.user_present:
        return end_turn(state, stop)
    question = Question(id=f"q{state.seq}", kind=QuestionKind.GUIDANCE, text=text)
    state = replace(state, questions=(*state.questions, question))
    return state, [Notify(notification=QuestionAsked(question=question))]


def end_unguided(state: State) -> Transition:
    """End a turn that waits for guidance when nobody is there any more to give it."""
    return end_turn(state, TurnStop.LOOP if state.guard.looping else TurnStop.MISTAKES)


def guided(state: State, text: str, enclosed: Sequence[Enclosure] = ()) -> Transition:
    """Take the user's guidance to the model and count anew."""
    state = with_enclosed(with_note(state, texts.guidance(text)), enclosed)
    state = guarded(state, mistakes=0, recent=(), polls=0, looping=False)
    return begin_step(state)


def _start_turn(state: State) -> Transition:
    first = state.queue[0]
    turn = TurnState(number=state.turns + 1, sources=(first.source,), changes=state.hooked)
    state = goal.begun(
        replace(state, turn=turn, turns=turn.number, guard=Guard(), unseen=(), hooked=(), cut="", returns=0, refused=0),
        first.source,
    )
    if state.made:
        state = replace(state, turn=replace(turn, more=-state.made))
    state = budgets.bill_unbilled(state)
    state, effects = deliver(state, (first,))
    state, more = begin_step(state)
    return state, [Notify(notification=TurnStarted(turn=turn.number)), *effects, *more]


def deliver(state: State, taken: tuple[Waiting, ...]) -> Transition:
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
        cut="",
        delivering=(*state.delivering, *(waiting.prompt for waiting in taken)),
    )
    state = tainted_by(state, (enclosure for waiting in taken for enclosure in waiting.prompt.enclosed))
    for waiting in taken:
        if waiting.source.kind in NOT_THE_USER:
            state = with_note(state, texts.came_from(waiting.source, text_of(waiting.prompt.content)))
    notices: list[Effect] = [
        Notify(
            notification=PromptDelivered(
                prompt_id=waiting.prompt.id,
                content=waiting.prompt.content,
                enclosed=origins(waiting.prompt.enclosed),
                by=waiting.source.name if waiting.source.kind in NOT_THE_USER else "",
            )
        )
        for waiting in taken
    ]
    return state, [*notices, queue_changed(state)]


def queue_changed(state: State) -> Notify:
    """Tell what waits."""
    return Notify(notification=QueueChanged(prompts=queued(state.queue), held=queued(state.held)))


def edit_queue(state: State, data: EditQueued) -> Transition:
    """Change a prompt that waits or is held; without content it is dropped."""

    def edited(prompts: tuple[Waiting, ...]) -> tuple[Waiting, ...]:
        return tuple(
            replace(waiting, prompt=data.edited(waiting.prompt)) if waiting.prompt.id == data.prompt_id else waiting
            for waiting in prompts
            if waiting.prompt.id != data.prompt_id or data.content
        )

    state = replace(state, queue=edited(state.queue), held=edited(state.held))
    return state, [queue_changed(state)]


def move_queued(state: State, data: MoveQueued) -> Transition:
    """Let a prompt that waits or is held go at another time, or before others."""
    waits = [waiting.prompt.id for waiting in state.queue]
    moved = next(one for one in (*state.queue, *state.held) if one.prompt.id == data.prompt_id)
    place = waits.index(data.prompt_id) if data.place is None and data.prompt_id in waits else data.place
    queue = [waiting for waiting in state.queue if waiting is not moved]
    sent = replace(moved, prompt=replace(moved.prompt, delivery=data.delivery))
    queue.insert(len(queue) if place is None else max(place, 0), sent)
    held = tuple(waiting for waiting in state.held if waiting is not moved)
    state = replace(state, queue=tuple(queue), held=held)
    return state, [queue_changed(state)]


def hold_queue(state: State) -> Transition:
    """Let what waits wait for the user."""
    if not state.queue:
        return state, []
    state = replace(state, held=(*state.held, *state.queue), queue=())
    return state, [queue_changed(state)]


def queued(prompts: tuple[Waiting, ...]) -> tuple[QueuedPrompt, ...]:
    """Describe prompts that wait."""
    return tuple(
        QueuedPrompt(
            id=one.id, content=one.content, enclosed=origins(one.enclosed), steer=one.delivery is Delivery.STEER
        )
        for one in (waiting.prompt for waiting in prompts)
    )


def begin_step(state: State) -> Transition:
    """Start the next model call of the turn, unless the limit is reached."""
    assert state.turn is not None  # noqa: S101 - a step belongs to a turn
    left = _steps_left(state)
    if left == 0:
        return _ask_for_steps(state)
    steered = tuple(waiting for waiting in state.queue if waiting.prompt.delivery is Delivery.STEER)
    state, effects = deliver(state, steered)
    assert state.turn is not None  # noqa: S101
    step = state.step + 1
    state = replace(
        checklist.count_step(state),
        step=step,
        reply=None,
        hint="",
        space=replace(state.space, compactions=0, exceeded=0),
        money=replace(state.money, terms=None),
        activity=Assembling(step=step),
        turn=replace(state.turn, steps=state.turn.steps + 1, presented=""),
    )
    few = min(_FEW_STEPS, state.limits.max_steps or _FEW_STEPS)
    begins_short = state.made and state.turn is not None and state.turn.steps == 1
    if left is not None and (left == few or (left < few and begins_short)):
        state = with_note(state, texts.steps_left(left))
    if state.space.wanted is None:
        return state, [*effects, Assemble(step=step)]
    state, more = room.begin_wanted(state)
    return state, effects + more


def _steps_left(state: State) -> int | None:
    """Say how many steps the turn may still make; None where nothing bounds them."""
    limit = state.limits.max_steps
    if limit is None or state.turn is None:
        return None
    return max(0, limit + state.turn.more - state.turn.steps)


def _ask_for_steps(state: State) -> Transition:
    limit = state.limits.max_steps
    subagent = state.limits.tree is not UNSET  # who began it decides what becomes of its task
    if subagent or not state.user_present or state.turn is None or limit is None:
        return end_turn(state, TurnStop.MAX_TURN_REQUESTS)
    text, more = texts.more_steps(state.turn.steps), f"{limit} more steps"
    options = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
    question = Question(id=f"q{state.seq}", kind=QuestionKind.BUDGET, text=text, options=options, more=more)
    state = replace(state, questions=(*state.questions, question))
    return state, [Notify(notification=QuestionAsked(question=question))]


def steps_answered(state: State, option: OptionKind) -> Transition:
    """Go on beyond the limit of steps, or end the turn."""
    if option is not OptionKind.ALLOW_ONCE or state.turn is None:
        return end_turn(state, TurnStop.MAX_TURN_REQUESTS)
    more = state.turn.more + (state.limits.max_steps or 0)
    return begin_step(replace(state, turn=replace(state.turn, more=more)))


def sent_back(state: State, prompt: Waiting) -> Transition:
    """Go on with the turn that hooks do not let end: their words are the first that the model reads."""
    held, times = state.activity, state.returns + 1
    assert isinstance(held, AwaitingHooks)  # noqa: S101 - `advance` has checked it
    if times > _MOST_RETURNS:
        return end_turn(state, TurnStop.LOOP, text=held.text, why=texts.sent_back_in_vain(times))
    steered = replace(prompt, prompt=replace(prompt.prompt, delivery=Delivery.STEER))
    return go_on(replace(state, activity=Idle(), queue=(steered, *state.queue), returns=times))
