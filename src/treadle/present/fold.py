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
            canvas.know(counted=canvas.view.seq, added=total.added, removed=total.removed, files=total.files)
            _mark_restored(canvas, now)
        case FilesRestored(restored=done, conversation=back):
            canvas.add(NoteItem(restored_words(done, conversation=back), bool(done.conflicts or done.error)))
        case ConversationRewound(to=to):
            ways = (*canvas.view.ways, WayBack(canvas.view.seq, to))
            canvas.know(ways=ways, cuts=cuts_of(ways))
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
    """Say at the ends of turns what is left of them, by what the session's own change of these files is `now`."""
    if not now:
        return
    ends = canvas.view.ends
    left: list[dict[str, FileChange | None]] = [dict(one.left) for one in ends]
    for known in now:
        found = [(n, change) for n, one in enumerate(ends) for change in one.changes if change.path == known.path]
        rest = _rest(known, [change for _, change in found], [ends[n].left.get(known.path, known) for n, _ in found])
        for (n, change), one in zip(found, rest, strict=True):
            left[n].pop(known.path, None)
            if one != change:
                left[n][known.path] = one
    marked = (_marked(canvas, one, found) for one, found in zip(ends, left, strict=True))
    canvas.view = replace(canvas.view, ends=tuple(marked))


def _rest(
    now: FileChange, made: Sequence[FileChange], were: Sequence[FileChange | None]
) -> Sequence[FileChange | None]:
    """Give what is left of each change that turns made of one file, the oldest first; None where that is nothing.

    `were` are None where nothing was left before.
    """
    if not (now.before or now.after):
        return [None] * len(made)
    after = [n for n, one in enumerate(made, 1) if one.after == now.after]
    before = [n for n, one in enumerate(made) if one.before == now.after]
    if after or before:
        kept = after[-1] if after else before[0]
        return [one if n < kept else None for n, one in enumerate(made)]
    rest = [None if was is None else one for one, was in zip(made, were, strict=True)] if any(were) else list(made)
    if sum(one is not None for one in rest) == 1 and rest[0] is not None and rest[0].before == now.before:
        rest[0] = replace(rest[0], added=now.added, removed=now.removed)  # all that the session's own change is
    return rest


def _marked(canvas: Canvas, ended: EndedTurn, left: dict[str, FileChange | None]) -> EndedTurn:
    item = ended.placed.item
    if not isinstance(item, TurnItem) or left == ended.left:
        return ended
    rest = [left.get(one.path, one) for one in item.outcome.changes]
    files = tuple(
        replace(seen, added=one.added, removed=one.removed)
        for one, seen in zip(rest, item.files, strict=True)
        if one is not None
    )
    outcome = replace(item.outcome, changes=tuple(one for one in rest if one is not None))
    gone = sum(one is None for one in rest)
    shown = replace(item, outcome=outcome, files=files, restored=gone, in_part=len(left) - gone)
    canvas.change(ended.placed, shown)
    return replace(ended, left=left)
