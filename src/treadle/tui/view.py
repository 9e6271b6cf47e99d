"""What the terminal shows, as a value, and how each notification changes it. No clock, no layout, no I/O."""

from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from treadle.app.presentation.escape import printable
from treadle.app.presentation.questions import grants_of
from treadle.app.presentation.words import advice, facts_of, note_of, plain, seen_from, title_of
from treadle.app.session.checklist_file import summary_of
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
    MessageDone,
    ModeChanged,
    ModelChanged,
    Notification,
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
from treadle.protocol.notifications import Notice as Told
from treadle.protocol.permissions import Allowance, AllowScope, Mode, OptionKind, Question, QuestionKind
from treadle.protocol.tools import CallResult, Outcome, ToolKind
from treadle.tui.items import CallDone, Diff, Item, Notice, Problem, Prose, Said, Thought, Tone, TurnDone
from treadle.tui.prose import Growing, grow

_KEPT_OUTPUT = 4_000
_KEPT_THOUGHT = 600
_KEPT_BEGINNING = 120

SAYS_ITS_TEXT_OTHERWISE = frozenset({"ask_followup_question", "attempt_completion", "plan_mode_respond"})
"""Tools whose text comes as a question or as the answer of the turn: a line for the call would say it twice."""


class Thinking(Struct, frozen=True, kw_only=True):
    """Reasoning that still grows: its beginning, its end, and its size in characters."""

    beginning: str = ""
    end: str = ""
    size: int = 0


LIVE = frozenset({"diff", "patch", "content"})
"""Parameters that are shown as they stream."""

_KEPT_BODY = 2_000


class Writing(Struct, frozen=True, kw_only=True):
    """A call that the model is writing; `argument` is the first parameter with a text, as far as it is known.

    `body` is the end of a further parameter with a name of `LIVE`: an edit as it streams.
    """

    index: int
    name: str
    parameter: str = ""
    argument: str = ""
    body: str = ""
    size: int = 0


class Reply(Struct, frozen=True, kw_only=True):
    """The reply that streams: `growing` is not in the scrollback yet; `printed` when an earlier part is."""

    growing: Growing = field(default_factory=Growing)
    printed: bool = False
    thinking: Thinking = Thinking()
    writing: Writing | None = None

    @property
    def text(self) -> str:
        """The part of the answer that is not in the scrollback yet."""
        return self.growing.text


class OpenCall(Struct, frozen=True, kw_only=True):
    """A call without a result; `output` is the end of what it printed, `answer` what the person said of it."""

    changed: CallChanged
    asked: bool = False
    output: str = ""
    answer: Answer | None = None


class Retry(Struct, frozen=True, kw_only=True):
    """The wait before the next attempt; `at` is when it ends, on the clock of `update`."""

    error: ModelError
    at: float | None


class Spending(Struct, frozen=True, kw_only=True):
    """Cost in US dollars: of the turns that ended, and of the present one; `unpriced` when a price is missing."""

    ended: float = 0.0
    turn: float = 0.0
    unpriced: bool = False

    @property
    def total(self) -> float:
        """All of it."""
        return self.ended + self.turn


class View(Struct, frozen=True, kw_only=True):
    """Everything that is shown besides the scrollback and the input line.

    `started` is when the turn began; files are shown as seen from the first of the workspace's `roots`.
    `checklist` is Markdown, `progress` its summary. `presented` is the result of the task that was shown already.
    """

    roots: tuple[str, ...] = ()
    phase: Phase = Phase.WAITING_FOR_EVENT
    mode: Mode = Mode.ASK
    model: str = ""
    tokens: int = 0
    window: int | None = None
    spending: Spending = Spending()
    started: float | None = None
    busy: bool = False
    reply: Reply = Reply()
    calls: tuple[OpenCall, ...] = ()
    queue: tuple[QueuedPrompt, ...] = ()
    questions: tuple[Question, ...] = ()
    retry: Retry | None = None
    checklist: str = ""
    progress: str = ""
    allowances: tuple[Allowance, ...] = ()
    presented: str = ""


Changed = tuple[View, tuple[Item, ...]]


