"""The screen of everything that a session's log holds, and the way back from there."""

import asyncio
from collections.abc import Mapping
from itertools import groupby
from typing import Any

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from treadle.door.history import undo_of_restore
from treadle.door.open_session import Reach
from treadle.door.opening import session_log
from treadle.door.past import Points, copy_whole
from treadle.door.reports import (
    PAGE_EVENTS,
    EventTopic,
    Going,
    PastStep,
    TimelinePage,
    event_detail,
    past_steps,
    steps_so_far,
    timeline_page,
)
from treadle.door.review import (
    RestorePreview,
    listed_checkpoints,
    opened_checkpoints,
    restore_preview,
    review_marks,
)
from treadle.present.figures import unseen_words
from treadle.protocol.checkpoints import Restore
from treadle.web.page_requests import answer, body_of, book_of, page
from treadle.web.page_view import PageContent
from treadle.web.restoring_files import restore_in, went_back_words
from treadle.web.rights import PageRoute
from treadle.web.templating import render

_PREVIEWED = 50
"""Files whose differences a preview shows."""

_LONGEST_NUMBER = 12

_MOST_STEPS, _FOLDED = 1_000, 3
"""Messages and steps that are shown at once, and how many that changed nothing are one line."""


async def _show(request: Request) -> Response:
    if {"topic", "at", "before", "after", "view"}.isdisjoint(request.query_params):
        opened = book_of(request).find(request.path_params["session_id"])
        content = None if opened is None else opened.content
        return await page(request, "steps.html", **await asyncio.to_thread(_steps, request, content))
    return await page(request, "timeline.html", **await asyncio.to_thread(_whole, request))


def _steps(request: Request, content: PageContent | None) -> dict[str, Any]:
    """Give the steps, those in a row that changed nothing together; of their calls what the conversation says."""
    with session_log(request.path_params["session_id"]) as (row, store):
        every = past_steps(store, row)
        until = min(_number(request.query_params.get("until", "0")) or len(every), len(every))
        first = max(0, until - _MOST_STEPS)
        steps = every[first:until]
        groups: list[tuple[bool, list[PastStep]]] = []
        for folds, found in groupby(steps, key=lambda one: bool(one.number) and not one.changed):
            group = list(found)
            folded = folds and len(group) >= _FOLDED and group[-1] is not steps[-1]
            groups.append((folded, group))
        content = content or book_of(request).past(row.id)
        return {
            "session_id": row.id,
            "title": row.title or row.id,
            "notes": content.notes({call.id for step in steps for call in step.calls}),
            "events": row.events,
            "steps_so_far": steps_so_far(store, row.id),
            "checkpoints": len(listed_checkpoints(store, row.id)),
            "groups": groups,
            "earlier": first,
            "later": len(every) - until,
        }


async def _rows(request: Request) -> Response:
    """Give more events, for a page that is open already."""

    def rendered() -> str:
        with session_log(request.path_params["session_id"]) as (row, store):
            found = timeline_page(store, row, _topic(request), **_place(request.query_params))
            return render("timeline_rows.html", session_id=row.id, found=found)

    return HTMLResponse(await asyncio.to_thread(rendered))


def _whole(request: Request) -> dict[str, Any]:
    topic = _topic(request)
    with session_log(request.path_params["session_id"]) as (row, store):
        found: TimelinePage = timeline_page(store, row, topic, **_place(request.query_params))
        return {
            "session_id": row.id,
            "title": row.title or row.id,
            "found": found,
            "topic": topic or "",
            "topics": list(EventTopic),
            "most": PAGE_EVENTS,
            "checkpoints": [one.n for one in listed_checkpoints(store, row.id)],
        }


def _topic(request: Request) -> EventTopic | None:
    wanted = request.query_params.get("topic", "")
    return EventTopic(wanted) if wanted in tuple(EventTopic) else None


def _place(given: Mapping[str, str]) -> dict[str, Any]:
    """Read which page is wanted: before, after or around an event."""
    for name, going in (("at", Going.AROUND), ("before", Going.BEFORE), ("after", Going.AFTER)):
        if name in given:
            return {"at": _number(given[name]), "going": going}
    return {}


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
        raise HTTPException(400, "An event is a number.")
    return int(text)


async def _event(request: Request) -> Response:
    """Give all that is known of one event."""

    def rendered() -> str:
        with session_log(request.path_params["session_id"]) as (row, store):
            detail = event_detail(store, row, _number(request.path_params["seq"]))
            return render("timeline_event.html", session_id=row.id, detail=detail)

    return HTMLResponse(await asyncio.to_thread(rendered))


async def _news(request: Request) -> Response:
    """Say how far the log is, and what was decided in the review, for pages that show an earlier state of it."""

    def found() -> dict[str, object]:
        with session_log(request.path_params["session_id"]) as (row, store):
            taken, steps = listed_checkpoints(store, row.id), steps_so_far(store, row.id)
            marks = str(hash(frozenset(review_marks(row.id).items())))  # it only says whether they are others
            return {"events": row.events, "steps": steps, "checkpoints": len(taken), "marks": marks}

    return answer(await asyncio.to_thread(found))


