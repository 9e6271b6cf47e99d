"""What the terminal shows, as a value, and how each notification changes it. No clock, no layout, no I/O."""

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from treadle.present.checklist import todo_of
from treadle.present.failures import advice, describe_failure, facts_of
from treadle.present.grants import grants_of
from treadle.present.prose import Growing, grow
from treadle.present.spending import Spending
from treadle.present.words import (
    ANSWERS,
    elsewhere,
    plain,
    restored_words,
    room_made,
    seen_from,
    written_by,
    written_text,
)
from treadle.protocol.events import Answer
from treadle.protocol.messages import text_of
from treadle.protocol.models import ModelError
from treadle.protocol.notifications import (
    AllowancesChanged,
    CallChanged,
    CallDelta,
    CallOutput,
    CallStatus,
    ChecklistChanged,
    ContextCompacted,
    ConversationRewound,
    FilesRestored,
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notice,
    Notification,
    OwnWorkChanged,
    Phase,
    PhaseChanged,
    PromptDelivered,
    QuestionAsked,
    QuestionClosed,
    QueueChanged,
    QueuedPrompt,
    ReplyDropped,
    ResultPresented,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStarted,
)
from treadle.protocol.permissions import Allowance, AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import CallResult, Flow, Outcome
from treadle.tui.calls import Calls, add_output, are_reads, find_call, finish_call, moved_on
from treadle.tui.items import (
    CallDone,
    DiffItem,
    NoticeItem,
    ProblemItem,
    Prose,
    Reads,
    Said,
    ScreenItem,
    Thought,
    Todos,
    Tone,
    TurnDone,
)
from treadle.tui.reply import LiveThinking, Reply, came, think, write


class Retry(Struct, frozen=True):
    """The wait before the next attempt, the `attempt`th of `most`; `at` is when it ends, on the clock of `update`."""

    error: ModelError
    at: float | None
    attempt: int = 1
    most: int = 0


class View(Struct, frozen=True, kw_only=True):
    """Everything that is shown besides the scrollback and the input line.

    `own` names the source as which this terminal posts. `started` is when the turn began, `since` when
    it came to what it does now, `asking` since when the person is asked, `waited` how long they were asked before that
    in this turn. `received` are the tokens of the turn's replies so far, `speed` how many of the last one came in a
    second (0 where that is not known). `reads` are not in the scrollback yet: more may follow. Files are shown as seen
    from the first of the workspace's `roots`. `checklist` is Markdown, `progress` its summary. `presented` is the
    result of the task that was shown already. `added` and `removed` count the changed lines of the session: `counted`
    by its checkpoints, or else as the ends of turns said.
    """

    own: str = ""
    roots: tuple[str, ...] = ()
    phase: Phase = Phase.WAITING_FOR_EVENT
    mode: Mode = Mode.ASK
    model: str = ""
    tokens: int = 0
    window: int | None = None
    spending: Spending = Spending()
    started: float | None = None
    since: float | None = None
    asking: float | None = None
    waited: float = 0.0
    received: int = 0
    speed: float = 0.0
    step: int = 0
    busy: bool = False
    reply: Reply = Reply()
    reads: tuple[CallDone, ...] = ()
    calls: Calls = ()
    queue: tuple[QueuedPrompt, ...] = ()
    questions: tuple[Question, ...] = ()
    retry: Retry | None = None
    checklist: str = ""
    progress: str = ""
    allowances: tuple[Allowance, ...] = ()
    presented: str = ""
    counted: bool = False
    added: int = 0
    removed: int = 0


ViewUpdate = tuple[View, tuple[ScreenItem, ...]]


def update(view: View, notification: Notification, at: float | None = None) -> ViewUpdate:
    """Take one notification, heard `at` (seconds on any steady clock); gives what goes to the scrollback now."""
    return _grouped(*_take(view, notification, at))


def held_back(view: View) -> tuple[ScreenItem, ...]:
    """Give what is done and not in the scrollback yet, for when nothing follows."""
    return (Reads(view.reads),) if view.reads else ()


def _grouped(view: View, items: tuple[ScreenItem, ...]) -> ViewUpdate:
    """Hold reads back as long as only reads follow."""
    reads, printed_now = view.reads, list[ScreenItem]()
    for item in items:
        if isinstance(item, CallDone) and are_reads((item,)):
            reads = (*reads, item)
            continue
        if reads:
            printed_now.append(Reads(reads))
        reads = ()
        printed_now.append(item)
    return replace(view, reads=reads), tuple(printed_now)


