"""What one event of a log says, in the words of the page."""

from enum import StrEnum
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.reports.checkpoint_list import WHY_TAKEN
from treadle.present.restored_words import files_back
from treadle.present.words import (
    ANSWERS,
    call_name,
    clip_text,
    counted,
    ended,
    note_of,
    plain,
    room_made,
    tokens,
    written_text,
)
from treadle.protocol.checkpoints import CheckpointTaken, Restore, Restored, Rewound
from treadle.protocol.children import ChildEnded, ChildMerges, ChildOutcome, ChildStarted
from treadle.protocol.events import (
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Compacted,
    CompactNow,
    ContextExceeded,
    ContextReady,
    Delivery,
    EditChecklist,
    EditQueued,
    EventData,
    Interrupt,
    MoveQueued,
    Noted,
    OfferChanged,
    Op,
    Pin,
    Prompt,
    ReplyFailed,
    ReplyFinished,
    ReplyPart,
    Resumed,
    RevokeAllowance,
    SessionStarted,
    SetFallback,
    SetLimits,
    SetMode,
    SetModel,
    SetPresence,
    SummaryWritten,
    TimerFired,
    TurnMayEnd,
)
from treadle.protocol.goals import GoalChecked, SetGoal
from treadle.protocol.messages import Text, Thinking
from treadle.protocol.models import money
from treadle.protocol.notifications import ContextCompacted
from treadle.protocol.patterns import regex
from treadle.protocol.permissions import CallAsked, Verdict
from treadle.protocol.reasons import why_decided
from treadle.protocol.sealed import (
    ChecklistUpdated,
    ModelReplaced,
    PromptsDelivered,
    QuestionPut,
    ResultMade,
    RetryPlanned,
    SideAnswered,
    SideAsked,
    StateSealed,
    TurnSettled,
)
from treadle.protocol.tools import Outcome, Preview, ToolKind
from treadle.protocol.usage import Usage

_SHORT, _LONGEST_COMMAND = 240, 100
_COUNTED = regex(r"\(\+(\d+) -(\d+)\)$")
_VERDICTS = {Verdict.ALLOW: "Allowed", Verdict.REQUIRE_USER_CONFIRMATION: "Asked", Verdict.DENY: "Denied"}


class EventTopic(StrEnum):
    """What a person looks for in a timeline."""

    PROMPTS = "prompts"
    CALLS = "calls"
    DECISIONS = "decisions"
    QUESTIONS = "questions"
    MODELS = "models"
    COSTS = "costs"
    COMPACTIONS = "compactions"
    ERRORS = "errors"
    FILES = "files"


class EventWords(Struct, frozen=True, kw_only=True):
    """An event in words: what it is, and what it says, clipped; `warns` is true of what went wrong.

    `to_model` is what was written for the model, which is nothing that is said to the person.
    `call` is the id of its call, `step`, `turn` and `checkpoint` are numbers where they are of one; 0 for none. `cost`
    is in words, empty where nothing was paid.
    """

    title: str
    text: str = ""
    to_model: str = ""
    topics: tuple[EventTopic, ...] = ()
    warns: bool = False
    call: str = ""
    step: int = 0
    turn: int = 0
    checkpoint: int = 0
    cost: str = ""


def words_of_event(data: EventData, *, long: bool = False) -> EventWords:
    """Say what an event is; its text whole with `long`."""
    words = _words(data)
    if long:
        return words
    return replace(words, text=clip_text(words.text, _SHORT), to_model=clip_text(words.to_model, _SHORT))