def update(view: View, told: Notification, at: float | None = None) -> Changed:  # noqa: C901, PLR0911, PLR0912 - one line for each notification
    """Take one notification, heard `at` (seconds on any steady clock); gives what goes to the scrollback now."""
    match told:
        case PhaseChanged(phase=phase):
            return replace(view, phase=phase, retry=view.retry if phase is Phase.WAITING_TO_RETRY else None), ()
        case TurnStarted():
            return replace(view, started=at, busy=True), ()
        case PromptDelivered(content=content):
            return _with(flush(view), Said(plain(content)))
        case QueueChanged(prompts=prompts):
            return replace(view, queue=prompts), ()
        case TextDelta(text=text):
            return _text(view, text)
        case ThinkingDelta(text=text):
            return replace(view, reply=replace(view.reply, thinking=_think(view.reply.thinking, text))), ()
        case CallDelta():
            return replace(view, reply=replace(view.reply, writing=_write(view.reply.writing, told))), ()
        case ReplyDropped():
            return _drop_reply(view)
        case MessageDone():
            return _message_done(view, told)
        case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result):
            return _call_done(view, told, result)
        case CallChanged():
            return _call_changed(view, told), ()
        case CallOutput(call_id=call_id, text=text):
            return _call_output(view, call_id, text), ()
        case QuestionAsked(question=question):
            return _asked(view, question)
        case QuestionClosed():
            return _closed(view, told)
        case ResultPresented(text=text):
            return _with(flush(replace(view, presented=text)), Prose(text))
        case RetryScheduled(seconds=seconds, error=error):
            retry = Retry(error=error, at=None if at is None else at + seconds)
            notice = Notice(f"{error.message} Trying again in {seconds:.0f} s.", Tone.WARNING)
            return replace(view, retry=retry), (notice,)
        case ContextCompacted(dropped=dropped):
            return view, (Notice(f"{dropped} older messages left the prompt to make room.", Tone.WARNING),)
        case ModeChanged(mode=mode):
            return replace(view, mode=mode), (Notice(f"Mode: {mode}"),)
        case ModelChanged(model=model, why=why):
            told_why = f" ({why})" if why else ""
            return replace(view, model=model), (Notice(f"Model: {model}{told_why}"),)
        case ChecklistChanged(text=text):
            return replace(view, checklist=text, progress=summary_of(text)), ()
        case AllowancesChanged(allowances=allowances):
            return replace(view, allowances=allowances), ()
        case Told(text=text):
            return view, (Notice(text, Tone.WARNING),)
        case TurnEnded():
            return _turn_ended(view, told, at)
        case _:
            assert_never(told)


def answered(view: View, question: Question, answer: Answer) -> View:
    """Remember what the person answered to a question about a call, for the line that the call leaves."""
    calls = tuple(
        replace(call, answer=answer) if call.changed.call.id == question.call_id else call for call in view.calls
    )
    return replace(view, calls=calls)


def flush(view: View) -> Changed:
    """Bring what was streamed and not printed yet to the scrollback."""
    reply = view.reply
    items: list[Item] = []
    if reply.thinking.size:
        items.append(Thought(reply.thinking.beginning, reply.thinking.size))
    if reply.text.strip():
        items.append(Prose(reply.text))
    if not items and not reply.text:
        return view, ()
    reply = replace(reply, growing=Growing(), thinking=Thinking(), printed=reply.printed or bool(reply.text.strip()))
    return replace(view, reply=reply), tuple(items)


def _with(changed: Changed, *more: Item) -> Changed:
    view, items = changed
    return view, (*items, *more)


def _text(view: View, text: str) -> Changed:
    thought: tuple[Item, ...] = ()
    if view.reply.thinking.size:
        view, thought = flush(view)
    finished, growing = grow(view.reply.growing, text)
    printed = view.reply.printed or bool(finished.strip())
    view = replace(view, reply=replace(view.reply, growing=growing, printed=printed))
    return view, (*thought, Prose(finished)) if finished.strip() else thought


def _think(thinking: Thinking, text: str) -> Thinking:
    return Thinking(
        beginning=(thinking.beginning + text)[:_KEPT_BEGINNING],
        end=(thinking.end + text)[-_KEPT_THOUGHT:],
        size=thinking.size + len(text),
    )


def _write(writing: Writing | None, told: CallDelta) -> Writing:
    if writing is None or writing.index != told.index or (told.name and told.name != writing.name):
        writing = Writing(index=told.index, name=told.name)
    argument = writing.argument
    if told.parameter in (writing.parameter, "") or not writing.parameter:
        argument = (argument + told.text)[:_KEPT_BEGINNING]
    body = (writing.body + told.text)[-_KEPT_BODY:] if told.parameter in LIVE else writing.body
    return replace(
        writing,
        parameter=writing.parameter or told.parameter,
        argument=argument,
        body=body,
        size=writing.size + len(told.text),
    )


def _drop_reply(view: View) -> Changed:
    """Withdraw what was streamed; what the user cut stays, as the log keeps it too."""
    items: tuple[Item, ...] = ()
    printed = view.reply.printed
    if view.phase is Phase.CANCELLING:
        view, items = flush(view)
    elif printed:
        items = (Notice("The reply broke off: what is above of it does not count.", Tone.WARNING),)
    return replace(view, reply=Reply(), calls=()), items


def _message_done(view: View, told: MessageDone) -> Changed:
    streamed = view.reply.printed or view.reply.text or view.reply.thinking.size
    view, items = flush(view)
    text = text_of(told.message.content)
    if not streamed and text.strip():
        items = (*items, Prose(text))
    spending = replace(
        view.spending,
        turn=view.spending.turn + (told.cost or 0.0),
        unpriced=view.spending.unpriced or told.cost is None,
    )
    return replace(view, reply=Reply(), spending=spending, tokens=told.usage.context_tokens), items