class _Wish(Struct):
    checkpoint: int = 0
    files: bool = False
    conversation: bool = False
    to: int = 0
    seen: int = 0
    row: int = 0

    def restore(self) -> Restore:
        if min(self.checkpoint, self.to, self.seen) < 0 or not (self.files or self.conversation):
            raise HTTPException(400, "Say what is to be restored.")
        return Restore(checkpoint=self.checkpoint, files=self.files, conversation=self.conversation, to=self.to)


async def _preview(request: Request) -> Response:
    """Show what restoring would do, with the number of the last event that was looked at."""
    wish = await body_of(request, _Wish)
    wanted = wish.restore()

    def rendered() -> dict[str, Any]:
        with session_log(request.path_params["session_id"]) as (row, store):
            kept = opened_checkpoints(store, row)
            try:
                found = restore_preview(store, row, kept, wanted, diffs=_PREVIEWED)
            finally:
                kept.close()
            past = past_steps(store, row)
            steps = [one for one in past if one.number and not one.left] if wanted.conversation else []
            place = next((one.place for one in past if one.seq == wish.row), f"checkpoint {wanted.checkpoint}")
            leaving = sum((one.replied or one.seq) > found.to for one in steps)
            html = render(
                "restore_preview.html",
                found=found,
                wanted=wanted,
                place=place,
                folder=row.workspace,
                leaving=leaving,
                steps=len(steps),
            )
            return {"html": html, "seen": row.events, "button": _button(found, wanted)}

    return answer(await asyncio.to_thread(rendered))


def _button(found: RestorePreview, wanted: Restore) -> dict[str, Any]:
    """Give the button that restores: what it says, and whether there is nothing for it to do."""
    goes = any(one.what in ("write", "delete") for one in found.paths)
    only = (
        "the conversation"
        if wanted.files and not goes
        else "the files"
        if wanted.conversation and not found.moves
        else ""
    )
    words = f"Restore only {only}" if only else "Restore"
    nothing = not (goes or found.moves)
    return {"textContent": "Nothing to restore" if nothing else words, "disabled": nothing}


async def _restore(request: Request) -> Response:
    """Bring files, the conversation or both back."""
    wish = await body_of(request, _Wish)
    went = await restore_in(request, wish.restore(), seen=wish.seen)
    return answer(went_back_words(request.path_params["session_id"], went))


class _Turn(Struct):
    turn: int
    """0 stands for the last way back."""


async def _undo(request: Request) -> Response:
    """Take back what a turn changed in the files, the last one, which the person saw the end of, or a way back."""
    last = await body_of(request, _Turn)
    if not last.turn:
        wish, seen = await asyncio.to_thread(undo_of_restore, request.path_params["session_id"])
        went = await restore_in(request, wish, seen=seen)
        return answer(went_back_words(request.path_params["session_id"], went))

    def wanted() -> tuple[int, str]:
        with session_log(request.path_params["session_id"]) as (row, store):
            points = Points(store, row.id)
            return points.undo_of(last.turn), unseen_words(points.turns()[-1].unseen)

    n, unseen = await asyncio.to_thread(wanted)
    said = went_back_words(request.path_params["session_id"], await restore_in(request, Restore(checkpoint=n)))
    said["conflicts"] += filter(None, (unseen,))
    return answer(said)


class _Fork(Struct):
    seq: int


async def _fork(request: Request) -> Response:
    """Copy the session as it was after the step, or before the message, that began with an event; gives its id."""
    said = await body_of(request, _Fork)

    def copied() -> str:
        with session_log(request.path_params["session_id"]) as (row, store):
            step = next((one for one in past_steps(store, row) if one.seq == said.seq), None)
        if step is None or not (step.checkpoint or step.turn):
            raise HTTPException(404, "There is nothing to copy from: no checkpoint, and no end of a turn.")
        place = step.place if step.number else "an earlier message"
        turn = None if step.checkpoint else step.turn
        return copy_whole(row.id, turn, checkpoint=step.checkpoint, to=step.to, named_from=place)

    return answer({"session": await asyncio.to_thread(copied)})


ROUTES = (
    PageRoute("/s/{session_id}/timeline", _show, Reach.SEE),
    PageRoute("/s/{session_id}/timeline/rows", _rows, Reach.SEE),
    PageRoute("/s/{session_id}/timeline/event/{seq}", _event, Reach.SEE),
    PageRoute("/s/{session_id}/news", _news, Reach.SEE),
    PageRoute("/s/{session_id}/restore/preview", _preview, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/restore", _restore, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/undo", _undo, Reach.WORK, methods=["POST"]),
    PageRoute("/s/{session_id}/timeline/fork", _fork, Reach.WORK, methods=["POST"]),
)
