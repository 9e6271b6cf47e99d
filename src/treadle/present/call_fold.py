"""Calls and the questions about them, as they move on."""

from collections.abc import Callable

from msgspec.structs import replace

from treadle.present.call_words import answer_words
from treadle.present.canvas import Canvas
from treadle.present.child_words import child_line, child_note
from treadle.present.grants import grants_of
from treadle.present.items import Answered, AnswerItem, CallItem, NoteItem, Placed, ProseItem, SaidItem, with_output
from treadle.present.question_words import asked_in_line
from treadle.present.reply_fold import settle_reply
from treadle.present.words import plain
from treadle.protocol.children import ChildOutcome
from treadle.protocol.notifications import CallChanged, CallStatus, ChildChanged, QuestionClosed
from treadle.protocol.permissions import AllowScope, OptionKind, Question, QuestionKind
from treadle.protocol.tools import CallResult, Flow, Outcome


def take_call(canvas: Canvas, changed: CallChanged) -> None:
    """Follow a call; one that does not run shows nothing of itself unless it failed."""
    result = changed.result if changed.status is CallStatus.FINISHED else None
    known = _placed(canvas, changed.call.id)
    if changed.flow is not Flow.RUN and result is not None and result.outcome in (Outcome.OK, Outcome.INTERRUPTED):
        _finish_saying(canvas, changed, result, known)
    elif known is not None:
        _move_on(canvas, known, changed)
    elif (known := canvas.view.copied.get(changed.call.id)) is not None:
        canvas.view = replace(canvas.view, calls=(*canvas.view.calls, known))
        _move_on(canvas, known, changed)
    elif changed.call.id in canvas.view.silent:
        if result is not None:
            canvas.change(canvas.view.silent[changed.call.id], CallItem(changed))
    elif not _change_proposed(canvas, changed.call.id, lambda item: item.moved(changed, canvas.at)):
        _begin_call(canvas, changed)


def _begin_call(canvas: Canvas, changed: CallChanged) -> None:
    item = CallItem(changed, since=canvas.at if changed.status is CallStatus.RUNNING else None)
    is_new = changed.status is CallStatus.PROPOSED or (changed.result is not None and changed.decision is None)
    if is_new:  # what else goes on beside a reply does not cut it
        settle_reply(canvas)
    in_reply = changed.status is CallStatus.PROPOSED or canvas.view.awaiting
    if is_new and in_reply and not canvas.view.reply.heard:
        # In a log a call comes before the reply that it stands in; where it stands there is known then.
        canvas.view = replace(canvas.view, proposed=(*canvas.view.proposed, item))
    else:
        canvas.open_call(item)


def _change_proposed(canvas: Canvas, call_id: str, change: Callable[[CallItem], CallItem]) -> bool:
    """Change a call whose place is not known yet; gives whether there is one."""
    found = any(one.changed.call.id == call_id for one in canvas.view.proposed)
    if found:
        changed = tuple(change(one) if one.changed.call.id == call_id else one for one in canvas.view.proposed)
        canvas.view = replace(canvas.view, proposed=changed)
    return found


def _placed(canvas: Canvas, call_id: str) -> Placed | None:
    for one in canvas.view.calls:
        if isinstance(one.item, CallItem) and one.item.changed.call.id == call_id:
            return one
    return None


def _move_on(canvas: Canvas, known: Placed, changed: CallChanged) -> None:
    if isinstance(known.item, CallItem):
        known = canvas.change(known, known.item.moved(changed, canvas.at))
    if changed.status is CallStatus.FINISHED:
        _close_call(canvas, known)
        if changed.result is not None and changed.result.copy is not None:
            # What is made of the changes in its copy ends it once more.
            copied = {**canvas.view.copied, changed.call.id: known}
            canvas.view = replace(canvas.view, copied=copied)


def _close_call(canvas: Canvas, known: Placed) -> None:
    left = tuple(one for one in canvas.view.calls if one.position != known.position)
    canvas.view = replace(canvas.view, calls=left)


