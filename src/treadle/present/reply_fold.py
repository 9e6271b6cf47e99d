"""A reply as it streams, or whole as a log has it: the same items come of it, in whatever pieces it was heard."""

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from treadle.present.canvas import Canvas
from treadle.present.items import CallItem, Item, NoteItem, Placed, ProseItem, ThoughtItem, WritingItem
from treadle.present.prose import LONGEST_BLOCK, Growing, cut_blocks, grow
from treadle.present.view import FoldedView, ReplyView, SessionView
from treadle.protocol.attach import Stamped
from treadle.protocol.messages import Message, Text, Thinking, ToolUse
from treadle.protocol.notifications import CallDelta, MessageDone, Phase, ReplyDropped, TextDelta, ThinkingDelta

_SHOWN_WRITING = 2_000
"""Characters of the end of what is still being written."""

CUT_OFF_HERE = "Cut off here: Treadle ended before the reply did."

_MOST_THOUGHT = 40_000
_KEPT_ARGUMENT = 120
_NOTHING = Growing()


def grow_item(view: SessionView, stamped: Stamped) -> FoldedView | None:
    """Take more of what grows already, as nearly every piece is; None where more than that item changes."""
    reply = view.reply
    match stamped.notification:
        case _ if view.proposed:
            return None
        case TextDelta(text=more) if reply.tail is not None and "\n" not in more:
            text = reply.growing.text + more
            if len(text) > LONGEST_BLOCK:
                return None
            growing = replace(reply.growing, text=text, closed=0, cut=False)
            grown = _grown(view, reply.tail, _still_growing(growing))
            reply = replace(reply, size=reply.size + len(more), tail=grown, growing=growing)
        case ThinkingDelta(text=more) if reply.thought is not None:
            whole = len(reply.thinking) >= _MOST_THOUGHT
            thinking = reply.thinking if whole else (reply.thinking + more)[:_MOST_THOUGHT]
            grown = _grown(view, reply.thought, _more_thought(reply.thought, more))
            reply = replace(reply, size=reply.size + len(more), thought=grown, thinking=thinking)
        case CallDelta(text=more) if reply.writing is not None and _is_at_rest(reply):
            grown = _grown(view, reply.writing, _written(reply.writing.item, stamped.notification))
            reply = replace(reply, size=reply.size + len(more), writing=grown)
        case _:
            return None
    return replace(view, version=grown.version, seq=max(view.seq, stamped.seq), reply=reply), (grown,)


def _is_at_rest(reply: ReplyView) -> bool:
    """Whether neither words nor thoughts of it grow."""
    return reply.thought is None and reply.tail is None and reply.growing == _NOTHING


def _grown(view: SessionView, placed: Placed, item: Item) -> Placed:
    return Placed(placed.position, view.version + 1, placed.seq, item)


def _more_thought(thought: Placed, more: str) -> ThoughtItem:
    known = thought.item.text if isinstance(thought.item, ThoughtItem) else ""
    return ThoughtItem((known + more)[-_SHOWN_WRITING:], growing=True)


def hear_piece(canvas: Canvas, piece: TextDelta | ThinkingDelta | CallDelta) -> None:
    canvas.show_all_proposed()
    reply = canvas.view.reply
    began = canvas.at if reply.began is None else reply.began
    canvas.set_reply(heard=True, size=reply.size + len(piece.text), began=began)
    match piece:
        case TextDelta(text=text):
            _write(canvas, text)
        case ThinkingDelta(text=text):
            _think(canvas, text)
        case CallDelta():
            _write_call(canvas, piece)


def _write(canvas: Canvas, text: str) -> None:
    """Take more of the answer, cut so that the same items come of it in whatever pieces it came."""
    _end_thought(canvas)
    growing, tail = canvas.view.reply.growing, canvas.view.reply.tail
    for finished, opened, growing in _grown_by(growing, text):  # noqa: B020 - what it is after each block
        if finished.strip():
            item = ProseItem(finished, opened=opened, closed=growing.closed, cut=growing.cut)
            if tail is None:
                canvas.add_to_reply(item)
            else:
                canvas.change(tail, item)
                tail = None
    if tail is not None:
        tail = canvas.change(tail, _still_growing(growing))
    elif growing.text.strip():
        tail = canvas.add_to_reply(_still_growing(growing))
    canvas.set_reply(growing=growing, tail=tail)


def _grown_by(growing: Growing, text: str) -> Iterator[tuple[str, int, Growing]]:
    """Give each block that a text finishes, how much of it nobody wrote, and what grows behind it."""
    opened = growing.opened
    if len(growing.text) + len(text) <= LONGEST_BLOCK:
        blocks, growing = cut_blocks(growing, text)
        for block in blocks:
            yield block, opened, growing
            opened = 0
        yield "", 0, growing
        return
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        full = at + LONGEST_BLOCK - len(growing.text)
        # A line that a block has room for is whole; of another one the end comes by itself, as it does in pieces.
        cut = end if end <= full else max(at + 1, min(full + 1, end - 1))
        opened = growing.opened
        finished, growing = grow(growing, text[at:cut])
        at = cut
        yield finished, opened, growing


