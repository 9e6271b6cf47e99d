"""What happened is told once: each notification changes what a person sees, the same live and read off a log.

Items of a reply stand where its message has them, in whatever pieces and order they were heard.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from treadle.present.call_fold import ask_question, close_question, follow_child, print_output, take_call
from treadle.present.canvas import Canvas
from treadle.present.checklist_items import open_words
from treadle.present.failure_words import advice, describe_failure, facts_of
from treadle.present.goal_words import goal_words
from treadle.present.items import (
    ChecklistItem,
    CompactedItem,
    Item,
    ModeItem,
    ModelItem,
    NoteItem,
    Placed,
    ProblemItem,
    ProseItem,
    RetryItem,
    SaidItem,
    TurnItem,
)
from treadle.present.reply_fold import drop_reply, finish_reply, grow_item, hear_piece, settle_reply
from treadle.present.restored_words import restored_words
from treadle.present.view import EndedTurn, FoldedView, ReplyView, Retry, SessionView, WayBack, cuts_of
from treadle.present.words import own_commands, seen_from, written_text
from treadle.protocol.attach import Stamped
from treadle.protocol.goals import GoalState
from treadle.protocol.notifications import (
    AllowancesChanged,
    CallChanged,
    CallDelta,
    CallOutput,
    ChecklistChanged,
    ChildChanged,
    ChildSaid,
    ContextCompacted,
    ConversationRewound,
    FilesRestored,
    GoalChanged,
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
    ReplyDropped,
    ResultPresented,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from treadle.protocol.tools import FileChange

_MOST_ENDS = 200
"""Ends of turns whose files are followed."""


def fold_notification(view: SessionView, stamped: Stamped) -> FoldedView:
    """Take one notification; gives the view as it is now, and the items that changed with it, the oldest first."""
    if (grown := grow_item(view, stamped)) is not None:
        return grown
    canvas = Canvas(view, stamped)
    _take(canvas, stamped.notification)
    return canvas.view, canvas.changed


def place_item(view: SessionView, item: Item, place: Placed | None = None) -> FoldedView:
    """Show something that no notification tells of, or change it at its place."""
    canvas = Canvas(view, None)
    if place is None:
        canvas.add(item)
    else:
        canvas.change(place, item)
    return canvas.view, canvas.changed


def _take(canvas: Canvas, notification: Notification) -> None:  # noqa: C901, PLR0912, PLR0915 - one line each
    match notification:
        case PhaseChanged(phase=phase):
            retry = canvas.view.retry if phase is Phase.WAITING_TO_RETRY else None
            canvas.know(phase=phase, since=canvas.at, retry=retry)
            if phase is not Phase.CANCELLING:  # the end of the reply that is cut is still to come
                canvas.await_reply(phase is Phase.AWAITING_LLM_RESPONSE)
        case TurnStarted(turn=turn):
            at = canvas.at
            canvas.know(active=True, turn=turn, started=at, since=at, waited=0.0, received=0, speed=0.0, step=0)
        case TurnResumed():
            _leave_out(canvas)
        case PromptDelivered(prompt_id=prompt_id, content=content, enclosed=enclosed, by=by):
            canvas.add(SaidItem(written_text(content), enclosed, by, prompt_id, own_commands(content), canvas.at))
        case TextDelta() | ThinkingDelta() | CallDelta():
            hear_piece(canvas, notification)
        case ReplyDropped() as dropped:
            canvas.know(spending=canvas.view.spending.with_reply(dropped))
            drop_reply(canvas, dropped)
        case MessageDone():
            finish_reply(canvas, notification)
        case CallChanged():
            take_call(canvas, notification)
        case CallOutput(call_id=call_id, text=text):
            print_output(canvas, call_id, text)
        case ChildChanged():
            follow_child(canvas, notification)
        case ChildSaid():
            pass  # its own session tells what it says
        case QuestionAsked(question=question):
            ask_question(canvas, question)
        case QuestionClosed():
            close_question(canvas, notification)
        case ResultPresented(text=text):
            canvas.know(presented=text)
            canvas.add(ProseItem(text))
        case RetryScheduled(attempt=attempt, seconds=seconds, error=error, most=most, until=until):
            _retry(canvas, RetryItem(error, attempt, seconds, most, until))
        case ContextCompacted():
            canvas.add(CompactedItem(notification))
        case ModeChanged(mode=mode):
            canvas.know(mode=mode)
            canvas.add_beside(ModeItem(mode))
        case ModelChanged(model=model, why=why):
            canvas.know(model=model)
            # One that takes over does so before its reply begins.
            (canvas.add if why else canvas.add_beside)(ModelItem(model, why))
        case ChecklistChanged(text=text):
            canvas.know(checklist=text, listed=True)
        case GoalChanged(goal=goal):
            canvas.know(goal=goal)
            canvas.add_beside(NoteItem(goal_words(goal), goal is not None and goal.state is GoalState.BLOCKED))
        case AllowancesChanged(allowances=allowances):
            canvas.know(allowances=allowances)
        case QueueChanged(prompts=prompts, held=held):
            canvas.know(queue=prompts, held=held)
        case OwnWorkChanged(total=total, restored=now):
            canvas.know(counted=canvas.view.seq, added=total.added, removed=total.removed)
            _mark_restored(canvas, now)
        case FilesRestored(restored=done, conversation=back):
            canvas.add(NoteItem(restored_words(done, conversation=back), bool(done.conflicts or done.error)))
        case ConversationRewound(to=to):
            canvas.know(cuts=cuts_of(canvas.view.cuts, WayBack(canvas.view.seq, to)))
        case Notice(text=text) as notice:
            canvas.know(spending=canvas.view.spending.with_notice(notice))
            canvas.add(NoteItem(text, warns=not notice.quiet))
        case TurnEnded():
            _end_turn(canvas, notification)
        case _:
            assert_never(notification)


def _leave_out(canvas: Canvas) -> None:
    """Do not count the time in which no program worked on the turn."""
    view = canvas.view
    if view.active and canvas.at is not None and canvas.before is not None:
        gone = max(0.0, canvas.at - canvas.before)
        started, asking = (None if one is None else one + gone for one in (view.started, view.asking))
        canvas.know(started=started, asking=asking, since=canvas.at)


def _retry(canvas: Canvas, retry: RetryItem) -> None:
    ends = None if canvas.at is None else canvas.at + retry.seconds
    canvas.know(retry=Retry(retry.error, ends, retry.attempt, retry.most, retry.until > 0))
    canvas.add(retry)


def _end_turn(canvas: Canvas, ended: TurnEnded) -> None:
    settle_reply(canvas)
    canvas.view = replace(canvas.view, reply=ReplyView(), calls=(), proposed=(), silent={}, copied={})
    canvas.await_reply(False)
    view, outcome = canvas.view, ended.outcome
    answer = outcome.text.removeprefix(view.presented).strip() if view.presented else outcome.text
    if outcome.completed and answer.strip():
        canvas.add(ProseItem(answer))
    if (error := outcome.error) is not None:
        said = describe_failure(error, view.model), facts_of(error), advice(error, view.model)
        canvas.add(ProblemItem(*said, failed=error, model=view.model))
    files = tuple(seen_from(view.root, change) for change in outcome.changes)
    seconds = None
    if canvas.at is not None and view.started is not None:
        seconds = max(0.0, canvas.at - view.started - view.waited)
    if view.listed and view.checklist:
        canvas.add(ChecklistItem(view.checklist))
    left_open = open_words(view.checklist) if outcome.completed else ""
    _place_end(canvas, TurnItem(outcome, files, seconds, view.waited, left_open, view.turn))
    canvas.know(
        active=False,
        started=None,
        retry=None,
        presented="",
        stop=outcome.ended,
        listed=False,
        spending=view.spending.with_turn(outcome),
        added=view.added + sum(0 if view.counted else change.added for change in outcome.changes),
        removed=view.removed + sum(0 if view.counted else change.removed for change in outcome.changes),
    )


def _place_end(canvas: Canvas, item: TurnItem) -> None:
    """Put the end of a turn behind all else."""
    placed = canvas.add(item)
    if item.files:
        canvas.view = replace(canvas.view, ends=(*canvas.view.ends, EndedTurn(placed))[-_MOST_ENDS:])


def _mark_restored(canvas: Canvas, now: Sequence[FileChange]) -> None:
    """Leave out of the ends of turns what was restored, by what the session's own change of these files is `now`."""
    if not now:
        return
    known = {change.path: change for change in now}
    canvas.view = replace(canvas.view, ends=tuple(_marked(canvas, one, known) for one in canvas.view.ends))


def _marked(canvas: Canvas, ended: EndedTurn, now: dict[str, FileChange]) -> EndedTurn:
    item = ended.placed.item
    if not isinstance(item, TurnItem):
        return ended
    changes = item.outcome.changes
    told = {one.path: _is_gone(one, now[one.path]) for one in changes if one.path in now}
    gone = frozenset(one.path for one in changes if told.get(one.path, one.path in ended.gone))
    if gone != ended.gone:
        left = tuple(one for one in changes if one.path not in gone)
        files = tuple(seen for one, seen in zip(changes, item.files, strict=True) if one.path not in gone)
        outcome = replace(item.outcome, changes=left)
        canvas.change(ended.placed, replace(item, outcome=outcome, files=files, restored=len(gone)))
    return replace(ended, gone=gone)


def _is_gone(change: FileChange, now: FileChange) -> bool:
    """Whether nothing of a turn's change of a file is left: it is as before the session, or as before that turn."""
    return not (now.before or now.after) or (now.after == change.before and now.after != change.after)