def _call_changed(view: View, told: CallChanged) -> View:
    known = next((call for call in view.calls if call.changed.call.id == told.call.id), None)
    asking = told.status is CallStatus.ASKING
    view = replace(view, reply=replace(view.reply, writing=None))
    if known is None:
        return replace(view, calls=(*view.calls, OpenCall(changed=told, asked=asking)))
    # What runs a second time, with a right that the sandbox refused, begins with an empty output.
    output = "" if told.status is CallStatus.STARTING else known.output
    now = replace(known, changed=told, asked=known.asked or asking, output=output)
    return replace(view, calls=tuple(now if call is known else call for call in view.calls))


def _call_output(view: View, call_id: str, text: str) -> View:
    calls = tuple(
        replace(call, output=(call.output + text)[-_KEPT_OUTPUT:]) if call.changed.call.id == call_id else call
        for call in view.calls
    )
    return replace(view, calls=calls)


def _call_done(view: View, told: CallChanged, result: CallResult) -> Changed:
    known = next((call for call in view.calls if call.changed.call.id == told.call.id), None)
    view = replace(view, calls=tuple(call for call in view.calls if call is not known))
    view = replace(view, reply=replace(view.reply, writing=None))
    if told.call.name in SAYS_ITS_TEXT_OTHERWISE and result.outcome in (Outcome.OK, Outcome.INTERRUPTED):
        was_asked = known is not None and known.asked and result.outcome is Outcome.OK
        return view, (Said(plain(result.content)),) if was_asked else ()
    output = known.output if known is not None and told.kind is ToolKind.EXECUTE else ""
    shows_diff = told.preview is not None and told.preview.is_diff and not (known is not None and known.asked)
    done = CallDone(
        title=title_of(told),
        kind=told.kind,
        outcome=result.outcome,
        note=_note(told, result, known),
        output=output,
        diff=told.preview.text if told.preview is not None and shows_diff else "",
    )
    return _with(flush(view), done)


def _asked(view: View, question: Question) -> Changed:
    if any(known.id == question.id for known in view.questions):
        return view, ()
    first = not view.questions
    view = replace(view, questions=(*view.questions, question))
    return _with(flush(view), *shown_before(question)) if first else (view, ())


def shown_before(question: Question) -> tuple[Item, ...]:
    """Give what goes to the scrollback before a question is asked below it: the diff of an edit."""
    preview = question.preview
    if preview is None or not preview.is_diff or question.denial is not None:
        return ()
    return (Diff(preview.text),)


def _note(told: CallChanged, result: CallResult, known: OpenCall | None) -> str:
    """Say how a call went, and what the person said of it."""
    answer = None if known is None else known.answer
    if answer is None:
        return note_of(told.kind, result)
    if result.outcome is Outcome.REJECTED:
        words = " ".join(answer.text.split())
        return f"you said no: {printable(words)}" if words else "you said no"
    lasting = answer.option is OptionKind.ALLOW_ALWAYS
    said = "you allowed it for this session" if lasting else "you allowed it"
    changed = " with your change" if answer.arguments is not None else ""
    return "  ".join(filter(None, (note_of(told.kind, result), said + changed)))


def _closed(view: View, told: QuestionClosed) -> Changed:
    """Close a question; a lasting yes leaves a line. The next one is asked when it has become the first."""
    gone = next((one for one in view.questions if one.id == told.question_id), None)
    if gone is None:
        return view, ()
    was_first = view.questions[0] is gone
    left = tuple(one for one in view.questions if one is not gone)
    items: list[Item] = []
    grants = grants_of(gone)
    if told.option is OptionKind.ALLOW_ALWAYS and grants is not None:
        saved = told.scope is AllowScope.USER
        text = f"Rule saved, {grants.where}: {grants.always} · treadle policy show"
        items.append(Notice(text if saved else f"Allowed this session: {grants.session} · /approvals"))
    if gone.kind is QuestionKind.FOLLOWUP and told.option is not None:
        items.append(Prose(gone.text))
    if was_first and left:
        items += shown_before(left[0])
    return replace(view, questions=left), tuple(items)


def _turn_ended(view: View, told: TurnEnded, at: float | None) -> Changed:
    view, items = flush(view)
    outcome = told.outcome
    answer = outcome.text.removeprefix(view.presented).strip() if view.presented else outcome.text
    if outcome.completed and answer.strip():
        items = (*items, Prose(answer))
    if outcome.error is not None:
        what = f"The call of {view.model} failed ({outcome.error.kind})."
        items = (*items, Problem(what, facts_of(outcome.error), advice(outcome.error.kind)))
    spending = Spending(
        ended=view.spending.ended + (view.spending.turn if outcome.cost is None else outcome.cost),
        unpriced=view.spending.unpriced or outcome.cost is None,
    )
    files = tuple(seen_from(next(iter(view.roots), ""), change) for change in outcome.changes)
    seconds = None if at is None or view.started is None else at - view.started
    view = replace(view, reply=Reply(), calls=(), retry=None, busy=False, started=None, spending=spending, presented="")
    return view, (*items, TurnDone(outcome, seconds, files))