def _still_growing(growing: Growing) -> ProseItem:
    return ProseItem(growing.text, growing=True, opened=growing.opened)


def _think(canvas: Canvas, text: str) -> None:
    _end_text(canvas)
    reply = canvas.view.reply
    if reply.thought is None:
        thought, since = canvas.add_to_reply(ThoughtItem(text[-_SHOWN_WRITING:], growing=True)), canvas.at
    else:
        thought, since = canvas.change(reply.thought, _more_thought(reply.thought, text)), reply.thinking_since
    canvas.set_reply(thought=thought, thinking=(reply.thinking + text)[:_MOST_THOUGHT], thinking_since=since)


def _end_thought(canvas: Canvas) -> None:
    reply = canvas.view.reply
    if reply.thought is None:
        return
    since = reply.thinking_since
    seconds = None if canvas.at is None or since is None or not reply.heard else max(0.0, canvas.at - since)
    item = ThoughtItem(reply.thinking, seconds=seconds) if reply.thinking.strip() else None
    canvas.change(reply.thought, item)
    canvas.set_reply(thought=None, thinking="", thinking_since=None)


def _end_text(canvas: Canvas) -> None:
    reply = canvas.view.reply
    if reply.tail is not None:
        item = replace(_still_growing(reply.growing), growing=False)
        canvas.change(reply.tail, item if item.markdown.strip() else None)
    if reply.tail is not None or reply.growing != _NOTHING:
        canvas.set_reply(tail=None, growing=_NOTHING)


def _write_call(canvas: Canvas, delta: CallDelta) -> None:
    _end_thought(canvas)
    _end_text(canvas)
    writing = canvas.view.reply.writing
    item = _written(None if writing is None else writing.item, delta)
    canvas.set_reply(writing=canvas.add(item) if writing is None else canvas.change(writing, item))


def _end_writing(canvas: Canvas) -> None:
    if canvas.view.reply.writing is not None:
        canvas.change(canvas.view.reply.writing, None)
    canvas.set_reply(writing=None)


def settle_reply(canvas: Canvas) -> None:
    """Settle what of the reply still grows."""
    _end_thought(canvas)
    _end_text(canvas)
    _end_writing(canvas)


def drop_reply(canvas: Canvas, dropped: ReplyDropped) -> None:
    """Withdraw what was streamed, and its calls; the words stay that the user cut, or that a killed program left."""
    kept = dropped.kept
    heard = canvas.view.reply.heard
    settle_reply(canvas)
    for placed in (*chain.from_iterable(canvas.view.reply.items), *canvas.view.calls):
        if kept is None or isinstance(placed.item, CallItem):
            canvas.change(placed, None)
    canvas.view = replace(canvas.view, reply=ReplyView(), calls=(), proposed=(), silent={})
    if kept is not None and not heard:
        _show_message(canvas, kept, in_one=False)
        canvas.view = replace(canvas.view, reply=ReplyView())  # what is dropped later is another reply
    if kept is not None and dropped.left:
        canvas.add(NoteItem(CUT_OFF_HERE))
    canvas.await_reply(canvas.view.awaiting and canvas.view.phase is Phase.AWAITING_LLM_RESPONSE)


def finish_reply(canvas: Canvas, done: MessageDone) -> None:
    """Close the reply; of one that nobody heard streaming, as in a log, show what it says in its order."""
    heard, speed = canvas.view.reply.heard, canvas.view.reply.speed(done.usage.output_tokens, canvas.at)
    settle_reply(canvas)
    if not heard:
        _show_message(canvas, done.message)
    canvas.show_all_proposed()
    canvas.view = replace(canvas.view, reply=ReplyView())
    canvas.await_reply(False)
    canvas.know(
        step=done.step,
        received=canvas.view.received + done.usage.output_tokens,
        speed=speed,
        spending=canvas.view.spending.with_reply(done),
    )


def _show_message(canvas: Canvas, message: Message, *, in_one: bool = True) -> None:
    """Show what a message says; texts of one that was cut are not `in_one`: calls that stood between are gone."""
    for block in message.content:
        match block:
            case Thinking(text=text):
                _think(canvas, text)
            case Text(text=text):
                _write(canvas, text)
                if not in_one:
                    _end_text(canvas)
            case ToolUse(id=call_id):
                settle_reply(canvas)
                canvas.show_proposed(call_id)
            case _:
                pass
    settle_reply(canvas)


def _written(item: Item | None, delta: CallDelta) -> WritingItem:
    """Add to the call that the model writes."""
    known = item if isinstance(item, WritingItem) else WritingItem(delta.index, delta.name)
    if known.index != delta.index or (delta.name and delta.name != known.tool):
        known = WritingItem(delta.index, delta.name)
    parameter = delta.parameter or known.parameter
    begins = parameter == (known.first or parameter)
    return WritingItem(
        index=known.index,
        tool=known.tool,
        first=known.first or parameter,
        argument=(known.argument + delta.text)[:_KEPT_ARGUMENT] if begins else known.argument,
        parameter=parameter,
        text=((known.text if parameter == known.parameter else "") + delta.text)[-_SHOWN_WRITING:],
        size=known.size + len(delta.text),
    )