def _take(view: View, notification: Notification, at: float | None) -> ViewUpdate:  # noqa: C901, PLR0911, PLR0912 - one line for each notification
    match notification:
        case PhaseChanged(phase=phase):
            retry = view.retry if phase is Phase.WAITING_TO_RETRY else None
            return replace(view, phase=phase, since=at, retry=retry), ()
        case TurnStarted():
            return replace(view, started=at, since=at, waited=0.0, received=0, speed=0.0, step=0, busy=True), ()
        case PromptDelivered(content=content, enclosed=enclosed, by=by):
            view, items = flush(view, at)
            who = (NoticeItem(written_by(by)),) if by else ()
            return view, (*items, *who, Said(written_text(content), enclosed=enclosed))
        case QueueChanged(prompts=prompts):
            return replace(view, queue=prompts), ()
        case TextDelta(text=text):
            return _text(view, text, at)
        case ThinkingDelta(text=text):
            reply = came(view.reply, text, at)
            return replace(view, reply=replace(reply, thinking=think(reply.thinking, text, at))), ()
        case CallDelta(text=text):
            reply = came(view.reply, text, at)
            return replace(view, reply=replace(reply, writing=write(reply.writing, notification))), ()
        case ReplyDropped() as dropped:
            return _drop_reply(replace(view, spending=view.spending.with_reply(dropped)), at)
        case MessageDone():
            return _message_done(view, notification, at)
        case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result):
            return _call_done(view, notification, result, at)
        case CallChanged():
            reply = replace(view.reply, writing=None)
            return replace(view, reply=reply, calls=moved_on(view.calls, notification, at)), ()
        case CallOutput(call_id=call_id, text=text):
            return replace(view, calls=add_output(view.calls, call_id, text)), ()
        case QuestionAsked(question=question):
            return _asked(view, question, at)
        case QuestionClosed():
            return _closed(view, notification, at)
        case ResultPresented(text=text):
            return _with(flush(replace(view, presented=text), at), Prose(text))
        case RetryScheduled(attempt=attempt, seconds=seconds, error=error, most=most):
            return replace(view, retry=Retry(error, None if at is None else at + seconds, attempt, most)), ()
        case ContextCompacted() as made:
            return view, (NoticeItem(f"{room_made(made)}.", Tone.WARNING),)
        case ModeChanged(mode=mode):
            return replace(view, mode=mode), ()
        case ModelChanged(model=model, why=why):
            shown_why = f" ({why})" if why else ""
            return replace(view, model=model), (NoticeItem(f"Model: {model}{shown_why}"),)
        case ChecklistChanged(text=text):
            return _checklist(view, text)
        case AllowancesChanged(allowances=allowances):
            return replace(view, allowances=allowances), ()
        case OwnWorkChanged(total=total):
            return replace(view, counted=True, added=total.added, removed=total.removed), ()
        case FilesRestored(restored=restored, conversation=conversation):
            return view, (NoticeItem(restored_words(restored, conversation=conversation), Tone.WARNING),)
        case ConversationRewound():
            return view, ()
        case Notice(text=text) as notice:
            return replace(view, spending=view.spending.with_notice(notice)), (NoticeItem(text, Tone.WARNING),)
        case TurnEnded():
            return _turn_ended(view, notification, at)
        case _:
            assert_never(notification)


def answered(view: View, question: Question, answer: Answer) -> View:
    """Remember what the person answered to a question about a call, for the line that the call leaves."""
    if question.kind is QuestionKind.ELICITATION:
        return view  # the call asked it, and already runs
    calls = tuple(
        replace(call, answer=answer) if call.changed.call.id == question.call_id else call for call in view.calls
    )
    return replace(view, calls=calls)


def _checklist(view: View, text: str) -> ViewUpdate:
    """Show the checklist in the scrollback once, when all of it is done."""
    all_done = bool(text) and all(todo.done for todo in todo_of(text))
    shown = (Todos(text),) if all_done and text != view.checklist and view.busy else ()
    return replace(view, checklist=text, progress="" if all_done else _progress(text)), shown


def _progress(markdown: str) -> str:
    """Say which thing of how many is next: `3/4 Fix the total`."""
    todos = todo_of(markdown)
    number, text = next(((number, todo.text) for number, todo in enumerate(todos, 1) if not todo.done), (0, ""))
    done = sum(todo.done for todo in todos)
    return f"{done + 1}/{len(todos)} {text}" if number else ""


def flush(view: View, at: float | None = None) -> ViewUpdate:
    """Bring what was streamed and not printed yet to the scrollback."""
    reply = view.reply
    items: list[ScreenItem] = []
    if reply.thinking.size:
        began = reply.thinking.began
        items.append(Thought(None if at is None or began is None else at - began))
    if reply.text.strip():
        items.append(Prose(reply.text))
    if not items and not reply.text:
        return view, ()
    reply = replace(
        reply, growing=Growing(), thinking=LiveThinking(), printed=reply.printed or bool(reply.text.strip())
    )
    return replace(view, reply=reply), tuple(items)


def _with(changed: ViewUpdate, *more: ScreenItem) -> ViewUpdate:
    view, items = changed
    return view, (*items, *more)


def _text(view: View, text: str, at: float | None) -> ViewUpdate:
    thought: tuple[ScreenItem, ...] = ()
    if view.reply.thinking.size:
        view, thought = flush(view, at)
    finished, growing = grow(view.reply.growing, text)
    printed = view.reply.printed or bool(finished.strip())
    view = replace(view, reply=replace(came(view.reply, text, at), growing=growing, printed=printed))
    return view, (*thought, Prose(finished)) if finished.strip() else thought