def _words(data: EventData) -> EventWords:  # noqa: C901, PLR0911, PLR0912 - one line for each event
    match data:
        case PromptsDelivered(turn=turn, prompt_ids=ids):
            title = f"Turn {turn}: {counted(len(ids), 'message')} delivered"
            return EventWords(title=title, turn=turn, topics=(EventTopic.PROMPTS,))
        case SideAsked(question=question):
            return EventWords(title="Asked beside the work", text=question, topics=(EventTopic.PROMPTS,))
        case SideAnswered(question=question, text=text, error=error, usage=usage, cost=cost):
            return EventWords(
                title="Question beside the work",
                text=f"{question}\n{error or text}",
                topics=(EventTopic.PROMPTS, EventTopic.COSTS, *_error(error)),
                warns=bool(error),
                cost=_paid(usage, cost),
            )
        case CallAsked(call_id=call_id, text=text):
            title = "A running call asks" if text else "A question was withdrawn"
            return EventWords(title=title, text=text, call=call_id, topics=(EventTopic.QUESTIONS,))
        case ChildStarted(session_id=session_id, agent=agent, task=task, call_id=call_id):
            return EventWords(
                title=f"Subagent {agent} began", text=f"{session_id}: {task}", call=call_id, topics=(EventTopic.CALLS,)
            )
        case ChildMerges(session_id=session_id, over=over):
            title = "What a subagent changed has come in" if over else "What a subagent changed comes in"
            return EventWords(title=title, text=session_id, topics=(EventTopic.FILES,))
        case ChildEnded(session_id=session_id, outcome=outcome, why=why, usage=usage, cost=cost):
            done = outcome is ChildOutcome.DONE
            return EventWords(
                title=f"A subagent ended: {outcome}",
                text=f"{session_id}{f': {why}' if why else ''}",
                topics=(EventTopic.COSTS, *(() if done else (EventTopic.ERRORS,))),
                warns=not done,
                cost=_paid(usage, cost),
            )
        case QuestionPut(question=question):
            title, about = f"Question ({question.kind})", question.call_id or question.id
            return EventWords(title=title, text=question.text, call=about, topics=(EventTopic.QUESTIONS,))
        case ChecklistUpdated(text=text):
            return EventWords(title="To-do list", text=text)
        case Compacted() | SummaryWritten():
            return _room(data)
        case SessionStarted(choice=choice, mode=mode, workspace=workspace):
            return EventWords(title="Session started", text=f"{choice.model}, mode {mode}, in {workspace}")
        case Resumed():
            return EventWords(title="Session resumed")
        case OfferChanged(step=step, system=system, tools=tools):
            parts = ", ".join(part.name for part in system)
            text = f"{parts}; {counted(len(tools), 'tool')}"
            return EventWords(title="System prompt and tools", text=text, step=step)
        case ContextReady(step=step, tokens=size):
            return EventWords(title=f"Step {step}: request", text=f"{tokens(size)} tokens", step=step)
        case ContextExceeded(step=step, tokens=size, window=window):
            text = f"{tokens(size)} of {tokens(window)} tokens"
            return EventWords(
                title="The context window is full", text=text, step=step, topics=(EventTopic.ERRORS,), warns=True
            )
        case ModelReplaced():
            return _model(data)
        case Restored() | Rewound() | CheckpointTaken():
            return _files(data)
        case CallProposed() | CallJudged() | CallStarted() | CallFinished() | ResultMade():
            return _call(data)
        case ReplyPart() | ReplyFinished() | ReplyFailed() | RetryPlanned():
            return _reply(data)
        case TurnSettled():
            return _turn(data)
        case StateSealed():
            return EventWords(title="State saved")
        case GoalChecked(met=met, blocked=blocked, by=by, reason=reason):
            stands = "met" if met else "blocked" if blocked else "not met yet"
            judged = {"model": " (the model's judgement)", "command": " (its command)"}.get(str(by), "")
            return EventWords(title=f"Goal {stands}{judged}", text=reason, warns=blocked)
        case TurnMayEnd(stop=stop):
            return EventWords(title="Hooks let the turn end", text=stop)
        case TimerFired(timer=timer):
            return EventWords(title="A timer ran out", text=timer)
        case op:
            return _words_of_op(op)


