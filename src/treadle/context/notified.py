"""What surfaces were notified of, read off the log: a session's past as a person saw it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from treadle.protocol.attach import Stamped
from treadle.protocol.checkpoints import CheckpointTaken, OwnTotal, Restore, Restored, Rewound
from treadle.protocol.children import LEFT_WITH_ORIGINAL, ChildEnded, ChildOutcome, ChildStarted
from treadle.protocol.events import (
    FORKED,
    HOOK,
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    ContextReady,
    EditQueued,
    Event,
    EventData,
    Interrupt,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    Resumed,
    SetMode,
    SetModel,
    Source,
    SummaryWritten,
    TimerFired,
)
from treadle.protocol.goals import GOAL_INTERRUPTED, GoalChecked, GoalState, GoalStatus, SetGoal
from treadle.protocol.messages import origins
from treadle.protocol.models import ErrorKind, ModelError
from treadle.protocol.notifications import (
    NOT_THE_USER,
    CallChanged,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    ConversationRewound,
    FilesRestored,
    GoalChanged,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notification,
    OwnWorkChanged,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    ReplyDropped,
    ResultPresented,
    RetryScheduled,
    TurnEnded,
    TurnResumed,
    TurnStarted,
    child_changed,
)
from treadle.protocol.permissions import CallAsked, Question, QuestionKind
from treadle.protocol.sealed import (
    WRITTEN_SUMMARY,
    ChecklistUpdated,
    ModelReplaced,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    Sealed,
    SideAnswered,
    SideAsked,
    StateSealed,
    TurnSettled,
    used_outside,
)
from treadle.protocol.tools import Access, CallResult, Flow, Preview, ToolTraits

_SAID = get_args(Sealed)


class _Call(Struct):
    """What is known of a call: the last notification of it, and what a question about it shows."""

    changed: CallChanged
    traits: ToolTraits
    accesses: tuple[Access, ...] = ()
    first: CallResult | None = None


class NotificationReader:
    """Follows a log, event by event. `notifications` gives the notifications; the live ones are not in any log."""

    def __init__(self) -> None:
        self._stamped: list[Stamped] = []
        self._seq = self._at = 0
        self._restoring: Restore | None = None
        self._retrying = False
        self._failed = False
        self._prompts: dict[str, Prompt] = {}
        self._others: dict[str, str] = {}
        self._calls: dict[str, _Call] = {}
        self._questions: dict[str, str] = {}
        self._beside: set[str] = set()
        self._children: dict[str, ChildStarted] = {}
        self._turn = 0
        self._working = False
        self._error: ModelError | None = None
        self._held: CallChanged | None = None
        self._held_since = 0, 0
        self._goal: GoalStatus | None = None

    def stamped(self) -> list[Stamped]:
        """Give what surfaces were notified of so far, and forget it."""
        self._release()
        stamped, self._stamped = self._stamped, []
        return stamped

    def take(self, event: Event) -> None:
        """Read one event."""
        data = event.data
        self._seq, self._at = event.seq, event.at
        if isinstance(data, _SAID):
            self._tell(self._said(data))
            if event.source == FORKED and isinstance(data, TurnSettled | StateSealed):
                self._tell(self._left_with_original(data.state))
            return
        if self._held is not None:
            self._release()
        self._tell(self._happened(data, event.source))

    def _tell(self, notifications: Iterable[Notification]) -> None:
        self._stamped += [Stamped(notification=one, seq=self._seq, at=self._at) for one in notifications]

    def _release(self) -> None:
        """Tell the outcome of a call after it is clear that the machine made no other one of it."""
        if self._held is not None:
            seq, at = self._held_since
            self._stamped.append(Stamped(notification=self._held, seq=seq, at=at))
            self._held = None

    def _happened(self, data: EventData, source: Source) -> Iterator[Notification]:  # noqa: C901, PLR0912, PLR0915 - a line each
        self._failed = isinstance(data, ReplyFailed)
        match data:
            case ContextReady():
                yield PhaseChanged(phase=Phase.AWAITING_LLM_RESPONSE)
            case TimerFired() if self._retrying:
                self._retrying = False
                yield PhaseChanged(phase=Phase.AWAITING_LLM_RESPONSE)
            case CallProposed() as proposed:
                yield self._proposed(proposed)
            case CallJudged() as judged:
                yield from self._judged(judged)
            case CallStarted(call_id=call_id):
                yield from self._moved(call_id, CallStatus.RUNNING)
            case CallFinished(call_id=call_id, result=result):
                self._hold(call_id, result)
            case ReplyFinished() as reply:
                yield MessageDone(step=reply.step, message=reply.message, usage=reply.usage, cost=reply.cost)
            case Prompt(id=prompt_id) as prompt:
                self._prompts[prompt_id] = prompt
                self._others[prompt_id] = source.name if source.kind in NOT_THE_USER else ""
            case EditQueued(prompt_id=prompt_id) as edit if edit.content and prompt_id in self._prompts:
                self._prompts[prompt_id] = edit.edited(self._prompts[prompt_id])
            case CheckpointTaken(total=OwnTotal() as total) as taken:
                yield OwnWorkChanged(total=total, restored=taken.recounted)
            case ReplyFailed(error=error, usage=usage, cost=cost, partial=partial, left=left):
                self._error = error
                yield ReplyDropped(usage=usage, cost=cost, kept=partial, left=left)
                if error.kind is ErrorKind.CONTEXT_TOO_LONG:
                    yield PhaseChanged(phase=Phase.COMPACTING)
            case SetGoal() | GoalChecked() as said:
                yield self._of_goal(said)
            case SideAsked() as asked:
                yield from asked.notices()
            case SideAnswered() as answered:
                yield from answered.notices(working=self._working)
            case SummaryWritten(usage=usage, cost=cost) if usage.context_tokens and not self._working:
                yield used_outside(WRITTEN_SUMMARY, usage, cost)
            case Compacted() as made if made.dropped or made.shortened:
                yield ContextCompacted(dropped=made.dropped, summary=made.summary, before=made.before, after=made.after)
            case SetMode(mode=mode, choice=choice):
                yield ModeChanged(mode=mode)
                if choice is not None:
                    yield ModelChanged(model=choice.model)
            case SetModel(choice=choice):
                yield ModelChanged(model=choice.model)
            case Answer() as answer:
                yield from self._answered(answer, source)
            case Interrupt():
                if self._working and source.kind != HOOK.kind:
                    yield from self._goal_stands(GoalState.PAUSED, GOAL_INTERRUPTED)
                yield from self._closed(self._questions)
            case ChildStarted(session_id=session_id) as started:
                self._children[session_id] = started
                yield child_changed(started)
            case ChildEnded(session_id=session_id) as ended if session_id in self._children:
                yield child_changed(self._children.pop(session_id), ended)
            case CallAsked(question_id=question_id, text="", url="") if question_id in self._questions:
                yield from self._closed((question_id,))
            case Restore() as wanted:
                self._restoring = wanted
            case Restored() as restored:
                back = self._restoring is not None and self._restoring.conversation
                yield FilesRestored(restored=restored, conversation=back)
            case Resumed() if self._working:
                yield TurnResumed()
            case Rewound(to=to):
                yield ConversationRewound(to=to)
                if self._goal is not None and self._goal.state is not GoalState.PAUSED:
                    yield self._goal_is(GoalStatus(condition=self._goal.condition, check=self._goal.check))
            case _:
                pass

    def _left_with_original(self, state: Mapping[str, Any]) -> Iterator[Notification]:
        """End what went on in a session where a copy of it begins, which goes on with no more than its `state` has."""
        yield from self._closed(self._questions.keys() - {one["id"] for one in state["questions"]})
        stay = {one["started"]["session_id"] for one in state["children"]}
        for gone in [one for one in self._children if one not in stay]:
            ended = ChildEnded(session_id=gone, outcome=ChildOutcome.INTERRUPTED, why=LEFT_WITH_ORIGINAL)
            yield child_changed(self._children.pop(gone), ended)

    def _of_goal(self, data: SetGoal | GoalChecked) -> GoalChanged:
        match data, self._goal:
            case SetGoal(condition=condition, check=check, paused=paused), _:
                stands = GoalState.PAUSED if paused else GoalState.ACTIVE
                return self._goal_is(GoalStatus(condition=condition, check=check, state=stands) if condition else None)
            case GoalChecked() as checked, GoalStatus() as goal:
                return self._goal_is(checked.changed(goal))
            case _:
                return self._goal_is(None)

    def _goal_stands(self, stands: GoalState, reason: str) -> Iterator[GoalChanged]:
        """Say of a goal that is worked on that it is no longer."""
        if self._goal is not None and self._goal.state is GoalState.ACTIVE:
            yield self._goal_is(replace(self._goal, state=stands, reason=reason, by=None))

    def _goal_is(self, goal: GoalStatus | None) -> GoalChanged:
        self._goal = goal
        return GoalChanged(goal=goal)

    def _proposed(self, data: CallProposed) -> CallChanged:
        traits = data.traits
        changed = CallChanged(call=data.call, kind=traits.kind, flow=traits.flow, status=CallStatus.PROPOSED)
        self._calls[data.call.id] = _Call(changed=changed, traits=traits)
        return changed

    def _said(self, data: Sealed) -> Iterator[Notification]:
        match data:
            case ResultMade(call_id=call_id, result=result):
                if self._held is not None and self._held.call.id != call_id:
                    self._release()
                self._hold(call_id, result)
                yield from self._closed(question for question, about in self._questions.items() if about == call_id)
            case QuestionPut(question=question):
                yield from self._asked(question)
                if self._failed and question.kind is QuestionKind.BUDGET:  # whether to wait for a limit's reset
                    yield PhaseChanged(phase=Phase.AWAITING_USER_CONFIRMATION)
            case _:
                self._release()
                yield from self._said_of_turn(data)

    def _delivered(self, prompt_id: str) -> PromptDelivered:
        prompt = self._prompts.pop(prompt_id, None)
        if prompt is None:
            return PromptDelivered(prompt_id=prompt_id, content=())
        by = self._others.pop(prompt_id, "")
        return PromptDelivered(prompt_id=prompt_id, content=prompt.content, enclosed=origins(prompt.enclosed), by=by)

    def _said_of_turn(self, data: Sealed) -> Iterator[Notification]:
        match data:
            case PromptsDelivered(turn=turn, prompt_ids=prompt_ids):
                if turn != self._turn:
                    self._turn = turn
                    self._working = True
                    yield TurnStarted(turn=turn)
                for prompt_id in prompt_ids:
                    yield self._delivered(prompt_id)
            case RetryPlanned(attempt=attempt, seconds=seconds, most=most, until=until) if self._error is not None:
                self._retrying = True
                yield RetryScheduled(attempt=attempt, seconds=seconds, error=self._error, most=most, until=until)
                yield PhaseChanged(phase=Phase.WAITING_TO_RETRY)
            case ModelReplaced(model=model, why=why):
                yield ModelChanged(model=model, why=why)
            case ChecklistUpdated(text=text):
                yield ChecklistChanged(text=text)
            case TurnSettled(outcome=outcome, state=state):
                if (goal := state.get("goal")) and goal["stands"] == GoalState.BLOCKED:
                    yield from self._goal_stands(GoalState.BLOCKED, goal["reason"])
                yield from self._closed(self._questions.keys() - self._beside)
                self._calls.clear()
                self._working = False
                yield TurnEnded(outcome=outcome)
            case _:
                return

    def _judged(self, data: CallJudged) -> Iterator[Notification]:
        call = self._calls.get(data.call_id)
        if call is None:
            return
        call.changed = replace(call.changed, decision=data.decision, preview=data.preview)
        call.accesses = data.accesses
        if call.traits.flow is Flow.END_TURN and data.preview.result:
            yield ResultPresented(text=data.preview.result)

    def _moved(self, call_id: str, status: CallStatus) -> Iterator[Notification]:
        call = self._calls.get(call_id)
        if call is not None:
            call.changed = replace(call.changed, status=status)
            yield call.changed

    def _hold(self, call_id: str, result: CallResult) -> None:
        """Keep the outcome of a call until it is clear that the machine made no other one of it."""
        call = self._calls.get(call_id)
        self._held, self._held_since = None, (self._seq, self._at)
        if call is not None:
            call.first = result
            self._held = replace(call.changed, status=CallStatus.FINISHED, result=result)

    def _asked(self, put: Question) -> Iterator[Notification]:
        """Tell of a question, with what it shows of its call; the call has ended only for the time being."""
        if self._held is not None and self._held.call.id == put.call_id:
            self._held = None
        self._release()
        self._questions[put.id] = put.call_id
        if put.kind is QuestionKind.ELICITATION or put.child:  # what asks in the background outlives the turn
            self._beside.add(put.id)
        call = self._calls.get(put.call_id)
        if call is not None:
            if put.decision is not None:
                call.changed = replace(call.changed, decision=put.decision)
            yield from self._moved(put.call_id, CallStatus.ASKING)
            put = _with_call(put, call)
        yield QuestionAsked(question=put)

    def _answered(self, answer: Answer, source: Source) -> Iterator[Notification]:
        call_id = self._questions.pop(answer.question_id, None)
        if call_id is None:
            return
        call = self._calls.get(call_id)
        if call is not None and answer.arguments is not None:
            call.changed = replace(call.changed, call=replace(call.changed.call, arguments=answer.arguments))
        yield QuestionClosed(
            question_id=answer.question_id,
            option=answer.option,
            scope=answer.scope,
            by=source.name,
            text=answer.text,
            amended=answer.arguments is not None,
        )

    def _closed(self, question_ids: Iterable[str]) -> Iterator[Notification]:
        for question_id in list(question_ids):
            del self._questions[question_id]
            self._beside.discard(question_id)
            yield QuestionClosed(question_id=question_id)


def _with_call(put: Question, call: _Call) -> Question:
    if put.kind is not QuestionKind.PERMISSION:
        return put
    put = replace(put, decision=put.decision or call.changed.decision, accesses=call.accesses)
    if call.first is None:
        return replace(put, preview=call.changed.preview, arguments=call.changed.call.arguments)
    if put.denial is not None or call.first.copy is None:
        return replace(put, preview=call.changed.preview)
    copy = call.first.copy
    return replace(put, preview=Preview(title=put.text, text=copy.diff, is_diff=True), copy=copy)


def stamped_notifications(events: Iterable[Event]) -> list[Stamped]:
    """Read what surfaces were notified of off a whole log."""
    reader = NotificationReader()
    for event in events:
        reader.take(event)
    return reader.stamped()


def notifications(events: Iterable[Event]) -> Iterator[Notification]:
    """Read the same without numbers and times."""
    return (one.notification for one in stamped_notifications(events))