def _finish_saying(canvas: Canvas, changed: CallChanged, result: CallResult, known: Placed | None) -> None:
    """Show what a call said that does not run: an answer to the model's question is the user's own."""
    left = tuple(one for one in canvas.view.proposed if one.changed.call.id != changed.call.id)
    canvas.view = replace(canvas.view, proposed=left)
    if known is not None:
        _close_call(canvas, known)
        canvas.change(known, None)
    if changed.flow is Flow.ASK and result.outcome is Outcome.OK:
        canvas.add(SaidItem(plain(result.content)))


def print_output(canvas: Canvas, call_id: str, text: str) -> None:
    known = _placed(canvas, call_id)
    if known is not None and isinstance(known.item, CallItem):
        canvas.change(known, with_output(known.item, text))


def follow_child(canvas: Canvas, child: ChildChanged) -> None:
    """Follow a subagent: a call that waits for some prints where these are, and the end of each is told."""
    others = canvas.view.children
    known = any(one.session_id == child.session_id for one in others)
    if child.outcome is not None:
        children = tuple(one for one in others if one.session_id != child.session_id)
    elif known:
        children = tuple(child if one.session_id == child.session_id else one for one in others)
    else:
        children = (*others, child)
    canvas.know(children=children)
    call = _placed(canvas, child.call_id)
    if call is not None and isinstance(call.item, CallItem):
        lines = [child_line(one) for one in children if one.call_id == child.call_id]
        canvas.change(call, replace(call.item, output="\n".join(lines), above=0))
    if child.outcome is not None:
        canvas.add_beside(NoteItem(child_note(child), warns=child.outcome is not ChildOutcome.DONE))


def ask_question(canvas: Canvas, question: Question) -> None:
    if any(known.id == question.id for known in canvas.view.questions):
        return
    asking = canvas.view.asking if canvas.view.questions else canvas.at
    canvas.know(questions=(*canvas.view.questions, question), asking=asking)
    _show_waiting(canvas, question)


def _show_waiting(canvas: Canvas, question: Question) -> None:
    """Have the call told anew that waits for the subagent which asks: it may be that all of it waits for the person."""
    asks = next((one for one in canvas.view.children if one.session_id == question.child), None)
    call = None if asks is None else _placed(canvas, asks.call_id)
    if call is not None:
        canvas.change(call, call.item)


def close_question(canvas: Canvas, closed: QuestionClosed) -> None:
    """Close a question, and say how it was answered."""
    question = next((one for one in canvas.view.questions if one.id == closed.question_id), None)
    if question is None:
        return
    left = tuple(one for one in canvas.view.questions if one is not question)
    asking, waited = canvas.view.asking, canvas.view.waited
    if not left and asking is not None:
        waited, asking = waited + max(0.0, (canvas.at or asking) - asking), None
    canvas.know(questions=left, asking=asking, waited=waited)
    _show_waiting(canvas, question)
    if closed.option is None:
        return
    answer = Answered(closed.option, closed.scope, closed.by, closed.text, closed.amended)
    if question.kind is QuestionKind.FOLLOWUP:
        canvas.add(ProseItem(question.text))
    elif question.kind is not QuestionKind.PERMISSION or not _answer_call(canvas, question.call_id, answer):
        known = question.kind is QuestionKind.PERMISSION
        asked = asked_in_line(question) if known else question.text
        canvas.add_beside(AnswerItem(question.kind, asked, answer, answer_words(question, closed) if known else ""))
    grants = grants_of(question)
    if closed.option is OptionKind.ALLOW_ALWAYS and grants is not None:
        saved = f"Rule saved, {grants.where}: {grants.always} · treadle policy show"
        kept = f"Allowed this session: {grants.session} · /approvals"
        canvas.add_beside(NoteItem(saved if closed.scope is AllowScope.USER else kept))


def _answer_call(canvas: Canvas, call_id: str, answer: Answered) -> bool:
    """Note with a call how it was asked about; gives whether it is there."""

    def answered(item: CallItem) -> CallItem:
        return replace(item, answers=(*item.answers, answer))

    known = _placed(canvas, call_id)
    if known is not None and isinstance(known.item, CallItem):
        canvas.change(known, answered(known.item))
        return True
    return _change_proposed(canvas, call_id, answered)