def _words_of_op(op: Op) -> EventWords:  # noqa: C901, PLR0911, PLR0912 - one line for each op
    match op:
        case Prompt(content=content, delivery=delivery):
            return EventWords(title=f"Message ({delivery})", text=written_text(content), topics=(EventTopic.PROMPTS,))
        case EditQueued(content=content):
            title = "Queued message changed" if content else "Queued message removed"
            return EventWords(title=title, text=written_text(content), topics=(EventTopic.PROMPTS,))
        case MoveQueued(delivery=delivery):
            when = "at the next step" if delivery is Delivery.STEER else "after the turn"
            return EventWords(title=f"Waiting message is sent {when}", topics=(EventTopic.PROMPTS,))
        case Answer(question_id=asked, option=option, text=text, scope=scope):
            more = f" for every session ({scope})" if option == "allow_always" and scope == "user" else ""
            return EventWords(
                title=f"Answered: {ANSWERS[option]}{more}",
                text=text,
                call=asked,
                topics=(EventTopic.QUESTIONS, EventTopic.DECISIONS),
            )
        case RevokeAllowance(allowance_id=id_):
            return EventWords(title="Permission removed", text=id_, topics=(EventTopic.DECISIONS,))
        case Interrupt(why=why):
            return EventWords(title="Ended by a hook" if why else "Interrupted by the user", text=why)
        case SetMode() | SetModel() | SetFallback():
            return _model(op)
        case SetLimits():
            return EventWords(title="Limits changed")
        case SetPresence(user_present=present):
            return EventWords(title="Somebody can answer" if present else "Nobody can answer")
        case EditChecklist(text=text):
            return EventWords(title="To-do list changed by the user", text=text)
        case Noted(notes=notes):
            return EventWords(title="Note for the model", text="\n".join(note.text for note in notes))
        case CompactNow(focus=focus):
            return EventWords(title="The user makes room", text=focus, topics=(EventTopic.COMPACTIONS,))
        case Pin(text=text, id=id_):
            return EventWords(
                title="Pinned" if text else "Unpinned", text=text or id_, topics=(EventTopic.COMPACTIONS,)
            )
        case SetGoal(condition=condition, check=check, paused=paused):
            title = "Goal paused" if paused else "Goal set" if condition else "Goal cleared"
            return EventWords(title=title, text=f"{condition}\n{check}".strip(), topics=(EventTopic.PROMPTS,))
        case Restore():
            return _files(op)
        case _:
            assert_never(op)


def _turn(data: TurnSettled) -> EventWords:
    outcome, failed = data.outcome, data.outcome.error is not None
    text = "\n".join(filter(None, (outcome.why, outcome.error.message if outcome.error else "", outcome.text)))
    return EventWords(
        title=f"Turn {data.turn}: {ended(outcome.stop).lower()} after {counted(outcome.steps, 'step')}",
        text=text,
        turn=data.turn,
        topics=(EventTopic.COSTS, *([EventTopic.ERRORS] if failed else [])),
        warns=failed,
        cost=money(outcome.cost, estimated=outcome.usage.estimated) if outcome.steps else "",
    )


def _model(data: SetMode | SetModel | SetFallback | ModelReplaced) -> EventWords:
    topics = (EventTopic.MODELS,)
    match data:
        case SetMode(mode=mode, choice=choice):
            return EventWords(title=f"Mode {mode}", text=choice.model if choice else "", topics=topics)
        case SetModel(choice=choice):
            return EventWords(title=f"Model {choice.model}", topics=topics)
        case SetFallback(choice=other):
            return EventWords(title=f"Fallback {other.model if other else 'off'}", topics=topics)
        case ModelReplaced(model=model, why=why):
            return EventWords(title=f"Model {model}", text=why, topics=topics, warns=True)


def _room(data: Compacted | SummaryWritten) -> EventWords:
    topics = (EventTopic.COMPACTIONS,)
    match data:
        case SummaryWritten(step=step, text=text, error=error, usage=usage, cost=cost):
            return EventWords(
                title="Summary" if not error else "No summary",
                text=error or text,
                step=step,
                topics=(*topics, EventTopic.COSTS, *_error(error)),
                warns=bool(error),
                cost=_paid(usage, cost),
            )
        case Compacted(step=step, before=before, after=after, dropped=dropped, summary=summary):
            told = ContextCompacted(before=before, after=after, dropped=dropped, summary=summary)
            return EventWords(title=room_made(told), text=summary, step=step, topics=topics)


def _files(data: Restore | Restored | Rewound | CheckpointTaken) -> EventWords:
    topics = (EventTopic.FILES,)
    match data:
        case CheckpointTaken(n=n, step=step, moment=moment, files=files, added=added, removed=removed):
            text = f"{counted(files, 'file')} {_figures(added, removed)}" if files else ""
            missing = [f"not covered: {one}" for one in data.not_covered]
            return EventWords(
                title=f"Checkpoint {n} {WHY_TAKEN[moment]}",
                text="\n".join(filter(None, (text, *missing, data.notice))),
                step=step if moment.of_step else 0,
                checkpoint=n,
                topics=topics,
            )
        case Restore(checkpoint=n, files=files, conversation=conversation, to=to, part=part):
            what = " and ".join(filter(None, ("files" if files else "", "conversation" if conversation else "")))
            if part:
                return EventWords(title="Changes rejected or edited in a review", topics=topics)
            return EventWords(title=f"Restore {what} to {f'checkpoint {n}' if n else f'event {to}'}", topics=topics)
        case Restored(written=written, removed=removed, conflicts=conflicts, error=error):
            lines = [*written, *(f"{path} (deleted)" for path in removed)]
            lines += [f"Not restored: {one.path}: {one.why}" for one in conflicts]
            bad = bool(error or conflicts)
            return EventWords(
                title=files_back(written, removed),
                text="\n".join([*lines, *([error] if error else [])]),
                topics=(*topics, *([EventTopic.ERRORS] if bad else [])),
                warns=bad,
            )
        case Rewound(to=to):
            return EventWords(title=f"The conversation went back to event {to}", topics=topics)