def _drop_reply(view: View, at: float | None) -> ViewUpdate:
    """Withdraw what was streamed; what the user cut stays, as the log keeps it too."""
    items: tuple[ScreenItem, ...] = ()
    was_printed = view.reply.printed
    if view.phase is Phase.CANCELLING:
        view, items = flush(view, at)
    elif was_printed:
        items = (NoticeItem("The reply broke off. The part of it above is not used.", Tone.WARNING),)
    return replace(view, reply=Reply(), calls=()), items


def _message_done(view: View, notification: MessageDone, at: float | None) -> ViewUpdate:
    streamed = view.reply.printed or view.reply.text or view.reply.thinking.size
    speed = view.reply.speed(notification.usage.output_tokens, at)
    view, items = flush(view, at)
    text = text_of(notification.message.content)
    if not streamed and text.strip():
        items = (*items, Prose(text))
    spending = view.spending.with_reply(notification)
    received = view.received + notification.usage.output_tokens
    tokens = notification.usage.context_tokens
    view = replace(view, reply=Reply(), spending=spending, tokens=tokens, received=received, speed=speed)
    return replace(view, step=notification.step), items


def _call_done(view: View, notification: CallChanged, result: CallResult, at: float | None) -> ViewUpdate:
    known = find_call(view.calls, notification.call.id)
    view = replace(view, calls=tuple(call for call in view.calls if call is not known))
    view = replace(view, reply=replace(view.reply, writing=None))
    if notification.flow is not Flow.RUN and result.outcome in (Outcome.OK, Outcome.INTERRUPTED):
        was_asked = known is not None and known.asked and result.outcome is Outcome.OK
        return view, (Said(plain(result.content)),) if was_asked else ()
    allowed = {allowance.id for allowance in view.allowances}
    return _with(flush(view, at), finish_call(known, notification, result, at=at, allowed=allowed))


def _asked(view: View, question: Question, at: float | None) -> ViewUpdate:
    if any(known.id == question.id for known in view.questions):
        return view, ()
    first = not view.questions
    view = replace(view, questions=(*view.questions, question), asking=at if first else view.asking)
    return _with(flush(view, at), *shown_before(question)) if first else (view, ())


def shown_before(question: Question) -> tuple[ScreenItem, ...]:
    """Give what goes to the scrollback before a question is asked below it: the diff of an edit."""
    preview = question.preview
    if preview is None or not preview.is_diff or question.denial is not None:
        return ()
    return (DiffItem(preview.text),)


def _closed(view: View, notification: QuestionClosed, at: float | None) -> ViewUpdate:
    """Close a question; a lasting yes leaves a line. The next one is asked when it has become the first."""
    gone = next((one for one in view.questions if one.id == notification.question_id), None)
    if gone is None:
        return view, ()
    was_first = view.questions[0] is gone
    left = tuple(one for one in view.questions if one is not gone)
    items: list[ScreenItem] = []
    grants = grants_of(gone)
    if notification.option is OptionKind.ALLOW_ALWAYS and grants is not None:
        saved = notification.scope is AllowScope.USER
        text = f"Rule saved, {grants.where}: {grants.always} · treadle policy show"
        if not (saved and gone.kind is QuestionKind.ELICITATION):  # what was written, a notice says
            items.append(NoticeItem(text if saved else f"Allowed this session: {grants.session} · /approvals"))
    if notification.by and view.own and notification.by != view.own and notification.option is not None:
        items.append(NoticeItem(f"Answered {elsewhere(notification.by)}: {ANSWERS[notification.option]}."))
    if gone.kind is QuestionKind.FOLLOWUP and notification.option is not None:
        items.append(Prose(gone.text))
    if was_first and left:
        items += shown_before(left[0])
    if not left and view.asking is not None:
        view = replace(view, asking=None, waited=view.waited + ((at or view.asking) - view.asking))
    return replace(view, questions=left), tuple(items)


def _turn_ended(view: View, notification: TurnEnded, at: float | None) -> ViewUpdate:
    view, items = flush(view, at)
    outcome = notification.outcome
    answer = outcome.text.removeprefix(view.presented).strip() if view.presented else outcome.text
    if outcome.completed and answer.strip():
        items = (*items, Prose(answer))
    if outcome.error is not None:
        items = (
            *items,
            ProblemItem(
                describe_failure(outcome.error, view.model), facts_of(outcome.error), advice(outcome.error, view.model)
            ),
        )
    spending = view.spending.with_turn(outcome)
    files = tuple(seen_from(next(iter(view.roots), ""), change) for change in outcome.changes)
    seconds = None if at is None or view.started is None else max(0.0, at - view.started - view.waited)
    done = TurnDone(outcome, seconds, view.waited, files)
    view = replace(
        view,
        reply=Reply(),
        calls=(),
        retry=None,
        busy=False,
        started=None,
        spending=spending,
        presented="",
        added=view.added + sum(0 if view.counted else change.added for change in outcome.changes),
        removed=view.removed + sum(0 if view.counted else change.removed for change in outcome.changes),
    )
    return view, (*items, done)