def _call(data: CallProposed | CallJudged | CallStarted | CallFinished | ResultMade) -> EventWords:
    match data:
        case CallProposed(step=step, call=call):
            name = call_name(call)
            return EventWords(
                title=f"Call: {name.verb}", text=name.about, call=call.id, step=step, topics=(EventTopic.CALLS,)
            )
        case CallJudged(call_id=call_id, decision=decision, preview=preview):
            return EventWords(
                title=_VERDICTS[decision.verdict],
                text=f"{_about(preview)}: {why_decided(decision)}",
                call=call_id,
                topics=(EventTopic.DECISIONS,),
                warns=decision.verdict is Verdict.DENY,
            )
        case CallStarted(call_id=call_id):
            return EventWords(title="Call runs", call=call_id, topics=(EventTopic.CALLS,))
        case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
            bad = result.outcome not in (Outcome.OK, Outcome.SKIPPED, Outcome.INTERRUPTED)
            changed = [f"{change.path} {_figures(change.added, change.removed)}" for change in result.changes]
            wrong = note_of(ToolKind.OTHER, result) if bad else ""
            return EventWords(
                title=f"Call ended: {result.outcome}"
                if isinstance(data, CallFinished)
                else f"Result: {result.outcome}",
                text="\n".join([*changed, *filter(None, (wrong,))]),
                to_model=plain(result.content),
                call=call_id,
                topics=(
                    EventTopic.CALLS,
                    *([EventTopic.FILES] if changed else []),
                    *([EventTopic.ERRORS] if bad else []),
                    *([EventTopic.COSTS] if _costs(result.usage, result.cost) else []),
                ),
                warns=bad,
                cost=_paid(result.usage, result.cost) if _costs(result.usage, result.cost) else "",
            )


def _reply(data: ReplyPart | ReplyFinished | ReplyFailed | RetryPlanned) -> EventWords:
    match data:
        case ReplyPart(step=step, text=text):
            return EventWords(title=f"Step {step}: part of the reply", text=text.strip(), step=step)
        case ReplyFinished(step=step, message=message, usage=usage, cost=cost):
            said = "".join(block.text for block in message.content if isinstance(block, Text)).strip()
            thought = "".join(block.text for block in message.content if isinstance(block, Thinking)).strip()
            return EventWords(
                title=f"Step {step}: reply",
                text=said or thought,
                step=step,
                topics=(EventTopic.COSTS,),
                cost=_paid(usage, cost),
            )
        case ReplyFailed(step=step, error=error, usage=usage, cost=cost):
            return EventWords(
                title=f"Step {step}: the model call failed",
                text=f"{error.kind}: {error.message}",
                step=step,
                topics=(EventTopic.ERRORS, EventTopic.COSTS),
                warns=True,
                cost=_paid(usage, cost) if _costs(usage, cost) else "",
            )
        case RetryPlanned(attempt=attempt, seconds=seconds, most=most):
            return EventWords(
                title=f"Attempt {attempt} of {most} in {seconds:.1f} s", topics=(EventTopic.ERRORS,), warns=True
            )


def _figures(added: int, removed: int) -> str:
    return f"+{added} −{removed}"


def _about(preview: Preview) -> str:
    """Name what was judged: of a command itself, of an edit its file and its figures."""
    title = _COUNTED.sub(r"+\1 −\2", preview.title)
    more = "" if preview.is_diff else clip_text(preview.text, _LONGEST_COMMAND)
    return f"{title} {more}".rstrip()


def _error(error: str) -> tuple[EventTopic, ...]:
    return (EventTopic.ERRORS,) if error else ()


def _paid(usage: Usage, cost: float | None) -> str:
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    about = "about " if usage.estimated else ""
    spent = money(cost, estimated=usage.estimated)
    return f"{spent} · {about}{tokens(read)} in, {tokens(usage.output_tokens)} out"


def _costs(usage: Usage, cost: float | None) -> bool:
    """Whether anything was used, or may have been."""
    return cost is None or bool(cost or usage.context_tokens)
